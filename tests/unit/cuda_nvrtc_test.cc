// Generated CUDA sources through NVRTC, where it is installed: they compile without a word, for old and new devices,
// and the PTX is what was meant.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <tuple>

#include "compiler/codegen/cuda/dense.h"
#include "compiler/codegen/cuda/generate.h"
#include "compiler/driver/lower.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/op.h"
#include "tests/support/drawn.h"
#include "tests/support/map_texts.h"
#include "tests/support/nvrtc.h"
#include "umbra/graph.h"

namespace umbra {
namespace {

using runtime::CudaForm;
using runtime::CudaVariant;

const Nvrtc& Compiler() {
  static const Nvrtc compiler;
  return compiler;
}

#define SKIP_WITHOUT_NVRTC() \
  if (!Compiler().found()) GTEST_SKIP() << "there is no libnvrtc (CUDA 12 or 13) on this machine"

std::string Ptx(const std::string& text, const std::string& arch) {
  const Nvrtc::Result result = Compiler().Compile(text, arch);
  EXPECT_TRUE(result.done) << result.log << "\n" << text;
  EXPECT_EQ(result.log, "") << text;
  return result.ptx;
}

// Of the variant, or each kernel's typical one, which `wide` makes one for large tensors.
std::vector<codegen::CudaSource> Sources(const graph::Graph& graph, const std::optional<CudaVariant>& variant,
                                         bool wide = false) {
  const plan::Plan plan = Lower(graph, true);
  std::vector<codegen::CudaSource> sources;
  for (const auto& step : plan.steps)
    if (const auto* kernel = std::get_if<plan::Kernel>(&step)) {
      CudaVariant own = variant ? *variant : codegen::TypicalCudaVariant(plan, *kernel);
      own.wide_index = own.wide_index || wide;
      sources.push_back(codegen::GenerateCuda(plan, *kernel, own));
    }
  return sources;
}

std::vector<codegen::CudaSource> Sources(const std::string& text, const std::optional<CudaVariant>& variant,
                                         bool wide = false) {
  return Sources(*graph::ParseText(text)[0], variant, wide);
}

std::string Ptx(const std::string& text, const CudaVariant& variant, const std::string& arch = "sm_90") {
  return Ptx(Sources(text, variant).at(0).Text(), arch);
}

// All texts as one file: their kernels get names of their own.
class Many {
 public:
  void Add(const std::string& text, const std::optional<CudaVariant>& variant = std::nullopt, bool wide = false) {
    Add(Sources(text, variant, wide));
  }
  void Add(const std::vector<codegen::CudaSource>& sources) {
    for (const codegen::CudaSource& source : sources) {
      const std::string number = "k" + std::to_string(count_++) + "_", name = source.function;
      for (const std::string& word : {name, name + "_args", name + "_finish"})
        kernels_ += "#define " + word + " " + number + word + "\n";
      kernels_ += source.kernel;
      for (const std::string& word : {name, name + "_args", name + "_finish"}) kernels_ += "#undef " + word + "\n";
    }
  }
  std::string Text() const { return codegen::CudaPrelude(kernels_) + "\nnamespace umbra::simd {\n" + kernels_ + "}\n"; }

