#include "runtime/views.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "runtime/shape.h"
#include "umbra/error.h"

namespace umbra::runtime {

namespace {

bool GoesOn(std::uint32_t mask, std::size_t dim) { return (mask >> dim & 1) != 0; }

// Does each step along a joined dimension go on where the one behind it ends?
bool FollowEachOther(const Buffer& view, const TensorRef& place) {
  bool ends = false;  // do dimensions of a part so far, at `next`?
  index_t next = 0;
  for (std::size_t d = place.shape.size(); d-- > 0;) {
    if (place.shape[d] == 0) return true;
    if (place.shape[d] != 1) {
      if (ends && place.stride[d] != next) return false;
      ends = true;
      next = place.stride[d] * place.shape[d];
    }
    ends = ends && GoesOn(view.place_goes_on, d);
  }
  return true;
}

// All elements of a tensor from dimension `dim` on, from where they are by these strides to `dense`, or back.
char* CopyElements(const TensorRef& tensor, const index_t* stride, std::size_t dim, char* at, char* dense, bool back) {
  const std::size_t size = SizeOf(tensor.dtype), left = tensor.shape.size() - dim;
  if (left == 0 || (left == 1 && stride[dim] == 1)) {
    const std::size_t bytes = left == 0 ? size : static_cast<std::size_t>(tensor.shape[dim]) * size;
    std::memcpy(back ? at : dense, back ? dense : at, bytes);
    return dense + bytes;
  }
  for (index_t i = 0; i < tensor.shape[dim]; ++i)
    dense = CopyElements(tensor, stride, dim + 1, at + i * stride[dim] * static_cast<index_t>(size), dense, back);
  return dense;
}

}  // namespace

void PlaceView(const Buffer& view, const TensorRef& place, const std::vector<index_t>& symbols, TensorRef* tensor) {
  tensor->data = place.data;
  if (view.part >= 0) {
    const index_t begin = Resolve({view.begin}, symbols)[0] * place.stride[static_cast<std::size_t>(view.part)];
    const auto from =
        reinterpret_cast<std::uintptr_t>(place.data);  // of a temporary: what is to be added to its address
    tensor->data = reinterpret_cast<void*>(from + static_cast<std::uintptr_t>(begin) * SizeOf(view.dtype));
  }
  const auto count = [](const TensorRef& of) {
    index_t elements = 1;
    for (const index_t extent : of.shape) elements *= extent;
    return elements;
  };
  Ensure(count(*tensor) <= count(place), "a view is larger than what it is of");
  std::size_t from = place.shape.size();
  for (std::size_t d = tensor->shape.size(); d > 0;) {
    // The elements of a part lie as those along its last dimension of several.
    index_t stride = place.stride[--from];
    for (bool one = place.shape[from] == 1; GoesOn(view.place_goes_on, from);) {
      --from;
      if (one) stride = place.stride[from];
      one = one && place.shape[from] == 1;
    }
    bool goes_on = true;
    for (; goes_on; stride *= tensor->shape[d]) {
      tensor->stride[--d] = stride;
      goes_on = GoesOn(view.goes_on, d);
    }
  }
}

bool IsWrittenInParts(const std::vector<Buffer>& buffers, std::size_t output) {
  return std::any_of(buffers.begin(), buffers.end(), [&](const Buffer& view) {
    return view.part >= 0 && static_cast<std::size_t>(HomeOf(buffers, view.place)) == output;
  });
}

DenseCopies::DenseCopies(const std::vector<Buffer>& buffers, const OperandPairs& shared,
                         std::vector<TensorRef>* operands) {
  std::vector<bool> copied(operands->size());
  for (const Buffer& view : buffers) {
    if (view.kind == Buffer::Kind::kInput) ++first_output_;
    const auto operand = static_cast<std::size_t>(view.place);
    if (view.place_goes_on != 0 && operand < operands->size() && !FollowEachOther(view, (*operands)[operand]))
      copied[operand] = true;  // temporaries are dense
  }
  for (const auto& [output, other] : shared)
    if (IsWrittenInParts(buffers, output)) copied[output] = true;
  for (std::size_t operand = 0; operand < operands->size(); ++operand) {
    if (!copied[operand]) continue;
    TensorRef& given = (*operands)[operand];
    words_.push_back(static_cast<index_t>(operand));
    words_.push_back(static_cast<index_t>(SizeOf(given.dtype)));
    for (const index_t stride : given.stride) words_.push_back(stride);
    given.data = nullptr;
    index_t step = 1;
    for (std::size_t d = given.shape.size(); d-- > 0; step *= given.shape[d]) given.stride[d] = step;
    index_t& bytes = words_[words_.size() - given.shape.size() - 1];
    bytes = (bytes * step + 63) / 64 * 64;
    bytes_ += static_cast<std::size_t>(bytes);
  }
}

void DenseCopies::Move(const std::vector<TensorRef>& operands, char* memory, void* const* data, void** copied) const {
  for (const index_t* word = words_.data(); word != words_.data() + words_.size();) {
    const index_t operand = *word++, bytes = *word++;
    const TensorRef& dense = operands[static_cast<std::size_t>(operand)];
    if (copied != nullptr) copied[operand] = memory;
    if ((operand < first_output_) == (copied != nullptr))
      CopyElements(dense, word, 0, static_cast<char*>(data[operand]), memory, copied == nullptr);
    word += dense.shape.size();
    memory += bytes;
  }
}

}  // namespace umbra::runtime
