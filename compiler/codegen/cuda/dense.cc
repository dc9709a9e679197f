#include "compiler/codegen/cuda/dense.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "compiler/codegen/cuda/extents.h"
#include "compiler/codegen/cuda/generate.h"
#include "compiler/codegen/cuda/term.h"
#include "compiler/codegen/names.h"
#include "compiler/codegen/speller.h"
#include "compiler/codegen/writer.h"
#include "runtime/cuda_geometry.h"
#include "umbra/error.h"

namespace umbra::codegen {

using runtime::CudaForm;
using runtime::CudaGrid;
using runtime::CudaVariant;
using runtime::Extent;
using runtime::Position;

namespace {

// A sum that some number stays below.
using Bound = std::vector<Term>;

Bound operator+(Bound a, const Bound& b) {
  for (const Term& term : b) {
    const auto like =
        std::find_if(a.begin(), a.end(), [&](Term known) { return (known.factor = term.factor, known == term); });
    if (like == a.end()) a.push_back(term);
    else like->factor += term.factor;
  }
  return a;
}

Bound operator*(const Bound& a, const Bound& b) {
  Bound product;
  for (const Term& x : a)
    for (const Term& y : b) product = product + Bound{x * y};
  return product;
}

// A launch on dense operands, in terms of their extents.
class DenseLaunch {
 public:
  DenseLaunch(const plan::Plan& plan, const plan::Kernel& kernel, Names* names)
      : plan_(plan),
        kernel_(kernel),
        signature_(kernel.signature),
        schedule_(ScheduleForCuda(plan, kernel)),
        extents_(plan, kernel, names),
        geometry_(
            signature_, schedule_, [this](const Extent& extent) { return extents_.Of(extent); },
            [this](std::size_t operand, int dim) { return Stride(operand, dim); }) {}

  const Extents& extents() const { return extents_; }
  const runtime::CudaGeometry<Term>& geometry() const { return geometry_; }

  CudaVariant Variant() {
    CudaVariant variant;
    variant.form = Form();
    // What computes with positions has results of any extent, unless it is written into the graph.
    variant.vector = (!signature_.positional || geometry_.Columns().is_number()) && MayHavePackets(variant.form);
    variant.wide_index = std::any_of(bounds().begin(), bounds().end(), [](const Bound& bound) {
      return std::all_of(bound.begin(), bound.end(), [](const Term& term) { return term.is_number(); }) &&
             !bound.empty() && bound[0].factor >= runtime::kIndexLimit;
    });
    return variant;
  }

  // Can packets fit? PacketRefusals then says what has to be otherwise.
  bool MayHavePackets(CudaForm form) {
    std::vector<int> last;
    for (const auto& access : signature_.operands) last.push_back(static_cast<int>(Buffer(access).shape.size()) - 1);
    return geometry_.FitsPackets(form, last, *this);
  }
  bool Divide(const Term& number, index_t lanes) {
    const bool always = number.factor % lanes == 0;
    if (!always && !number.is_number()) rests_.insert(fmt::format("{} % {}", number.Text(), lanes));
    return always || !number.is_number();
  }
  bool AtLeast(const Term& number, index_t lanes) {
    if (number.is_number()) return number.factor >= lanes;
    const bool stored =
        std::all_of(number.names.begin(), number.names.end(), [this](const auto& name) { return IsStored(name); });
    least_[fmt::format("{} < {}", number.Text(), lanes)] = stored ? fmt::format("{} % {}", number.Text(), lanes) : "";
    return true;
  }
  bool Aligned(std::size_t operand, index_t lanes) {
    const auto& access = signature_.operands[operand];
    aligned_[access.buffer] = std::min<std::size_t>(16, SizeOf(Buffer(access).dtype) * static_cast<std::size_t>(lanes));
    return true;
  }
  std::vector<std::string> PacketRefusals(const std::map<int, std::string>& names) const {
    std::vector<std::string> refusals;
    for (const std::string& rest : rests_) refusals.push_back(rest + " != 0");
    for (const auto& [few, rest] : least_)
      if (rests_.count(rest) == 0) refusals.push_back(few);
    for (const auto& [buffer, bytes] : aligned_)
      refusals.push_back(fmt::format("!is_aligned({}, {})", names.at(buffer), bytes));
    return refusals;
  }

  // Is something of a row kept in shared memory?
  bool KeepsRows(CudaForm form) const {
    return (form == CudaForm::kRowPerWarp || form == CudaForm::kRowPerBlock) && !schedule_.kept.empty();
  }

