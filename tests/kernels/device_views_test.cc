// Views of a device's memory, of any strides and alignment: kernels do with them what those of the
// processor do. (Where a test sends all kernels to a device, their operands are copied there, and
// are contiguous.) Skipped where HEED_TEST_DEVICE names no device.
#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

#include "kernels/elements.h"
#include "kernels/kernels.h"
#include "kernels/support.h"

namespace heed::kernels {
namespace {

constexpr std::int64_t buffer_numbers = 9000;  // of a buffer
constexpr int buffer_count = 5;

// Random numbers, in one place.
class Buffers {
 public:
  explicit Buffers(Device device) {
    for (int i = 0; i < buffer_count; ++i) {
      const Twin random = random_twin(Shape{buffer_numbers}, static_cast<std::uint64_t>(i));
      buffers_.emplace_back(Shape{buffer_numbers}, device);
      copy(random.single, buffers_.back());
    }
  }
  View<float> view(int buffer, const Shape& shape, const View<float>::Strides& strides,
                   std::int64_t first = 0) {
    return {buffers_[static_cast<std::size_t>(buffer)].data() + first, shape, strides};
  }
  // Contiguous, but not aligned if `first` says so.
  View<float> dense(int buffer, const Shape& shape, std::int64_t first = 0) {
    return {buffers_[static_cast<std::size_t>(buffer)].data() + first, shape};
  }
  std::vector<Tensor<float>> numbers_here() const {
    std::vector<Tensor<float>> here;
    for (const Tensor<float>& buffer : buffers_) {
      here.emplace_back(buffer.shape());
      copy(buffer, here.back());
    }
    return here;
  }

 private:
  std::vector<Tensor<float>> buffers_;
};

// run(buffers) on the device leaves in all of each buffer what it leaves on the processor, to the
// bit or within a tolerance, relative to numbers above 1.
void expect_alike(double tolerance, const std::function<void(Buffers&)>& run) {
  Buffers here{Device{}}, there{opened_device()};
  run(here);
  run(there);
  const std::vector<Tensor<float>> expected = here.numbers_here(), actual = there.numbers_here();
  for (std::size_t b = 0; b < expected.size(); ++b) {
    for (std::int64_t i = 0; i < buffer_numbers; ++i) {
      const double wanted = expected[b][i];
      if (tolerance == 0) {
        ASSERT_EQ(std::memcmp(&actual[b][i], &expected[b][i], sizeof(float)), 0)
            << i << " of buffer " << b << ": " << actual[b][i] << ", expected " << wanted;
      } else {
        ASSERT_NEAR(actual[b][i], wanted, tolerance * std::max(1.0, std::abs(wanted)))
            << i << " of buffer " << b;
      }
    }
  }
}

class DeviceViews : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* const name = std::getenv("HEED_TEST_DEVICE");
    if (name == nullptr) GTEST_SKIP() << "HEED_TEST_DEVICE names no device";
    open_device(name);
  }
};

struct DeviceLayout {
  const char* name;
  Shape shape;
  View<float>::Strides strides;
  std::int64_t first = 0;
};
const DeviceLayout element_views[] = {
    {"dense", {7, 13}, {13, 1}},
    {"dense, not aligned", {7, 16}, {16, 1}, 3},
    {"columns", {9, 5}, {40, 1}, 11},
    {"aligned columns", {60, 12}, {100, 1}, 48},
    {"rows that begin anywhere", {60, 12}, {101, 1}, 48},
    {"transposed", {33, 21}, {1, 33}},
    {"batches transposed", {2, 70, 45}, {3150, 1, 70}},
    {"columns transposed", {40, 50}, {1, 64}, 2},
    {"every second", {31}, {2}, 1},
    {"heads first", {2, 6, 3, 8}, {144, 8, 48, 1}},
    {"a cache", {2, 2, 3, 5, 4}, {600, 300, 100, 4, 1}, 8},
    {"one of each", {1, 4, 1, 3}, {7, 50, 9, 2}},
    {"backwards", {5, 40}, {40, -1}, 79},
};

