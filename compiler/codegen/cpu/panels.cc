// What the rows of tiles share: copies of columns (include/umbra/prelude/panel.h), as every tile of a launch with many
// rows reads them again, each time as many lines, pages and sets of the caches as it has steps; columns whose elements
// do not lie side by side are turned on the way, and what is computed of columns alone is computed once. And parts of
// the innermost axis, so that what is read again of it is near.
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/codegen/cpu/tiles.h"
#include "compiler/codegen/literal.h"
#include "compiler/codegen/reductions.h"

namespace umbra::codegen {

bool TileEmitter::GoesByParts() const {
  if (signature_.panels.empty() || width_ == 1) return false;
  const runtime::Extent& inner = signature_.axes.back();
  return !inner.is_static() || inner.value > runtime::kLeastSteps;
}

void TileEmitter::OpenPart() {
  const bool packed = options_.variant.packed;
  const int innermost = kernel_.rank() - 1;
  const std::string n = ExtentName(innermost);
  tile_.first = names_.Make("first"), part_count_ = names_.Make("count"), tile_.steps = names_.Make("steps"),
  tile_.columns = names_.Make("columns");
  out_.Line("const long long {} = args->extent[{}];", tile_.steps, OwnNumbers());
  out_.Line("const long long {} = {};", tile_.columns,
            packed ? std::to_string(tile_.packets * width_) : Padded(ExtentName(vector_axis_)));
  int place = 0;
  for (const auto& reduction : kernel_.phases[0].reductions) {
    const std::string name = names_.Make(AccumulatorName(kernel_, reduction) + "_so_far"),
                      type = ElementType(value(reduction.result).type);
    const std::string rows = tile_.axis == 0 ? "(end - begin)" : ExtentName(tile_.axis);
    const std::string each =
        packed ? fmt::format("{} * {}", rows, runtime::kPanelBytes) : fmt::format("{} * {} * 8", rows, tile_.columns);
    std::string offset =
        packed ? fmt::format(" + {} * {}", static_cast<index_t>(signature_.panels.size()) * runtime::kPanelBytes,
                             tile_.steps)
               : "";
    if (place > 0) offset += fmt::format(" + {} * {}", place, each);
    ++place;
    out_.Line("{0}* const {1} = reinterpret_cast<{0}*>(static_cast<char*>(args->scratch){2});", type, name, offset);
    tile_.kept[reduction.result] = name;
  }
  out_.Open("for (long long {0} = 0; {0} == 0 || {0} < {1}; {0} += {2})", tile_.first, n, tile_.steps);
  out_.Line("const long long {} = smaller({}, {} - {});", part_count_, tile_.steps, n, tile_.first);
  for (std::size_t k = 0; k < operands_.size(); ++k) {
    Operand& o = operands_[k];
    if (Moves(signature_.operands[k], tile_.axis) || !Moves(signature_.operands[k], innermost)) continue;
    const std::string from = o.name;
    o.name = names_.Make(from + "_part");
    out_.Line("{} = {} + {} * {};", PointerText(k), from, tile_.first,
              o.stride_names[static_cast<std::size_t>(innermost)]);
  }
}

void TileEmitter::ClosePart() {
  out_.Close();
  tile_.first.clear();
  part_count_.clear();
  tile_.kept.clear();
}

std::string TileEmitter::KeptSum(const plan::Reduction& reduction, const std::string& row,
                                 const std::string& column) const {
  const std::string at = tile_.axis == 0 ? fmt::format("({} - begin)", row) : row;
  return fmt::format("{} + {} * {}{}", tile_.kept.at(reduction.result), at, tile_.columns,
                     column.empty() ? "" : " + " + column);
}

std::string TileEmitter::KeptSum(const plan::Reduction& reduction, const std::string& row) const {
  return KeptSum(reduction, row,
                 !options_.variant.packed ? TileIndex()
                 : tile_.packets > 1      ? fmt::format("c * {}", width_)
                                          : "");
}

void TileEmitter::ResumeSums(const std::string& row) {
  out_.Open("if ({} == 0)", tile_.first);
  BeginSums();
  out_.Middle("} else {");
  for (const auto& reduction : kernel_.phases[0].reductions)
    EachOfTile({true, true}, [&] {
      out_.Line("{} = {};", accumulator_[reduction.result] + TileAt({true, true}),
                speller_->Load(value(reduction.result).type, KeptSum(reduction, row)).text);
    });
  out_.Close();
}

void TileEmitter::KeepSums(const std::string& row) {
  for (const auto& reduction : kernel_.phases[0].reductions)
    EachOfTile({true, true}, [&] {
      const DType type = value(reduction.result).type;
      out_.Line("{};", speller_->Store(type, KeptSum(reduction, row),
                                       {accumulator_[reduction.result] + TileAt({true, true})}));
    });
}

void TileEmitter::DeclarePanels() {
  tile_.panels.clear();
  if (width_ == 1) return;
  const int inner = signature_.row_axes, columns = tile_.packets * width_;
  const std::string count = BlockEnd(inner), steps = part_count_.empty() ? count : tile_.steps;
  const std::vector<int> made = plan::PanelValues(kernel_);
  // Operands that are read for something else than what is computed of columns alone.
  for (const int id : made) tile_.made[id] = "";
  FindNeeded();
  std::set<int> read;
  for (const int id : tile_.early)
    if (value(id).kind == Value::Kind::kLoad) read.insert(value(id).index);
  int place = 0;
  std::size_t next_made = 0;
  for (const int k : signature_.panels) {
    const std::string offset = place == 0 ? "" : fmt::format(" + {} * {}", place * runtime::kPanelBytes, steps);
    ++place;
    const auto declare = [&](const std::string& type, const std::string& name) {
      out_.Line("{0}* const {1} = reinterpret_cast<{0}*>(static_cast<char*>(args->scratch){2});", type, name, offset);
    };
    if (k < 0) {
      const int id = made[next_made++];
      tile_.made[id] = names_.Make(NameOf(id) + "_panel");
      declare(ElementType(value(id).type), tile_.made[id]);
      continue;
    }
    Operand& o = operands_[static_cast<std::size_t>(k)];
    std::string &by_step = o.stride_names[static_cast<std::size_t>(inner)],
                &by_column = o.stride_names[static_cast<std::size_t>(vector_axis_)];
    const bool turned = !by_column.empty();
    if (!turned && read.count(k) == 0) continue;
    const std::string panel = names_.Make(o.name + "_panel");
    declare(ElementType(OperandType(k)), panel);
    out_.Line("pack_panel<{}, {}>({}, {} + {}{}, {}, {}, {}, {});", width_, tile_.packets, panel, o.name, ColumnIndex(),
              turned ? " * " + by_column : "", count, by_step, turned ? by_column : "1",
              tile_.lanes.empty() ? std::to_string(columns) : tile_.lanes);
    by_step = std::to_string(columns);
    by_column.clear();
    o.name = panel;
    tile_.panels.insert(k);
  }
  if (!made.empty()) MakePanels();
}

void TileEmitter::MakePanels() {
  const int inner = signature_.row_axes;
  const Phase& phase = kernel_.phases[0];
  const Names outer = names_;
  const int rows = std::exchange(tile_.rows, 1);
  const std::map<int, std::string> made = std::exchange(tile_.made, {});
  std::set<int> needed;
  for (const auto& [id, panel] : made) Need(id, &needed);
  out_.Open("");
  for (const int id : phase.row_values)
    if (needed.count(id) != 0) DefineInTile(id);
  out_.Open("for (long long i{0} = 0; i{0} < {1}; ++i{0})", inner, BlockEnd(inner));
  for (const int id : phase.element_values)
    if (needed.count(id) != 0) DefineInTile(id);
  EachOfTile({false, true}, [&] {
    for (const auto& [id, panel] : made)
      out_.Line("{};", speller_->Store(value(id).type, InPanel(panel), AsPacket(id)));
  });
  out_.Close();
  out_.Close();
  tile_.rows = rows;
  tile_.made = made;
  names_ = outer;
}

std::string TileEmitter::InPanel(const std::string& panel) const {
  return fmt::format("{} + i{} * {}{}", panel, kernel_.rank() - 1, tile_.packets * width_,
                     tile_.packets > 1 ? fmt::format(" + c * {}", width_) : "");
}

bool TileEmitter::AsksForNextTile(int operand) const {
  return operand >= 0 && !options_.variant.packed && tile_.packets > 1 && tile_.rows > 1 && width_ > 1 &&
         VectorStride(operand).empty();
}

void TileEmitter::PrefetchNextTile() {
  const int columns = tile_.packets * width_;
  for (const int k : signature_.panels) {
    if (!AsksForNextTile(k)) continue;
    const int size = static_cast<int>(SizeOf(OperandType(k))), lines = (columns * size + kLine - 1) / kLine;
    Prefetch(OperandType(k), Address(k, fmt::format("{} + {}", ColumnIndex(), columns)), lines * kLine / size, 1);
  }
}

std::string TileEmitter::TileIndexOf(int operand) const {
  if (tile_.panels.count(operand) == 0) return TileIndex();
  return tile_.packets > 1 ? fmt::format("c * {}", width_) : "";
}

}  // namespace umbra::codegen
