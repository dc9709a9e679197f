// The text is the fields in order: numbers in decimal, floating-point ones as their bits, texts and
// lists with their length before them. Fields() lists the members of each type once, for both ways; a
// member that is not listed does not compile.
#include "runtime/program_text.h"

#include <charconv>
#include <cstring>
#include <type_traits>

#include "umbra/error.h"

namespace umbra::runtime {

namespace {

// Of what Fields() lists and of umbra_args, and of how many variants of a kernel the tables beside a program have.
constexpr std::int64_t kVersion = 22 * 100 + Variant::kCount;

template <typename Archive>
void Fields(Archive& archive, Extent& extent) {
  auto& [value, symbol] = extent;
  archive(value, symbol);
}
template <typename Archive>
void Fields(Archive& archive, TracedOp& op) {
  auto& [kind, origin] = op;
  archive(kind, origin);
}
template <typename Archive>
void Fields(Archive& archive, DerivedExtent& derived) {
  auto& [result, op, a, b] = derived;
  archive(result, op, a, b);
}
template <typename Archive>
void Fields(Archive& archive, Buffer& buffer) {
  auto& [name, kind, dtype, shape, place, goes_on, place_goes_on, part, begin] = buffer;
  archive(name, kind, dtype, shape, place, goes_on, place_goes_on, part, begin);
}
template <typename Archive>
void Fields(Archive& archive, Access& access) {
  auto& [buffer, dim_of_axis, store, gathered, dense] = access;
  archive(buffer, dim_of_axis, store, gathered, dense);
}
template <typename Archive>
void Fields(Archive& archive, Number& number) {
  auto& [extent, operand, dim] = number;
  archive(extent, operand, dim);
}
template <typename Archive>
void Fields(Archive& archive, Position& position) {
  auto& [kind, a, b] = position;
  archive(kind, a, b);
}
template <typename Archive>
void Fields(Archive& archive, KernelSignature& signature) {
  auto& [name, axes, row_axes, vector_axis, operands, scalars, numbers, positional, positions, ranged, elementwise,
         row_buffers, partials, phases, panels, sums, cost, replaces, turned, few_columns, column_buffers, moments,
         in_place] = signature;
  archive(name, axes, row_axes, vector_axis, operands, scalars, numbers, positional, positions, ranged, elementwise,
          row_buffers, partials, phases, panels, sums, cost, replaces, turned, few_columns, column_buffers, moments,
          in_place);
}
template <typename Archive>
void Fields(Archive& archive, ProductEpilogue& epilogue) {
  auto& [kind, scale, scalar, bias, result, kernel, behind] = epilogue;
  archive(kind, scale, scalar, bias, result, kernel, behind);
}
template <typename Archive>
void Fields(Archive& archive, GemmStep& step) {
  auto& [a, b, c, transpose_a, transpose_b, alpha, epilogue] = step;
  archive(a, b, c, transpose_a, transpose_b, alpha, epilogue);
}
template <typename Archive>
void Fields(Archive& archive, KernelStep& step) {
  auto& [signature, code, cuda, slots] = step;
  archive(signature);
}
template <typename Archive>
void Fields(Archive& archive, StepGroup& group) {
  auto& [kind, begin, end, rows, local] = group;
  archive(kind, begin, end, rows, local);
}
template <typename Archive, typename A, typename B>
void Fields(Archive& archive, std::pair<A, B>& pair) {
  archive(pair.first, pair.second);
}
template <typename Archive>
void Fields(Archive& archive, Program& program) {
  auto& [name, on_gpu, target, buffers, scalars, num_symbols, derived, steps, groups, for_extents] = program;
  static_cast<void>(target), static_cast<void>(for_extents);  // of a compiler
  archive(name, on_gpu, buffers, scalars, num_symbols, derived, steps, groups);
}

template <typename Archive>
void Fields(Archive& archive, CudaSchedule& schedule) {
  auto& [reduces, splits, lanes, warp_row, lone_column, packs_results, packets, rows, tile_side, tile_axis, tile_lanes,
         kept, partials] = schedule;
  archive(reduces, splits, lanes, warp_row, lone_column, packs_results, packets, rows, tile_side, tile_axis, tile_lanes,
          kept, partials);
}

class Writer {
 public:
  template <typename... Values>
  void operator()(Values&... values) {
    (Write(values), ...);
  }