  // Elements of an operand.
  Term Elements(const runtime::Access& access) const {
    Term product = 1;
    for (const Extent& extent : Buffer(access).shape) product = product * extents_.Of(extent);
    return product;
  }

  // The signature's numbers.
  std::vector<Term> Numbers() const {
    std::vector<Term> numbers;
    for (const auto& number : signature_.numbers)
      numbers.push_back(number.operand < 0 ? extents_.Of(number.extent)
                                           : Stride(static_cast<std::size_t>(number.operand), number.dim));
    return numbers;
  }

  // What offsets, positions and sizes are below: those of which none follows from another.
  const std::vector<Bound>& bounds() {
    if (!bounds_.empty()) return bounds_;
    std::vector<Bound> all = {{geometry_.Points()}};
    for (const auto& access : signature_.operands) all.push_back({Elements(access)});
    for (const Bound& bound : PositionBounds()) all.push_back(bound);
    for (std::size_t k = 0; k < all.size(); ++k) {
      bool follows = false;
      for (std::size_t other = 0; other < all.size() && !follows; ++other)
        follows = other != k && IsWithin(all[k], all[other]) && (other < k || !IsWithin(all[other], all[k]));
      if (!follows) bounds_.push_back(all[k]);
    }
    return bounds_;
  }

 private:
  const runtime::Buffer& Buffer(const runtime::Access& access) const {
    return plan_.buffers[static_cast<std::size_t>(access.buffer)];
  }
  Term Stride(std::size_t operand, int dim) const {
    const auto& shape = Buffer(signature_.operands[operand]).shape;
    Term stride = 1;
    for (std::size_t d = static_cast<std::size_t>(dim) + 1; d < shape.size(); ++d)
      stride = stride * extents_.Of(shape[d]);
    return stride;
  }

  CudaForm Form() const {
    const Term inner = geometry_.Inner();
    const auto at_most = [](const Term& term, index_t limit) { return !term.is_number() || term.factor <= limit; };
    if (!schedule_.reduces) {
      const bool tiles = schedule_.tile_axis >= 0 &&
                         !(geometry_.extents()[static_cast<std::size_t>(schedule_.tile_axis)] == 1) &&
                         !(geometry_.Columns() == 1);
      return tiles ? CudaForm::kTiles : CudaForm::kElements;
    }
    if (!kernel_.vector_axis_is_inner()) {
      const index_t least = inner.is_number() ? inner.factor : std::numeric_limits<index_t>::max();
      return least <= schedule_.lone_column ? CudaForm::kColumn : CudaForm::kColumnPerBlock;
    }
    const bool a_warp =
        kernel_.rank() - signature_.row_axes == 1 && at_most(inner, schedule_.warp_row) &&
        at_most(geometry_.RowBytes(schedule_.kept), static_cast<index_t>(runtime::CudaLimits().shared_bytes));
    return a_warp ? CudaForm::kRowPerWarp : CudaForm::kRowPerBlock;
  }

  // What each position is below, whatever its sign.
  std::vector<Bound> PositionBounds() const {
    using Kind = Position::Kind;
    const std::vector<Term> numbers = Numbers();
    std::vector<Bound> bounds;
    for (const Position& position : signature_.positions) {
      const auto a = static_cast<std::size_t>(position.a), b = static_cast<std::size_t>(position.b);
      switch (position.kind) {
        case Kind::kAxis: bounds.push_back({geometry_.extents()[a]}); break;
        case Kind::kNumber: bounds.push_back({numbers[a]}); break;
        case Kind::kConstant: bounds.push_back({std::abs(position.a)}); break;
        case Kind::kTimes: {
          const Position& quotient =
              signature_.positions[a];  // times what it was divided by: no more than the dividend
          const bool back = quotient.kind == Kind::kOver && quotient.b == position.b;
          bounds.push_back(back ? bounds[static_cast<std::size_t>(quotient.a)] : bounds[a] * bounds[b]);
          break;
        }
        case Kind::kOver: bounds.push_back(bounds[a]); break;
        case Kind::kRest: {
          const Position& divisor = signature_.positions[b];  // by 0 all is left
          bounds.push_back(divisor.kind == Kind::kConstant && divisor.a != 0 ? bounds[b] : bounds[a]);
          break;
        }
        default: bounds.push_back(bounds[a] + bounds[b]); break;
      }
    }
    return bounds;
  }

