// Shapes, views and the memory behind them.
#include "tensor/tensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ranges>
#include <vector>

#include <numeric>

#include "base/expect_error.h"
#include "tensor/arena.h"

namespace heed {
namespace {

using enum ErrorCode;
using testing::expect_error;

TEST(Shape, KnowsItsExtents) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape.rank(), 3);
  EXPECT_EQ(shape[1], 3);
  EXPECT_EQ(shape.size(), 24);
  EXPECT_EQ(shape.text(), "(2, 3, 4)");
  EXPECT_EQ(Shape{}.size(), 1);
  EXPECT_EQ(Shape{}.text(), "()");
  EXPECT_EQ((Shape{0, 5}).size(), 0);
  EXPECT_EQ(shape, (Shape{2, 3, 4}));
  EXPECT_NE(shape, (Shape{2, 3}));
  EXPECT_NE(shape, (Shape{2, 3, 5}));
  EXPECT_NE((Shape{2, 3}), (Shape{2, 3, 0}));
}

// A block that is a little longer than huge pages takes a small one more, not another huge one.
TEST(Memory, TakesLittleMoreThanItHolds) {
  constexpr std::size_t huge_page = std::size_t{2} << 20;
  for (const std::size_t pages : {16U, 17U, 40U}) {
    const Memory memory = allocate_memory(pages * huge_page + 64);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.get()) % huge_page, 0U);
    EXPECT_EQ(memory.get_deleter().mapped, pages * huge_page + page_bytes());
    EXPECT_EQ(memory.get()[pages * huge_page + 63], std::byte{0});
  }
  // Half of a huge page more is worth another.
  EXPECT_EQ(allocate_memory(16 * huge_page + huge_page / 2).get_deleter().mapped, 17 * huge_page);
  EXPECT_EQ(allocate_memory(16 * huge_page).get_deleter().mapped, 16 * huge_page);
}

TEST(Shape, IsARangeOfItsExtents) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(std::ranges::size(shape), 3);
  EXPECT_TRUE(std::ranges::equal(shape, std::vector<std::int64_t>{2, 3, 4}));
}

TEST(Shape, RefusesWhatCannotBe) {
  expect_error(
      invalid_argument, [] { Shape{1, 1, 1, 1, 1, 1}; }, "6 dimensions");
  expect_error(
      invalid_argument,
      [] {
        Shape{2, -1};
      },
      "-1", "dimension 1");
  expect_error(
      invalid_argument,
      [] {
        Shape{INT64_MAX, 2};
      },
      "63 bits");
}

TEST(Tensor, IsZeroedAndAligned) {
  EXPECT_FALSE(Tensor<float>().present());
  for (const std::int64_t size : {0, 1, 1000, 3 << 20}) {
    const Tensor<float> tensor(Shape{size});
    EXPECT_TRUE(tensor.present());
    EXPECT_EQ(tensor.size(), size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.data()) % 64, 0U);
    for (const float value : tensor.span()) ASSERT_EQ(value, 0.0F);
  }
}

TEST(Tensor, OfAnySizeIsZeroedAndItsOwn) {
  constexpr std::int64_t largest = std::int64_t{36} << 20;  // beyond what comes from the heap
  for (const std::int64_t bytes : {std::int64_t{100}, std::int64_t{3} << 20, largest}) {
    for (int again = 0; again < 2; ++again) {  // memory that was used before, too
      Tensor<std::uint8_t> tensor(Shape{bytes});
      for (std::int64_t i = 0; i < bytes; i += 61) ASSERT_EQ(tensor[i], 0);
      ASSERT_EQ(tensor[bytes - 1], 0);
      tensor.fill(7);
      const Tensor<std::uint8_t> moved = std::move(tensor);
      EXPECT_EQ(moved[bytes - 1], 7);
    }
  }
}

TEST(Tensor, TooLargeIsRefusedWithItsSize) {
  expect_error(
      out_of_memory, [] { allocate_memory(SIZE_MAX); }, "18446744073709551615");
}

class ViewTest : public ::testing::Test {
 protected:
  ViewTest() : tensor(Shape{2, 3, 4}) { std::iota(tensor.span().begin(), tensor.span().end(), 0); }
  Tensor<int> tensor;
};