 private:
  std::string kernels_;
  int count_ = 0;
};

CudaVariant Form(CudaForm form, bool vector) {
  CudaVariant variant;
  variant.form = form;
  variant.vector = vector;
  return variant;
}

const char* const kSoftmax =
    "kernel softmax(x: f32[n, m], s: f32) -> (y: f32[n, m]) {\n  t = x * s\n"
    "  e = exp(t - broadcast<0>(reduce_with_axis<maximum>(t, 1)))\n  y = e / broadcast<0>(reduce_with_axis<sum>(e, 1))\n}";
const char* const kLayerNorm =
    "kernel layernorm(x: f32[n, m], g: f32[m], b: f32[m]) -> (y: f32[n, m]) {\n  d = x - broadcast<0>(reduce_with_axis<sum>(x, 1) * 0.01)\n"
    "  v = reduce_with_axis<sum>(d * d, 1) * 0.01\n  y = d / broadcast<0>(sqrt(v + 0.001)) * broadcast<1>(g) + broadcast<1>(b)\n}";
const char* const kTotal = "kernel total(x: f32[n, m]) -> (t: f32[n]) {\n  t = reduce_with_axis<sum>(x * 0.5, 1)\n}";
const char* const kSums = "kernel sums(x: f32[n, m]) -> (s: f32[m]) {\n  s = reduce_with_axis<sum>(x * 0.5, 0)\n}";
const char* const kNarrowTotal =
    "kernel total(x: f16[n, m]) -> (t: f32[n]) {\n  t = reduce_with_axis<sum>(tcast<f32>(x), 1)\n}";
const char* const kNarrowSums =
    "kernel sums(x: f16[n, m]) -> (s: f32[m]) {\n  s = reduce_with_axis<sum>(tcast<f32>(x), 0)\n}";
const char* const kTriad = "kernel triad(a: f32[n], b: f32[n], s: f32) -> (y: f32[n]) { y = a * s + b }";
const char* const kNarrowTransposed = "kernel k(a: f16[p, q], b: f16[q, p]) -> (y: f16[q, p]) {\n  y = a.T * 2 + b\n}";
const char* const kTransposed = "kernel k(a: f32[p, q], b: f32[q, p]) -> (y: f32[q, p]) {\n  y = a.T * 2 + b\n}";

std::size_t Count(const std::string& text, const std::string& piece) {
  std::size_t count = 0;
  for (std::size_t at = text.find(piece); at != std::string::npos; at = text.find(piece, at + 1)) ++count;
  return count;
}

// The most loads, and copies to shared memory, between two branches.
std::size_t MostLoadsTogether(const std::string& ptx) {
  std::size_t most = 0, loads = 0;
  std::istringstream lines(ptx);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("bra") != std::string::npos || line.find("$L__") == 0) loads = 0;
    else if (line.find("ld.global") != std::string::npos || line.find("cp.async.c") != std::string::npos)
      most = std::max(most, ++loads);
  }
  return most;
}

// A thread that waits for each of its loads leaves memory idle.
TEST(CudaNvrtc, ReductionsReadForSeveralTurnsAtOnce) {
  SKIP_WITHOUT_NVRTC();
  for (const bool wide : {false, true}) {
    const auto together = [&](const char* text, CudaForm form, bool vector) {
      CudaVariant variant = Form(form, vector);
      variant.wide_index = wide;
      return MostLoadsTogether(Ptx(text, variant));
    };
    for (const CudaForm form : {CudaForm::kRowPerWarp, CudaForm::kRowPerBlock, CudaForm::kRowSplit})
      for (const bool vector : {false, true})
        for (const char* text : {kTotal, kNarrowTotal})
          EXPECT_GE(together(text, form, vector), 4u) << text << static_cast<int>(form) << vector << wide;
    const char* const kFlipped = "kernel k(x: f32[n, m]) -> (y: f32[n]) { y = reduce_with_axis<sum>(flip(x, 1), 1) }";
    for (const CudaForm form : {CudaForm::kRowPerWarp, CudaForm::kRowPerBlock, CudaForm::kRowSplit})
      EXPECT_GE(together(kFlipped, form, false), 4u) << static_cast<int>(form) << wide;
    for (const CudaForm form : {CudaForm::kColumnPerBlock, CudaForm::kColumnSplit}) {
      EXPECT_GE(together(kSums, form, false), 4u) << static_cast<int>(form) << wide;
      EXPECT_GE(together(kNarrowSums, form, false), 8u) << static_cast<int>(form) << wide;
    }
  }
}

// Four exponentials of a packet are compiled once, whether the row comes from memory or is kept.
TEST(CudaNvrtc, DearArithmeticIsNotUnrolled) {
  SKIP_WITHOUT_NVRTC();
  const char* const kShare =
      "kernel k(x: f32[n, m]) -> (y: f32[n, m]) {\n  e = exp(x)\n  y = e / broadcast<0>(reduce_with_axis<sum>(e, 1))\n}";
  const char* const kSum = "kernel k(x: f32[n, m]) -> (y: f32[n]) { y = reduce_with_axis<sum>(exp(x), 1) }";
  const std::string log2_of_e = "0f3FB8AA3B";
  // Another for what packets leave of a row.
  EXPECT_EQ(Count(Ptx("kernel k(x: f32[n]) -> (y: f32[n]) { y = exp(x) }", Form(CudaForm::kElements, true)), log2_of_e),
            5u);
  for (const char* text : {kSoftmax, kShare, kSum})
    for (const CudaForm form : {CudaForm::kRowPerWarp, CudaForm::kRowPerBlock}) {
      const std::string ptx = Ptx(text, Form(form, true));
      EXPECT_EQ(Count(ptx, log2_of_e), 4u) << ptx;
      // The assembler moves loads past an instruction that is written out, as for extremes; the compiler before it does
      // not.
      EXPECT_GE(MostLoadsTogether(ptx), text == kSoftmax ? 1u : 4u) << ptx;
      EXPECT_EQ(ptx.find(".local"), std::string::npos) << ptx;
    }
}

