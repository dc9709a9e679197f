// Clang is kept from one kernel to the next: each becomes the object that it becomes in a process of its own, whatever
// was read before.
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <numeric>
#include <string>
#include <vector>

#include "compiler/codegen/source.h"
#include "compiler/driver/backend.h"
#include "compiler/driver/lower.h"
#include "compiler/graph/graph.h"
#include "umbra/graph.h"

namespace umbra {
namespace {

using codegen::Target;

struct Job {
  codegen::Source source;
  Target target;
};

// Kernels that use different parts of the prelude, with and without templates that were instantiated when it was
// precompiled, and with functions of their own; those of a name differ.
constexpr const char* kKernels[] = {
    "kernel k(a: f32[n, m], b: f32[m]) -> (y: f32[n, m]) { y = sigmoid(a + broadcast<1>(b)) }",
    "kernel k(a: f32[n, m]) -> (y: f32[n, m]) { y = a * 2 }",
    // The second finds some of the functions instantiated that it calls, and others not.
    "kernel k(x: f64[n], y: f64[n]) -> (a: f64[n], b: f64[n], c: f64[n], d: f64[n], e: f64[n], f: f64[n], g: f64[n],\n"
    "    h: f64[n], i: f64[n], j: f64[n], k: f64[n]) {\n"
    "  a = copysign(x, y)\n  b = x < y ? x : y\n  c = sqrt(x)\n  d = floor(x)\n  e = ceil(x)\n  f = trunc(x)\n"
    "  g = round(x)\n  h = rint(x)\n  i = exp(x)\n  j = expm1(x)\n  k = log(x)\n}",
    "kernel k(x: f64[n], y: f64[n]) -> (a: f64[n], b: f64[n], c: f64[n], d: f64[n], e: f64[n], f: f64[n], g: f64[n],\n"
    "    h: f64[n], i: f64[n], j: f64[n], k: f64[n], l: f64[n], m: f64[n], n: f64[n]) {\n"
    "  a = log1p(x)\n  b = tanh(x)\n  c = sin(x)\n  d = cos(x)\n  e = tan(x)\n  f = asin(x)\n  g = acos(x)\n"
    "  h = atan(x)\n  i = atan2(x, y)\n  j = exp2(x)\n  k = log2(x)\n  l = pow(x, y)\n  m = fmod(x, y)\n  n = remainder(x, y)\n}",
    "kernel k(a: f64[n]) -> (y: f64[n]) { y = pow(sin(a), tanh(a)) + log(a) }",
    "kernel k(a: i64[n], b: i64[n]) -> (y: i64[n]) { y = select(a < b, shift_left(a, b), a / b) }",
    "kernel k(a: i32[n]) -> (y: f32[n]) { y = tcast<f32>(select(a < 3, 1, a * a)) }",
    "kernel k(a: f16[n], b: bf16[n]) -> (y: f16[n]) { y = exp(a) + b }",
    "kernel k(a: bf16[n]) -> (y: bf16[n]) { y = erf(a) }",
    "kernel k(a: f32[n, m]) -> (y: f32[n]) { y = reduce_with_axis<sum>(a, 1) }",
    ("kernel k(a: f64[n, m]) -> (y: f64[n, m]) { e = exp(a - broadcast<0>(reduce_with_axis<maximum>(a, 1)))\n"
     "  y = e / broadcast<0>(reduce_with_axis<sum>(e, 1)) }"),
    "kernel k(x: f32[n, m], i: f32[p, q]) -> (y: f32[n, m, q]) { y = take(x, i) }",
    "kernel k(x: f32[n, m]) -> (y: f32[?, ?]) { y = pool<maximum>(x, 2, 2, 2, 2) }",
    "kernel k(c: i64[n], d: i64[n]) -> (y: f32[n]) { y = gaussian_f32(c, d) }",
    "kernel k(c: i64[n], d: i64[n]) -> (y: f64[n]) { y = uniform_f64(c, d) * 2 }",
    "kernel exp(a: f32[n]) -> (y: f32[n]) { y = exp(a) }",
    "kernel load(a: f64[n]) -> (y: f64[n]) { y = lgamma(a) }",
};

// A source with functions and types beside the kernel.
codegen::Source WithHelpers(const std::string& helpers, const std::string& value) {
  codegen::Source source;
  source.functions = {"k"};
  source.text = "#include \"umbra/kernel_prelude.h\"\n#include \"umbra/prelude/math.h\"\nnamespace umbra::simd {\n" +
                helpers +
                "UMBRA_KERNEL_FN void k(const umbra_args* args, long long, long long) {\n"
                "  float* const y = static_cast<float*>(args->data[0]);\n  y[0] = " +
                value + ";\n}\n}\n";
  return source;
}

std::vector<Job> Jobs() {
  std::vector<Job> jobs;
  for (const Target target : {Target::kSse2, Target::kAvx512})
    for (const char* const text : kKernels)
      jobs.push_back(
          {codegen::Generate(Lower(*graph::ParseText(text)[0]), {target, codegen::Spelling::kPackets, {}}), target});
  for (const codegen::Source& source :
       {WithHelpers("inline float twice(float a) { return a + a; }\n", "twice(y[1])"),
        WithHelpers("UMBRA_OUTLINE inline float twice(float a) { return exp(a); }\n", "twice(y[1])"),
        WithHelpers("UMBRA_OUTLINE inline float twice(float a) { return a * a; }\n", "twice(y[1])"),
        WithHelpers("UMBRA_OUTLINE float twice(double a) { return exp(float(a)); }\n", "twice(y[1])"),
        WithHelpers("template <typename T> inline T twice(T a) { return 2 * a * a; }\n", "twice(y[1])"),
        WithHelpers("struct Two { float a; };\ntemplate <> struct Traits<Two> { static constexpr int width = 3; };\n",
                    "kWidth<Two>"),
        WithHelpers(
            "struct Two { double a, b; };\ntemplate <> struct Traits<Two> { static constexpr int width = 5; };\n",
            "kWidth<Two>"),
        WithHelpers("", "by_lane<f32x4>([&](i64 n) { return y[n + 1]; })[1]"),
        WithHelpers("", "by_lane<f32x4>([&](i64 n) { return y[n + n]; })[1]"),
        WithHelpers("", "[](const int& a) { return a; }(kGroup)"),
        WithHelpers("", "[](const int& a) { return -a; }(kGroup)"),
        WithHelpers("extern \"C\" float helper(float);\n", "helper(y[1])"),
        WithHelpers("extern \"C\" double helper(int);\n", "helper(y[1])")})
    jobs.push_back({source, Target::kAvx2});
  return jobs;
}

// What a new process makes of the sources, in this order: objects, or what errors say.
std::vector<std::string> Compile(const std::vector<Job>& jobs, const std::vector<std::size_t>& order) {
  std::FILE* const results = std::tmpfile();
  std::FILE* const trace = std::tmpfile();
  const pid_t child = fork();
  if (child == 0) {
    setenv("UMBRA_TRACE", "1", 1);
    dup2(fileno(trace), STDERR_FILENO);
    for (const std::size_t k : order) {
      std::string result;
      try {
        const std::vector<char> bytes = ClangBackend().Compile(jobs[k].source, jobs[k].target).bytes;
        result.assign(bytes.begin(), bytes.end());
      } catch (const std::exception& error) { result = error.what(); }
      const std::size_t size = result.size();
      std::fwrite(&size, sizeof(size), 1, results);
      std::fwrite(result.data(), 1, size, results);
    }
    std::fflush(results);
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  std::rewind(results);
  std::vector<std::string> all;
  for (std::size_t size = 0; std::fread(&size, sizeof(size), 1, results) == 1;) {
    all.emplace_back(size, ' ');
    EXPECT_EQ(std::fread(all.back().data(), 1, size, results), size);
  }
  std::rewind(trace);
  char line[256];
  while (std::fgets(line, sizeof(line), trace) != nullptr)
    EXPECT_EQ(std::string(line).find("is of no use"), std::string::npos) << line;
  std::fclose(results);
  std::fclose(trace);
  EXPECT_EQ(all.size(), order.size());
  all.resize(order.size());
  return all;
}

std::vector<std::string> Alone(const std::vector<Job>& jobs) {
  std::vector<std::string> objects;
  for (std::size_t k = 0; k < jobs.size(); ++k) objects.push_back(Compile(jobs, {k})[0]);
  return objects;
}

void ExpectTheSame(const std::vector<Job>& jobs, const std::vector<std::size_t>& order,
                   const std::vector<std::string>& alone) {
  const std::vector<std::string> objects = Compile(jobs, order);
  for (std::size_t at = 0; at < order.size(); ++at) {
    const std::size_t k = order[at];
    ASSERT_EQ(objects[at].substr(1, 3), "ELF") << objects[at] << jobs[k].source.text;
    EXPECT_TRUE(objects[at] == alone[k]) << "source " << k << " at place " << at << ":\n" << jobs[k].source.text;
  }
}

TEST(Reader, ObjectsDoNotDependOnWhatWasReadBefore) {
  const std::vector<Job> jobs = Jobs();
  const std::vector<std::string> alone = Alone(jobs);
  std::vector<std::size_t> order(jobs.size());
  std::iota(order.begin(), order.end(), 0);
  ExpectTheSame(jobs, order, alone);
  // In between, more of a small one than one reader reads.
  std::vector<std::size_t> backward(order.rbegin(), order.rend());
  backward.insert(backward.begin() + 7, 130, 1);
  ExpectTheSame(jobs, backward, alone);
}

TEST(Reader, AnErrorLeavesNothing) {
  const std::vector<Job> jobs = {
      {WithHelpers("inline float f(float a) { return a; }\n", "f(y[1])"), Target::kAvx2},
      {WithHelpers("inline float f(float a) { return a + b; }\n", "f(y[1])"), Target::kAvx2}};
  const std::vector<std::string> alone = Alone(jobs);
  const std::vector<std::string> objects = Compile(jobs, {0, 1, 0, 1, 0});
  for (const int good : {0, 2, 4}) EXPECT_TRUE(objects[good] == alone[0]) << good;
  for (const int bad : {1, 3}) EXPECT_EQ(objects[bad], alone[1]);
  EXPECT_NE(alone[1].find("kernel.cc:4:38: error: use of undeclared identifier 'b'"), std::string::npos) << alone[1];
}

}  // namespace
}  // namespace umbra
