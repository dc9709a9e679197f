// Fused streams: statements that wait together run as one program, and mean what they mean one by one.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/unit/fused_stream_common.h"

namespace umbra {
namespace {

UMBRA_OP(squared, (x), x* x)
UMBRA_OP(root, (x), sqrt(x))
struct Hidden {  // of which the compiler knows nothing
  template <typename DType>
  static DType Map(DType a) {
    return a + DType(1);
  }
};

// Steps that a run of `body` compiles anew: body is given a stream of that kind.
int Compiled(Execution execution, const std::function<void(Stream<cpu>*)>& body) {
  CompileOptions options;
  options.use_disk_cache = false;
  jit::SetOptions(options);
  const Owner stream = Make(execution);
  const CompileStatistics before = GetCompileStatistics();
  body(stream.get());
  stream->Wait();
  const CompileStatistics after = GetCompileStatistics();
  jit::SetOptions({});
  return after.compiled - before.compiled + after.memory_hits - before.memory_hits;
}

// What `body` leaves, bit by bit, is the same at once and fused.
template <typename Body>
void ExpectAlike(const Body& body) {
  const Owner at_once = Make(Execution::kImmediate), fused = Make(Execution::kFused);
  const auto expected = body(at_once.get()), given = body(fused.get());
  ASSERT_EQ(expected.size(), given.size());
  for (std::size_t k = 0; k < expected.size(); ++k)
    ASSERT_EQ(std::memcmp(&expected[k], &given[k], sizeof expected[k]), 0)
        << "element " << k << ": " << static_cast<float>(expected[k]) << " at once, " << static_cast<float>(given[k])
        << " fused";
}

void Adam(Tensor<cpu, 1> p, Tensor<cpu, 1> m, Tensor<cpu, 1> v, Tensor<cpu, 1> g) {
  jit(m) = 0.9f * m + 0.1f * g;
  jit(v) = 0.99f * v + 0.01f * F<squared>(g);
  jit(p) -= 1e-3f * m / (F<root>(v) + 1e-8f);
}

TEST(FusedStream, AdamIsOneKernel) {
  const auto run = [](Stream<cpu>* stream) {
    Held<1> p(stream, Shape1(1000), 1), m(stream, Shape1(1000), 2), v(stream, Shape1(1000), 3),
        g(stream, Shape1(1000), 4);
    v.dptr_[0] = 4;
    std::vector<float> all;
    for (int step = 0; step < 3; ++step) {
      Adam(p, m, v, g);
      stream->Wait();
      for (const Held<1>* t : {&p, &m, &v}) {
        const std::vector<float> elements = t->Elements();
        all.insert(all.end(), elements.begin(), elements.end());
      }
    }
    return all;
  };
  ExpectAlike(run);
  EXPECT_EQ(Compiled(Execution::kFused, run), 1);
  EXPECT_GE(Compiled(Execution::kImmediate, run), 3);
}

TEST(FusedStream, LayerNormalisationIsOneKernel) {
  const auto run = [](Stream<cpu>* stream) {
    Held<2> x(stream, Shape2(37, 129), 1), y(stream, Shape2(37, 129), 2);
    Held<1> mean(stream, Shape1(37), 3), scale(stream, Shape1(37), 4);
    jit(mean) = (1.0f / 129) * sumall_except_dim<0>(x);
    jit(scale) = (1.0f / 129) * sumall_except_dim<0>(F<squared>(x - broadcast<0>(mean, x.shape_)));
    jit(scale) = 1.0f / F<root>(scale + 1e-5f);
    jit(y) = (x - broadcast<0>(mean, x.shape_)) * broadcast<0>(scale, x.shape_);
    stream->Wait();
    std::vector<float> all = y.Elements(), means = mean.Elements(), scales = scale.Elements();
    all.insert(all.end(), means.begin(), means.end());
    all.insert(all.end(), scales.begin(), scales.end());
    return all;
  };
  ExpectAlike(run);
  EXPECT_EQ(Compiled(Execution::kFused, run), 1);
}

TEST(FusedStream, ProductTakesItsEpilogueAlong) {
  const auto run = [](Stream<cpu>* stream) {
    Held<2> x(stream, Shape2(33, 40), 1), w(stream, Shape2(40, 50), 2), y(stream, Shape2(33, 50), 3);
    Held<1> bias(stream, Shape1(50), 4);
    jit(y) = dot(x, w);
    jit(y) = F<op::relu>(y + repmat(bias, 33));
    stream->Wait();
    return y.Elements();
  };
  ExpectAlike(run);
}

// What a sum shares its loop with says how many partial results it has.
TEST(FusedStream, SumsBesidePolynomialsMayDifferInTheirLastBits) {
  const auto run = [](Stream<cpu>* stream) {
    Held<2> x(stream, Shape2(5, 1000), 1);
    Held<1> sum(stream, Shape1(5), 2), powers(stream, Shape1(5), 3);
    jit(sum) = sumall_except_dim<0>(x * x);
    jit(powers) = sumall_except_dim<0>(F<op::exp>(x));
    stream->Wait();
    std::vector<float> all = sum.Elements(), more = powers.Elements();
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const std::vector<float> expected = run(Make(Execution::kImmediate).get()),
                           given = run(Make(Execution::kFused).get());
  for (std::size_t k = 0; k < expected.size(); ++k)
    EXPECT_NEAR(given[k], expected[k], expected[k] * (1000.0f / 32 + 5) * 0x1p-24f);
}

TEST(FusedStream, WhatWaitsHasTheOptionsThatWere) {
  const Owner stream = Make(Execution::kFused);
  Held<1> a(stream.get(), Shape1(5), 1);
  a = 3.0f;
  jit(a) = a + 1.0f;
  EXPECT_EQ(a[4], 3);
  jit::SetOptions({});
  EXPECT_EQ(a[4], 4);
}

TEST(FusedStream, OneStatementRunsAsItDoesAlone) {
  const auto run = [](Stream<cpu>* stream) {
    Held<1> a(stream, Shape1(256), 1), b(stream, Shape1(256), 2);
    jit(a) += b * 2.0f;
    stream->Wait();
    jit(a) = a * a + b;
    stream->Wait();
    return a.Elements();
  };
  ExpectAlike(run);
}

TEST(FusedStream, NothingHasRunBeforeItIsWaitedFor) {
  const Owner stream = Make(Execution::kFused);
  Held<1> a(stream.get(), Shape1(5), 1);
  a = 3.0f;  // at once: eager
  jit(a) = a + 1.0f;
  jit(a) = a * 2.0f;
  EXPECT_EQ(a[4], 3);
  EXPECT_FALSE(stream->asynchronous());
  EXPECT_TRUE(stream->fused());
  EXPECT_TRUE(stream->CheckIdle());
  EXPECT_EQ(a[4], 8);
}

TEST(FusedStream, WhatIsNotCompiledKeepsItsPlace) {
  const Owner stream = Make(Execution::kFused);
  Held<1> a(stream.get(), Shape1(5), 1), b(stream.get(), Shape1(5), 2);
  a = 1.0f;
  jit(a) = a + 1.0f;
  b = F<Hidden>(a);  // eager: 3
  jit(a) = a * b;  // 6
  float seen = 0;
  stream->Submit([&] { seen = a[0]; });
  EXPECT_EQ(seen, 6);
  jit(a) = a + b;  // 9
  Copy<1, float>(b, a, stream.get());
  EXPECT_EQ(b[4], 9);
  jit(a) = a + b;  // 18
  Copy<1, float>(b, a);
  EXPECT_EQ(b[4], 18);
}

TEST(FusedStream, PartsOfTensorsAreWrittenWhereTheyBelong) {
  ExpectAlike([](Stream<cpu>* stream) {
    Held<2> a(stream, Shape2(6, 7), 1), b(stream, Shape2(3, 7), 2), c(stream, Shape2(6, 7), 3);
    jit(c) = a * 2.0f;
    jit(slice<0>(c, 1, 4)) = b + 1.0f;
    jit(c) += 0.5f;
    stream->Wait();
    return c.Elements();
  });
}

TEST(FusedStream, ViewsOfOneTensorRunInOrder) {
  ExpectAlike([](Stream<cpu>* stream) {
    Held<2> a(stream, Shape2(6, 8), 1), b(stream, Shape2(6, 8), 2);
    Tensor<cpu, 2> upper = a.Slice(0, 3), lower = a.Slice(3, 6), middle = a.Slice(1, 5);
    jit(upper) = lower + 1.0f;  // apart
    jit(lower) = upper * 2.0f;
    jit(middle) = middle + 1.0f;  // over both
    jit(b) = a.T().T() + b;
    jit(upper) = b.Slice(2, 5) * lower;
    stream->Wait();
    return a.Elements();
  });
}

TEST(FusedStream, WhatIsReadLaterThanItIsOverwrittenIsReadAsItWas) {
  ExpectAlike([](Stream<cpu>* stream) {
    Held<2> a(stream, Shape2(65, 65), 1), b(stream, Shape2(65, 65), 2), c(stream, Shape2(65, 65), 3),
        d(stream, Shape2(65, 65), 4);
    jit(b) = dot(a, c);
    jit(a) = a * 0.5f;
    jit(d) = dot(b, a) + a.T();
    jit(a) = d - a;
    jit(c) = a.T() * c;
    stream->Wait();
    std::vector<float> all = a.Elements(), more = c.Elements();
    all.insert(all.end(), more.begin(), more.end());
    return all;
  });
}

// The gradient of the hidden layer reads weights that the step updates at its end.
TEST(FusedStream, ATrainingStepIsGradientsAndUpdates) {
  const auto run = [](Stream<cpu>* stream) {
    Held<2> x(stream, Shape2(20, 13), 1), wanted(stream, Shape2(20, 7), 2), w1(stream, Shape2(13, 11), 3),
        w2(stream, Shape2(11, 7), 4);
    Held<2> hidden(stream, Shape2(20, 11), 5), error(stream, Shape2(20, 7), 6), back(stream, Shape2(20, 11), 7);
    Held<2> g1(stream, Shape2(13, 11), 8), g2(stream, Shape2(11, 7), 9);
    for (int step = 0; step < 3; ++step) {
      jit(hidden) = dot(x, w1);
      jit(hidden) = F<op::tanh>(hidden);
      jit(error) = dot(hidden, w2);
      jit(error) -= wanted;
      jit(g2) = dot(hidden.T(), error);
      jit(back) = dot(error, w2.T());
      jit(back) *= 1.0f - hidden * hidden;
      jit(g1) = dot(x.T(), back);
      jit(w2) -= 0.01f * g2;
      jit(w1) -= 0.01f * g1;
      stream->Wait();
    }
    std::vector<float> all = w1.Elements(), more = w2.Elements();
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const std::vector<float> expected = run(Make(Execution::kImmediate).get()),
                           given = run(Make(Execution::kFused).get());
  for (std::size_t k = 0; k < expected.size(); ++k)
    EXPECT_NEAR(given[k], expected[k], 1e-4f * (1 + std::abs(expected[k])));
}

TEST(FusedStream, FillsAndSumsHaveTheirTensorsShape) {
  ExpectAlike([](Stream<cpu>* stream) {
    Held<2> a(stream, Shape2(4, 9), 1), b(stream, Shape2(4, 9), 2);
    Held<1> sum(stream, Shape1(4), 3), row(stream, Shape1(9), 4);
    jit(a) = 2.0f;
    jit(sum) = sumall_except_dim<0>(a);
    jit(a) = broadcast<1>(row, a.shape_);
    jit(b) += a;
    jit(row) = sumall_except_dim<1>(a * b);
    stream->Wait();
    std::vector<float> all = b.Elements(), more = sum.Elements(), rows = row.Elements();
    all.insert(all.end(), more.begin(), more.end());
    all.insert(all.end(), rows.begin(), rows.end());
    return all;
  });
}

template <typename DType>
class FusedStreamOf : public testing::Test {};
using Stored = testing::Types<half_t, bf16_t, std::int8_t, std::uint8_t, std::int16_t, std::int32_t, double>;
TYPED_TEST_SUITE(FusedStreamOf, Stored);

TYPED_TEST(FusedStreamOf, WhatIsStoredIsRoundedBeforeItIsRead) {
  ExpectAlike([](Stream<cpu>* stream) {
    const auto number = [](int n) { return TypeParam(static_cast<float>(n)); };
    Held<1, TypeParam> a(stream, Shape1(77), 1), b(stream, Shape1(77), 2), c(stream, Shape1(77), 3);
    jit(c) = a * b * number(37);
    jit(a) = c * c + number(3);
    jit(b) += a - c;
    stream->Wait();
    std::vector<TypeParam> all = a.Elements(), more = b.Elements();
    all.insert(all.end(), more.begin(), more.end());
    return all;
  });
}

TEST(FusedStream, DrawsAreThoseOfTheirPlaceInTheProgram) {
  ExpectAlike([](Stream<cpu>* stream) {
    Random<cpu> random(3);
    Held<2> a(stream, Shape2(5, 33), 1), b(stream, Shape2(5, 33), 2);
    jit(a) = random.uniform(a.shape_);
    jit(b) = random.uniform(a.shape_) * a;
    jit(a) += random.gaussian(a.shape_) - b;
    stream->Wait();
    return a.Elements();
  });
}

TEST(FusedStream, ErrorStopsWhatFollows) {
  const Owner stream = Make(Execution::kFused);
  Held<1> a(stream.get(), Shape1(5), 1), b(stream.get(), Shape1(6), 2), c(stream.get(), Shape1(5), 3);
  jit(a) = 1.0f;
  jit(c) = 1.0f;
  stream->Wait();
  jit(a) = a + 1.0f;
  jit(b) = a * 2.0f;
  jit(c) = a + 5.0f;
  EXPECT_SAYS("5", stream->Wait());
  EXPECT_EQ(a[4], 2);
  EXPECT_EQ(c[4], 1);
  stream->Wait();
  jit(c) = a + 5.0f;
  jit(a) = c + a;
  stream->Wait();
  EXPECT_EQ(a[4], 9);
}

// A destination that is overwritten later has to fit, too.
TEST(FusedStream, StatementsThatNobodyReadsAreCheckedToo) {
  const Owner stream = Make(Execution::kFused);
  Held<1> a(stream.get(), Shape1(5), 1), b(stream.get(), Shape1(6), 2);
  jit(a) = b + 1.0f;
  jit(a) = a * 0.0f + 1.0f;
  jit(a) = 4.0f;
  EXPECT_THROW(stream->Wait(), Error);
}

TEST(FusedStream, ManyStatementsRunWithoutBeingWaitedFor) {
  ExpectAlike([](Stream<cpu>* stream) {
    Held<1> a(stream, Shape1(19), 1), b(stream, Shape1(19), 2);
    for (int k = 0; k < 200; ++k) {
      jit(a) = a * 0.75f + b;
      jit(b) = b * 0.5f - a * 0.125f;
    }
    stream->Wait();
    return a.Elements();
  });
}

TEST(FusedStream, EndOfTheStreamRunsWhatWaits) {
  Held<1> a(nullptr, Shape1(5), 1), b(nullptr, Shape1(6), 2);
  a = 1.0f;
  {
    const Owner stream = Make(Execution::kFused);
    a.set_stream(stream.get());
    jit(a) = a + 1.0f;
    jit(a) = a * 3.0f;
    a.set_stream(nullptr);
  }
  EXPECT_EQ(a[4], 6);
  {
    const Owner stream = Make(Execution::kFused);
    a.set_stream(stream.get());
    jit(a) = b + 1.0f;  // an error that nobody waits for
    a.set_stream(nullptr);
  }
}

TEST(FusedStream, OtherStreamsOfOperandsComeFirst) {
  const Owner first = Make(Execution::kFused), second = Make(Execution::kFused), third = Make(Execution::kAsynchronous);
  Held<1> a(first.get(), Shape1(5), 1), b(second.get(), Shape1(5), 2), c(third.get(), Shape1(5), 2);
  a = 1.0f;
  b = 1.0f;
  c = 1.0f;
  jit(b) = b + 1.0f;
  jit(c) = c + 2.0f;
  jit(a) = a + b + c;
  jit(a) = a * 2.0f;
  first->Wait();
  EXPECT_EQ(a[4], 12);
}

TEST(FusedStream, ErrorsSayWhichStatementItIs) {
  Waits w;
  Held<1> longer(w.stream.get(), Shape1(6), 1);
  jit(longer) = w.a + 1.0f;
  jit(w.a) = w.a + 1.0f;
  EXPECT_SAYS("statement 3 of 4 that waited", w.stream->Wait());
  EXPECT_EQ(w.a[4], 4);
}

// Which rows are one is part of a program: these are almost never found again.
TEST(FusedStream, WhatIsNeverTheSameIsNotCompiled) {
  std::mt19937 random(5);
  const auto run = [&](Stream<cpu>* stream) {
    Held<2> table(stream, Shape2(40, 8), 1), sources(stream, Shape2(40, 8), 2);
    for (int k = 0; k < 300; ++k) {
      for (int row = 0; row < 12; ++row) jit(table[static_cast<index_t>(random() % 40)]) += sources[row];
      stream->Wait();
    }
  };
  EXPECT_LE(Compiled(Execution::kFused, run),
            64 * 16);  // kernels of 64 programs and of single statements, where 300 are asked for
}

// Statements drawn at random over a few tensors and their parts.
class Drawn {
 public:
  Drawn(Stream<cpu>* stream, unsigned seed) : random_(seed), stream_(stream) {
    for (int k = 0; k < 4; ++k) square_.push_back(std::make_unique<Held<2>>(stream, Shape2(n_, n_), k));
    for (int k = 0; k < 3; ++k) line_.push_back(std::make_unique<Held<1>>(stream, Shape1(n_), 10 + k));
  }
  std::vector<float> Run(int statements) {
    for (int k = 0; k < statements; ++k) {
      Statement();
      if (random_() % 9 == 0) stream_->Wait();
    }
    stream_->Wait();
    std::vector<float> all;
    for (const auto& t : square_) Append(&all, t->Elements());
    for (const auto& t : line_) Append(&all, t->Elements());
    return all;
  }

 private:
  static void Append(std::vector<float>* all, const std::vector<float>& more) {
    all->insert(all->end(), more.begin(), more.end());
  }
  Tensor<cpu, 2> Square() { return *square_[random_() % square_.size()]; }
  Tensor<cpu, 1> Line() {
    const auto k = random_() % (line_.size() + 1);
    return k < line_.size() ? static_cast<Tensor<cpu, 1>>(*line_[k]) : Square()[static_cast<index_t>(random_() % n_)];
  }
  Tensor<cpu, 2> Rows() {
    const auto first = static_cast<index_t>(random_() % 3) * (n_ / 3);
    return Square().Slice(first, first + n_ / 3);
  }
  void Statement() {
    const Tensor<cpu, 2> a = Square(), b = Square(), c = Square(), part = Rows(), other = Rows();
    const Tensor<cpu, 1> u = Line(), v = Line(), w = Line();
    const Shape<2> shape = a.shape_;
    switch (random_() % 12) {
      case 0: jit(a) = F<op::tanh>(b - c * 0.5f); break;
      case 1: jit(a) += F<op::minimum>(b, broadcast<1>(u, shape)) * 0.25f; break;
      case 2: jit(u) = reduce_with_axis<red::maximum>(a, 1) - (u.dptr_ == v.dptr_ ? w : v); break;
      case 3:
        if (a.dptr_ != b.dptr_) jit(a) = b.T() - c * (b.dptr_ == c.dptr_ ? 0.5f : 1.0f);
        break;
      case 4:
        if (a.dptr_ != b.dptr_ && a.dptr_ != c.dptr_) jit(a) = dot(b, c);
        break;
      case 5: jit(a) = F<op::sigmoid>(a); break;
      case 6: jit(u) -= v * w; break;
      case 7: jit(a) = 0.5f; break;
      case 8:
        if (part.dptr_ != other.dptr_) jit(part) = F<op::abs>(other) + 0.125f;
        break;
      case 9: jit(a) = broadcast<0>(u, shape) - b; break;
      case 10: jit(u) = (1.0f / 24) * sumall_except_dim<1>(a); break;
      default: jit(a) = F<op::maximum>(a, b) - broadcast<1>(v, shape); break;
    }
  }

  const index_t n_ = 24;
  std::mt19937 random_;
  Stream<cpu>* stream_;
  std::vector<std::unique_ptr<Held<2>>> square_;
  std::vector<std::unique_ptr<Held<1>>> line_;
};

TEST(FusedStream, DrawnStatementsMeanTheSame) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const auto outcome = [seed](Stream<cpu>* stream) -> std::vector<float> {
      Drawn drawn(stream, seed);
      try {
        return drawn.Run(12);
      } catch (const Error&) {  // a destination over its operand
        return {};
      }
    };
    ExpectAlike(outcome);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace umbra