// What later phases need of the row comes from shared memory, but for what all rows have alike.
TEST(CudaNvrtc, RowsAreReadOnce) {
  SKIP_WITHOUT_NVRTC();
  for (const CudaForm form : {CudaForm::kRowPerWarp, CudaForm::kRowPerBlock})
    for (const bool vector : {false, true}) {
      const std::string shuffle = "shfl.", load = "ld.global",
                        what = std::to_string(static_cast<int>(form)) + (vector ? " vector" : "");
      const std::string softmax = Ptx(kSoftmax, Form(form, vector)), layernorm = Ptx(kLayerNorm, Form(form, vector));
      // Of which none is waited for before the last.
      const std::size_t copy = layernorm.rfind("cp.async.c"), wait = layernorm.find("cp.async.wait_all");
      EXPECT_LT(copy, wait) << what;
      EXPECT_LT(wait, layernorm.find(shuffle)) << what;
      EXPECT_EQ(Count(layernorm, "cp.async.wait_all"), 1u) << what;
      EXPECT_EQ(Count(softmax.substr(softmax.find(shuffle)), load), 0u) << what << softmax;
      const std::size_t first = layernorm.find(shuffle), last = layernorm.rfind(shuffle);
      EXPECT_EQ(Count(layernorm.substr(first, last - first), load), 0u) << what << layernorm;
      const std::string end = Sources(kLayerNorm, Form(form, vector)).at(0).kernel;
      EXPECT_EQ(Count(end, "x + i1)"), 1u) << end;
    }
  CudaVariant scratch = Form(CudaForm::kRowPerBlock, true);
  scratch.rows_in_scratch = true;
  const std::string again = Sources(kLayerNorm, scratch).at(0).kernel;
  EXPECT_EQ(Count(again, "(x + i1)"), 3u) << again;
  EXPECT_EQ(Count(again, "kept"), 0u) << again;
}

TEST(CudaNvrtc, ElementsOfSeveralRowsAreReadAtOnce) {
  SKIP_WITHOUT_NVRTC();
  const char* const kPatches =
      "kernel k(x: f32[b, c, h, w]) -> (y: f32[?, ?]) { y = unpack_patch2col(x, 3, 3, 1, 1, 1, 1) }";
  const char* const kRows = "kernel k(a: f32[n, m], b: f32[n, m], s: f32) -> (y: f32[n, m]) { y = a * s + b }";
  for (const char* text : {kPatches, kRows})
    for (const bool strided : {false, true}) {
      CudaVariant variant = Form(CudaForm::kElements, false);
      variant.strided = strided;
      EXPECT_GE(MostLoadsTogether(Ptx(text, variant)), 4u) << text << strided;
    }
  // What a picture's position is divided by is the same for all rows.
  const std::string patches = Ptx(kPatches, Form(CudaForm::kElements, false));
  EXPECT_NE(patches.find("div."), std::string::npos);
  const std::size_t loads = patches.find("ld.global"), loop = patches.rfind("\n$L", loads);
  EXPECT_EQ(patches.substr(loop, loads - loop).find("div."), std::string::npos) << patches;
}

TEST(CudaNvrtc, TilesAreReadAtOnce) {
  SKIP_WITHOUT_NVRTC();
  for (const bool wide : {false, true})
    for (const bool strided : {false, true}) {
      CudaVariant variant = Form(CudaForm::kTiles, false);
      variant.wide_index = wide;
      variant.strided = strided;
      const std::string ptx = Ptx(kTransposed, variant);
      EXPECT_EQ(MostLoadsTogether(ptx), 32u) << wide << strided << ptx;  // of both operands
      EXPECT_EQ(Count(ptx, "ld.global"), 32u) << wide << strided << ptx;
    }
  // Narrow elements by twos, so that a warp has a line of 128 bytes.
  const std::string narrow = Ptx(kNarrowTransposed, Form(CudaForm::kTiles, true));
  EXPECT_EQ(MostLoadsTogether(narrow), 16u) << narrow;
  EXPECT_EQ(Count(narrow, "ld.global.v2.u16") + Count(narrow, "ld.global.u32"), 16u) << narrow;
  EXPECT_EQ(Count(narrow, "st.global.v2.u16") + Count(narrow, "st.global.u32"), 8u) << narrow;
}

