#include "compiler/plan/group_steps.h"

#include <algorithm>
#include <set>
#include <utility>

#include "umbra/error.h"

namespace umbra::plan {

namespace {

using runtime::Access;
using runtime::Buffer;
using runtime::StepGroup;
using Step = std::variant<Kernel, Gemm>;

constexpr int kAlone = -1;

// What a step reads and writes, and which of it only at the row that it computes.
struct Use {
  std::set<int> reads, writes;
  std::set<int> elsewhere;  ///< read or written at other rows, too
  bool by_rows = false;  ///< is it computed row by row at all?
  runtime::Extent rows;
};

class Grouping {
 public:
  explicit Grouping(Plan* plan) : plan_(*plan), count_(plan->steps.size()) {
    for (const Step& step : plan_.steps)
      uses_.push_back(std::holds_alternative<Kernel>(step) ? UseOf(std::get<Kernel>(step))
                                                           : UseOf(std::get<Gemm>(step).step));
    producers_.resize(plan_.buffers.size());
    for (std::size_t k = 0; k < count_; ++k)
      for (const int buffer : uses_[k].writes) producers_[static_cast<std::size_t>(buffer)].push_back(k);
    group_of_.assign(count_, kAlone);
  }

  void Run() {
    for (std::size_t k = 0; k < count_; ++k)
      if (IsGemm(k) && group_of_[k] == kAlone) GrowRows(k);
    Schedule();
    FindPlaces();
  }

 private:
  bool IsGemm(std::size_t step) const { return std::holds_alternative<Gemm>(plan_.steps[step]); }
  const Buffer& buffer(int id) const { return plan_.buffers[static_cast<std::size_t>(id)]; }

  Use UseOf(const Kernel& kernel) const {
    Use use;
    use.rows = kernel.signature.axes[0];
    use.by_rows = true;
    for (const Access& access : kernel.signature.operands) {
      (access.store ? use.writes : use.reads).insert(access.buffer);
      AddMemoryOf(access.buffer, access.store, &use);
      if (access.dim_of_axis[0] == 0 && !access.gathered) continue;
      use.elsewhere.insert(access.buffer);
      if (access.store) use.by_rows = false;
    }
    for (const Value& value : kernel.values)
      if (value.kind == Value::Kind::kIndex && value.index == 0) use.by_rows = false;
    return use;
  }

  // Of a view all of what it lies in is read or written, in other rows; of a part nothing else is read.
  void AddMemoryOf(int id, bool store, Use* use) const {
    while (buffer(id).kind == Buffer::Kind::kView && (store || buffer(id).part < 0)) {
      id = buffer(id).place;
      (store ? use->writes : use->reads).insert(id);
      use->elsewhere.insert(id);
      if (store && buffer(id).kind == Buffer::Kind::kTemporary) use->by_rows = false;
    }
  }

  Use UseOf(const runtime::GemmStep& gemm) const {
    Use use;
    use.reads = {gemm.a, gemm.b};
    use.writes = {gemm.c};
    const std::size_t rank = buffer(gemm.c).shape.size();
    use.by_rows = rank > 1;
    use.rows = use.by_rows ? buffer(gemm.c).shape[0] : runtime::Extent::Static(1);
    for (const int factor : {gemm.a, gemm.b}) AddMemoryOf(factor, false, &use);
    AddMemoryOf(gemm.c, true, &use);
    if (rank == 2) use.elsewhere.insert(gemm.b);
    if (rank == 2 && gemm.transpose_a && buffer(gemm.a).shape.size() == 2) use.elsewhere.insert(gemm.a);
    return use;
  }

  // Gathers around the product `first` the steps that hand rows on to each other.
  void GrowRows(std::size_t first) {
    const int group = static_cast<int>(rows_.size());
    rows_.push_back(uses_[first].rows);
    group_of_[first] = group;
    if (!uses_[first].by_rows) return;
    for (bool grown = true; grown;) {
      grown = false;
      for (std::size_t k = 0; k < count_; ++k) {
        if (group_of_[k] != kAlone || !HandsRowsOn(k, group)) continue;
        group_of_[k] = group;
        if (IsClosed(group)) grown = true;
        else group_of_[k] = kAlone;
      }
    }
  }

