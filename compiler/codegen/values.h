// Values of a kernel as text: declarations of operands, extents and scalars, and the expression of a
// value as a scalar, as a packet, or lane by lane.
#ifndef UMBRA_COMPILER_CODEGEN_VALUES_H_
#define UMBRA_COMPILER_CODEGEN_VALUES_H_

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/codegen/decisions.h"
#include "compiler/codegen/kernel_shape.h"
#include "compiler/codegen/lanes.h"
#include "compiler/codegen/names.h"
#include "compiler/codegen/speller.h"

namespace umbra::codegen {

using plan::Kernel;
using plan::Phase;
using plan::Scope;
using plan::Value;

class ValueEmitter : protected KernelShape {
 protected:
  ValueEmitter(const plan::Plan& plan, const Kernel& kernel, const SourceOptions& options, Writer* out);

  const Value& value(int id) const { return kernel_.values[static_cast<std::size_t>(id)]; }

  DType OperandType(int operand) const;

  // Is the value one number for all lanes?
  bool IsScalar(int id) const { return width_ == 1 || IsAlike(id); }

  // Is the value computed one by one, within the lanes of another?
  bool InLanes(int id) const { return !InPackets(id) && !IsScalar(id); }

  // Is the value used in the branch of conditions that is being written?
  bool IsReached(int id) const { return !reached_ || reached_->count(id) > 0; }

  // Is the value a packet that lanes are put into?
  bool HasLanes(int id) const { return width_ > 1 && InPackets(id) && !IsScalar(id) && IsMadeOfLanes(id); }

  void BindLanes();
  void CountUses();

  // Is an element of the reduction a product that is added unrounded? It is a part of that step, not a value of its
  // own.
  bool AddsProduct(const plan::Reduction& reduction) const;

  // Is there a packet of the value for each of columns, which the elements of all rows take?
  bool IsOfColumn(int id) const;

  // Quotients of packets by one number, or one of each column, that are found sooner than by a division: f64 in AVX2,
  // f32 and f64 in AVX-512.
  void FindQuotientsByNumber();

  // Is a value of the phase divided? Not in loops that go side by side: while they wait for a quotient, they have
  // others to do.
  bool DividesIn(const Phase& phase, int id) const;

  // What a phase reduces, keeps and stores.
  static std::vector<int> ResultsOf(const Phase& phase);

  // Spreads over packets what the phase, which is made of `ids`, needs so, and nothing else.
  void SpreadWithin(const Phase& phase, const std::set<int>& ids);
  void SpreadNothing();

  // Numbers are spread over packets that packets among `ids` are made of, or that the phase needs so.
  void MarkSpread(const std::set<int>& ids, const Phase& phase);

  // ---- declarations ---------------------------------------------------------------------------

  void DeclareExtents(int first);
  void DeclareOperands();

  // Arrays with an element for each of a row, from `memory` on, the text of a pointer to char: all of `types`, or those
  // of `used`. Returns their names.
  std::vector<std::string> DeclareRows(const std::vector<DType>& types, const std::string& memory,
                                       const std::string& name, const std::set<int>* used = nullptr);

  // Of all such arrays of one row.
  std::string BytesOfRows(const std::vector<DType>& types) const;
  void DeclareNumbers();
  void DeclareUniforms();

  // The next line computes the value.
  void RemarkPlace(int id);

  // Names a scalar value, and its packet form if packets read it.
  void DeclareScalar(int id, const Expr& e);

  // ---- expressions ----------------------------------------------------------------------------

  Expr AsScalar(int id) const;
  Expr AsPacket(int id) const;
  Expr DefineScalar(int id) const;

  // A map of single numbers: data as the dialect has it, positions and what belongs to packets plainly.
  virtual Expr SpellNumber(int id, const std::vector<Expr>& args) const;
  // Do processors of the dialect take long for denormal numbers?
  virtual bool MindsDenormals() const { return true; }
  // Of strides: offsets have as many bits.
  virtual std::string StrideType() const { return index_type_; }

  // dtype that an operator works in: that of its operands.
  DType OperandTypeOf(const Value& v) const;
  Expr DefinePacket(int id) const;

  // `pointer + offsets` of an operand at the current point; `index` is the vector index.
  std::string Address(int operand, const std::string& index) const;
  const std::string& VectorStride(int operand) const;
  bool MovesAlongVector(int operand) const;
  Expr LoadPacket(const Value& v, const std::string& index, const std::string& lanes) const;

  // Of a packet that is not full what was stored: the rest of it is anything, and denormals take many times as long.
  Expr StagedPacket(const Value& v, const std::string& index, const std::string& lanes) const;

