#include "runtime/launch.h"

#include <algorithm>
#include <cmath>

#include "runtime/parallel.h"

namespace umbra::runtime {

namespace {

// Work of one thread, in additions, below which another one costs more than it brings if it has to be woken.
constexpr double kWaking = 262144;

bool IsBrief(double work, int threads) { return work < kWaking * threads; }

// Runs the range [begin, end) of an axis that is not the first.
void RunRange(const LaunchCall& call, umbra_args args, index_t begin, index_t end) {
  const LaunchPlan& plan = *call.plan;
  if (begin >= end) return;
  std::vector<index_t> extent = plan.extent;
  args.extent = reinterpret_cast<const long long*>(extent.data());
  if (plan.from != 0) {
    extent[plan.from] = begin;
    extent[plan.axis] = end;
    return plan.function(&args, 0, extent[0]);
  }
  std::vector<void*> data;
  const std::size_t rank = plan.stride.size() / call.element_size->size();
  for (std::size_t k = 0; k < call.element_size->size(); ++k)
    data.push_back(static_cast<char*>(call.data[k]) +
                   begin * plan.stride[k * rank + plan.axis] * static_cast<index_t>((*call.element_size)[k]));
  extent[plan.axis] = end - begin;
  args.data = data.data();
  plan.function(&args, 0, extent[0]);
}

// Runs the pieces [first, last) on this thread; with the last one goes what is left over.
void RunPieces(const LaunchCall& call, index_t first, index_t last) {
  static_assert(sizeof(index_t) == sizeof(long long));
  const LaunchPlan& plan = *call.plan;
  umbra_args args;
  args.data = call.data;
  args.stride = reinterpret_cast<const long long*>(plan.stride.data());
  args.extent = reinterpret_cast<const long long*>(plan.extent.data());
  args.scalar = call.scalars;
  args.scratch = plan.scratch_bytes > 0 ? ThreadScratch(plan.scratch_bytes) : nullptr;
  args.prefetch_ahead = plan.prefetch_ahead;
  const index_t begin = first * plan.granule, end = std::min(plan.extent[plan.axis], last * plan.granule);
  if (plan.axis > 0) return RunRange(call, args, begin, end);
  if (begin < end) plan.function(&args, begin, end);
  if (plan.remainder == 0 || end < plan.extent[0]) return;
  std::vector<void*> tail;
  for (std::size_t k = 0; k < call.element_size->size(); ++k)
    tail.push_back(static_cast<char*>(call.data[k]) +
                   plan.remainder_offset[k] * static_cast<index_t>((*call.element_size)[k]));
  std::vector<index_t> extent = plan.extent;
  extent[0] = 1;
  extent[plan.remainder_axis] = plan.remainder;
  args.data = tail.data();
  args.extent = reinterpret_cast<const long long*>(extent.data());
  plan.function(&args, 0, 1);
}

// Goes through the blocks of a row once for each phase, then through the next row's; at last stores the results.
void RunSplit(const LaunchCall& call) {
  const LaunchPlan& plan = *call.plan;
  std::vector<index_t> extent = plan.extent;
  const umbra_args args{call.data,
                        reinterpret_cast<const long long*>(plan.stride.data()),
                        reinterpret_cast<const long long*>(extent.data()),
                        call.scalars,
                        ThreadScratch(plan.scratch_bytes),
                        plan.prefetch_ahead};
  index_t& phase = extent[plan.phase];
  const double share = static_cast<double>(plan.together) / static_cast<double>(plan.units);
  for (index_t first = 0; first < plan.units; first += plan.together)
    for (phase = 0; phase < plan.phases; ++phase)
      ShareOut(
          plan.parts, plan.pieces,
          [&](int piece) {
            plan.function(&args, first + plan.together * piece / plan.pieces,
                          first + plan.together * (piece + 1) / plan.pieces);
          },
          IsBrief(plan.work * share, plan.parts));
  phase = plan.phases;
  plan.function(&args, 0, plan.units);
}

}  // namespace

void Launch(const LaunchPlan& plan, void* const* data, const std::vector<std::size_t>& element_size,
            const umbra_scalar* scalars) {
  const LaunchCall call{&plan, data, &element_size, scalars};
  if (plan.phases > 0) return RunSplit(call);
  if (plan.parts <= 1 && plan.pieces <= 1) return RunPieces(call, 0, Units(plan));
  ShareOut(
      plan.parts, plan.pieces,
      [call](int piece) {
        const index_t units = Units(*call.plan), pieces = call.plan->pieces;
        RunPieces(call, units * piece / pieces, units * (piece + 1) / pieces);
      },
      IsBrief(plan.work, plan.parts));
}

void LaunchTogether(const std::vector<LaunchCall>& calls, int threads) {
  double work = 0;
  for (const LaunchCall& call : calls) work += call.plan->work;
  const int parts = UsefulThreads(work, threads);
  ShareOut(
      parts, parts,
      [&](int part) {
        double before = 0;  // work of the calls so far
        for (const LaunchCall& call : calls) {
          const index_t units = Units(*call.plan);
          // The first piece of this call that begins in the share of thread `of` or later.
          const auto first = [&](int of) {
            if (of <= 0) return index_t{0};
            if (of >= parts || call.plan->work <= 0) return units;
            const double place = (work * of / parts - before) / call.plan->work * static_cast<double>(units);
            return static_cast<index_t>(std::ceil(std::clamp(place, 0.0, static_cast<double>(units))));
          };
          const index_t begin = first(part), end = first(part + 1);
          if (begin < end) RunPieces(call, begin, end);
          before += call.plan->work;
        }
      },
      IsBrief(work, parts));
}

}  // namespace umbra::runtime
