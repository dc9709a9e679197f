#include "umbra/statements.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <map>
#include <new>
#include <string>
#include <utility>

#include "runtime/environment.h"
#include "runtime/overlap.h"
#include "umbra/call_site.h"
#include "umbra/error.h"
#include "umbra/jit_site.h"

namespace umbra::detail {

namespace {

constexpr std::size_t kMaxStatements = 64;  // beyond this many they run without being waited for
constexpr std::size_t kMaxForms = 256;  // beyond this many a thread begins anew
// A thread may make so many programs; each time that one is found again, it may make a part of one more. Statements
// that are never twice the same, as those of rows chosen by numbers, are not worth compiling.
constexpr double kPrograms = 64, kProgramsForFinding = 0.25;

[[gnu::tls_model("initial-exec")]] thread_local bool ended = false;  // the thread's statements, by its end

void Trace(std::size_t statements, const std::string& what) {
  if (runtime::ReadEnvironment().trace) fmt::print(stderr, "--- {} statements: {}\n", statements, what);
}

}  // namespace

// What statements have in common that differ in addresses, extents, strides and numbers only.
struct Statements::Form {
  Function function;  // empty if they do not run together
  std::size_t cut = 0;  // if so: how many come before those that had better run by themselves; 0 if that is not known
  std::unique_ptr<runtime::CallSite> site;  // once there is machine code
  std::vector<std::size_t> views;  // of the function's operands
  std::vector<void*> refused;  // the data of the last call that did not suit
};

// What a run needs, kept for the next one.
struct Statements::Scratch {
  struct View {
    void* data;
    const index_t* layout;
    std::size_t size;  // of the layout
  };
  std::vector<View> views;  // the different operands of the statements
  std::vector<std::int64_t> ids;  // of each operand of each statement, its place in `views`
  std::vector<std::uint32_t> table;  // by hash of the data: its place in `views`, and 1; 0 if empty
  std::vector<std::int64_t> key;
  std::map<std::vector<std::int64_t>, std::shared_ptr<Form>> forms;
  std::pair<std::vector<std::int64_t>, std::shared_ptr<Form>> latest;
  double programs = kPrograms;  // that may still be made
  std::vector<void*> data;
  std::vector<index_t> layout;
  std::vector<umbra_scalar> scalars;

  // Numbers the operands of a statement.
  void Number(const Gathered& g) {
    const index_t* layout_of = g.layout;
    for (int k = 0; k < g.num_operands; ++k) {
      const std::size_t size = runtime::Layout::SizeOf(runtime::Layout::RankOf(layout_of[0]));
      ids.push_back(Place({g.data[k], layout_of, size}));
      layout_of += size;
    }
  }

 private:
  std::int64_t Place(const View& view) {
    const std::size_t mask = table.size() - 1;
    std::size_t at = (reinterpret_cast<std::uintptr_t>(view.data) >> 2) * 0x9E3779B97F4A7C15u >> 40 & mask;
    for (; table[at] != 0; at = (at + 1) & mask) {
      const View& known = views[table[at] - 1];
      if (known.data == view.data &&
          std::equal(view.layout, view.layout + view.size, known.layout, known.layout + known.size))
        return table[at] - 1;
    }
    views.push_back(view);
    table[at] = static_cast<std::uint32_t>(views.size());
    return static_cast<std::int64_t>(views.size()) - 1;
  }
};

// A thread, as others know it.
class Statements::Thread final : public Giver {
 public:
  explicit Thread(Statements* statements) : statements_(statements) {}
  void RunForAnother() override {
    if (getpid() != process_) return;  // in one that was forked there is no such thread
    const BiasedMutex::Outside lock(&mutex);
    if (statements_ == nullptr) return;
    statements_->running_ = std::exchange(statements_->count_, 0);
    try {
      statements_->RunAll();
    } catch (...) {
      statements_->error_ = std::current_exception();
      throw;
    }
  }
  void End() {
    const std::lock_guard<BiasedMutex> lock(mutex);
    statements_ = nullptr;
    ended = true;
  }

  BiasedMutex mutex;

