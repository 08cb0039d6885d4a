#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "microscope/files/array_files.h"

namespace heed {

std::string npy_header(std::string_view element_type, std::span<const std::int64_t> shape) {
  // A Python tuple: (), (3,), (3, 4).
  std::string description =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", element_type,
                  fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  constexpr std::size_t before = 10;
  description.append(63 - (before + description.size()) % 64, ' ');
  description += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(description.size() & 0xFF);
  header += static_cast<char>(description.size() >> 8);
  return header + description;
}

}  // namespace heed
