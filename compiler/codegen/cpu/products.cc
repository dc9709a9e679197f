// Tiles of products of matrices, which functions of the prelude sum (include/umbra/prelude/tile.h).
#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "compiler/codegen/cpu/tiles.h"
#include "compiler/codegen/reductions.h"

namespace umbra::codegen {

namespace {

constexpr index_t kFewSteps = 12;  // of which a sum takes no longer than a call, and results that go through memory

}  // namespace

std::optional<TileEmitter::Factors> TileEmitter::FindFactors() const {
  const Phase& phase = kernel_.phases[0];
  const int innermost = kernel_.rank() - 1;
  if (tile_.rows == 1 || !LoadsFillPackets() || options_.spelling != Spelling::kPackets) return std::nullopt;
  if (signature_.row_axes != innermost || IsCut(innermost) || phase.reductions.size() != 1 ||
      !AddsProduct(phase.reductions[0]))
    return std::nullopt;
  const runtime::Extent& inner = signature_.axes[static_cast<std::size_t>(innermost)];
  if (inner.is_static() && inner.value <= kFewSteps) return std::nullopt;
  const Value& product = value(phase.reductions[0].value);
  const auto is_factor = [&](int id, Share share) {
    const Value& v = value(id);
    if (v.type != product.type || v.scope != Scope::kElement || ShareOf(id).row != share.row ||
        ShareOf(id).column != share.column)
      return false;
    if (tile_.made.count(id) != 0) return true;
    if (v.kind != Value::Kind::kLoad || signature_.operands[static_cast<std::size_t>(v.index)].gathered) return false;
    return OperandType(v.index) == v.type && (share.row || VectorStride(v.index).empty());
  };
  for (const auto& [row, column] :
       {std::pair(product.args[0], product.args[1]), std::pair(product.args[1], product.args[0])})
    if (is_factor(row, {true, false}) && is_factor(column, {false, true})) return Factors{row, column};
  return std::nullopt;
}

void TileEmitter::OpenRows() {
  if (tile_.called) out_.Line("UMBRA_ROLL");
  out_.Open("for (int r = 0; r < {}; ++r)", tile_.called ? tile_.there : std::to_string(tile_.rows));
}

void TileEmitter::DeclareRowPointers() {
  std::set<int> needed;
  for (const auto& store : kernel_.final_stores) Need(store.value, &needed);
  for (std::size_t k = 0; k < operands_.size(); ++k) {
    const auto operand = static_cast<int>(k);
    const bool is_read = std::any_of(needed.begin(), needed.end(), [&](int id) {
      return value(id).kind == Value::Kind::kLoad && value(id).index == operand && tile_.early.count(id) == 0;
    });
    if ((is_read || signature_.operands[k].store) && Moves(signature_.operands[k], tile_.axis))
      out_.Line("{} = {};", PointerText(k), TileRowAddress(k, TileRow()));
  }
}

void TileEmitter::ProductTile(const Factors& factors, const std::string& last) {
  const plan::Reduction& reduction = kernel_.phases[0].reductions[0];
  const int innermost = kernel_.rank() - 1;
  tile_.called = true;
  tile_.there = std::to_string(tile_.rows);
  if (!tile_.pairs) {
    tile_.there = names_.Make("rows");
    out_.Line("const int {} = static_cast<int>(smaller({} - j{}, {}));", tile_.there, last, tile_.axis, tile_.rows);
  }
  PrefetchResults();
  const std::string sums = DeclareSums(reduction);
  std::string kept = "nullptr, 0, false, false";
  if (!tile_.first.empty())
    kept = fmt::format("{}, {}, {} > 0, {} + {} < {}",
                       KeptSum(reduction, fmt::format("j{}", tile_.axis), options_.variant.packed ? "" : ColumnIndex()),
                       tile_.columns, tile_.first, tile_.first, part_count_, ExtentName(innermost));
  const auto stride = [&](int operand, int axis) {
    const std::string& text = operands_[static_cast<std::size_t>(operand)].stride_names[static_cast<std::size_t>(axis)];
    return text.empty() ? std::string("1") : text;
  };
  const int x = value(factors.row).index;
  const std::string rows =
      fmt::format("{}, {}, {}, {}", TileRowAddress(static_cast<std::size_t>(x), fmt::format("j{}", tile_.axis)),
                  stride(x, tile_.axis), tile_.there, stride(x, innermost));
  std::string columns;
  bool ahead = false;
  if (const auto made = tile_.made.find(factors.column); made != tile_.made.end()) {
    columns = fmt::format("{}, {}", made->second, tile_.packets * width_);
  } else {
    const int w = value(factors.column).index;
    columns = fmt::format("{}{}, {}", operands_[static_cast<std::size_t>(w)].name,
                          tile_.panels.count(w) != 0 ? "" : " + " + ColumnIndex(), stride(w, innermost));
    ahead = AsksForNextTile(w);
  }
  RemarkPlace(reduction.result);
  const std::string arguments = fmt::format("({}, {}, {}, {}, {}", sums, kept, rows, columns, BlockEnd(innermost));
  if (!HasWholeColumns()) out_.Line("add_products_head{}, {});", arguments, tile_.lanes);
  else if (tile_.packets == 1) out_.Line("add_products_by_line<{}>{});", tile_.pairs, arguments);
  else out_.Line("add_products<{}>{});", ahead, arguments);
  EndTile(last, TileRow());
  tile_.called = false;
}

}  // namespace umbra::codegen
