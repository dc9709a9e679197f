#include "compiler/codegen/cuda/extents.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace umbra::codegen {

using runtime::Extent;
using runtime::ExtentOp;

std::set<int> BuffersOf(const runtime::KernelSignature& signature) {
  std::set<int> buffers;
  for (const auto& access : signature.operands) buffers.insert(access.buffer);
  return buffers;
}

Extents::Extents(const plan::Plan& plan, const plan::Kernel& kernel, Names* names)
    : plan_(plan),
      needed_(plan.symbols.size()),
      source_(plan.symbols.size(), kGiven) {
  for (const std::string& symbol : plan.symbols)
    names_.push_back(names->Make(symbol[0] == '?' ? "extent" + symbol.substr(1) : symbol));
  FindSources();
  const auto& signature = kernel.signature;
  for (const int buffer : BuffersOf(signature))
    for (const Extent& extent : plan.buffers[static_cast<std::size_t>(buffer)].shape) Need(extent);
  for (const Extent& axis : signature.axes) Need(axis);
  for (const auto& number : signature.numbers) Need(number.extent);
  NeedSources();
  // What extents have to be, or must not fall below, where it follows from what is known.
  std::vector<bool> known = needed_;
  const auto is_known = [&](const Extent& extent) {
    return extent.is_static() || known[static_cast<std::size_t>(extent.symbol)];
  };
  for (const auto& derived : plan.derived) {
    if (derived.op.kind == ExtentOp::kScalar || !is_known(derived.a) || !is_known(derived.b)) continue;
    const bool computes = IsSource(derived);
    if (computes) known[static_cast<std::size_t>(derived.result.symbol)] = true;
    if (computes && derived.op.kind == ExtentOp::kMinus) Need(derived.result);
    if (!computes && is_known(derived.result)) Need(derived.result), Need(derived.a), Need(derived.b);
  }
  NeedSources();
}

std::vector<std::string> Extents::AllNames() const {
  std::vector<std::string> all;
  for (std::size_t k = 0; k < needed_.size(); ++k)
    if (needed_[k]) all.push_back(names_[k]);
  return all;
}

std::vector<int> Extents::Given() const {
  std::vector<int> given;
  std::copy_if(order_.begin(), order_.end(), std::back_inserter(given),
               [this](int symbol) { return source_[static_cast<std::size_t>(symbol)] == kGiven; });
  return given;
}

std::vector<int> Extents::Scalars() const {
  std::vector<int> scalars;
  for (const auto& derived : plan_.derived)
    if (derived.op.kind == ExtentOp::kScalar && IsSource(derived) && IsNeeded(derived.result))
      scalars.push_back(static_cast<int>(derived.a.value));
  return scalars;
}

void Extents::Declare(const std::vector<std::string>& scalars, Writer* out) const {
  for (const auto& derived : plan_.derived) {
    const bool computed = derived.op.kind != ExtentOp::kScalar, source = IsSource(derived);
    if (!IsNeeded(derived.result) || (computed && !(IsNeeded(derived.a) && IsNeeded(derived.b))) ||
        !(computed || source))
      continue;
    const std::string value = computed ? Text(derived) : scalars[static_cast<std::size_t>(derived.a.value)];
    if (source) out->Line("const long long {} = {};", Of(derived.result).Text(), value);
    else
      out->Line("if ({} != {}) return cudaErrorInvalidValue;  // {}", value, Of(derived.result).Text(),
                derived.op.origin);
  }
}

void Extents::Need(const Extent& extent) {
  if (IsNeeded(extent)) return;
  needed_[static_cast<std::size_t>(extent.symbol)] = true;
  order_.push_back(extent.symbol);
}

// An extent of an input is given; another is what first says what it is.
void Extents::FindSources() {
  std::set<int> inputs;
  for (const auto& buffer : plan_.buffers)
    if (buffer.kind == runtime::Buffer::Kind::kInput)
      for (const Extent& extent : buffer.shape) inputs.insert(extent.symbol);
  for (std::size_t k = 0; k < plan_.derived.size(); ++k) {
    const Extent& result = plan_.derived[k].result;
    if (result.is_static() || inputs.count(result.symbol) > 0) continue;
    std::size_t& source = source_[static_cast<std::size_t>(result.symbol)];
    source = std::min(source, k);
  }
}

bool Extents::IsSource(const runtime::DerivedExtent& derived) const {
  return !derived.result.is_static() && source_[static_cast<std::size_t>(derived.result.symbol)] ==
                                            static_cast<std::size_t>(&derived - plan_.derived.data());
}

// Each extent follows from those before it.
void Extents::NeedSources() {
  for (auto derived = plan_.derived.rbegin(); derived != plan_.derived.rend(); ++derived)
    if (IsSource(*derived) && IsNeeded(derived->result) && derived->op.kind != ExtentOp::kScalar)
      Need(derived->a), Need(derived->b);
}

std::string Extents::Text(const runtime::DerivedExtent& derived) const {
  const Term a = Of(derived.a), b = Of(derived.b);
  const std::string x = a.Text(), y = b.Text();
  switch (derived.op.kind) {
    case ExtentOp::kPlus: return x + " + " + y;
    case ExtentOp::kMinus: return x + " - " + y;
    case ExtentOp::kTimes: return x + " * " + y;
    case ExtentOp::kOver:
      return b.is_number() ? (b == 0 ? "0" : x + " / " + y) : fmt::format("({1} == 0 ? 0 : {0} / {1})", x, y);
    case ExtentOp::kMinimum: return fmt::format("least({}, {})", x, y);
    default: return fmt::format("most({}, {})", x, y);
  }
}

}  // namespace umbra::codegen