TEST_F(DeviceViews, ElementsAreThoseOfTheProcessor) {
  for (const DeviceLayout& layout : element_views) {
    SCOPED_TRACE(layout.name);
    expect_alike(0, [&](Buffers& buffers) {
      const auto view = [&](int buffer) {
        return buffers.view(buffer, layout.shape, layout.strides, layout.first);
      };
      copy(view(0), buffers.dense(1, layout.shape));
      copy(buffers.dense(2, layout.shape), view(0));
      copy(view(0), view(2));
      accumulate(view(2), view(3));
      accumulate(buffers.dense(1, layout.shape), view(3), -0.7F);
      subtract(view(3), buffers.dense(2, layout.shape), view(1));
      scale(view(2), 0.3F);
      reciprocal(view(2), buffers.dense(4, layout.shape, 1));
      reciprocal(view(2), view(2));
      fill(view(0), -3.5F);
    });
  }
}

TEST_F(DeviceViews, BitsAreComparedWhereverTheyAre) {
  for (const DeviceLayout& layout : element_views) {
    SCOPED_TRACE(layout.name);
    Buffers buffers{opened_device()};
    const View<float> view = buffers.view(0, layout.shape, layout.strides, layout.first);
    const View<float> dense = buffers.dense(1, layout.shape);
    EXPECT_FALSE(equal_bits(view, dense));
    copy(view, dense);
    EXPECT_TRUE(equal_bits(view, dense));
    fill(View<float>(dense.data() + dense.size() - 1, {1}), 1e9F);
    EXPECT_FALSE(equal_bits(view, dense));
  }
}

TEST_F(DeviceViews, OneRowIsCopiedToMany) {
  expect_alike(0, [&](Buffers& buffers) {
    copy(buffers.view(0, {5, 17}, {0, 1}), buffers.dense(1, {5, 17}));
    copy(buffers.view(0, {5, 3, 16}, {0, 16, 1}), buffers.dense(2, {5, 3, 16}));
  });
}

TEST_F(DeviceViews, BytesAreCopied) {
  struct Part {
    std::int64_t rows, columns, first, row_stride, column_stride;
  };
  for (const Part& part : {Part{4, 2, 3, 6, 1}, Part{7, 8, 4, 12, 1}, Part{7, 8, 3, 12, 1},
                           Part{5, 64, 16, 80, 1}, Part{6, 9, 1, 1, 40}, Part{1, 1, 0, 1, 1}}) {
    Tensor<std::byte> bytes(Shape{600}), back(Shape{600});
    for (std::int64_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7);
    Tensor<std::byte> from(Shape{600}, opened_device()), to(Shape{600}, opened_device());
    copy(bytes, from);
    copy(back, to);  // zeros
    const auto part_of = [&](Tensor<std::byte>& whole) {
      return View<std::byte>(whole.data() + part.first, {part.rows, part.columns},
                             {part.row_stride, part.column_stride});
    };
    copy(part_of(from), part_of(to));
    copy(to, back);
    for (std::int64_t i = 0; i < part.rows; ++i) {
      for (std::int64_t j = 0; j < part.columns; ++j) {
        const std::int64_t at = part.first + i * part.row_stride + j * part.column_stride;
        EXPECT_EQ(back[at], bytes[at]) << i << ", " << j;
        back[at] = std::byte{0};
      }
    }
    for (const std::byte other : back.span()) EXPECT_EQ(other, std::byte{0});
  }
}

// Matrices in which rows, or columns, lie beside each other, with room between them or not.
const DeviceLayout matrix_views[] = {
    {"dense", {23, 12}, {12, 1}},
    {"not aligned", {23, 12}, {12, 1}, 2},
    {"rows with room", {23, 12}, {16, 1}, 4},
    {"odd rows", {23, 13}, {15, 1}},
    {"transposed", {23, 12}, {1, 23}},
    {"long rows", {3, 1200}, {1300, 1}},
};