  // Is a sum no larger than another, for all extents for which something is stored?
  bool IsWithin(const Bound& small, const Bound& large) const {
    std::vector<bool> used(large.size());
    return std::all_of(small.begin(), small.end(), [&](const Term& term) {
      for (std::size_t k = 0; k < large.size(); ++k) {
        if (used[k] || large[k].factor < term.factor) continue;
        Term rest = large[k], names = 1;
        names.names = term.names;
        if (!rest.DivideBy(names) ||
            !std::all_of(rest.names.begin(), rest.names.end(), [this](const auto& name) { return IsStored(name); }))
          continue;
        used[k] = true;
        return true;
      }
      return term.factor == 0;
    });
  }
  // Does every result have this extent?
  bool IsStored(const std::string& name) const {
    return std::all_of(signature_.operands.begin(), signature_.operands.end(), [&](const auto& access) {
      const Term elements = Elements(access);
      return !access.store || std::count(elements.names.begin(), elements.names.end(), name) > 0;
    });
  }

  const plan::Plan& plan_;
  const plan::Kernel& kernel_;
  const runtime::KernelSignature& signature_;
  const runtime::CudaSchedule schedule_;
  const Extents extents_;
  const runtime::CudaGeometry<Term> geometry_;
  std::vector<Bound> bounds_;
  std::set<std::string> rests_;  // what has to be 0
  std::map<std::string, std::string> least_;  // what must not hold, and which rest of 0 rules it out
  std::map<int, std::size_t> aligned_;  // bytes, by buffer
};

// What a programmer of CUDA calls the elements.
std::string HostType(DType type) {
  switch (type) {
    case DType::kFloat16: return "__half";
    case DType::kBFloat16: return "__nv_bfloat16";
    case DType::kInt8: return "signed char";
    case DType::kUInt8: return "unsigned char";
    case DType::kInt16: return "short";
    default: return ScalarType(type);
  }
}

template <typename Range, typename Text>
std::string Joined(const Range& range, const std::string& between, const Text& text) {
  std::string all;
  for (const auto& one : range) all += (all.empty() ? "" : between) + text(one);
  return all;
}

std::string TextOf(const Term& term) { return term.Text(); }

// Without overflow.
std::string TextOf(const Bound& bound) {
  if (bound.size() == 1 && bound[0].names.size() == 1 && bound[0].factor == 1) return bound[0].Text();
  return Joined(bound, " + ", [](const Term& term) { return (term.is_number() ? "" : "1.0 * ") + term.Text(); });
}

std::string Dims(const runtime::CudaDimsOf<Term>& dims) {
  const std::string z = dims.z == 1 ? "" : ", " + dims.z.Alone(),
                    y = dims.y == 1 && z.empty() ? "" : ", " + dims.y.Alone();
  return "dim3(" + dims.x.Alone() + y + z + ")";
}

// Writes a launching function.
class LaunchWriter {
 public:
  LaunchWriter(const plan::Plan& plan, const plan::Kernel& kernel, const CudaVariant& variant,
               const std::string& function)
      : plan_(plan),
        signature_(kernel.signature),
        variant_(variant),
        function_(function),
        names_(Taken(function)),
        launch_(plan, kernel, &names_) {}

  CudaHost Run() {
    Declare();
    launch_.extents().Declare(scalar_names_, &out_);
    Check();
    if (launch_.KeepsRows(variant_.form)) out_.Line("const long long room = shared_room();");
    const CudaGrid<Term> grid =
        launch_.geometry().LayOut(variant_, Term("room"), [this](const std::string& name, const Term& number) {
          const std::string text = number.Alone();
          if (text.find_first_of(" (") == std::string::npos) return number;
          out_.Line("const long long {} = {};", name, text);
          return Term(name);
        });
    std::string shared = grid.shared_bytes.Text();
    if (!(grid.shared_bytes == 0)) {
      out_.Line("const long long shared = {};", shared);
      shared = "shared";
      out_.Line("if (shared > room) return cudaErrorInvalidValue;  // rows are kept in shared memory");
      out_.Open("if (shared > {})", runtime::CudaLimits().shared_bytes - runtime::kCudaStaticShared);
      out_.Line(
          "const cudaError_t error = cudaFuncSetAttribute(simd::{}, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);",
          function_);
      out_.Line("if (error != cudaSuccess) return error;");
      out_.Close();
    }
    Fill();
    out_.Line("void* entries[] = {{&args}};");
    out_.Line("return cudaLaunchKernel(simd::{}, {}, {}, entries, {}, stream);", function_, Dims(grid.grid),
              Dims(grid.block), shared);
    out_.Close();
    host_.text = out_.Take();
    return std::move(host_);
  }

