// Reductions whose rows share what they read, such as products of matrices: several rows and packets of columns at a
// time, so that what rows share is loaded once for all of them, and what columns share once for all packets. Each
// result is reduced in the same order as alone.
#ifndef UMBRA_COMPILER_CODEGEN_EMIT_TILES_H_
#define UMBRA_COMPILER_CODEGEN_EMIT_TILES_H_

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "compiler/codegen/emit_phases.h"

namespace umbra::codegen {

class TileEmitter : protected PhaseEmitter {
 protected:
  using PhaseEmitter::PhaseEmitter;

  // The row axis whose rows are computed together, or -1.
  int SharedAxis() const {
    const bool plain_columns = columns_ && !Splits() && !options_.variant.strided && signature_.row_axes >= 2;
    return plain_columns && plan::SharesRows(kernel_) ? signature_.row_axes - 2 : -1;
  }

  // All rows of the shared axis and all columns.
  void SharedRows() {
    const std::string i = Column(), n = ExtentName(vector_axis_);
    axis_ = SharedAxis();
    FindShares();
    for (std::size_t k = 0; k < operands_.size(); ++k)
      if (operands_[k].base != operands_[k].name && !Moves(signature_.operands[k], axis_))
        out_.Line("{} = {};", Pointer(k), RowAddress(k, ""));
    const int packets = Packets();
    out_.Line("long long {} = 0;", i);
    Panel(fmt::format("for (; {0} + {1} <= {2}; {0} += {1})", i, packets * width_, n), packets, "");
    Panel(fmt::format("for (; {0} + {1} <= {2}; {0} += {1})", i, width_, n), 1, "");
    if (width_ > 1) Panel(fmt::format("if ({} < {})", i, n), 1, fmt::format("const long long lanes = {} - {};", n, i));
  }

 private:
  static constexpr int kWorthFewer = 4;  // rows

  // What depends on the row of a tile, and on the packet of columns.
  struct Share {
    bool row = false, column = false;
  };

  std::string Column() const { return fmt::format("i{}", vector_axis_); }

  // Of columns. Where there are registers for it, a tile takes lines of what its rows share that lie further apart than
  // the processor looks ahead in longer runs.
  int Packets() const { return options_.target == Target::kAvx512 ? 3 : 2; }

  // As many as leave registers for what they read, and for their addresses.
  int Rows(int packets) const {
    const int registers = options_.target == Target::kAvx512 ? 24 : 8, most = LoadsFillPackets() ? 8 : 4;
    const auto reductions = static_cast<int>(kernel_.phases[0].reductions.size());
    int rows = std::clamp(registers / (packets * reductions), 1, most);
    const runtime::Extent& extent = signature_.axes[static_cast<std::size_t>(axis_)];
    if (extent.is_static()) rows = static_cast<int>(std::min<index_t>(rows, std::max<index_t>(1, extent.value)));
    return rows;
  }

  // Does a load of one element fill a packet with it?
  bool LoadsFillPackets() const { return options_.target == Target::kAvx2 || options_.target == Target::kAvx512; }

  void FindShares() {
    shares_.clear();
    const std::vector<bool> rows = plan::MovesAlong(kernel_, axis_), columns = plan::MovesAlong(kernel_, vector_axis_);
    for (std::size_t id = 0; id < kernel_.values.size(); ++id) shares_.push_back({rows[id], columns[id]});
    const Phase& phase = kernel_.phases[0];
    early_.clear();
    const std::function<void(int)> need = [&](int id) {
      if (value(id).scope == Scope::kUniform || !early_.insert(id).second) return;
      for (int arg : value(id).args) need(arg);
    };
    for (const auto& reduction : phase.reductions) need(reduction.value);
  }

  Share ShareOf(int id) const { return shares_[static_cast<std::size_t>(id)]; }

