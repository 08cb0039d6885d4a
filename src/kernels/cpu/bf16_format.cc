// Prepared weights in bf16: panels as the bf16 matrix products read them.
#include <algorithm>

#include "kernels/cpu/prepared_formats.h"
#include "tensor/dtype.h"

namespace heed::kernels {
namespace {

constexpr std::int64_t width = PreparedWeight::panel_outputs;

std::int64_t panel_bytes(const PanelShape& shape) {
  return shape.padded_inputs * width * static_cast<std::int64_t>(sizeof(std::uint16_t));
}

void write_panel(const float* weight, std::int64_t stride, std::int64_t outputs,
                 const PanelShape& shape, std::byte* panel) {
  auto* const to = reinterpret_cast<std::uint16_t*>(panel);
  for (std::int64_t o = 0; o < outputs; ++o) {
    for (std::int64_t i = 0; i < shape.inputs; ++i) {
      to[i / 2 * 2 * width + 2 * o + i % 2] = f32_to_bf16(weight[o * stride + i]);
    }
  }
}

void read_panel(const std::byte* panel, const PanelShape&, std::int64_t first, std::int64_t count,
                float* to) {
  const auto* from = reinterpret_cast<const std::uint16_t*>(panel) + first * width;
  for (std::int64_t i = 0; i < count; i += 2) {
    for (std::int64_t o = 0; o < width; ++o) {
      to[i * width + o] = bf16_to_f32(from[i * width + 2 * o]);
      to[(i + 1) * width + o] = bf16_to_f32(from[i * width + 2 * o + 1]);
    }
  }
}

}  // namespace

// Rows of x need no form of their own: all products go by way of the matrix product.
PreparedFormat bf16_format() {
  return {.panel_bytes = &panel_bytes,
          .write_panel = &write_panel,
          .read_panel = &read_panel,
          .prepared_rows_size = nullptr,
          .prepare_rows = nullptr,
          .multiply_panel = nullptr};
}

}  // namespace heed::kernels
