// Arrays in the memory of a GPU, which other libraries of the process read without a copy, and
// theirs, which heed copies.
//
//   heed::Model model = heed::Model::load("gpt2", {.device = "cuda"});
//   heed::Activations found = heed::record(model, {tokens});
//   heed::DeviceView stream = heed::on_device(found, "blocks.3.hook_resid_post");  // (B, T, C)
//
// heed computes on a stream of its own, which waits for no other: call wait_for_device() before
// what follows on another one, and wait_for_all_streams() before memory that others read is
// released, since heed may use it again at once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "heed/activations.h"

namespace heed {

// Numbers (f32) in the memory of the GPU, with a shape and strides (in elements). They are there
// for as long as their owner is, and not to be written to: heed and other views read them too.
struct DeviceView {
  const float* data = nullptr;  // an address that only the GPU's kernels may read
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  std::shared_ptr<const void> owner;
};

// The GPU that this process computes on, by CUDA's number; nothing where no model was loaded on
// one. There is one at most.
std::optional<int> cuda_device();

// Bytes of the GPU's memory that are in use by heed's arrays; 0 where there is no such GPU.
std::int64_t device_bytes_in_use();

// A point of a recorded pass by its full name, as Activations::at(): where the pass wrote it,
// without a copy, or else in memory of its own. Scores, patterns and logits are computed on the
// GPU. What is the processor's is copied there: what branches add to the stream, norms, neurons
// after the activation, the stream head by head, and all of a pass that kept points by name or had
// hooks. Throws what Activations::at() throws, and Error{invalid_argument} where the model is on
// the processor.
DeviceView on_device(const Activations& found, std::string_view name);

// A weight by its name, as weight(): the parameter that passes read, without an owner, since the
// memory is the model's. Throws what weight() throws, Error{invalid_argument} where the model is on
// the processor, and Error{unsupported} for a matrix that is on the GPU only quantised.
DeviceView weight_on_device(const Model& model, std::string_view name);

// Waits for what heed launched, after which other streams may read its memory, or for what any
// library of the process launched. Both return at once where no GPU is in use; both throw
// Error{unsupported} with what CUDA says where a kernel failed.
void wait_for_device();
void wait_for_all_streams();

// Contiguous copies: on the processor, and on the GPU in memory of its own.
Array copied_here(const DeviceView& view);
DeviceView copied_on_device(const DeviceView& view);

// Memory of the GPU that another library allocated: elements of `element_bytes` bytes, of any type,
// at strides in elements.
struct ForeignArray {
  const void* data = nullptr;
  std::int64_t element_bytes = 4;
  std::vector<std::int64_t> shape;  // of at most four dimensions
  std::vector<std::int64_t> strides;
};

// Waits for all streams and copies the elements, one after the other, to the processor's memory.
// Throws Error{invalid_argument} for more dimensions, and where no GPU is in use.
void copy_here(const ForeignArray& array, void* to);

}  // namespace heed
