// Elementwise kernels with transposed operands: tiles that are transposed in registers, in blocks of rows and columns.
#include "compiler/codegen/cpu/transposed.h"

#include <algorithm>
#include <set>
#include <string>

#include "runtime/turned_lines.h"

namespace umbra::codegen {

namespace {

// Lines that a block has of a row of a transposed operand, which are read one after the other; and where results go
// past the caches and a packet is a line.
constexpr int kBlockLines = 8, kStreamedLines = 4;

// Of a processor that brings them by itself: lines of memory that are walked side by side, and as many lines of each.
constexpr int kFewLines = 32, kLongLines = 64;

// Of a processor that has to be asked: lines of a row, and columns.
constexpr int kAskedLines = 32, kAskedColumns = 64;

// Work of an element, in additions, up to which the rows of a tile are written one by one, which leaves it in
// registers.
constexpr double kUnrolled = 16;

// Rows ahead that other operands of a row are asked for.
constexpr int kRowsAhead = 4;

// Lines of a block whose rows begin anywhere, of which the first and the last are written in parts; of other operands
// of a row, elements that are asked for ahead.
constexpr int kLinesJoined = 32, kElementsAhead = 64;

// Bytes of a result that the second of the caches holds beside what it is made of.
constexpr int kNear = 1 << 20;

}  // namespace

void TransposedEmitter::ReserveTransposedNames() {
  for (const char* end : {"b", "e"})
    for (const int axis : {transposed_axis_, vector_axis_}) names_.Make(end + std::to_string(axis));
  for (const char* name : {"c", "k", "rows"}) names_.Make(name);
}

void TransposedEmitter::TransposedLoops(int axis) {
  if (axis == kernel_.signature.row_axes) return TransposedTiles();
  const std::string first = Begin(axis), last = End(axis);
  if (axis != transposed_axis_) {
    out_.Open("for (long long i{0} = {1}; i{0} < {2}; ++i{0})", axis, first, last);
    TransposedLoops(axis + 1);
    out_.Close();
    return;
  }
  if (JoinsTiles()) {
    const std::string end = ExtentName(vector_axis_);
    DeclareAsks();
    out_.Open("for (long long b{0} = {1}, e{0} = b{0}; b{0} < {2}; b{0} = e{0})", vector_axis_, Begin(vector_axis_),
              end);
    out_.Line("e{0} = {1} - b{0} < {2} ? {1} : b{0} + {3};", vector_axis_, end, kLinesJoined * width_ + width_,
              kLinesJoined * width_);
    out_.Open("for (long long j{0} = {1}; j{0} < {2}; j{0} += {3})", axis, first, last, width_);
    out_.Line("const long long e{0} = smaller(j{0} + {1}, {2}), rows = e{0} - j{0};", axis, width_, last);
    TransposedLoops(axis + 1);
    for (int k = 0; k < 2; ++k) out_.Close();
    return;
  }
  DeclareFar();
  DeclareBlocks();
  OpenBlocks(axis, first, last, block_rows_);
  OpenBlocks(vector_axis_, Begin(vector_axis_), ExtentName(vector_axis_), block_columns_);
  DeclareNextBlock();
  out_.Open("for (long long j{0} = b{0}; j{0} < e{0}; j{0} += {1})", axis, width_);
  if (TurnsLines()) TurnedLines();
  TransposedLoops(axis + 1);
  for (int k = 0; k < 3; ++k) out_.Close();
}

int TransposedEmitter::LinePackets() const {
  int packets = 1;
  for (std::size_t k = 0; k < operands_.size(); ++k)
    if (IsTransposed(signature_.operands[k])) packets = std::max(packets, kLine / (width_ * SizeOfElement(k)));
  return packets;
}

int TransposedEmitter::BlockLines() const {
  if (WalksFewLines()) return kLongLines;
  return Streams() && RegisterBytes(options_.target) >= kLine ? kStreamedLines : kBlockLines;
}

int TransposedEmitter::BlockColumns() const {
  if (WalksFewLines()) return kFewLines;
  return Streams() && !TurnsLines() ? 64 : 128;
}

void TransposedEmitter::DeclareAsks() {
  asks_ = names_.Make("asks");
  out_.Line("const bool {} = args->prefetch_ahead == 0;", asks_);
}

void TransposedEmitter::DeclareBlocks() {
  asks_.clear();
  block_rows_ = fmt::to_string(BlockLines() * LineColumns());
  block_columns_ = fmt::to_string(BlockColumns());
  if (!Streams() || RegisterBytes(options_.target) < kLine) return;
  DeclareAsks();
  const auto choose = [&](int axis, int asked, std::string* size) {
    if (fmt::to_string(asked) == *size) return;
    const std::string name = names_.Make("size" + std::to_string(axis));
    out_.Line("const long long {} = {} ? {} : {};", name, asks_, asked, *size);
    *size = name;
  };
  choose(transposed_axis_, kAskedLines * LineColumns(), &block_rows_);
  choose(vector_axis_, kAskedColumns, &block_columns_);
}

void TransposedEmitter::DeclareFar() {
  if (Streams() || RegisterBytes(options_.target) < kLine || LinePackets() > 1) return;
  std::string elements = "(end - begin)";
  for (int axis = 1; axis < kernel_.rank(); ++axis) elements += " * " + ExtentName(axis);
  const int size = kLine / width_;
  std::string far = fmt::format("{} > {}", elements, kNear / size);
  // Beside other operands it pays where rows begin within lines only.
  const auto matrices =
      std::count_if(signature_.operands.begin(), signature_.operands.end(), [this](const runtime::Access& access) {
        return !access.store && AxisDim(access, transposed_axis_) >= 0 && AxisDim(access, vector_axis_) >= 0;
      });
  for (std::size_t k = 0; k < operands_.size(); ++k)
    if (signature_.operands[k].store && matrices > 1)
      far += fmt::format(" && {} % {} != 0", operands_[k].stride_names[static_cast<std::size_t>(transposed_axis_)],
                         width_);
  far_ = names_.Make("far");
  out_.Line("const bool {} = {};", far_, far);
}

bool TransposedEmitter::WritesTileLast() const {
  return Streams() && !WalksFewLines() && LinePackets() == 1 && RegisterBytes(options_.target) >= kLine &&
         signature_.cost <= kUnrolled && kernel_.phases.size() == 1 && kernel_.phases[0].stores.size() == 1 &&
         VectorStride(kernel_.phases[0].stores[0].operand).empty();
}

bool TransposedEmitter::WalksFewLines() const {
  if (!Streams() || RegisterBytes(options_.target) < kLine || LinePackets() > 1) return false;
  return std::count_if(signature_.operands.begin(), signature_.operands.end(), [this](const runtime::Access& access) {
           return !access.store && AxisDim(access, transposed_axis_) >= 0 && AxisDim(access, vector_axis_) >= 0;
         }) == 1;
}

void TransposedEmitter::OpenBlocks(int axis, const std::string& first, const std::string& last,
                                   const std::string& count) {
  out_.Open("for (long long b{0} = {1}; b{0} < {2}; b{0} += {3})", axis, first, last, count);
  out_.Line("const long long e{0} = smaller(b{0} + {1}, {2});", axis, count, last);
}

void TransposedEmitter::DeclareNextBlock() {
  const auto times = [](const std::string& count, const std::string& stride) {
    return stride.empty() ? count : count + " * " + stride;
  };
  next_block_.clear();
  for (int operand = 0; operand < static_cast<int>(operands_.size()); ++operand) {
    const auto& access = signature_.operands[static_cast<std::size_t>(operand)];
    if (access.store || !MovesAlongVector(operand) || AxisDim(access, transposed_axis_) < 0) continue;
    if (LineColumns() * SizeOfElement(static_cast<std::size_t>(operand)) != kLine) continue;
    const Operand& o = operands_[static_cast<std::size_t>(operand)];
    const std::string across = VectorStride(operand), down = o.stride_names[static_cast<std::size_t>(transposed_axis_)];
    const std::string column = fmt::format("b{}", vector_axis_);
    next_block_[operand] = names_.Make(o.name + "_next");
    out_.Line("const long long {} = e{} < {} ? {} : {} - {};", next_block_[operand], vector_axis_,
              ExtentName(vector_axis_), times(block_columns_, across), times(block_rows_, down),
              across.empty() ? column : column + " * " + across);
  }
}

bool TransposedEmitter::TurnsLines() const {
  if (!Streams() || RegisterBytes(options_.target) >= kLine) return false;
  return runtime::RowsOfTiles(signature_, static_cast<std::size_t>(transposed_axis_),
                              static_cast<std::size_t>(vector_axis_), plan_.buffers)
      .MayTurnLines();
}

int TransposedEmitter::LineRows() const {
  for (std::size_t k = 0; k < operands_.size(); ++k)
    if (IsTransposed(signature_.operands[k])) return kLine / SizeOfElement(k);
  return 1;
}

void TransposedEmitter::TurnedLines() {
  const Names outer = names_;
  const std::string i = fmt::format("i{}", vector_axis_);
  const auto each_packet = [&] {
    out_.Open("for (long long {0} = b{1}; {0} < e{1}; {0} += {2})", i, vector_axis_, width_);
  };
  out_.Open("if (j{0} + {1} <= e{0} && e{2} - b{2} == {3})", transposed_axis_, LineRows(), vector_axis_,
            BlockColumns());
  for (int operand = 0; operand < static_cast<int>(operands_.size()); ++operand) {
    const auto& access = signature_.operands[static_cast<std::size_t>(operand)];
    if (access.store || !IsTransposed(access)) continue;
    const std::string turned = names_.Make(operands_[static_cast<std::size_t>(operand)].name + "_turned");
    TurnLines(operand, turned);
    at_hand_[operand] =
        speller_->Load(OperandType(operand), fmt::format("{}[k] + {} - b{}", turned, i, vector_axis_)).text;
  }
  out_.Open("for (int k = 0; k < {}; ++k)", LineRows());
  RowOfTile();
  for (const Phase& phase : kernel_.phases) {
    for (int id : phase.row_values) DeclareRowValue(id);
    each_packet();
    for (const auto& [operand, next] : next_block_) {
      const Operand& o = operands_[static_cast<std::size_t>(operand)];
      if (!IsTransposed(signature_.operands[static_cast<std::size_t>(operand)]))
        out_.Line("prefetch({} + {} + {} * {});", o.name, i, kRowsAhead,
                  o.stride_names[static_cast<std::size_t>(transposed_axis_)]);
    }
    Names names = names_;
    ElementBody(phase, i, "", &names);
    out_.Close();
  }
  out_.Close();
  out_.Line("j{} += {};", transposed_axis_, LineRows() - width_);
  out_.Line("continue;");
  out_.Close();
  names_ = outer;
  at_hand_.clear();
}

void TransposedEmitter::TurnLines(int operand, const std::string& turned) {
  const DType type = OperandType(operand);
  const std::string i = fmt::format("i{}", vector_axis_), stride = VectorStride(operand);
  const std::string tile = names_.Make(operands_[static_cast<std::size_t>(operand)].name + "_tile");
  const std::string next = next_block_.at(operand);
  out_.Line("alignas({}) {} {}[{}][{}];", kLine, ElementType(type), turned, LineRows(), BlockColumns());
  out_.Open("for (long long {0} = b{1}; {0} < e{1}; {0} += {2})", i, vector_axis_, width_);
  out_.Line("for (int k = 0; k < {0}; ++k) prefetch(j{1} + {2} < e{1} ? {3} : {4} + {5});", width_, transposed_axis_,
            LineRows(), TransposedAddress(operand, "j", "(" + i + " + k)") + " + " + std::to_string(LineRows()),
            TransposedAddress(operand, "b", "(" + i + " + k)"), next);
  out_.Open("for (int c = 0; c < {}; c += {})", LineRows(), width_);
  out_.Line("{} {}[{}];", speller_->Type(type), tile, width_);
  out_.Line("load_transposed({} + c, {}, {});", TransposedAddress(operand, "j", i), stride, tile);
  out_.Line("for (int k = 0; k < {}; ++k) {};", width_,
            speller_->Store(type, fmt::format("{}[c + k] + {} - b{}", turned, i, vector_axis_), {tile + "[k]"}));
  out_.Close();
  out_.Close();
}

void TransposedEmitter::JoinedTiles() {
  const Names outer = names_;
  const std::string i = fmt::format("i{}", vector_axis_);
  const auto type = [this](int operand) {
    return fmt::format("StreamedRow<{}, true>", speller_->Type(OperandType(operand)));
  };
  for (const Phase& phase : kernel_.phases)
    for (const auto& store : phase.stores) {
      if (!MakesLines(store)) continue;
      const std::string row = names_.Make(operands_[static_cast<std::size_t>(store.operand)].name + "_row");
      out_.Line("{} {}[{}];", type(store.operand), row, width_);
      streamed_[store.operand] = row + "[k]";
      has_streamed_ = true;
    }
  const std::string resumes = names_.Make("resumes"), over = names_.Make("over");
  out_.Line("const bool {} = rows == {} && b{} > {};", resumes, width_, vector_axis_, Begin(vector_axis_));
  out_.Line("const long long {0} = rows == {1} && e{2} < {3} ? {1} : 0;", over, width_, vector_axis_,
            ExtentName(vector_axis_));
  out_.Open("for (int k = 0; k < rows; ++k)");
  out_.Line("const long long i{0} = j{0} + k;", transposed_axis_);
  RowPointers();
  for (const auto& [operand, row] : streamed_)
    out_.Line("{} = {}({}, {});", row, type(operand), Address(operand, "b" + std::to_string(vector_axis_)), resumes);
  out_.Close();
  out_.Line("long long {} = b{};", i, vector_axis_);
  out_.Open("for (; rows == {0} && {1} + {0} <= e{2} + {3}; {1} += {0})", width_, i, vector_axis_, over);
  TransposedTile(i, 1, "");
  out_.Close();
  out_.Open("for (; {0} < e{1}; {0} += {2})", i, vector_axis_, width_);
  out_.Line("const long long lanes = smaller(e{0} - {1}, {2});", vector_axis_, i, width_);
  TransposedTile(i, 1, "lanes");
  out_.Close();
  out_.Open("for (int k = 0; {} == 0 && k < rows; ++k)", over);
  FinishStreamedRows();
  out_.Close();
  names_ = outer;
}

void TransposedEmitter::TransposedTiles() {
  if (JoinsTiles()) return JoinedTiles();
  const std::string i = fmt::format("i{}", vector_axis_);
  out_.Line("long long {} = b{};", i, vector_axis_);
  out_.Open("for (; j{0} + {1} <= e{0} && {2} + {3} <= e{4}; {2} += {3})", transposed_axis_, width_, i, LineColumns(),
            vector_axis_);
  TransposedTile(i, LinePackets(), "");
  out_.Close();
  out_.Open("for (; {0} < e{1}; {0} += {2})", i, vector_axis_, width_);
  out_.Line("const long long rows = smaller(e{0} - j{0}, {2}), lanes = smaller(e{1} - {3}, {2});", transposed_axis_,
            vector_axis_, width_, i);
  TransposedTile(i, 1, "lanes");
  out_.Close();
}

void TransposedEmitter::TransposedTile(const std::string& i, int packets, const std::string& lanes) {
  const Names outer = names_;
  for (int operand = 0; operand < static_cast<int>(operands_.size()); ++operand) {
    const auto& access = signature_.operands[static_cast<std::size_t>(operand)];
    if (access.store || !IsTransposed(access)) continue;
    // The line of the last element of the next tile: columns may begin within one.
    const std::string column = fmt::format("prefetch_column<{}>({} + {}, {});", width_,
                                           TransposedAddress(operand, "j", i), 2 * width_ - 1, VectorStride(operand));
    const bool asks_here = lanes.empty() && JoinsTiles() && next_block_.count(operand) == 0;
    if (asks_here) out_.Line("if ({}) {}", asks_, column);
    LoadTransposedTile(operand, i, packets, lanes);
    if (asks_here) out_.Line("if (!{}) {}", asks_, column);
    if (lanes.empty() && next_block_.count(operand) > 0) PrefetchPart(operand, i);
  }
  const bool writes_last = lanes.empty() && WritesTileLast();
  if (writes_last) {
    const int result = kernel_.phases[0].stores[0].operand;
    const std::string tile = names_.Make(operands_[static_cast<std::size_t>(result)].name + "_tile");
    out_.Line("{} {}[{}];", speller_->Type(OperandType(result)), tile, width_);
    stored_at_hand_[result] = tile + "[k]";
  }
  const std::string next_row = lanes.empty() ? FirstRowOfTile(Others()) : "++k";
  for (int operand = 0; !far_.empty() && lanes.empty() && operand < static_cast<int>(operands_.size()); ++operand) {
    const Operand& o = operands_[static_cast<std::size_t>(operand)];
    if (signature_.operands[static_cast<std::size_t>(operand)].store && VectorStride(operand).empty())
      out_.Line("if ({}) prefetch_column<{}>({} + {} + {}, {});", far_, width_, o.name, i, 2 * width_ - 1,
                o.stride_names[static_cast<std::size_t>(transposed_axis_)]);
  }
  if (lanes.empty() && signature_.cost <= kUnrolled) out_.Line("UMBRA_UNROLL");
  out_.Open("for (int k = 0; k < {}; {})", lanes.empty() ? std::to_string(width_) : "rows", next_row);
  if (!lanes.empty()) RowOfTile();
  for (const auto& [operand, next] : next_block_)  // the line of the last element: rows may begin within one
    if (!IsTransposed(signature_.operands[static_cast<std::size_t>(operand)]) && lanes.empty())
      out_.Line("prefetch({} + {} + {} + {});", operands_[static_cast<std::size_t>(operand)].name, i, LineColumns() - 1,
                next);
  for (int operand = 0; JoinsTiles() && lanes.empty() && operand < static_cast<int>(operands_.size()); ++operand)
    if (const auto& access = signature_.operands[static_cast<std::size_t>(operand)];
        !access.store && MovesAlongVector(operand) && !IsTransposed(access))
      out_.Line("prefetch({} + {} + {});", operands_[static_cast<std::size_t>(operand)].name, i, kElementsAhead);
  for (const Phase& phase : kernel_.phases) {
    for (int id : phase.row_values) DeclareRowValue(id);
    if (packets > 1) out_.Open("for (int c = 0; c < {}; ++c)", packets);
    Names names = names_;
    ElementBody(phase, packets > 1 ? PacketOfLine(i) : i, lanes, &names);
    if (packets > 1) out_.Close();
  }
  out_.Close();
  if (writes_last) WriteTile(i);
  names_ = outer;
  at_hand_.clear();
}

std::set<int> TransposedEmitter::Others() const {
  std::set<int> others;
  for (int operand = 0; operand < static_cast<int>(operands_.size()); ++operand)
    if (at_hand_.count(operand) == 0 && stored_at_hand_.count(operand) == 0) others.insert(operand);
  return others;
}

void TransposedEmitter::RowOfTile() {
  const std::set<int> others = Others();
  out_.Line("const long long i{0} = j{0} + k;", transposed_axis_);
  RowPointers(&others);
}

std::string TransposedEmitter::FirstRowOfTile(const std::set<int>& used) {
  std::string next = fmt::format("++k, ++i{}", transposed_axis_);
  out_.Line("long long i{0} = j{0};", transposed_axis_);
  RowPointers(&used);
  for (const int operand : used) {
    const Operand& o = operands_[static_cast<std::size_t>(operand)];
    if (o.base == o.name || !Moves(signature_.operands[static_cast<std::size_t>(operand)], transposed_axis_)) continue;
    next += fmt::format(", {} += {}", o.name, o.stride_names[static_cast<std::size_t>(transposed_axis_)]);
  }
  return next;
}

void TransposedEmitter::WriteTile(const std::string& i) {
  std::set<int> used;
  for (const auto& [operand, element] : stored_at_hand_) used.insert(operand);
  out_.Open("");
  const std::string next_row = FirstRowOfTile(used);
  out_.Line("UMBRA_UNROLL");
  out_.Open("for (int k = 0; k < {}; {})", width_, next_row);
  for (const auto& [operand, element] : stored_at_hand_)
    out_.Line("{};", speller_->Stream(OperandType(operand), Address(operand, i), {element}));
  out_.Close();
  out_.Close();
  stored_at_hand_.clear();
}

void TransposedEmitter::LoadTransposedTile(int operand, const std::string& i, int packets, const std::string& lanes) {
  const Operand& o = operands_[static_cast<std::size_t>(operand)];
  const std::string tile = names_.Make(o.name + "_tile"), stride = VectorStride(operand);
  const std::string type = speller_->Type(OperandType(operand));
  at_hand_[operand] = tile + (packets > 1 ? "[c][k]" : "[k]");
  if (packets > 1) {
    out_.Line("{} {}[{}][{}];", type, tile, packets, width_);
    out_.Line("for (int c = 0; c < {}; ++c) load_transposed({}, {}, {}[c]);", packets,
              TransposedAddress(operand, "j", "(" + PacketOfLine(i) + ")"), stride, tile);
    return;
  }
  out_.Line("{} {}[{}];", type, tile, width_);
  const std::string address = TransposedAddress(operand, "j", i);
  if (lanes.empty()) out_.Line("load_transposed({}, {}, {});", address, stride, tile);
  else out_.Line("load_transposed_head({}, {}, {}, rows, {});", address, stride, lanes, tile);
}

void TransposedEmitter::PrefetchPart(int operand, const std::string& i) {
  const std::string& next = next_block_.at(operand);
  const std::string is_whole = fmt::format("e{0} - b{0} == {1}", transposed_axis_, block_rows_);
  const auto part = [&](int lines) {
    return fmt::format("prefetch_part<{}, {}>({} + {}, {}, j{} - b{})", width_, lines,
                       TransposedAddress(operand, "b", i), next, VectorStride(operand), transposed_axis_,
                       transposed_axis_);
  };
  const std::string column = fmt::format("prefetch_column<{}>({} + {}, {})", LineColumns(),
                                         TransposedAddress(operand, "j", i), next, VectorStride(operand));
  if (!asks_.empty()) out_.Line("if ({} && {}) {};", asks_, is_whole, part(kAskedLines));
  if (WalksFewLines()) return out_.Line("else if ({}) {};", asks_, column);
  out_.Line("{}if ({}) {};", asks_.empty() ? "" : "else ", is_whole, part(BlockLines()));
  out_.Line("else {};", column);
}

std::string TransposedEmitter::TransposedAddress(int operand, const char* row, const std::string& i) const {
  const Operand& o = operands_[static_cast<std::size_t>(operand)];
  std::string address = fmt::format("{} + {}{}", o.base, row, transposed_axis_);
  for (int axis = 0; axis < kernel_.signature.row_axes; ++axis)
    if (axis != transposed_axis_ && Moves(signature_.operands[static_cast<std::size_t>(operand)], axis))
      address += fmt::format(" + i{} * {}", axis, o.stride_names[static_cast<std::size_t>(axis)]);
  return fmt::format("{} + {} * {}", address, i, VectorStride(operand));
}

}  // namespace umbra::codegen
