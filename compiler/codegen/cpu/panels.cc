// Copies of the columns that the rows of tiles share (include/umbra/prelude/panel.h): every tile of a launch with many rows
// reads them again, each time as many lines, pages and sets of the caches as it has steps. Columns whose elements do not lie
// side by side are turned on the way.
#include <string>
#include <vector>

#include "compiler/codegen/cpu/emitter.h"

namespace umbra::codegen {

void CpuEmitter::DeclarePanels(int packets, const std::string& lanes) {
  tile_.panels.clear();
  if (width_ == 1) return;
  const int inner = signature_.row_axes, columns = packets * width_;
  const runtime::Extent& rows = signature_.axes[static_cast<std::size_t>(tile_.axis)];
  const bool few = rows.is_static() && rows.value <= runtime::kFewRows;
  int place = 0;
  for (const int k : plan::PanelOperands(kernel_)) {
    Operand& o = operands_[static_cast<std::size_t>(k)];
    std::string &by_step = o.stride_names[static_cast<std::size_t>(inner)], &by_column = o.stride_names[static_cast<std::size_t>(vector_axis_)];
    const bool turned = !by_column.empty();
    const std::string offset = place == 0 ? "" : fmt::format(" + {} * {}", place * runtime::kPanelBytes, ExtentName(inner));
    ++place;
    if (few && !turned) continue;
    const std::string type = ElementType(OperandType(k)), panel = names_.Make(o.name + "_panel");
    const std::string first = fmt::format("{} + {}{}", o.name, ColumnIndex(), turned ? " * " + by_column : "");
    const std::string memory = fmt::format("reinterpret_cast<{}*>(static_cast<char*>(args->scratch){})", type, offset);
    const auto pack = [&](const std::string& to, const std::string& source) {
      out_.Line("pack_panel<{}, {}>({}, {}, {}, {}, {}, {});", width_, packets, to, source, ExtentName(inner), by_step,
                turned ? by_column : "1", lanes.empty() ? std::to_string(columns) : "lanes");
    };
    if (turned) {
      out_.Line("{}* {} = {};", type, panel, memory);
      pack(panel, first);
      by_step = std::to_string(columns);
      by_column.clear();
    } else {
      const std::string step = names_.Make(o.name + "_step");
      out_.Line("const {}* {} = {};", type, panel, first);
      out_.Line("long long {} = {};", step, by_step);
      out_.Open("if (args->scratch != nullptr)");
      out_.Line("{0}* const copy = {1};", type, memory);
      pack("copy", panel);
      out_.Line("{} = copy, {} = {};", panel, step, columns);
      out_.Close();
      by_step = step;
    }
    o.name = panel;
    tile_.panels.insert(k);
  }
}

std::string CpuEmitter::TileIndexOf(int operand) const {
  if (tile_.panels.count(operand) == 0) return TileIndex();
  return tile_.packets > 1 ? fmt::format("c * {}", width_) : "";
}

}  // namespace umbra::codegen