  std::string text;

 private:
  template <typename T>
  void Write(T& value) {
    if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
      text += std::to_string(static_cast<std::int64_t>(value)) + ' ';
    } else if constexpr (std::is_same_v<T, double>) {
      std::int64_t bits;
      std::memcpy(&bits, &value, sizeof bits);
      Write(bits);
    } else {
      Fields(*this, value);
    }
  }
  void Write(std::string& value) { text += std::to_string(value.size()) + ' ' + value + ' '; }
  template <typename T>
  void Write(std::vector<T>& list) {
    text += std::to_string(list.size()) + ' ';
    for (T& element : list) Write(element);
  }
  void Write(std::variant<KernelStep, GemmStep>& step) {
    text += std::to_string(step.index()) + ' ';
    std::visit([this](auto& of_kind) { Fields(*this, of_kind); }, step);
  }
};

class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}
  template <typename... Values>
  void operator()(Values&... values) {
    (Read(values), ...);
  }

  bool AtEnd() const { return rest_.empty(); }
  static void Refuse(bool refused) {
    Require(!refused,
            "the program of a kernel is damaged, or was generated by another version of Umbra: "
            "generate the kernels anew with the version that they are linked to");
  }

 private:
  std::int64_t Integer() {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    Refuse(error != std::errc() || end == rest_.data() + rest_.size() || *end != ' ');
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()) + 1);
    return value;
  }
  // A number of things each of which takes at least one character.
  std::size_t Count() {
    const std::int64_t count = Integer();
    Refuse(count < 0 || static_cast<std::size_t>(count) > rest_.size());
    return static_cast<std::size_t>(count);
  }

  template <typename T>
  void Read(T& value) {
    if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
      value = static_cast<T>(Integer());
    } else if constexpr (std::is_same_v<T, double>) {
      const std::int64_t bits = Integer();
      std::memcpy(&value, &bits, sizeof bits);
    } else {
      Fields(*this, value);
    }
  }
  void Read(std::string& value) {
    const std::size_t size = Count();
    Refuse(size + 1 > rest_.size());
    value = rest_.substr(0, size);
    rest_.remove_prefix(size + 1);
  }
  template <typename T>
  void Read(std::vector<T>& list) {
    list.resize(Count());
    for (T& element : list) Read(element);
  }
  void Read(std::variant<KernelStep, GemmStep>& step) {
    if (Integer() == 0) step.emplace<KernelStep>();
    else step.emplace<GemmStep>();
    std::visit([this](auto& of_kind) { Fields(*this, of_kind); }, step);
  }

  std::string_view rest_;
};

template <typename Value>
std::string ToText(Value value) {
  Writer writer;
  std::int64_t version = kVersion;
  writer(version, value);
  return std::move(writer.text);
}

template <typename Value>
Value FromText(std::string_view text) {
  Reader reader(text);
  std::int64_t version = 0;
  Value value;
  reader(version);
  Reader::Refuse(version != kVersion);
  reader(value);
  Reader::Refuse(!reader.AtEnd());
  return value;
}

}  // namespace

std::string ProgramToText(const Program& program) { return ToText(program); }
Program ProgramFromText(std::string_view text) { return FromText<Program>(text); }

std::string SchedulesToText(const std::vector<CudaSchedule>& schedules) { return ToText(schedules); }
std::vector<CudaSchedule> SchedulesFromText(std::string_view text) { return FromText<std::vector<CudaSchedule>>(text); }

}  // namespace umbra::runtime