  // One pass of the loop over columns that `head` is.
  void Panel(const std::string& head, int packets, const std::string& lanes) {
    const Names outer = names_;
    const int rows = Rows(packets);
    rows_ = rows;
    packets_ = packets;
    lanes_text_ = lanes.empty() ? "" : "lanes";
    out_.Open("{}", head);
    if (!lanes.empty()) out_.Line("{}", lanes);
    const std::string first = axis_ == 0 ? "begin" : "0", last = axis_ == 0 ? "end" : ExtentName(axis_);
    const int few = rows / 2;
    if (HasPairs()) {
      out_.Line("long long j{} = {};", axis_, first);
      rows_ = 2 * rows;
      pairs_ = true;
      out_.Open("for (; {2} - j{0} >= {1}; j{0} += {1})", axis_, rows_, last);
      Tile(last);
      out_.Close();
      names_ = outer;
      rows_ = rows;
      pairs_ = false;
      out_.Open("for (; j{0} < {1}; j{0} += {2})", axis_, last, rows);
    } else if (packets > 1 && few >= kWorthFewer) {  // rows beyond the last would be computed for nothing
      out_.Line("long long j{} = {};", axis_, first);
      out_.Open("for (; {2} - j{0} > {1}; j{0} += {3})", axis_, few, last, rows);
      Tile(last);
      out_.Close();
      names_ = outer;
      rows_ = few;
      out_.Open("if (j{0} < {1})", axis_, last);
    } else {
      out_.Open("for (long long j{0} = {1}; j{0} < {2}; j{0} += {3})", axis_, first, last, rows);
    }
    Tile(last);
    out_.Close();
    out_.Close();
    names_ = outer;
  }

  void Tile(const std::string& last) {
    const Phase& phase = kernel_.phases[0];
    const std::string row = rows_ == 1 ? fmt::format("j{}", axis_)
                            : pairs_  ? fmt::format("(j{} + r)", axis_)
                                      : fmt::format("smaller(j{} + r, {} - 1)", axis_, last);
    std::vector<std::string> names;
    for (std::size_t k = 0; k < operands_.size(); ++k) {
      names.push_back(operands_[k].name);
      if (!Moves(signature_.operands[k], axis_)) continue;
      if (rows_ > 1) {
        out_.Line("{}[{}];", Pointer(k), rows_);
        out_.Line("for (int r = 0; r < {}; ++r) {}[r] = {};", rows_, operands_[k].name, RowAddress(k, row));
        operands_[k].name += "[r]";
      } else {
        out_.Line("{} = {};", Pointer(k), RowAddress(k, row));
      }
    }
    for (const auto& reduction : phase.reductions) {
      const std::string name = names_.Make(AccumulatorName(kernel_, reduction));
      accumulator_[reduction.result] = name;
      const DType type = value(reduction.result).type;
      out_.Line("{} {}{};", speller_->Type(type), name, Size({true, true}));
      Each({true, true}, [&] {
        out_.Line("{} = {};", name + At({true, true}), speller_->Fill(type, Identity(kernel_, reduction)).text);
      });
    }
    for (int id : phase.row_values)
      if (early_.count(id) != 0) Define(id);
    const auto step = [&] {
      const Names outer = names_;
      for (int id : phase.element_values)
        if (!IsBoth(id)) Define(id);
      Each({true, true}, [&] {
        std::set<int> conditions;
        for (int id : phase.element_values) {
          if (!IsBoth(id)) continue;
          DeclareConditions(id, &conditions, &names_);
          Declare(id, value(id).type, PacketOf(id), &names_);
        }
        for (const auto& reduction : phase.reductions) {
          const Expr total{accumulator_[reduction.result] + At({true, true})};
          RemarkPlace(reduction.result);
          out_.Line("{} = {};", total.text, Accumulate(reduction, total));
        }
      });
      names_ = outer;
    };
    const int innermost = kernel_.rank() - 1;
    InnerLoops(signature_.row_axes, innermost, [&] {
      std::string begin = BlockBegin(innermost);
      if (const int operand = LinesOf(innermost); operand >= 0) begin = Lines(operand, innermost, step);
      out_.Open("for (long long i{0} = {1}; i{0} < {2}; ++i{0})", innermost, begin, BlockEnd(innermost));
      step();
      out_.Close();
    });
    Results(last);
    for (std::size_t k = 0; k < operands_.size(); ++k) operands_[k].name = names[k];
  }

  // Is a tile of one packet twice as high where there are rows for it? There are registers for the sums of them all, which
  // wait for each other, but not for their addresses: those of a row and of the one as far below it as half a tile are one,
  // and the distance.
  bool HasPairs() const {
    const runtime::Extent& extent = signature_.axes[static_cast<std::size_t>(axis_)];
    const bool has_rows = !extent.is_static() || extent.value >= 2 * rows_;
    return has_rows && options_.target == Target::kAvx512 && rows_ > 1 && LinesOf(kernel_.rank() - 1) >= 0;
  }

