// The header of NumPy's .npy files.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace heed {

// Version 1.0 (NumPy Enhancement Proposal 1) for elements in C order, such as "<f4": magic, length
// of the description, and the description, padded with spaces so that the elements start at a
// multiple of 64 bytes.
std::string npy_header(std::string_view element_type, std::span<const std::int64_t> shape);

}  // namespace heed
