// What a compile costs: the first kernel of a process, a further one, those of a large graph, a disk hit, a
// memory hit; and the memory that many kernels take.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include "umbra/compile.h"
#include "umbra/graph.h"

namespace {

using Clock = std::chrono::steady_clock;

double Milliseconds(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::shared_ptr<const umbra::graph::Graph> Kernel(int k) {
  return umbra::graph::ParseText(
      "kernel k(a: f32[n, m], b: f32[n, m], bias: f32[m]) -> (y: f32[n, m]) {\n"
      "  y = sigmoid(a * b + broadcast<1>(bias)) + " +
      std::to_string(k) + "\n}")[0];
}

// A kernel of each kind that has loops of its own; `k` makes it another one.
struct Kind {
  const char* name;
  const char* text;
};

constexpr Kind kKinds[] = {
    {"softmax of rows",
     "kernel k(x: f32[n, m]) -> (y: f32[n, m]) { e = exp(x * $ - broadcast<0>(reduce_with_axis<maximum>(x * $, 1)))  "
     "y = e / broadcast<0>(reduce_with_axis<sum>(e, 1)) }"},
    {"sum of columns", "kernel k(x: f32[n, m]) -> (y: f32[m]) { y = reduce_with_axis<sum>(x * $, 0) }"},
    {"transpose", "kernel k(x: f32[n, m], z: f32[m, n]) -> (y: f32[m, n]) { y = x.T * $ + z }"},
    {"product",
     "kernel k(x: f32[n, p], w: f32[p, m], b: f32[m]) -> (y: f32[n, m]) { y = maximum(dot(x, w) + broadcast<1>(b), $) }"},
};

std::shared_ptr<const umbra::graph::Graph> KernelOf(const Kind& kind, int k) {
  std::string text = kind.text;
  for (size_t at = 0; (at = text.find('$')) != std::string::npos;) text.replace(at, 1, std::to_string(k) + ".0");
  return umbra::graph::ParseText(text)[0];
}

// `count` kernels, each with operands of its own shape.
std::shared_ptr<const umbra::graph::Graph> Kernels(int count, int first) {
  std::string inputs, outputs, body;
  for (int k = 0; k < count; ++k) {
    const std::string id = std::to_string(k), shape = ": f32[n" + id + ", m" + id + "]", comma = k > 0 ? ", " : "";
    inputs += comma + "a" + id + shape + ", b" + id + shape + ", c" + id + ": f32[m" + id + "]";
    outputs += comma + "y" + id + shape;
    body += "  y" + id + " = sigmoid(a" + id + " * b" + id + " + broadcast<1>(c" + id + ")) + " +
            std::to_string(first + k) + "\n";
  }
  return umbra::graph::ParseText("kernel k(" + inputs + ") -> (" + outputs + ") {\n" + body + "}")[0];
}

double ResidentMegabytes() {
  std::ifstream file("/proc/self/statm");
  double pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

// What each of `count` kernels takes that `make` makes, after one that is not counted.
template <typename Make>
void PrintFurther(const std::string& name, int count, const Make& make, const umbra::CompileOptions& fresh) {
  umbra::Compile(make(0), fresh);
  const auto before = umbra::GetCompileStatistics();
  std::vector<double> times;
  for (int k = 1; k <= count; ++k) {
    const auto graph = make(k);
    const auto start = Clock::now();
    umbra::Compile(graph, fresh);
    times.push_back(Milliseconds(start));
  }
  const auto after = umbra::GetCompileStatistics();
  const auto each = [&](double from, double to) { return (to - from) / count; };
  std::printf("%s, median of %d: %.1f ms (front end %.1f, optimiser %.1f, code generation %.1f, link %.1f)\n",
              name.c_str(), count, Median(times), each(before.front_end_ms, after.front_end_ms),
              each(before.optimise_ms, after.optimise_ms), each(before.codegen_ms, after.codegen_ms),
              each(before.link_ms, after.link_ms));
}

// The memory of a process with one kernel, with as many as it may keep, and with many more.
void Memory(const umbra::CompileOptions& fresh) {
  double at_one = 0;
  for (int k = 1; k <= 3000; ++k) {
    umbra::Compile(Kernel(1000 + k), fresh);
    if (k == 1) at_one = ResidentMegabytes();
    if (k % 1000 == 0)
      std::printf("resident memory after %d kernels: %.0f MB more than after one (%.0f MB), code of %d mapped\n", k,
                  ResidentMegabytes() - at_one, at_one, umbra::GetCompileStatistics().loaded);
  }
}

// The first kernel of this process, for a parent to read.
int CompileFirst() {
  umbra::CompileOptions fresh;
  fresh.use_disk_cache = false;
  const auto graph = Kernel(0);
  const auto start = Clock::now();
  umbra::Compile(graph, fresh);
  std::printf("%.3f\n", Milliseconds(start));
  return 0;
}

// Of nine processes: what one sees depends on which pages the machine has at hand. Empty if one of them fails.
std::vector<double> FirstKernels(const std::string& program) {
  std::vector<double> times;
  for (int k = 0; k < 9; ++k) {
    double time = 0;
    FILE* const child = popen(("\"" + program + "\" --first").c_str(), "r");
    const bool read = child != nullptr && std::fscanf(child, "%lf", &time) == 1;
    if (child == nullptr || pclose(child) != 0 || !read) return {};
    times.push_back(time);
  }
  return times;
}

// Every kernel comes from the disk cache in `folder`.
int ReadFromDisk(const char* folder) {
  setenv("UMBRA_CACHE_DIR", folder, 1);
  std::vector<double> disk;
  for (int k = 22; k <= 42; ++k) {
    const auto graph = Kernel(k);
    const auto start = Clock::now();
    umbra::Compile(graph, {});
    disk.push_back(Milliseconds(start));
  }
  const auto statistics = umbra::GetCompileStatistics();
  if (statistics.disk_hits != 21 || statistics.compiled != 0) return 1;
  std::printf("kernel from the disk cache, median of 21: %.2f ms (first of the process: %.2f)\n", Median(disk),
              disk[0]);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string only = argc == 2 ? argv[1] : "";
  if (argc > 2 || (only.rfind("-", 0) == 0 && only != "--first")) {
    std::fprintf(
        stderr,
        "compile_time: error: it takes nothing; what it starts itself with are --first and the folder of a cache\n");
    return 2;
  }
  if (argc == 2) return only == "--first" ? CompileFirst() : ReadFromDisk(argv[1]);
  std::string folder = (std::filesystem::temp_directory_path() / "umbra-compile-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 1;
  setenv("UMBRA_CACHE_DIR", folder.c_str(), 1);
  umbra::CompileOptions fresh;
  fresh.use_disk_cache = false;
  const std::vector<double> first = FirstKernels(argv[0]);
  if (first.empty()) return 1;
  std::printf("first kernel of a process, median of %zu: %.1f ms (%.1f to %.1f)\n", first.size(), Median(first),
              *std::min_element(first.begin(), first.end()), *std::max_element(first.begin(), first.end()));
  PrintFurther("further kernel", 21, Kernel, fresh);
  for (const Kind& kind : kKinds)
    PrintFurther(
        std::string("further kernel, a ") + kind.name, 9, [&](int k) { return KernelOf(kind, k + 2); },
        fresh);  // neither x * 0 nor x * 1
  auto start = Clock::now();
  std::vector<double> large;
  for (int k = 0; k < 5; ++k) {
    const int compiled = umbra::GetCompileStatistics().compiled;
    start = Clock::now();
    umbra::Compile(Kernels(50, 100 + 50 * k), fresh);
    large.push_back(Milliseconds(start));
    if (umbra::GetCompileStatistics().compiled != compiled + 50) return 1;
  }
  std::printf("graph of 50 kernels on %u processors, median of 5: %.0f ms\n", std::thread::hardware_concurrency(),
              Median(large));
  // A child that only reads what this process wrote: the memory of one process has its own kernels.
  umbra::CompileOptions cached;
  for (int k = 22; k <= 42; ++k) umbra::Compile(Kernel(k), cached);
  std::fflush(stdout);
  if (argc == 1 && std::system(("\"" + std::string(argv[0]) + "\" \"" + folder + "\"").c_str()) != 0) return 1;
  const auto graph = Kernel(1);
  std::vector<double> memory;
  for (int k = 0; k < 1001; ++k) {
    start = Clock::now();
    umbra::Compile(graph, fresh);
    memory.push_back(Milliseconds(start) * 1e6);
  }
  std::printf("the same graph again, median of 1001: %.0f ns\n", Median(memory));
  std::filesystem::remove_all(folder);
  Memory(fresh);
}