TEST(CudaNvrtc, EveryFormCompiles) {
  SKIP_WITHOUT_NVRTC();
  Many many;
  for (const bool wide : {false, true})
    for (const bool vector : {false, true}) {
      const auto add = [&](const char* text, CudaForm form) {
        CudaVariant variant = Form(form, vector);
        variant.wide_index = wide;
        many.Add(text, variant);
      };
      add(kTriad, CudaForm::kElements);
      for (const CudaForm form : {CudaForm::kRowPerWarp, CudaForm::kRowPerBlock}) add(kSoftmax, form);
      add(kTotal, CudaForm::kRowSplit);
      add(kNarrowTransposed, CudaForm::kTiles);
      if (vector) continue;
      for (const CudaForm form : {CudaForm::kColumn, CudaForm::kColumnPerBlock, CudaForm::kColumnSplit})
        add(kSums, form);
      add(kTransposed, CudaForm::kTiles);
    }
  // An extent that is written into the text, beside positions of either width.
  for (const CudaForm form : {CudaForm::kRowPerWarp, CudaForm::kRowPerBlock, CudaForm::kRowSplit}) {
    CudaVariant variant = Form(form, true);
    for (const bool wide : {false, true}) {
      variant.wide_index = wide;
      many.Add("kernel k(x: f32[n, 64]) -> (y: f32[n]) { y = reduce_with_axis<sum>(exp(x), 1) }", variant);
    }
  }
  CudaVariant strided;
  strided.strided = true;
  many.Add(kTriad, strided);
  strided.several = true;
  many.Add(kTriad, strided);
  strided.many = true;
  many.Add("kernel twice(a: f32[n]) -> (y: f32[n]) { y = a * 2 }", strided);
  CudaVariant scratch = Form(CudaForm::kRowPerBlock, false);
  scratch.rows_in_scratch = true;
  many.Add(kSoftmax, scratch);
  for (const char* arch : {"sm_80", "sm_90"}) Ptx(many.Text(), arch);
}

// GPUs before sm_70 know no __grid_constant__, which is for the compiler to see.
TEST(CudaNvrtc, OlderGpusTakeSeveralLaunches) {
  CudaVariant several = Form(CudaForm::kElements, true);
  several.several = true;
  const std::string text = Sources(kTriad, several).at(0).Text();
  EXPECT_NE(
      text.find(
          "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700\n#define UMBRA_GRID_CONSTANT __grid_constant__\n#else\n"),
      std::string::npos)
      << text;
}

// A block has 48 KB of shared memory without asking for more, however many reductions there are.
TEST(CudaNvrtc, JoinsOfColumnsShareTheirMemory) {
  SKIP_WITHOUT_NVRTC();
  std::string outputs, statements;
  for (const char* type : {"f64", "i64"})
    for (const char* reducer : {"sum", "maximum", "minimum", "product"}) {
      const std::string r = reducer, t = type;
      outputs += (outputs.empty() ? "" : ", ") + r + "_" + t + ": " + t + "[m]";
      statements += "  " + r + "_" + t + " = reduce_with_axis<" + r + ">(tcast<" + t + ">(x), 0)\n";
    }
  Many many;
  many.Add("kernel k(x: f64[n, m]) -> (" + outputs + ") {\n" + statements + "}",
           Form(CudaForm::kColumnPerBlock, false));
  const std::string ptx = Ptx(many.Text(), "sm_90");
  EXPECT_EQ(Count(ptx, ".shared .align"), 1u) << ptx;
}

// Neighbours need either polynomial, so a branch would have a warp go through both, one after the other.
TEST(CudaNvrtc, ErfDoesNotBranch) {
  SKIP_WITHOUT_NVRTC();
  const auto branches = [](const char* function) {
    return Count(Ptx(std::string("kernel k(x: f32[n]) -> (y: f32[n]) { y = ") + function + "(x) }",
                     Form(CudaForm::kElements, true)),
                 "bra ");
  };
  EXPECT_EQ(branches("erf"), branches("exp2"));
}