TEST_F(DeviceViews, RowsAreThoseOfTheProcessor) {
  for (const DeviceLayout& layout : matrix_views) {
    SCOPED_TRACE(layout.name);
    const std::int64_t rows = layout.shape[0], columns = layout.shape[1];
    std::vector<std::int32_t> indices;
    for (std::int64_t n = 0; n < rows; ++n) {
      indices.push_back(static_cast<std::int32_t>(n * n * 7 % rows));
    }
    // Exponentials may be rounded otherwise; all else is the same to the bit.
    expect_alike(0, [&](Buffers& buffers) {
      const auto view = [&](int buffer) {
        return buffers.view(buffer, layout.shape, layout.strides, layout.first);
      };
      gather_rows(view(0), indices, view(1));
      scatter_add_rows(view(1), indices, view(2));
      softmax_rows_backward(view(0), view(3));
      const View<float> factors = buffers.view(4, {rows}, {3});
      const View<float> gain = buffers.view(4, {columns}, {2}, 1);
      standardise_rows({view(0), buffers.dense(4, {rows}), factors}, view(1));
      apply_gain(view(1), {gain, buffers.dense(4, {columns}, 5)}, view(1));
      standardise_rows_backward({view(0), {}, factors}, gain, view(1),
                                {.rows = view(2), .scale = buffers.view(4, {rows}, {2}, 5000)});
      constant_scale_norm_backward({gain, factors, Centring::mean}, view(2), view(3));
      const View<float> value = buffers.view(4, {columns, 5}, {1, columns});
      mix_rows(view(0), value, buffers.view(2, {rows, 5}, {11, 2}, 4000));
    });
    expect_alike(1e-6, [&](Buffers& buffers) {
      const auto view = [&](int buffer) {
        return buffers.view(buffer, layout.shape, layout.strides, layout.first);
      };
      softmax_rows(view(0), view(1));
      softmax_rows(view(0), view(0));
    });
  }
}

// Heads (N, H, D) with room between them or not.
const DeviceLayout head_views[] = {
    {"dense", {9, 3, 16}, {48, 16, 1}},           {"part of a row", {9, 3, 16}, {144, 16, 1}, 48},
    {"not aligned", {9, 3, 16}, {145, 16, 1}, 3}, {"odd", {9, 3, 14}, {60, 15, 1}},
    {"heads first", {5, 4, 128}, {128, 700, 1}},
};

TEST_F(DeviceViews, HeadsAreThoseOfTheProcessor) {
  for (const DeviceLayout& layout : head_views) {
    SCOPED_TRACE(layout.name);
    const std::int64_t rows = layout.shape[0], count = layout.shape[1], size = layout.shape[2];
    expect_alike(4e-6, [&](Buffers& buffers) {
      const auto view = [&](int buffer) {
        return buffers.view(buffer, layout.shape, layout.strides, layout.first);
      };
      const NormParameters<float> parameters{.gain = buffers.dense(4, {size}), .bias = {}};
      const View<float> reciprocal = buffers.dense(4, {rows, count}, 200);
      rms_norm_forward(view(0), parameters, view(1), reciprocal);
      rms_norm_backward(view(0), parameters, reciprocal, view(2), view(2),
                        {.gain = buffers.dense(4, {size}, 400), .bias = {}});
      for (const RotaryPairing pairing : {RotaryPairing::halves, RotaryPairing::neighbours}) {
        for (const std::int64_t pairs : {size / 2, size / 4 / 2}) {
          const RotaryTable<float> table{buffers.dense(4, {rows, pairs}, 1000),
                                         buffers.dense(4, {rows, pairs}, 4000), pairing};
          rotary_forward(view(0), table);
          rotary_backward(view(1), table);
        }
      }
    });
  }
}

