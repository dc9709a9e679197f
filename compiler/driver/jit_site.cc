#include "umbra/jit_site.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace umbra::detail {

namespace {

struct Options {
  std::mutex mutex;
  CompileOptions options;
  std::vector<std::map<std::string, std::string>> seen = {
      options.__DICT__()};  // by generation, which is so the same for the same options
  static Options& Get() {
    static Options& options = *new Options;
    return options;
  }
};

// The options that a compile for a GPU heeds.
CompileOptions ForGpu(const CompileOptions& options) {
  CompileOptions chosen;
  chosen.target = kCudaTarget;
  chosen.math = options.math;
  chosen.use_disk_cache = options.use_disk_cache;
  return chosen;
}

}  // namespace

std::atomic<int> JitOptions::generation{0};

CompileOptions JitOptions::Get() {
  Options& all = Options::Get();
  const std::lock_guard lock(all.mutex);
  return all.options;
}

void JitOptions::Set(const CompileOptions& options) {
  Options& all = Options::Get();
  const std::lock_guard lock(all.mutex);
  const auto words = options.__DICT__();
  const auto found = std::find(all.seen.begin(), all.seen.end(), words);
  generation = static_cast<int>(found - all.seen.begin());
  if (found == all.seen.end()) all.seen.push_back(words);
  all.options = options;
}

graph::Value GraphWalk::Input(int dim, DType dtype) {
  const std::int64_t operand = operand_of[static_cast<std::size_t>(next_operand++)];
  auto known = tensors.find(operand);
  if (known == tensors.end()) {
    known =
        tensors.emplace(operand, builder->Input(fmt::format("a{}", inputs.size()), dtype, PartialShape::dynamic(dim)))
            .first;
    inputs.push_back(operand);
  }
  return dtype == DType::kBool ? graph::Cast(known->second, DType::kInt32) : known->second;
}

graph::Value GraphWalk::Scalar(DType dtype) { return builder->Scalar(fmt::format("s{}", next_scalar++), dtype); }

std::shared_ptr<const graph::Graph> BuildGraph(const Gathered& g, const AssignmentType& type, std::string name) {
  graph::Builder builder(std::move(name));
  GraphWalk walk{&builder, g.structure, {}};
  // The last entries of the structure say which operands are one, if some are.
  int count = 0;
  for (int k = g.num_structure; k > 0 && count < Gathered::kMax; --k, ++count)
    if (g.structure[k - 1] == Gathered::kEndOfWalk) break;
  walk.operand_of.assign(g.structure + g.num_structure - count, g.structure + g.num_structure);
  for (int k = 0; count == 0 && k < g.num_operands; ++k) walk.operand_of.push_back(k);
  builder.Output("dst", type.build(&walk), PartialShape::dynamic(type.rank));
  return builder.Build();
}

template <typename Device>
JitSite<Device>* JitSites<Device>::Of(Gathered& g, const AssignmentType& type) {
  g.JoinSame(1);
  const int generation = JitOptions::generation.load(std::memory_order_acquire);
  JitSite<Device>* site = latest_.load(std::memory_order_acquire);
  if (site != nullptr && site->Fits(g, generation)) return site;
  const auto find = [&] {
    for (site = first_; site != nullptr && !site->Fits(g, generation);) site = site->next;
    return site != nullptr;
  };
  std::unique_lock lock(mutex_);
  if (!find()) {
    lock.unlock();  // others need not wait for a compile
    const CompileOptions options = JitOptions::Get();
    auto made = std::make_unique<JitSite<Device>>(
        g, generation, Compile(BuildGraph(g, type, "expression"), Device::kDevCPU ? options : ForGpu(options)));
    lock.lock();
    if (!find()) {
      made->next = first_;
      site = first_ = made.release();
    }
  }
  latest_.store(site, std::memory_order_release);
  return site;
}
template JitSite<cpu>* JitSites<cpu>::Of(Gathered&, const AssignmentType&);
template JitSite<gpu>* JitSites<gpu>::Of(Gathered&, const AssignmentType&);

}  // namespace umbra::detail