TEST(CudaNvrtc, EveryOperatorAndMapCompiles) {
  SKIP_WITHOUT_NVRTC();
  Many many;
  for (const bool wide : {false, true})
    for (const graph::OpInfo& op : graph::Primitives()) {
      if (op.types == graph::OpTypes::kBool || op.types == graph::OpTypes::kInt64 ||
          op.result == graph::OpResult::kBool || op.name == "select" || op.name.find("logical") == 0)
        continue;
      const std::string type = op.types == graph::OpTypes::kInteger ? (wide ? "i64" : "i32")
                               : wide                               ? "f64"
                                                                    : "f32",
                        name(op.name);
      const std::string call = name + (op.arity == 1 ? "(a)" : op.arity == 2 ? "(a, b)" : "(a, b, a)");
      many.Add("kernel one(a: " + type + "[n], b: " + type + "[n]) -> (y: " + type + "[n]) { y = " +
                   (name == "plus" || name == "minus" || name == "mul" || name == "div" ? "a + b - a * b / a" : call) +
                   " + b }",
               Form(CudaForm::kElements, true));
    }
  for (const std::string type : {"f32", "f64"})
    for (const std::string draw : {"uniform", "gaussian"})
      many.Add("kernel one(x: " + type + "[n], key: i64, first: i64) -> (y: " + type + "[n]) { y = x + " + draw +
                   "(x, key, first) }",
               Form(CudaForm::kElements, false));
  for (const drawn::MapText& map : drawn::MapTexts())
    for (const bool wide : {false, true}) many.Add(drawn::KernelOf(map, "f32"), std::nullopt, wide);
  Ptx(many.Text(), "sm_90");
}

// GPUs have no instruction that divides 64-bit integers.
TEST(CudaNvrtc, PositionsAreDividedIn32Bits) {
  SKIP_WITHOUT_NVRTC();
  const std::regex division("(div|rem)\\.[su]64");
  Many many;
  for (const drawn::MapText& map : drawn::MapTexts())
    if (map.call.find("transpose_indices") != 0) many.Add(drawn::KernelOf(map, "f32"));  // whose positions are data
  EXPECT_FALSE(std::regex_search(Ptx(many.Text(), "sm_90"), division));
  const char* const kReshaped = "kernel k(x: f32[n, m]) -> (y: f32[p, q]) { y = reshape(x * 2, 30, 40) }";
  const char* const kPatches =
      "kernel k(x: f32[b, c, h, w]) -> (y: f32[?, ?]) { y = unpack_patch2col(x, 3, 3, 1, 1, 1, 1) }";
  CudaVariant variant = Form(CudaForm::kElements, false);
  EXPECT_FALSE(std::regex_search(Ptx(kReshaped, variant), division));
  // Offsets alone are wide.
  variant.wide_offset = true;
  for (const bool vector : {false, true}) {
    variant.vector = vector;
    for (const char* text : {kReshaped, kPatches}) {
      const std::string ptx = Ptx(text, variant);
      EXPECT_FALSE(std::regex_search(ptx, division)) << ptx;
    }
  }
  variant = Form(CudaForm::kElements, false);
  variant.wide_index = true;
  EXPECT_TRUE(std::regex_search(Ptx(kReshaped, variant), division));
}