  // The operand whose rows a tile of one packet reads along the innermost axis, or -1 if it is not one, or more is needed
  // there than elements.
  int LinesOf(int axis) const {
    if (packets_ > 1 || rows_ == 1 || !lanes_text_.empty() || !LoadsFillPackets()) return -1;
    if (axis > signature_.row_axes || options_.spelling != Spelling::kPackets) return -1;
    int found = -1;
    for (const int id : kernel_.phases[0].element_values) {
      const Value& v = value(id);
      if (v.kind != Value::Kind::kLoad && v.kind != Value::Kind::kMap && v.kind != Value::Kind::kCast) return -1;
      if (v.kind != Value::Kind::kLoad || !ShareOf(id).row || !Moves(signature_.operands[static_cast<std::size_t>(v.index)], axis)) continue;
      if (ShareOf(id).column || (found >= 0 && found != v.index)) return -1;
      found = v.index;
    }
    return found;
  }

  // The innermost axis by lines of the operand, as long as there are whole ones. With an address in a register of its own
  // for each row, and the same line of the rows of the next tile on its way, products hardly wait. Returns where this
  // ends.
  std::string Lines(int operand, int axis, const std::function<void()>& step) {
    const int elements = std::min(16, kLine / static_cast<int>(SizeOf(OperandType(operand))));
    const std::string at = names_.Make("line");
    out_.Line("long long {} = {};", at, BlockBegin(axis));
    const Names outer = names_;
    const std::vector<Operand> operands = operands_;
    const std::string& stride = operands[static_cast<std::size_t>(operand)].stride_names[static_cast<std::size_t>(axis)];
    out_.Open("for (; {0} == 1 && {1} + {2} <= {3}; {1} += {2})", stride, at, elements, BlockEnd(axis));
    for (std::size_t k = 0; k < operands_.size(); ++k) {
      if (!Moves(signature_.operands[k], axis)) continue;
      Operand& o = operands_[k];
      const std::string from = o.name, name = names_.Make(from.substr(0, from.find('[')) + "_line");
      o.name = name;
      if (static_cast<int>(k) == operand) {
        const std::string& by_row = o.stride_names[static_cast<std::size_t>(axis_)];
        const int addresses = pairs_ ? rows_ / 2 : rows_;
        out_.Line("{}[{}];", Pointer(k), rows_);
        out_.Open("for (int r = 0; r < {}; ++r)", addresses);
        out_.Line("{}[r] = in_register({} + {});", name, from, at);
        if (pairs_) out_.Line("{0}[r + {1}] = {0}[r] + {1} * {2};", name, addresses, by_row);
        for (int next = rows_; next < 2 * rows_; next += addresses) out_.Line("prefetch({}[r] + {} * {});", name, next, by_row);
        out_.Close();
        o.name += "[r]";
        o.stride_names[static_cast<std::size_t>(axis)].clear();
      } else {
        out_.Line("{} = {} + {} * {};", Pointer(k), from, at, o.stride_names[static_cast<std::size_t>(axis)]);
      }
    }
    out_.Line("UMBRA_UNROLL");
    out_.Open("for (long long i{0} = 0; i{0} < {1}; ++i{0})", axis, elements);
    step();
    out_.Close();
    out_.Close();
    operands_ = operands;
    names_ = outer;
    return at;
  }

  // What follows the reductions. The accumulators are in registers as long as no loop that is left as one indexes
  // them: a copy is for that.
  void Results(const std::string& last) {
    const Phase& phase = kernel_.phases[0];
    for (const auto& reduction : phase.reductions) {
      const std::string total = accumulator_[reduction.result];
      std::string name = total;
      if (!kernel_.final_row_values.empty()) {
        name = names_.Make(total + "_found");
        out_.Line("{} {}{};", speller_->Type(value(reduction.result).type), name, Size({true, true}));
        Each({true, true}, [&] { out_.Line("{0}{2} = {1}{2};", name, total, At({true, true})); });
      }
      text_[reduction.result] = {name + At({true, true})};
    }
    if (rows_ > 1) {
      out_.Open("for (int r = 0; r < {}; ++r)", rows_);
      if (!pairs_) out_.Line("if (j{} + r >= {}) break;", axis_, last);
    }
    if (packets_ > 1) out_.Open("for (int c = 0; c < {}; ++c)", packets_);
    Names names = names_;
    std::set<int> conditions;
    const auto declare = [&](const std::vector<int>& values) {
      for (int id : values) {
        if (early_.count(id) != 0 || value(id).kind == Value::Kind::kReduced) continue;
        DeclareConditions(id, &conditions, &names);
        Declare(id, value(id).type, PacketOf(id), &names);
      }
    };
    declare(phase.row_values);
    declare(kernel_.final_row_values);
    for (const auto& store : kernel_.final_stores) StorePacket(store, Index(), lanes_text_);
    if (packets_ > 1) out_.Close();
    if (rows_ > 1) out_.Close();
  }