  // Does the step read rows that the group makes, or make rows that it reads, and no other rows of those?
  bool HandsRowsOn(std::size_t step, int group) const {
    const Use& use = uses_[step];
    if (!use.by_rows || !(use.rows == rows_[static_cast<std::size_t>(group)])) return false;
    bool linked = false;
    for (std::size_t k = 0; k < count_; ++k) {
      if (group_of_[k] != group) continue;
      for (const auto& [from, to] : {std::pair(&uses_[k], &use), std::pair(&use, &uses_[k])})
        for (const int shared : from->writes) {
          if (to->reads.count(shared) == 0) continue;
          if (to->elsewhere.count(shared) != 0) return false;
          linked = true;
        }
    }
    return linked;
  }

  // Does no step outside the group need a result of it before it is done? Other groups run as one, too.
  bool IsClosed(int group) const {
    std::vector<bool> after(count_, false);  // needs a result of the group, or is run with what does
    const auto mark = [&](std::size_t step) {
      for (std::size_t k = 0; k < count_; ++k)
        if (k == step || (group_of_[step] != kAlone && group_of_[k] == group_of_[step])) after[k] = true;
    };
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t k = 0; k < count_; ++k) {
        if (after[k]) continue;
        for (const std::size_t from : Needs(k)) {
          if (group_of_[k] == group && after[from]) return false;
          if (group_of_[k] != group && (after[from] || group_of_[from] == group)) {
            mark(k);
            changed = true;
          }
        }
      }
    }
    return true;
  }

  // The steps that make what the step reads.
  std::vector<std::size_t> Needs(std::size_t step) const {
    std::vector<std::size_t> needs;
    for (const int input : uses_[step].reads) {
      const auto& producers = producers_[static_cast<std::size_t>(input)];
      needs.insert(needs.end(), producers.begin(), producers.end());
    }
    return needs;
  }

  // Is all that the step reads there, or about to be made by its own group?
  bool IsReady(std::size_t step, const std::vector<bool>& done) const {
    const auto is_there = [&](std::size_t from) {
      return done[from] || (group_of_[step] != kAlone && group_of_[from] == group_of_[step]);
    };
    const std::vector<std::size_t> needs = Needs(step);
    return std::all_of(needs.begin(), needs.end(), is_there);
  }

  bool GroupIsReady(int group, const std::vector<bool>& done) const {
    for (std::size_t k = 0; k < count_; ++k)
      if (group_of_[k] == group && !IsReady(k, done)) return false;
    return true;
  }

  // Orders the groups by what they need, and the kernels that are ready at the same time into groups.
  void Schedule() {
    std::vector<std::size_t> order;
    std::vector<bool> done(count_, false);
    for (std::size_t next = 0; next < count_;) {
      if (done[next]) {
        ++next;
        continue;
      }
      // The first step that can run; one always can.
      std::size_t first = next;
      while (first < count_ && (done[first] || !(group_of_[first] == kAlone ? IsReady(first, done)
                                                                            : GroupIsReady(group_of_[first], done))))
        ++first;
      Ensure(first < count_, "groups of steps that need each other");
      StepGroup group;
      group.begin = static_cast<int>(order.size());
      if (group_of_[first] == kAlone) {
        for (std::size_t k = first; k < count_; ++k)
          if (group_of_[k] == kAlone && !done[k] && IsReady(k, done)) order.push_back(k);
      } else {
        group.kind = StepGroup::Kind::kRows;
        group.rows = rows_[static_cast<std::size_t>(group_of_[first])];
        AppendRows(group_of_[first], done, &order);
        group.local = LocalsOf(group_of_[first]);
      }
      group.end = static_cast<int>(order.size());
      for (int k = group.begin; k < group.end; ++k) done[order[static_cast<std::size_t>(k)]] = true;
      plan_.groups.push_back(std::move(group));
    }
    std::vector<Step> steps;
    std::vector<Use> uses;
    for (const std::size_t k : order) {
      steps.push_back(std::move(plan_.steps[k]));
      uses.push_back(std::move(uses_[k]));
    }
    plan_.steps = std::move(steps);
    uses_ = std::move(uses);
  }