 private:
  Statements* statements_;  // null from its end on
  const pid_t process_ = getpid();
};

Statements::Statements() {
  auto thread = std::make_shared<Thread>(this);
  mutex_ = &thread->mutex;
  Giver::of_thread = thread.get();
  giver_ = std::move(thread);
}

Statements::~Statements() = default;

// What outlives the thread's statements, such as a thread_local object that was made before them, may still assign and
// wait: so they are ended, and never destroyed, and from then on keep no memory beyond a run.
Statements* Statements::MakeOfThread() {
  struct Owner {
    Statements* statements;
    ~Owner() { statements->End(); }
  };
  alignas(Statements) static thread_local std::byte memory[sizeof(Statements)];
  static thread_local Owner owner{new (memory) Statements};
  return owner.statements;
}

// Runs what waits; an error of it is lost.
void Statements::End() noexcept {
  ended = true;
  FinishWaiting(false);
  static_cast<Thread&>(*giver_).End();
  mutex_ = &alone_;
  Giver::of_thread = nullptr;
  giver_ = nullptr;
  next_ = nullptr;
}

void Statements::MakeNext() { next_ = std::make_unique<Entry>(); }

void Statements::GiveNext(Givers* givers) {
  std::unique_lock<BiasedMutex> lock(*mutex_);
  if (count_ == kMaxStatements) {
    lock.unlock();
    RunWaiting();
    of_thread = this;
    lock.lock();
  }
  if (count_ == all_.size()) all_.emplace_back();
  all_[count_++].swap(next_);
  givers->Note(giver_);
}

// One statement alone is the way that counts most.
void Statements::Run() {
  const std::lock_guard<BiasedMutex> lock(*mutex_);
  running_ = std::exchange(count_, 0);
  if (running_ != 1 || error_ != nullptr || ended) {
    struct AtEnd {
      Statements* all;
      ~AtEnd() {
        if (ended) all->Forget();
      }
    } at_end{this};
    return RunAll();
  }
  Entry& only = *all_[0];
  if (!only.operands.RunLike(only.earlier)) only.type->run(&only.operands);
}

void Statements::Forget() {
  all_.clear();
  all_.shrink_to_fit();
  scratch_ = nullptr;
}

void Statements::RunAll() {
  if (error_ != nullptr) std::rethrow_exception(std::exchange(error_, nullptr));
  if (running_ > 0) Run(0, running_);
}

void Statements::Finish(bool keep_error) noexcept {
  try {
    Run();
  } catch (...) {
    if (!keep_error) return;
    const std::lock_guard<BiasedMutex> lock(*mutex_);
    error_ = std::current_exception();
    of_thread = this;
  }
}

void Statements::RunOne(std::size_t k) {
  if (running_ == 1) return all_[k]->type->run(&all_[k]->operands);
  try {
    all_[k]->type->run(&all_[k]->operands);
  } catch (const Error& error) {
    throw Error(Concat("statement ", k + 1, " of ", running_, " that waited in a fused stream: ", error.what()));
  }
}

void Statements::Run(std::size_t begin, std::size_t end) {
  if (end - begin == 1) return RunOne(begin);
  std::size_t cut = (end - begin) / 2;
  if (RunTogether(begin, end, &cut)) return;
  Run(begin, begin + cut);
  Run(begin + cut, end);
}

// If not, `cut` is how many to run before the others, if that is known.
bool Statements::RunTogether(std::size_t begin, std::size_t end, std::size_t* cut) {
  if (scratch_ == nullptr) scratch_ = std::make_unique<Scratch>();
  Scratch& s = *scratch_;
  const std::shared_ptr<Form> form = FormOf(begin, end);
  if (form == nullptr) return false;
  if (!form->function) {
    if (form->cut > 0) *cut = form->cut;
    return false;
  }
  if (form->site == nullptr) {
    if (form->function.interpreted() && (!form->function.Ready() || form->function.interpreted())) return false;
    form->site = std::make_unique<runtime::CallSite>(form->function.shared_program());
  }
  s.data.clear();
  s.layout.clear();
  s.scalars.clear();
  for (const std::size_t view : form->views) {
    s.data.push_back(s.views[view].data);
    s.layout.insert(s.layout.end(), s.views[view].layout, s.views[view].layout + s.views[view].size);
  }
  for (std::size_t k = begin; k < end; ++k) {
    const Gathered& g = all_[k]->operands;
    s.scalars.insert(s.scalars.end(), g.scalars, g.scalars + g.num_scalars);
  }
  const runtime::Layout layout{s.layout.data(), s.layout.size()};
  if (form->refused == s.data) return false;
  if (const std::string why = form->site->Refusal(s.data.data(), layout, s.scalars.data()); !why.empty()) {
    Trace(end - begin, "not as one program: " + why);
    form->refused = s.data;
    return false;
  }
  form->site->Run(s.data.data(), layout, s.scalars.data());
  return true;
}

std::shared_ptr<Statements::Form> Statements::FormOf(std::size_t begin, std::size_t end) {
  Scratch& s = *scratch_;
  std::size_t operands = 1;
  for (std::size_t k = begin; k < end; ++k) operands += static_cast<std::size_t>(all_[k]->operands.num_operands);
  std::size_t slots = 16;
  while (slots < 2 * operands) slots *= 2;
  s.table.assign(slots, 0);
  s.views.clear();
  s.ids.clear();
  s.key.assign(1, JitOptions::generation.load(std::memory_order_acquire));
  for (std::size_t k = begin; k < end; ++k) {
    const Gathered& g = all_[k]->operands;
    s.Number(g);
    s.key.push_back(reinterpret_cast<std::intptr_t>(all_[k]->type));
    s.key.insert(s.key.end(), g.structure, g.structure + g.num_structure);
  }
  s.key.insert(s.key.end(), s.ids.begin(), s.ids.end());
  if (s.latest.second == nullptr || s.latest.first != s.key) {
    auto found = s.forms.find(s.key);
    if (found == s.forms.end()) {
      if (s.programs < 1) return nullptr;
      s.programs -= 1 + kProgramsForFinding;
      if (s.forms.size() == kMaxForms) s.forms.clear();
      found = s.forms.emplace(s.key, MakeForm(begin, end)).first;
    }
    s.latest = *found;
  }
  s.programs = std::min(s.programs + kProgramsForFinding, kPrograms);
  return s.latest.second;
}

std::shared_ptr<Statements::Form> Statements::MakeForm(std::size_t begin, std::size_t end) {
  const Scratch& s = *scratch_;
  auto form = std::make_shared<Form>();
  try {
    graph::Builder builder("statements");
    GraphWalk walk{&builder, nullptr, {}};
    std::vector<std::int64_t> written;  // each once
    std::vector<std::size_t> first_writer;  // of each, counted from `begin`
    std::map<std::int64_t, PartialShape> shapes;
    auto id = s.ids.begin();
    for (std::size_t k = begin; k < end; ++k) {
      const Gathered& g = all_[k]->operands;
      walk.structure = g.structure;
      walk.next_operand = 0;
      walk.operand_of.assign(id, id + g.num_operands - 1);
      id += g.num_operands;
      const std::int64_t to = id[-1];
      const graph::Value value = all_[k]->type->assignment.build(&walk);
      if (shapes.count(to) == 0) {
        shapes.emplace(to, builder.AnyShape(all_[k]->type->assignment.rank));
        written.push_back(to);
        first_writer.push_back(k - begin);
      }
      walk.tensors.insert_or_assign(to, builder.Shaped("dst" + std::to_string(k - begin), value, shapes.at(to)));
    }
    for (std::size_t k = 0; k < written.size(); ++k)
      builder.Output("out" + std::to_string(k), walk.tensors.at(written[k]));
    Function function = Compile(builder.Build(), JitOptions::Get());
    for (const auto* operands : {&walk.inputs, &written})
      for (const std::int64_t view : *operands) form->views.push_back(static_cast<std::size_t>(view));
    const runtime::Program& program = function.program();
    for (std::size_t out = 0; out < written.size(); ++out)
      for (std::size_t in = 0; in < walk.inputs.size(); ++in) {
        if (walk.inputs[in] != written[out] ||
            runtime::MayShare(program, static_cast<int>(walk.inputs.size() + out), static_cast<int>(in)))
          continue;
        form->cut = first_writer[out];
        throw Error(Concat("what statement ", first_writer[out] + 1,
                           " writes is read, as it was before, by a later step of the program"));
      }
    Trace(end - begin, fmt::format("one program of {} steps", program.steps.size()));
    form->function = std::move(function);
  } catch (const Error& error) { Trace(end - begin, std::string("not as one program: ") + error.what()); }
  return form;
}

}  // namespace umbra::detail