  // Is there a value for each row and each packet of the tile?
  bool IsBoth(int id) const { return (ShareOf(id).row || rows_ == 1) && (ShareOf(id).column || packets_ == 1); }

  // A value for each row, or for each packet of columns, or for all of the tile.
  void Define(int id) {
    const Value& v = value(id);
    if (v.kind == Value::Kind::kConstant || v.type == DType::kBool) return;
    const Share share = ShareOf(id);
    const std::string name = names_.Make(v.label.empty() ? "t" + std::to_string(id) : v.label);
    out_.Line("{} {}{};", speller_->Type(v.type), name, Size(share));
    Each(share, [&] {
      std::set<int> conditions;
      DeclareConditions(id, &conditions, &names_);
      const Expr e = PacketOf(id);
      RemarkPlace(id);
      out_.Line("{}{} = {};", name, At(share), e.text);
    });
    text_[id] = {name + At(share)};
  }

  // Conditions have no type that an array of them could have: those of a tile's rows or columns alone are written where a
  // value that is made of them is.
  void DeclareConditions(int id, std::set<int>* declared, Names* names) {
    for (const int arg : value(id).args) {
      const Value& v = value(arg);
      const bool is_one = v.type == DType::kBool && early_.count(arg) > 0 && v.kind != Value::Kind::kConstant && !IsBoth(arg);
      if (!is_one || !declared->insert(arg).second) continue;
      DeclareConditions(arg, declared, names);
      Declare(arg, v.type, PacketOf(arg), names);
    }
  }

  Expr PacketOf(int id) const {
    const Value& v = value(id);
    return v.kind == Value::Kind::kLoad ? LoadPacket(v, Index(), lanes_text_) : DefinePacket(id);
  }

  std::string Index() const { return packets_ > 1 ? fmt::format("{} + c * {}", Column(), width_) : Column(); }

  // `[8][2]`, and the element of the row r and the packet c.
  std::string Size(Share share) const {
    return (share.row && rows_ > 1 ? fmt::format("[{}]", rows_) : "") + (share.column && packets_ > 1 ? fmt::format("[{}]", packets_) : "");
  }
  std::string At(Share share) const {
    return std::string(share.row && rows_ > 1 ? "[r]" : "") + (share.column && packets_ > 1 ? "[c]" : "");
  }
  void Each(Share share, const std::function<void()>& body) {
    const bool rows = share.row && rows_ > 1, packets = share.column && packets_ > 1;
    if (rows && pairs_) out_.Line("UMBRA_UNROLL");
    if (rows) out_.Open("for (int r = 0; r < {}; ++r)", rows_);
    if (packets) out_.Open("for (int c = 0; c < {}; ++c)", packets_);
    body();
    if (packets) out_.Close();
    if (rows) out_.Close();
  }

  // `const float* x`
  std::string Pointer(std::size_t k) const {
    return fmt::format("{}{}* {}", signature_.operands[k].store ? "" : "const ", ElementType(OperandType(static_cast<int>(k))), operands_[k].name);
  }

  std::string RowAddress(std::size_t k, const std::string& row) const {
    const Operand& o = operands_[k];
    std::string text = o.base;
    for (int axis = 0; axis <= axis_; ++axis)
      if (Moves(signature_.operands[k], axis))
        text += fmt::format(" + {} * {}", axis == axis_ ? row : fmt::format("i{}", axis), o.stride_names[static_cast<std::size_t>(axis)]);
    return text;
  }

  int axis_ = -1, rows_ = 1, packets_ = 1;
  bool pairs_ = false;  // are the rows of the tile all there, two by two at one address?
  std::string lanes_text_;
  std::vector<Share> shares_;  // by value
  std::set<int> early_;        // values that the reductions need
};

}  // namespace umbra::codegen

#endif  // UMBRA_COMPILER_CODEGEN_EMIT_TILES_H_
