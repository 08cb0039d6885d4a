// Arrays of numbers as replies, in the requested format.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "server/exchange.h"
#include "tensor/tensor.h"

namespace heed::server {

struct NumberArray {
  std::vector<std::int64_t> shape;
  std::span<const float> values;  // row by row
  std::string name = "array";     // of the file that a browser keeps
};

// By ?format=: binary (the default; little-endian f32, with the headers X-Heed-Dtype and
// X-Heed-Shape), json, npy or csv. Throws Error{invalid_argument} for another.
Reply array_reply(const Request& request, const NumberArray& array);
Reply array_reply(const Request& request, const Tensor<float>& tensor, const std::string& name);

// Throws HttpError{413} for more numbers than a reply may have.
void require_sendable(std::int64_t numbers);

}  // namespace heed::server