TEST_F(ViewTest, IndexesTheLastDimensionFastest) {
  const View<int> view = tensor;
  EXPECT_EQ(view(0, 0, 0), 0);
  EXPECT_EQ(view(1, 2, 3), 23);
  EXPECT_EQ(view(1, 0, 2), 14);
  EXPECT_TRUE(view.contiguous());
  EXPECT_EQ(view[1](2, 3), 23);
  EXPECT_EQ(view[1][2].span()[3], 23);
  EXPECT_FALSE(View<int>().present());
}

TEST_F(ViewTest, SlicesWithoutCopying) {
  const View<int> slice = tensor.view().slice(1, 1, 3);
  EXPECT_EQ(slice.shape(), (Shape{2, 2, 4}));
  EXPECT_EQ(slice(1, 0, 0), 16);
  EXPECT_FALSE(slice.contiguous());
  EXPECT_TRUE(slice[0].contiguous());
  expect_error(
      internal, [&] { slice.span(); }, "contiguous");
  expect_error(
      internal, [&] { tensor.view().slice(1, 2, 4); }, "slice");
  EXPECT_TRUE(tensor.view().slice(0, 1, 2).contiguous());
  slice(1, 0, 0) = -1;
  EXPECT_EQ(tensor[16], -1);
}

TEST_F(ViewTest, Reshapes) {
  EXPECT_EQ(tensor.view().reshape(Shape{6, 4})(5, 3), 23);
  expect_error(
      internal,
      [&] {
        tensor.view().reshape(Shape{5, 5});
      },
      "reshape");
  expect_error(
      internal, [&] { tensor.view().slice(1, 1, 3).reshape(Shape{16}); }, "contiguous");
}

TEST_F(ViewTest, SplitsTheLastDimension) {
  // Half of each row: strides of the rest stay.
  const View<int> split = tensor.view().split_last(2, 2);
  EXPECT_EQ(split.shape(), (Shape{2, 3, 2, 2}));
  EXPECT_EQ(split(1, 2, 1, 0), 22);
  expect_error(
      internal, [&] { tensor.view().split_last(3, 2); }, "split");
}

TEST_F(ViewTest, StatesWhichShapeWasExpected) {
  require_shape(tensor.view(), Shape{2, 3, 4}, "x");
  expect_error(
      invalid_argument,
      [&] {
        require_shape(tensor.view(), Shape{2, 12}, "x");
      },
      "x has shape (2, 3, 4), expected (2, 12)");
}

TEST(Arena, LaysOutTensorsOnCacheLines) {
  ArenaLayout layout;
  EXPECT_EQ(layout.add("a", Shape{3}), 0U);
  EXPECT_EQ(layout.add("b", Shape{4, 4}), 1U);
  EXPECT_EQ(layout.add("c", Shape{}), 2U);
  EXPECT_EQ(layout.find("b")->offset, 16);
  EXPECT_EQ(layout.find("c")->offset, 32);
  EXPECT_EQ(layout.find("d"), nullptr);
  EXPECT_EQ(layout.size(), 48);
  EXPECT_EQ(layout.entries()[2].name, "c");
  expect_error(
      invalid_argument, [&] { layout.add("b", Shape{1}); }, "'b'");
  EXPECT_EQ(layout.size(), 48);
}

TEST(Arena, RefusesSizesThatNoMemoryHas) {
  ArenaLayout layout;
  layout.add("large", Shape{std::int64_t{1} << 55});
  testing::expect_error(
      ErrorCode::invalid_argument, [&] { layout.add("more", Shape{(std::int64_t{1} << 55) + 1}); },
      "'more'", "2^56");
}

TEST(Arena, ViewsOneAllocation) {
  ArenaLayout layout;
  layout.add("a", Shape{3});
  layout.add("b", Shape{2, 2});
  Arena<float> arena(layout);
  EXPECT_EQ(arena.all().size(), 32U);
  const View<float> second = arena.view(*layout.find("b"));
  EXPECT_EQ(second.shape(), (Shape{2, 2}));
  second(1, 1) = 7;
  EXPECT_EQ(arena.all()[19], 7);
  const Arena<float>& constant = arena;
  EXPECT_EQ(constant.view(*layout.find("b"))(1, 1), 7);
  EXPECT_FALSE(Arena<float>().present());
}

}  // namespace
}  // namespace heed
