// GPUs that plans know by name: what their maker publishes of them.
#pragma once

#include <span>
#include <string_view>

namespace heed {

struct Gpu {
  std::string_view name;  // "h100"
  double memory;          // bytes
  double products;        // operations a second in bf16 with sums in f32, without sparsity
  double bandwidth;       // bytes of memory a second
  double link;            // bytes a second to the others of its node, in each direction
};

std::span<const Gpu> known_gpus();

// Throws Error{not_found} with the names that there are.
const Gpu& find_gpu(std::string_view name);

}  // namespace heed
