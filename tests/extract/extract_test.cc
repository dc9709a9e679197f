// The graphs of kernels.cc, interpreted and compiled, against the same functions run eagerly.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "compiler/driver/target.h"
#include "tests/extract/kernels.cc"
#include "tools/umbra-extract/extract.h"
#include "umbra/compile.h"

namespace {

using umbra::extract::ExtractedKernel;

const std::vector<ExtractedKernel>& Kernels() {
  static const std::vector<ExtractedKernel> kernels = [] {
    umbra::extract::ExtractOptions options;
    options.files = {UMBRA_KERNELS};
    options.flags = {"-std=c++17", "-I" UMBRA_INCLUDE, "-ffp-contract=off"};
    options.has_flags = options.strict = true;
    const auto extraction = umbra::extract::Extract(options);
    EXPECT_FALSE(extraction.failed);
    return extraction.kernels;
  }();
  return kernels;
}

// An operand of a call: a container for a tensor, the number itself otherwise.
template <typename P>
struct Argument {
  using Bare = std::remove_cv_t<std::remove_reference_t<P>>;
  static constexpr bool kTensor = false;
  Bare value{};
  void Fill(const std::vector<index_t>& given, std::mt19937* random) {
    if (std::is_same_v<Bare, index_t>) value = static_cast<Bare>(given.at(0));  // a position
    else value = static_cast<Bare>(std::uniform_real_distribution<double>(-1.5, 1.5)(*random));
  }
  Bare Pass() { return value; }
};
template <int dim, typename DType>
struct Argument<Tensor<cpu, dim, DType>> {
  static constexpr bool kTensor = true;
  TensorContainer<cpu, dim, DType> value;
  void Fill(const std::vector<index_t>& extents, std::mt19937* random) {
    ASSERT_EQ(extents.size(), static_cast<std::size_t>(dim));
    Shape<dim> shape;
    for (int d = 0; d < dim; ++d) shape[d] = extents[static_cast<std::size_t>(d)];
    value.Resize(shape, DType(0));
    std::uniform_real_distribution<double> draw(-3, 3);
    ForEach([&](DType& element) {
      if constexpr (std::is_integral_v<DType>)
        element = static_cast<DType>(static_cast<index_t>(std::floor(draw(*random) * 10)));
      else element = static_cast<DType>(draw(*random));
    });
  }
  template <typename Body>
  void ForEach(const Body& body) {
    const Tensor<cpu, 2, DType> rows = value.FlatTo2D();
    for (index_t y = 0; y < rows.size(0); ++y)
      for (index_t x = 0; x < rows.size(1); ++x) body(rows[y][x]);
  }
  Tensor<cpu, dim, DType>& Pass() { return value; }
  umbra::runtime::TensorRef Ref() {
    umbra::runtime::TensorRef ref;
    ref.data = value.dptr_;
    ref.dtype = umbra::DTypeOf<DType>::value;
    ref.shape.assign(value.shape_.shape_, value.shape_.shape_ + dim);
    ref.stride.assign(static_cast<std::size_t>(dim), 1);
    for (int d = dim - 2; d >= 0; --d)
      ref.stride[static_cast<std::size_t>(d)] =
          d == dim - 2 ? value.stride_ : ref.stride[static_cast<std::size_t>(d) + 1] * value.shape_[d + 1];
    return ref;
  }
};
template <int dim, typename DType>
struct Argument<const Tensor<cpu, dim, DType>&> : Argument<Tensor<cpu, dim, DType>> {};

template <int dim, typename DType>
struct Argument<TensorContainer<cpu, dim, DType>&> : Argument<Tensor<cpu, dim, DType>> {
  TensorContainer<cpu, dim, DType>& Pass() { return this->value; }
};
template <int dim, typename DType>
struct Argument<const TensorContainer<cpu, dim, DType>&> : Argument<TensorContainer<cpu, dim, DType>&> {};

template <typename T>
double Tolerance() {
  return std::is_same_v<T, double> ? 1e-13 : std::is_same_v<T, umbra::half_t> ? 0 : 4e-6;
}

template <typename... Params>
void Check(const std::string& name, void (*eager)(Params...), const std::vector<std::vector<index_t>>& shapes) {
  SCOPED_TRACE(name);
  const ExtractedKernel* kernel = nullptr;
  for (const ExtractedKernel& candidate : Kernels())
    if (candidate.name == name) kernel = &candidate;
  ASSERT_NE(kernel, nullptr);
  ASSERT_EQ(kernel->parameters.size(), sizeof...(Params));
  for (const auto engine : {umbra::Engine::kInterpreter, umbra::Engine::kJit}) {
    std::mt19937 random(17);
    std::tuple<Argument<Params>...> expected, given;
    std::size_t k = 0;
    std::apply([&](auto&... a) { ((a.Fill(shapes[std::min(k, shapes.size() - 1)], &random), ++k), ...); }, expected);
    given = expected;
    std::apply([&](auto&... a) { eager(a.Pass()...); }, expected);

    umbra::CompileOptions options;
    options.engine = engine;
    const umbra::Function function = umbra::Compile(kernel->graph, options);
    umbra::runtime::Arguments arguments;
    arguments.inputs.resize(kernel->graph->inputs().size());
    arguments.outputs.resize(kernel->graph->outputs().size());
    arguments.scalars.resize(kernel->graph->scalars().size());
    k = 0;
    std::apply(
        [&](auto&... a) {
          const auto pass = [&](auto& argument) {
            const auto& parameter = kernel->parameters[k++];
            ASSERT_EQ(parameter.tensor, argument.kTensor);
            if constexpr (std::decay_t<decltype(argument)>::kTensor) {
              if (parameter.input >= 0) arguments.inputs[static_cast<std::size_t>(parameter.input)] = argument.Ref();
              if (parameter.output >= 0) arguments.outputs[static_cast<std::size_t>(parameter.output)] = argument.Ref();
            } else {
              umbra_scalar& scalar = arguments.scalars[static_cast<std::size_t>(parameter.scalar)];
              if constexpr (std::is_same_v<decltype(argument.value), float>) scalar.f32 = argument.value;
              else if constexpr (std::is_same_v<decltype(argument.value), double>) scalar.f64 = argument.value;
              else if constexpr (std::is_same_v<decltype(argument.value), index_t>) scalar.i64 = argument.value;
              else scalar.i32 = static_cast<int>(argument.value);  // enumerations, narrow numbers and conditions, too
            }
          };
          (pass(a), ...);
        },
        given);
    function(arguments);

    std::apply(
        [&](auto&... wanted) {
          std::apply(
              [&](auto&... got) {
                const auto compare = [&](auto& w, auto& g) {
                  if constexpr (std::decay_t<decltype(w)>::kTensor) {
                    std::vector<double> values;
                    w.ForEach([&](auto& element) { values.push_back(static_cast<double>(element)); });
                    std::size_t at = 0;
                    g.ForEach([&](auto& element) {
                      const double value = values[at++], tolerance = Tolerance<std::decay_t<decltype(element)>>();
                      EXPECT_NEAR(static_cast<double>(element), value, tolerance * (1 + std::fabs(value)))
                          << "element " << at - 1;
                    });
                  }
                };
                (compare(wanted, got), ...);
              },
              given);
        },
        expected);
  }
}

const std::vector<std::vector<index_t>> kSquare = {{9, 21}};

TEST(Extract, ExpressionsAndScalars) {
  Check("bias_swish", bias_swish, {{9, 21}, {9, 21}, {21}, {}});
  Check("arithmetic", arithmetic, kSquare);
  Check("momentum", momentum, kSquare);
}
TEST(Extract, Reductions) {
  Check("layer_norm", layer_norm, {{9, 21}, {9, 21}, {21}, {9}});
  Check("softmax", softmax, kSquare);
  Check("norm", norm, {{9}, {9, 21}});
  Check("positions", positions, {{6}, {6, 6}, {6}});
}
TEST(Extract, Products) {
  Check("dense", dense, {{9, 5}, {9, 21}, {5, 21}, {5}});
  Check("scaled_dot", scaled_dot, {{9, 5}, {9, 21}, {21, 5}, {}});
  Check("batches", batches, {{3, 4, 5}, {3, 4, 7}, {3, 5, 7}});
}
TEST(Extract, UserOperators) {
  Check("user_operators", user_operators, kSquare);
  Check("conversions", conversions, kSquare);
  Check("integers", integers, kSquare);
  Check("returns", returns, kSquare);
  Check("calls", calls, kSquare);
  Check("calls_wide", calls_wide, kSquare);
}
TEST(Extract, Statements) {
  Check("iterate_3_true", iterate<3, true>, kSquare);
  Check("iterate_4_false", iterate<4, false>, kSquare);
  Check("choose", choose, {{21}});
  Check("axpy_cpu_float", axpy<cpu, float>, {{21}});
  Check("axpy_cpu_double", axpy<cpu, double>, {{21}});
  Check("both", both, {{21}});
  Check("halves", halves, kSquare);
  Check("narrow", narrow, kSquare);
  Check("normalise", normalise, {{9, 21}, {21}});
  Check("table", table, kSquare);
  Check("folded", folded, {{21}});
  Check("layer_Kind_kPlain", layer<Kind::kPlain>, {{21}});
  Check("layer_Kind_kLeaky", layer<Kind::kLeaky>, {{21}});
  Check("layer_Kind_kSteep", layer<Kind::kSteep>, {{21}});
  Check("capped", capped, {{21}, {9, 21}});
}
TEST(Extract, IndexMaps) {
  Check("maps", maps, {{6, 6}});
  Check("pooling", pooling, {{2, 4, 6}});
  Check("running", running, {{6, 20}});
  Check("lookup", lookup, {{5, 4}, {5}, {5, 4}});
  Check("parts", parts, {{5, 6}, {4}, {2}, {5, 6}});
  Check("parts_of_parts", parts_of_parts, {{5, 6}, {3, 4}, {3, 2}, {5, 6}, {2}});
  Check("sized", sized, {{6, 20}, {2, 3, 20}, {20}});
  Check("window", window, {{4, 6}, {9, 21}, {3}, {2}});
}

TEST(Extract, BitsOfIntegers) {
  Check("bits_int", bits<int>, kSquare);
  Check("bits_long", bits<std::int64_t>, kSquare);
  Check("bits_signed_char", bits<std::int8_t>, kSquare);
  Check("bits_unsigned_char", bits<std::uint8_t>, kSquare);
}
TEST(Extract, Lambdas) { Check("lambdas", lambdas, kSquare); }

// Special values of all kinds with each other, and bit patterns: bits of every dialect.
template <typename T>
void CheckExactly(const std::string& name) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values = {0,
                           1,
                           2,
                           3,
                           T(0.1),
                           T(0.5),
                           T(1.5),
                           T(2.5),
                           7,
                           100,
                           126,
                           127,
                           149,
                           1000,
                           1074,
                           T(1e6),
                           T(8388609),
                           Limits::denorm_min(),
                           5 * Limits::denorm_min(),
                           Limits::min(),
                           Limits::min() - Limits::denorm_min(),
                           Limits::epsilon(),
                           Limits::max(),
                           Limits::max() / 2,
                           Limits::infinity(),
                           Limits::quiet_NaN()};
  std::mt19937_64 random(3);
  for (int k = 0; k < 30; ++k)
    values.push_back(
        static_cast<T>(std::ldexp(static_cast<double>(random() >> 11), static_cast<int>(random() % 300) - 200)));
  for (std::size_t k = values.size(); k-- > 0;) values.push_back(-values[k]);
  const auto n = static_cast<index_t>(values.size());
  TensorContainer<cpu, 1, T> a(Shape1(n * n)), b(Shape1(n * n));
  for (index_t k = 0; k < n * n; ++k)
    a[k] = values[static_cast<std::size_t>(k / n)], b[k] = values[static_cast<std::size_t>(k % n)];
  TensorContainer<cpu, 2, T> expected(Shape2(kExact, n * n)), got(expected.shape_);
  exactly<T>(expected, a, b);
  for (const ExtractedKernel& kernel : Kernels()) {
    if (kernel.name != name) continue;
    std::vector<std::string> targets = {"interpreter"};
    for (const auto target : umbra::codegen::kAllTargets)
      if (umbra::HostRuns(target)) targets.emplace_back(umbra::codegen::Name(target));
    for (const std::string& target : targets) {
      umbra::CompileOptions options;
      if (target == "interpreter") options.engine = umbra::Engine::kInterpreter;
      else options.target = target;
      const auto ref = [](auto& tensor) {
        return umbra::runtime::TensorRef::Dense(
            tensor.dptr_, umbra::DTypeOf<T>::value,
            {tensor.shape_.shape_, tensor.shape_.shape_ + tensor.shape_.kDimension});
      };
      umbra::runtime::Arguments arguments{
          std::vector<umbra::runtime::TensorRef>(kernel.graph->inputs().size()), {ref(got)}, {}};
      const umbra::runtime::TensorRef given[] = {ref(got), ref(a), ref(b)};
      for (std::size_t k = 0; k < 3; ++k)
        if (kernel.parameters[k].input >= 0)
          arguments.inputs[static_cast<std::size_t>(kernel.parameters[k].input)] = given[k];
      umbra::Compile(kernel.graph, options)(arguments);
      int wrong = 0;
      for (index_t f = 0; f < kExact; ++f)
        for (index_t k = 0; k < n * n; ++k) {
          const T want = expected[f][k], have = got[f][k];
          const bool same = std::memcmp(&want, &have, sizeof want) == 0 || (std::isnan(want) && std::isnan(have));
          if (!same && ++wrong < 20)
            ADD_FAILURE() << name << " " << f << " of " << a[k] << " and " << b[k] << ", " << target << ": " << have
                          << ", expected " << want;
        }
    }
    return;
  }
  FAIL() << "no kernel " << name;
}
TEST(Extract, ExactFunctions) {
  CheckExactly<float>("exactly_float");
  CheckExactly<double>("exactly_double");
}

TEST(Extract, EveryKernelIsFound) { EXPECT_EQ(Kernels().size(), 46U); }

}  // namespace
