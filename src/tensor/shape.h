// The extents of a tensor: up to five dimensions, outermost first.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <ranges>
#include <string>

namespace heed {

class Shape {
 public:
  static constexpr int max_rank = 5;

  Shape() = default;
  // Throws Error{invalid_argument} for more than max_rank extents, a negative extent, or a product
  // that does not fit in 63 bits.
  Shape(std::initializer_list<std::int64_t> extents);
  Shape(const std::int64_t* extents, int rank);

  int rank() const { return rank_; }
  std::int64_t operator[](int dimension) const { return extents_[dimension]; }
  std::int64_t size() const { return size_; }  // product of the extents; 1 for rank 0
  const std::int64_t* begin() const { return extents_.data(); }
  const std::int64_t* end() const { return extents_.data() + rank_; }
  bool operator==(const Shape& other) const;
  std::string text() const;  // "(12, 64, 128)"

 private:
  std::array<std::int64_t, max_rank> extents_{};
  int rank_ = 0;
  std::int64_t size_ = 1;
};

}  // namespace heed

// As a range a shape has as many elements as dimensions; its size() is their product.
template <>
inline constexpr bool std::ranges::disable_sized_range<heed::Shape> = true;

// Lets messages take shapes directly, formatted only if needed.
template <>
struct fmt::formatter<heed::Shape> : fmt::formatter<std::string> {
  template <class Context>
  auto format(const heed::Shape& shape, Context& context) const {
    return fmt::formatter<std::string>::format(shape.text(), context);
  }
};