 private:
  static Names Taken(const std::string& function) {
    Names names;
    for (const std::string& name : {function, function + "_args", function + "_launch"}) names.Make(name);
    names.Leave(
        "across along blocks ceil_div dim3 down entries error is_aligned kept launch least most parts "
        "power_of_two room rows rows_that_fit shared shared_room shares stream threads walks cudaError_t "
        "cudaErrorInvalidValue cudaStream_t cudaSuccess NULL NAN INFINITY");
    return names;
  }

  const runtime::Buffer& BufferOf(int number) const { return plan_.buffers[static_cast<std::size_t>(number)]; }
  bool IsStored(int buffer) const {
    return std::any_of(signature_.operands.begin(), signature_.operands.end(),
                       [&](const auto& access) { return access.buffer == buffer && access.store; });
  }

  void Declare() {
    using Kind = LaunchParameter::Kind;
    std::string parameters, shapes;
    const auto add = [&](Kind kind, int index, const std::string& text) {
      host_.parameters.push_back({kind, index});
      parameters += text + ", ";
    };
    for (const int number : BuffersOf(signature_)) {
      const runtime::Buffer& buffer = BufferOf(number);
      const std::string name = buffer_names_[number] = names_.Make(buffer.name);
      add(Kind::kBuffer, number, (IsStored(number) ? "" : "const ") + HostType(buffer.dtype) + "* " + name);
      shapes +=
          (shapes.empty() ? "" : ", ") + name + "[" +
          Joined(buffer.shape, ", ", [this](const Extent& extent) { return launch_.extents().Of(extent).Text(); }) +
          "]";
    }
    for (const int symbol : launch_.extents().Given())
      add(Kind::kExtent, symbol, "long long " + launch_.extents().NameOf(symbol));
    std::vector<int> scalars = launch_.extents().Scalars();
    scalars.insert(scalars.end(), signature_.scalars.begin(), signature_.scalars.end());
    scalar_names_.resize(plan_.scalars.size());
    for (const int scalar : scalars) {
      std::string& name = scalar_names_[static_cast<std::size_t>(scalar)];
      if (!name.empty()) continue;
      const auto& [wanted, type] = plan_.scalars[static_cast<std::size_t>(scalar)];
      name = names_.Make(wanted);
      add(Kind::kScalar, scalar, HostType(type) + " " + name);
    }
    host_.function = function_ + "_launch";
    out_.Line("// Puts {} into the stream, for dense, row-major {} in the memory of a GPU.", function_, shapes);
    out_.Open("extern \"C\" cudaError_t {}({}cudaStream_t stream)", host_.function, parameters);
  }

  // Returns an error if one of the conditions holds, in lines of 120.
  void Refuse(const std::vector<std::string>& conditions, const std::string& why) {
    const std::string error = "return cudaErrorInvalidValue;  // " + why;
    std::string line = "if (", before;
    bool whole = true;
    for (const std::string& condition : conditions) {
      if (line.size() + before.size() + condition.size() > 112) {
        out_.Line("{} ||", line);
        line = "   ";
        before = " ";
        whole = false;
      }
      line += before + condition;
      before = " || ";
    }
    if (conditions.empty()) return;
    if (whole && line.size() + error.size() < 116) return out_.Line("{}) {}", line, error);
    out_.Line("{})", line);
    out_.Line("  {}", error);
  }

  // What the variant does not do is said before anything is launched.
  void Check() {
    std::vector<std::string> refused;
    for (const std::string& name : launch_.extents().AllNames()) refused.push_back(name + " < 0");
    for (const Bound& bound : launch_.bounds()) {
      if (variant_.wide_index ||
          std::all_of(bound.begin(), bound.end(), [](const Term& term) { return term.is_number(); }))
        continue;
      refused.push_back(fmt::format("{} >= {}", TextOf(bound), runtime::kIndexLimit));
    }
    Refuse(refused, variant_.wide_index ? "no extents" : "offsets have 32 bits");
    std::set<std::string> stored;
    bool some = false;
    for (const auto& access : signature_.operands) {
      if (!access.store) continue;
      const Term elements = launch_.Elements(access);
      some = some || (elements.is_number() && elements.factor > 0);
      stored.insert(elements.Text());
    }
    if (!some)
      out_.Line("if ({}) return cudaSuccess;",
                Joined(stored, " && ", [](const std::string& elements) { return elements + " == 0"; }));
    if (!variant_.vector) return;
    launch_.MayHavePackets(variant_.form);
    Refuse(launch_.PacketRefusals(buffer_names_), "it goes by packets");
  }