TEST_F(DeviceViews, OperandsMayBeginAnywhere) {
  for (const std::int64_t first : {0, 1, 4}) {
    SCOPED_TRACE(first);
    for (const Shape& shape : {Shape{11, 20}, Shape{9, 21}}) {
      const std::int64_t rows = shape[0], columns = shape[1];
      expect_alike(2e-6, [&](Buffers& buffers) {
        const auto dense = [&](int buffer) { return buffers.dense(buffer, shape, first); };
        const auto after = [&](int buffer) { return buffers.dense(buffer, shape, first + 1000); };
        add(dense(0), dense(1), after(2));
        activation_forward(dense(0), Activation::gelu_tanh, after(0));
        activation_backward(dense(0), Activation::gelu_erf, dense(1), after(1));
        gated_activation_forward(dense(0), dense(1), Activation::silu, dense(2));
        gated_activation_backward(dense(0), dense(1), Activation::silu, dense(3), dense(3),
                                  after(3));
        soft_cap_forward(dense(0), 1.5F, after(4));
        soft_cap_backward(after(4), 1.5F, dense(1), dense(4));
        dropout(dense(1), {.rate = 0.3F, .key = 7, .first_column = 5}, dense(1));
      });
      expect_alike(4e-6, [&](Buffers& buffers) {
        Tensor<std::int32_t> tokens(Shape{2, rows});
        for (std::int64_t i = 0; i < tokens.size(); ++i) {
          tokens[i] = static_cast<std::int32_t>(i * i % 7);
        }
        const std::vector<std::int64_t> positions = {1, 3};
        const EmbeddingInput<float> input{.tokens = tokens,
                                          .token_table = buffers.dense(0, {7, columns}, first),
                                          .position_table = buffers.dense(1, {20, columns}, first),
                                          .token_scale = 1.5F,
                                          .first_positions = positions};
        const View<float> out = buffers.dense(2, {2, rows, columns}, first);
        embedding_forward(input, out);
        embedding_backward(
            input, out,
            {buffers.dense(3, {7, columns}, first), buffers.dense(4, {20, columns}, first)});
      });
      expect_alike(4e-6, [&](Buffers& buffers) {
        const NormParameters<float> parameters{buffers.dense(0, {columns}, first),
                                               buffers.dense(0, {columns}, first + 100)};
        const NormStatistics<float> statistics{buffers.dense(4, {rows}),
                                               buffers.dense(4, {rows}, 50)};
        const View<float> x = buffers.dense(1, shape, first);
        layer_norm_forward(x, parameters, buffers.dense(2, shape, first), statistics);
        layer_norm_backward(x, parameters, statistics, buffers.dense(2, shape, first),
                            buffers.dense(3, shape, first),
                            {buffers.dense(4, {columns}, 100), buffers.dense(4, {columns}, 200)});
      });
    }
  }
}

TEST_F(DeviceViews, LossesAreThoseOfTheProcessor) {
  for (const std::int64_t words : {7, 1024, 1501}) {
    for (const std::int64_t first : {0, 1, 2, 3}) {
      SCOPED_TRACE(fmt::format("{} words, from {}", words, first));
      const std::int64_t rows = 5;
      Tensor<std::int32_t> targets(Shape{rows});
      for (std::int64_t n = 0; n < rows; ++n) {
        targets[n] = static_cast<std::int32_t>(n == 1 ? ignored_target : words - 1 - n);
      }
      expect_alike(4e-6, [&](Buffers& buffers) {
        const auto losses = [&](std::int64_t at) { return buffers.dense(4, {rows}, at); };
        const VocabularySums<float> sums{losses(0), losses(100), losses(200)};
        cross_entropy_piece_forward(buffers.dense(0, {rows, words}, first), {0, words}, targets,
                                    sums);
        cross_entropy_piece_losses({buffers.view(3, {rows}, {2}), buffers.view(3, {rows}, {3}, 200),
                                    buffers.view(3, {rows}, {4}, 100)},
                                   words, targets, buffers.view(4, {rows}, {2}, 500),
                                   {0.1F, buffers.view(4, {rows}, {5}, 600)});
        cross_entropy_forward(buffers.dense(0, {rows, words}, first), targets, losses(300),
                              {0.1F, losses(350)});
        cross_entropy_forward_backward(buffers.dense(1, {rows, words}, first), targets, 0.3F,
                                       losses(400), {0.1F, losses(450)});
        cross_entropy_piece_backward(buffers.dense(2, {rows, words}, first), {1, words + 2},
                                     targets, losses(0), 0.3F, 0.2F);
      });
    }
  }
}

TEST_F(DeviceViews, ArenasMayBeginAnywhere) {
  for (const std::int64_t first : {0, 1}) {
    for (const std::int64_t size : {1, 17, 8000}) {
      SCOPED_TRACE(fmt::format("{} from {}", size, first));
      expect_alike(1e-6, [&](Buffers& buffers) {
        const auto part = [&](int buffer) { return buffers.dense(buffer, {size}, first).span(); };
        activation_forward(buffers.dense(3, {size}, first), Activation::relu2,
                           buffers.dense(3, {size}, first));
        adamw_step({part(0), part(1), part(2), part(3)},
                   {.learning_rate = 0.01F, .weight_decay = 0.1F, .step = 3});
        EXPECT_TRUE(all_finite(part(0)));
      });
      Buffers here{Device{}}, there{opened_device()};
      const double norm = squared_norm(here.dense(1, {size}, first).span());
      EXPECT_NEAR(squared_norm(there.dense(1, {size}, first).span()), norm, 1e-13 * norm);
    }
  }
}

}  // namespace
}  // namespace heed::kernels