  // A packet of the positions that the value has; nothing if it is made lane by lane.
  struct Places {
    Expr packet;
    DType type{};  // i32 or i64
  };
  std::optional<Places> PlacesOf(int id, const std::string& index, const std::string& lanes) const;
  // Has packets of the places that the gather's lanes read at.
  void DeclarePlaces(int id, const std::string& index, const std::string& lanes, Names* names);
  // How many registers hold all that the gather reads from, at places that data choose; 0: it reads memory.
  index_t RegistersOfTable(const Value& gather) const;
  // Loads what registers hold for all of a call.
  void DeclareTables();
  // Declares a packet of the gather if it is of such a table.
  bool DeclareOfTable(int id, const std::string& index, const std::string& lanes, Names* names);
  // A packet of i64 of what a place is made of.
  Expr WidePosition(int id, const std::string& index, const std::string& lanes) const;
  // Opens `const type name = by_lane<type>([&](long long k) {`, whose body is one lane of `value`.
  void DeclareLanes(int id, DType type, const std::string& index, const std::string& lanes, Names* names);

  // `a - b`, for positions.
  static std::string Difference(const std::string& a, const std::string& b);

  // The first and the last lane of a run that begins at `index`, the last one excluded.
  std::pair<std::string, std::string> RunText(const LaneRun& run, const std::string& index,
                                              const std::string& lanes) const;

  // Do the bounds hold for all lanes from `index` on and for all points of the windows?
  std::string InsideText(const std::vector<BoxBound>& bounds, const std::string& index, const std::string& lanes) const;

  // What the dividend of a packet's first lane leaves of the divisor.
  std::string RestText(int dividend, int divisor, const std::string& index) const;
  // The lanes of a run as a packet of conditions.
  std::string LanesText(const LaneRun& run, const std::string& type, const std::string& index,
                        const std::string& lanes) const;

  // Do elements of the gather's last dimension lie side by side?
  bool IsByOne(const Value& gather, std::size_t d) const;

  // Where the first lane of a gather's packet is read; `last` is its position in the last dimensions, if not what is
  // written.
  std::string GatherAddress(const Value& v, const std::string& index, const std::string& last = "",
                            std::size_t last_dims = 1) const;

  // Where the first group of a packet begins in the last dimension, which has this position.
  std::string GroupText(int position, const Span& span, const std::string& index) const;
  // A gather as a load of the lanes that its guard leaves.
  Expr DefineSpan(int id, const Span& span, const std::string& index, const std::string& lanes);

  // A value at computed positions where every value is a scalar.
  Expr DefinePositional(const Value& v, const std::string& index) const;

  // An element of `columns`, all those of the rows that the gather takes it from.
  // The value, without a guard that is known to hold.
  Value AsRead(int id) const;
  Expr ColumnAtHand(const Value& gather, const std::string& columns, const std::string& index) const;

  // What a value is called where it has a name.
  std::string NameOf(int id) const { return value(id).label.empty() ? "t" + std::to_string(id) : value(id).label; }

  // Defines a packet value here: inline if it is short and read once, else by a name.
  void DeclarePacket(int id, const std::string& index, const std::string& lanes, Names* names);

  // What the elements of a row that are scanned have come to, before the first one.
  void DeclareCarries(const Phase& phase, Names* names);
  // Are elements that are scanned lanes of packets, not elements of the same lane? The order in which they are joined
  // is one for all widths.
  virtual bool ScansLanes() const { return !columns_; }
  // A scanned value of a packet, or of one element of each row that packets go across.
  virtual void DeclareScanned(int id, const std::string& lanes, Names* names);

  // Keeps a packet value as an expression if it is short and read once, or not at all, else under a name.
  void Declare(int id, DType type, const Expr& e, Names* names);

  struct Operand {
    std::string name;  // pointer to the current row, or to the data if no row axis moves it
    std::string base;
    std::vector<std::string> stride_names;  // by axis; empty where the operand does not move or by 1
  };

  Writer& out_;
  int width_;
  std::unique_ptr<Speller> speller_;
  std::string args_ = "args->", index_type_ = "long long";  // how arguments are reached, the type of positions
  std::map<int, std::string> at_hand_;  // operands whose elements were read before, and the text of the current one
  std::map<int, std::string> kept_at_hand_;  // the same of row buffers
  std::map<int, std::string> gathers_at_hand_;  // the same of gathers, by value
  std::map<int, std::string> tables_;  // operands that registers hold
  std::map<int, std::string>
      columns_at_hand_;  // of gathers, all columns of the rows that they take their elements from
  bool side_by_side_ = false;  // is a group of packets being written?
  bool inside_ = false;  // are the guards of spans known to hold?
  Decisions decided_;
  std::optional<std::set<int>> reached_;  // what is needed under them; nothing is decided: all
  Names names_;
  std::vector<Operand> operands_;
  std::vector<std::string> row_names_;
  std::string together_;  // how many rows are walked at a time; empty: one
  std::vector<int> uses_;
  std::vector<bool> spread_, divisor_;  // numbers that packets are made of, or divided by
  std::set<int> by_number_;  // quotients of packets by such a divisor, or by those of columns
  std::map<int, Expr> text_, packet_text_, divisor_text_;
  std::map<int, std::string> accumulator_;
  std::map<int, Expr> carry_;  // by scanned value: what the elements before this one have come to
  std::vector<std::string> number_names_;
  LaneContext lanes_;
};

}  // namespace umbra::codegen

#endif  // UMBRA_COMPILER_CODEGEN_VALUES_H_