  void Fill() {
    std::vector<Term> extents = launch_.geometry().extents();
    for (const Term& number : launch_.Numbers()) extents.push_back(number);
    const auto list = [](const std::vector<Term>& terms) {
      return Joined(terms, ", ", [](const Term& term) { return TextOf(term); });
    };
    out_.Line("simd::{}_args args = {{{{{}}}, {{{}}}, {{{}}}}};", function_,
              Joined(signature_.operands, ", ",
                     [this](const auto& access) {
                       return (IsStored(access.buffer) ? "" : "(void*)") + buffer_names_.at(access.buffer);
                     }),
              list(launch_.geometry().strides()), list(extents));
    for (std::size_t k = 0; k < signature_.scalars.size(); ++k) {
      const auto scalar = static_cast<std::size_t>(signature_.scalars[k]);
      out_.Line("args.scalar[{}].{} = {};", k, Name(plan_.scalars[scalar].second), scalar_names_[scalar]);
    }
  }

  const plan::Plan& plan_;
  const runtime::KernelSignature& signature_;
  const CudaVariant variant_;
  const std::string function_;
  Names names_;
  DenseLaunch launch_;
  Writer out_;
  CudaHost host_;
  std::map<int, std::string> buffer_names_;
  std::vector<std::string> scalar_names_;  // by the plan's number; empty: it is no parameter
};

}  // namespace

CudaVariant TypicalCudaVariant(const plan::Plan& plan, const plan::Kernel& kernel) {
  Names names;
  return DenseLaunch(plan, kernel, &names).Variant();
}

CudaHost LaunchOfCuda(const plan::Plan& plan, const plan::Kernel& kernel, const CudaVariant& variant,
                      const std::string& function) {
  Ensure(!variant.strided && !variant.rows_in_scratch && !variant.finishes(), "a launch of ", function,
         " that dense operands do not take alone");
  return LaunchWriter(plan, kernel, variant, function).Run();
}

std::string CudaHostPart(const plan::Plan& plan, const std::vector<CudaHost>& functions) {
  const std::string text = Joined(functions, "\n", [](const CudaHost& host) { return host.text; });
  std::string helpers = TermFunctions(text);
  if (text.find("is_aligned(") != std::string::npos)
    helpers +=
        "inline bool is_aligned(const void* p, unsigned bytes) { return reinterpret_cast<unsigned long long>(p) % bytes == 0; }\n";
  if (text.find("shared_room(") != std::string::npos)
    helpers += fmt::format(
        "inline long long shared_room() {{  // what a block of the device may have, but for the kernels' own\n"
        "  int device = 0, bytes = 0;\n  cudaGetDevice(&device);\n"
        "  cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);\n"
        "  return (bytes > {0} ? bytes : {0}) - {1};\n}}\n",
        runtime::CudaLimits().shared_bytes, runtime::kCudaStaticShared);
  std::string declared;
  for (const char* type : {"__half", "__nv_bfloat16"})
    if (text.find(std::string(type) + "*") != std::string::npos) declared += std::string("struct ") + type + ";\n";
  if (!declared.empty()) declared += "\n";
  std::string order;
  for (std::size_t k = 0; k < plan.steps.size(); ++k)
    order += (k == 0 ? "" : ", ") + plan::StepName(plan, plan.steps[k]) +
             (plan::IsBehind(plan, static_cast<int>(k)) ? " (of a rounded product only)" : "");
  return "\n#ifndef __CUDACC_RTC__\n"
         "// Launches, for nvcc. cudaErrorInvalidValue: a kernel above is not for such operands; a library of `umbra aot` takes any.\n" +
         (plan.steps.size() > 1 ? "// The steps of " + plan.name + ", in order: " + order + ".\n\n" : "\n") + declared +
         "namespace umbra::launch {\n\n" + helpers + (helpers.empty() ? "" : "\n") + text +
         "\n}  // namespace umbra::launch\n\n#endif\n";
}

}  // namespace umbra::codegen