// Sixteen bytes a load and a store, two loads of each operand in flight. What is computed of them is compiled once, and
// once more for what is left.
TEST(CudaNvrtc, PacketsAreWide) {
  SKIP_WITHOUT_NVRTC();
  for (const char* arch : {"sm_80", "sm_90"}) {
    const std::string ptx = Ptx(kTriad, Form(CudaForm::kElements, true), arch);
    EXPECT_EQ(Count(ptx, "ld.global.v4.f32") + Count(ptx, "ld.global.v4.u32"), 4) << ptx;
    EXPECT_EQ(MostLoadsTogether(ptx), 4u) << ptx;
    EXPECT_EQ(Count(ptx, "st.global.v4.f32") + Count(ptx, "st.global.v4.u32"), 1) << ptx;
  }
  const std::string half = Ptx("kernel h(x: f16[n]) -> (y: f16[n]) { y = x * 2 }", Form(CudaForm::kElements, true));
  EXPECT_GE(Count(half, "ld.global.v4"), 2) << half;
  EXPECT_EQ(Count(half, "st.global.v4"), 1) << half;
  EXPECT_EQ(Count(half, "cvt.f32.f16"), 9) << half;
  EXPECT_EQ(Count(half, "cvt.rn.f16.f32"), 9) << half;
  const std::string brain =
      Ptx("kernel h(x: bf16[n]) -> (y: bf16[n]) { y = x * 2 }", Form(CudaForm::kElements, true), "sm_80");
  EXPECT_EQ(Count(brain, "cvt.rn.bf16.f32"), 9) << brain;
  const std::string rows = Ptx(kSoftmax, Form(CudaForm::kRowPerWarp, true));
  EXPECT_GE(Count(rows, "cp.async.cg.shared.global"), 4) << rows;
  EXPECT_EQ(Count(rows, "ld.global.v4"), 0) << rows;
  EXPECT_GE(Count(rows, "st.shared.v4.f32"), 1) << rows;
  EXPECT_GE(Count(rows, "st.global.v4.f32"), 1) << rows;
}

TEST(CudaNvrtc, NoLocalMemoryAndNoDoubles) {
  SKIP_WITHOUT_NVRTC();
  std::map<std::string, std::string> texts;
  for (const CudaForm form : {CudaForm::kRowPerWarp, CudaForm::kRowPerBlock}) {
    texts["softmax " + std::to_string(int(form))] = Ptx(kSoftmax, Form(form, true));
    texts["layernorm " + std::to_string(int(form))] = Ptx(kLayerNorm, Form(form, true));
  }
  texts["triad"] = Ptx(kTriad, Form(CudaForm::kElements, true));
  texts["split"] = Ptx(kTotal, Form(CudaForm::kRowSplit, true));
  texts["columns"] = Ptx(kSums, Form(CudaForm::kColumnSplit, false));
  texts["tiles"] = Ptx(kTransposed, Form(CudaForm::kTiles, false));
  // The arguments of several launches stay where they are.
  for (const auto& [text, form] : {std::pair{kTriad, CudaForm::kElements},
                                   {kSoftmax, CudaForm::kRowPerWarp},
                                   {kSums, CudaForm::kColumnPerBlock}}) {
    CudaVariant several = Form(form, form != CudaForm::kColumnPerBlock);
    several.several = true;
    texts["several " + std::to_string(int(form))] = Ptx(text, several);
    several.many = true;
    texts["many " + std::to_string(int(form))] = Ptx(text, several);
  }
  for (const char* function :
       {"exp",  "expm1", "log",  "log1p", "tanh", "sin",  "cos",      "tan",    "asin", "acos", "atan",  "exp2",
        "log2", "cbrt",  "sinh", "cosh",  "erf",  "erfc", "gelu_erf", "erfinv", "sqrt", "rint", "floor", "round"})
    texts[function] = Ptx(std::string("kernel k(x: f32[n]) -> (y: f32[n]) { y = ") + function + "(x) }",
                          Form(CudaForm::kElements, true));
  std::set<std::string> fused = {"softmax 2", "softmax 3", "several 2", "many 2"};
  for (const char* function : {"exp", "expm1", "log", "log1p", "tanh", "sin", "cos", "tan", "acos", "atan", "exp2",
                               "log2", "sinh", "cosh", "erf", "erfc", "gelu_erf", "erfinv"})
    fused.insert(function);
  const std::regex doubles("\\.f64");
  for (const auto& [name, ptx] : texts) {
    EXPECT_FALSE(std::regex_search(ptx, doubles)) << name << "\n" << ptx;
    EXPECT_EQ(ptx.find(".local"), std::string::npos) << name << "\n" << ptx;
    // Of functions, what the prelude adds by one instruction is exact products.
    if (fused.count(name) == 0) { EXPECT_EQ(ptx.find("fma.rn.f32"), std::string::npos) << name << " contracts"; }
  }
}