  // The steps of a group, each after those it needs.
  void AppendRows(int group, std::vector<bool> done, std::vector<std::size_t>* order) const {
    for (bool added = true; added;) {
      added = false;
      for (std::size_t k = 0; k < count_; ++k) {
        if (group_of_[k] != group || done[k]) continue;
        const std::vector<std::size_t> needs = Needs(k);
        if (std::any_of(needs.begin(), needs.end(), [&](std::size_t from) { return !done[from]; })) continue;
        order->push_back(k);
        done[k] = added = true;
      }
    }
  }

  // Temporaries that only this group uses.
  std::vector<int> LocalsOf(int group) const {
    std::set<int> local;
    for (std::size_t k = 0; k < count_; ++k)
      if (group_of_[k] == group)
        for (const int id : uses_[k].writes)
          if (buffer(id).kind == Buffer::Kind::kTemporary && uses_[k].by_rows) local.insert(id);
    for (std::size_t k = 0; k < count_; ++k)
      if (group_of_[k] != group)
        for (const int id : uses_[k].reads) local.erase(id);
    return {local.begin(), local.end()};
  }

  // The result of a product that one kernel reads, and overwrites with an output of the same shape, lives in it.
  void FindPlaces() {
    std::set<int> taken;
    for (std::size_t k = 0; k < count_; ++k) {
      if (!IsGemm(k)) continue;
      const int product = std::get<Gemm>(plan_.steps[k]).step.c;
      Buffer& made = plan_.buffers[static_cast<std::size_t>(product)];
      if (made.kind != Buffer::Kind::kTemporary) continue;
      const Kernel* reader = nullptr;
      int readers = 0;
      for (std::size_t j = 0; j < count_; ++j) {
        if (uses_[j].reads.count(product) == 0) continue;
        ++readers;
        reader = std::get_if<Kernel>(&plan_.steps[j]);
      }
      if (readers != 1 || reader == nullptr) continue;
      if (const int place = PlaceFor(product, reader->signature); place >= 0 && taken.insert(place).second)
        made.place = place;
    }
  }

  int PlaceFor(int product, const runtime::KernelSignature& signature) const {
    for (std::size_t k = 0; k < signature.operands.size(); ++k) {
      const Access& store = signature.operands[k];
      if (!store.store || buffer(store.buffer).kind != Buffer::Kind::kOutput) continue;
      if (buffer(store.buffer).dtype != buffer(product).dtype || buffer(store.buffer).shape != buffer(product).shape)
        continue;
      bool fits = true;  // wherever it is read
      for (std::size_t l = 0; l < signature.operands.size(); ++l) {
        const auto& allowed = signature.in_place[k];
        const Access& load = signature.operands[l];
        if (!load.store && runtime::HomeOf(plan_.buffers, load.buffer) == product)
          fits = fits && load.buffer == product &&
                 std::find(allowed.begin(), allowed.end(), static_cast<int>(l)) != allowed.end();
      }
      if (fits) return store.buffer;
    }
    return -1;
  }

  Plan& plan_;
  std::size_t count_;
  std::vector<Use> uses_;
  std::vector<std::vector<std::size_t>> producers_;  ///< of each buffer, before the steps are ordered
  std::vector<int> group_of_;  ///< of each step: index into rows_, or kAlone
  std::vector<runtime::Extent> rows_;
};

}  // namespace

void GroupSteps(Plan* plan) { Grouping(plan).Run(); }

void UngroupRows(Plan* plan) {
  std::vector<StepGroup> groups;
  for (StepGroup& group : plan->groups) {
    if (group.kind == StepGroup::Kind::kIndependent) groups.push_back(std::move(group));
    else
      for (int k = group.begin; k < group.end; ++k) groups.push_back({StepGroup::Kind::kIndependent, k, k + 1, {}, {}});
  }
  plan->groups = std::move(groups);
  for (Buffer& buffer : plan->buffers) buffer.place = -1;
}

}  // namespace umbra::plan