// What no one chose: as the emulator runs them in cuda_emulated_test.
TEST(CudaNvrtc, DrawnGraphsCompile) {
  SKIP_WITHOUT_NVRTC();
  constexpr int kGraphs = 60;
  std::mt19937 random(20261125);
  Many many;
  for (int round = 0; round < kGraphs; ++round) {
    const auto graph = drawn::DrawGraph(&random, round % 4 == 3 ? DType::kInt32 : DType::kFloat32, 1 + round % 3);
    many.Add(Sources(*graph, std::nullopt, round % 5 == 4));
  }
  for (const char* arch : {"sm_80", "sm_90"}) {
    const std::string ptx = Ptx(many.Text(), arch);
    for (const char* unwanted : {".local", ".f64"})
      EXPECT_EQ(ptx.find(unwanted), std::string::npos) << arch << unwanted << "\n" << ptx;
    EXPECT_GE(Count(ptx, ".visible .entry"), static_cast<std::size_t>(kGraphs));
    EXPECT_GE(Count(ptx, "ld.global.v4"), static_cast<std::size_t>(kGraphs));
  }
}

// The assembler, or nothing.
std::string Ptxas() {
  for (const std::string name : {"ptxas", "/usr/local/cuda/bin/ptxas"})
    if (std::system((name + " --version >/dev/null 2>&1").c_str()) == 0) return name;
  return "";
}
#define SKIP_WITHOUT_PTXAS() \
  if (Ptxas().empty()) GTEST_SKIP() << "there is no ptxas on this machine"

// What the assembler says of registers and shared memory.
std::string Assemble(const std::string& ptx) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("umbra-ptxas-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string text = folder / "kernel.ptx", log = folder / "log";
  std::ofstream(text) << ptx;
  const int status = std::system((Ptxas() + " -v -arch=sm_90 -o /dev/null " + text + " >" + log + " 2>&1").c_str());
  std::ifstream file(log);
  std::string said((std::istreambuf_iterator<char>(file)), {});
  std::filesystem::remove_all(folder);
  EXPECT_EQ(status, 0) << said;
  return said;
}

// A kernel may declare 48 KiB: 11 tiles of f32, 5 of f64; tiles are wide if all of them may be.
TEST(CudaNvrtc, TilesFitIntoSharedMemory) {
  SKIP_WITHOUT_NVRTC();
  SKIP_WITHOUT_PTXAS();
  for (const auto& [type, count, tiles, vector] : {std::tuple{"f32", 11, 11, false},
                                                   {"f32", 15, 11, false},
                                                   {"f32", 2, 2, false},
                                                   {"f64", 7, 5, false},
                                                   {"f16", 15, 15, false},
                                                   {"f16", 5, 5, true}}) {
    const std::string text = drawn::SumOfTransposed(type, count);
    const codegen::CudaSource source = Sources(text, Form(CudaForm::kTiles, vector)).at(0);
    EXPECT_EQ(Count(source.kernel, "__shared__"), static_cast<std::size_t>(tiles)) << text;
    Assemble(Ptx(source.Text(), "sm_90"));
  }
}

TEST(CudaNvrtc, RegistersLeaveRoomForManyWarps) {
  SKIP_WITHOUT_NVRTC();
  SKIP_WITHOUT_PTXAS();
  const std::map<std::string, std::string> texts = {
      {"triad", Ptx(kTriad, Form(CudaForm::kElements, true))},
      {"softmax", Ptx(kSoftmax, Form(CudaForm::kRowPerWarp, true))},
      {"layernorm", Ptx(kLayerNorm, Form(CudaForm::kRowPerWarp, true))},
      {"layernorm of a block", Ptx(kLayerNorm, Form(CudaForm::kRowPerBlock, true))},
      {"sums", Ptx(kSums, Form(CudaForm::kColumnPerBlock, false))},
      {"k", Ptx(kTransposed, Form(CudaForm::kTiles, false))}};
  for (const auto& [name, ptx] : texts) {
    const std::string said = Assemble(ptx);
    std::smatch used;
    ASSERT_TRUE(std::regex_search(said, used, std::regex("Used ([0-9]+) registers"))) << said;
    EXPECT_LE(std::stoi(used[1]), 64) << name << ": " << said;  // 1024 threads on a multiprocessor
    EXPECT_NE(said.find(" 0 bytes spill stores, 0 bytes spill loads"), std::string::npos) << name << ": " << said;
    EXPECT_EQ(said.find(std::to_string(64 * 65 * 4) + " bytes smem") != std::string::npos, name == "k") << said;
  }
}

}  // namespace
}  // namespace umbra
