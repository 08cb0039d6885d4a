#include "kernels/prepared_weight.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "base/shared_bytes.h"
#include "base/threads.h"
#include "base/topology.h"
#include "kernels/backends.h"
#include "kernels/cpu/block_rows.h"
#include "kernels/cpu/prefetch_distance.h"
#include "kernels/cpu/prepared_formats.h"
#include "kernels/cpu/product.h"
#include "kernels/cpu/product_kernels.h"
#include "kernels/cpu/scratch.h"
#include "kernels/instruction_sets.h"
#include "kernels/kernels.h"
#include "kernels/operand_checks.h"

namespace heed::kernels {
namespace {

constexpr std::int64_t rows_at_once = 60;  // a multiple of those that kernels take

constexpr std::string_view format_names[] = {"f32",  "bf16", "int8", "int4", "q8_0",
                                             "q4_0", "q4_1", "q5_0", "q5_1", "q2_k",
                                             "q3_k", "q4_k", "q5_k", "q6_k"};

PreparedFormat format_of(WeightFormat format) {
  switch (format) {
    case WeightFormat::bf16: return bf16_format();
    case WeightFormat::int8: return int8_format();
    case WeightFormat::int4: return int4_format();
    case WeightFormat::f32: break;
    default: return block_format(format);
  }
  fail(ErrorCode::invalid_argument,
       "weights in f32 need no preparation: expected the format bf16, int8 or int4");
}

PanelShape shape_of(const PreparedWeight& weight) {
  return {.inputs = weight.inputs(), .padded_inputs = weight.padded_inputs()};
}

std::int64_t padded(std::int64_t inputs) {
  constexpr std::int64_t unit = PreparedWeight::input_unit;
  return (inputs + unit - 1) / unit * unit;
}

// A matrix of blocks with that many inputs.
void require_blocks(const BlockMatrix& matrix, std::int64_t inputs) {
  const std::string_view name = weight_format_name(matrix.format);
  require(holds_blocks(matrix.format), ErrorCode::invalid_argument, "weights in {} are not blocks",
          name);
  require(matrix.shape.rank() == 2 && matrix.shape[1] == inputs, ErrorCode::invalid_argument,
          "blocks of {} have the shape {}: expected {} inputs", name, matrix.shape, inputs);
  const BlockSize block = block_size(matrix.format);
  require(inputs % block.values == 0, ErrorCode::invalid_argument,
          "rows of {} numbers in {}: expected a multiple of {}", inputs, name, block.values);
  const auto bytes = static_cast<std::int64_t>(matrix.blocks.size());
  require(bytes % block.bytes == 0 && bytes / block.bytes == matrix.shape.size() / block.values,
          ErrorCode::invalid_argument,
          "{} bytes for weights {} in {}: expected blocks of {} numbers in {} bytes", bytes,
          matrix.shape, name, block.values, block.bytes);
}

// Consecutive panels of one part.
PanelRun run_of(const PreparedWeight& weight, std::int64_t index, std::int64_t count,
                std::int64_t ahead = 0) {
  return {
      .first = weight.panel(index), .scales = weight.scales(index), .count = count, .ahead = ahead};
}

// Calls body(distance) with the distance at which the weight's panels are prefetched. Products are
// timed where they wait for memory: of few rows, with weights that take longer than a loop to
// begin.
template <class Body>
void with_prefetch_distance(const PreparedWeight& weight, std::int64_t rows, Body&& body) {
  static std::array<PrefetchDistance, std::size(format_names)> of_formats;
  PrefetchDistance& distance = of_formats[static_cast<std::size_t>(weight.format())];
  constexpr std::int64_t max_rows = 2, min_bytes = std::int64_t{256} << 10;
  if (rows > max_rows || weight.bytes() < min_bytes) return body(distance.best());
  const std::int64_t ahead = distance.next();
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  body(ahead);
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  distance.took(ahead, seconds / static_cast<double>(weight.bytes()));
}

// Decoding leaves memory idle between two weights, while norms, attention and slower threads are
// waited for. Half of a core's second-level cache is left to what they read.
void fetch_part_while_waiting(const PreparedWeight& weight, std::int64_t thread,
                              std::int64_t threads) {
  static const std::int64_t max_bytes = second_level_cache_bytes() / 2;
  const std::int64_t first = weight.panels() * thread / threads;
  const std::int64_t end = weight.panels() * (thread + 1) / threads;
  if (first == end) return;
  const PreparedWeight::Part& part = weight.part_of(first);
  const std::int64_t panels = std::min(end, part.first_panel + part.panels) - first;
  const std::int64_t bytes = std::min(panels * part.panel_bytes, max_bytes);
  fetch_while_waiting({weight.panel(first), static_cast<std::size_t>(bytes)});
}

// Prepares the rows of x once, then processes a few panels at a time, which stay in a cache for all
// rows. All integers take the same rows.
void multiply_panels(const PreparedFormat& format, View<const float> x,
                     const PreparedWeight& weight, const float* bias, View<float> out) {
  const PanelShape shape = shape_of(weight);
  const std::span<const PreparedWeight::Part> parts = weight.parts();
  const std::int64_t all_rows = x.extent(0), outputs = weight.outputs();
  float* const prepared = scratch(
      Scratch::shared, static_cast<std::size_t>(format.prepared_rows_size(all_rows, shape)));
  const std::int64_t row_grain = std::max<std::int64_t>(65536 / shape.padded_inputs, 1);
  parallel_ranges(all_rows, row_grain, [&](std::int64_t begin, std::int64_t end) {
    format.prepare_rows(x.data() + begin * shape.inputs, end - begin, shape,
                        prepared + format.prepared_rows_size(begin, shape));
  });
  constexpr std::int64_t width = PreparedWeight::panel_outputs, panels_at_once = 4;
  const std::int64_t grain = std::max<std::int64_t>(65536 / parts.front().panel_bytes, 1);
  const auto multiply = [&](const PreparedFormat& of_part, std::int64_t begin, std::int64_t end,
                            std::int64_t ahead) {
    alignas(64) float sums[panels_at_once * rows_at_once * width];
    const auto multiply_rows = [&](std::int64_t index, std::int64_t panels, std::int64_t first_row,
                                   std::int64_t rows) {
      // sums (panels, rows, 32); the last panel may have fewer outputs
      const auto for_each_row = [&](auto body) {
        for (std::int64_t p = 0; p < panels; ++p) {
          const std::int64_t first = (index + p) * width;
          for (std::int64_t row = 0; row < rows; ++row) {
            body(sums + (p * rows + row) * width, row, first, std::min(width, outputs - first));
          }
        }
      };
      std::fill_n(sums, panels * rows * width, 0.0F);
      if (bias != nullptr) {
        for_each_row([&](float* some, std::int64_t, std::int64_t first, std::int64_t count) {
          std::copy_n(bias + first, count, some);
        });
      }
      of_part.multiply_panels(prepared + format.prepared_rows_size(first_row, shape), rows,
                              run_of(weight, index, panels, ahead), shape, sums);
      for_each_row(
          [&](const float* some, std::int64_t row, std::int64_t first, std::int64_t count) {
            std::copy_n(some, count, out.data() + (first_row + row) * outputs + first);
          });
    };
    for (std::int64_t index = begin; index < end; index += panels_at_once) {
      for (std::int64_t row = 0; row < all_rows; row += rows_at_once) {
        multiply_rows(index, std::min(panels_at_once, end - index), row,
                      std::min(rows_at_once, all_rows - row));
      }
    }
  };
  with_prefetch_distance(weight, all_rows, [&](std::int64_t ahead) {
    parallel_shares(
        weight.panels(), grain, panels_at_once,
        [&](std::int64_t begin, std::int64_t end) {
          if (parts.size() == 1) return multiply(format, begin, end, ahead);
          for (const PreparedWeight::Part& part : parts) {
            const std::int64_t first = std::max(begin, part.first_panel);
            const std::int64_t last = std::min(end, part.first_panel + part.panels);
            if (first < last) multiply(format_of(part.format), first, last, ahead);
          }
        },
        [next = weight.next()](std::int64_t thread, std::int64_t threads) {
          if (next != nullptr) fetch_part_while_waiting(*next, thread, threads);
        });
  });
}

}  // namespace

std::string_view weight_format_name(WeightFormat format) {
  return format_names[static_cast<std::size_t>(format)];
}

WeightFormat parse_weight_format(std::string_view name) {
  const auto* const found = std::find(std::begin(format_names), std::end(format_names), name);
  const auto format = static_cast<WeightFormat>(found - std::begin(format_names));
  require(!holds_blocks(format), ErrorCode::invalid_argument,
          "there is no dtype '{}': expected f32, bf16, int8 or int4", name);
  return format;
}

double bytes_per_weight(WeightFormat format) {
  if (format == WeightFormat::f32) return sizeof(float);
  constexpr PanelShape shape{.inputs = 256, .padded_inputs = 256};
  const PreparedFormat functions = format_of(format);
  return static_cast<double>(functions.panel_bytes(shape) + functions.scale_bytes(shape)) /
         static_cast<double>(shape.inputs * PreparedWeight::panel_outputs);
}

WeightMemory::WeightMemory(std::int64_t bytes) : size_(bytes) {
  const auto tensor = std::make_shared<Tensor<std::byte>>(Shape{bytes});
  memory_ = {tensor, tensor->data()};
}

WeightMemory::WeightMemory(std::shared_ptr<SharedBytes> shared)
    : memory_(shared, shared->data()),
      size_(static_cast<std::int64_t>(shared->size())),
      is_written_(shared->is_sealed()) {}

std::int64_t WeightMemory::rounded_bytes(std::int64_t bytes) {
  constexpr std::int64_t alignment = 64;
  return (bytes + alignment - 1) / alignment * alignment;
}

std::shared_ptr<std::byte> WeightMemory::take(std::int64_t bytes) {
  check(taken_ + bytes <= size_, "no more than was asked for");
  std::byte* const begin = memory_.get() + taken_;
  taken_ += rounded_bytes(bytes);
  return {memory_, begin};
}

PreparedWeight::PreparedWeight(const Shape& shape, WeightFormat format)
    : outputs_(shape[0]), inputs_(shape[1]), padded_inputs_(padded(inputs_)) {
  add_part(format, panels());
  place_parts();
}

std::int64_t PreparedWeight::bytes_of(const Shape& shape, WeightFormat format) {
  return WeightMemory::rounded_bytes(PreparedWeight(shape, format).bytes());
}

PreparedWeight::PreparedWeight(View<const float> weight, WeightFormat format, WeightMemory* memory)
    : PreparedWeight(weight.shape(), format) {
  require(!holds_blocks(format), ErrorCode::invalid_argument,
          "weights are not quantised to {}: expected the format bf16, int8 or int4",
          weight_format_name(format));
  require(all_finite(weight.span()), ErrorCode::invalid_argument,
          "cannot quantise weights that are not finite to {}", weight_format_name(format));
  const PreparedFormat functions = format_of(format);
  allocate(memory);
  parallel_ranges(panels(), 4, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t index = begin; index < end; ++index) {
      const std::int64_t first = index * panel_outputs;
      functions.write_panel(weight.data() + first * inputs_, inputs_,
                            std::min(panel_outputs, outputs_ - first), shape_of(*this),
                            {.panel = writable(panel(index)), .scales = writable(scales(index))});
    }
  });
}

PreparedWeight::PreparedWeight(const BlockMatrix& matrix)
    : PreparedWeight(std::span<const BlockMatrix>(&matrix, 1)) {}

PreparedWeight::PreparedWeight(std::span<const BlockMatrix> parts, WeightMemory* memory) {
  require(!parts.empty(), ErrorCode::invalid_argument, "a weight of no parts");
  inputs_ = parts.front().shape[1];
  padded_inputs_ = padded(inputs_);
  for (const BlockMatrix& part : parts) {
    require_blocks(part, inputs_);
    const bool changes = parts_.empty() || part.format != parts_.back().format;
    const std::int64_t outputs = part.shape[0];
    require(!changes || outputs_ % panel_outputs == 0, ErrorCode::unsupported,
            "outputs change from {} to {} after {}: expected a multiple of {}",
            weight_format_name(parts_.empty() ? part.format : parts_.back().format),
            weight_format_name(part.format), outputs_, panel_outputs);
    const std::int64_t before = panels();
    outputs_ += outputs;
    if (changes) {
      add_part(part.format, panels() - before);
    } else {
      parts_.back().panels += panels() - before;
    }
  }
  place_parts();
  allocate(memory);
  if (memory != nullptr && memory->is_written()) return;
  std::int64_t first = 0;
  for (const BlockMatrix& part : parts) {
    copy_rows(part, first);
    first += part.shape[0];
  }
}

void PreparedWeight::copy_rows(const BlockMatrix& part, std::int64_t first_output) {
  const BlockSize block = block_size(part.format);
  const std::int64_t row_bytes = inputs_ / block.values * block.bytes;
  constexpr std::int64_t told_bytes = std::int64_t{1} << 20;  // a system call's time is no matter
  const std::int64_t rows_at_once =
      std::max(told_bytes / std::max<std::int64_t>(row_bytes, 1), panel_outputs);
  const auto blocks_of = [&](std::int64_t begin, std::int64_t end) {
    return part.blocks.subspan(static_cast<std::size_t>(begin * row_bytes),
                               static_cast<std::size_t>((end - begin) * row_bytes));
  };
  // Outputs of one panel have bytes of their own there.
  parallel_ranges(part.shape[0], panel_outputs, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t told = begin; told < end; told += rows_at_once) {
      const std::int64_t last = std::min(told + rows_at_once, end);
      for (std::int64_t row = told; row < last; ++row) {
        const std::span<const std::byte> blocks = blocks_of(row, row + 1);
        require(has_finite_scales(part.format, blocks), ErrorCode::invalid_argument,
                "a block of {} has a scale that is not finite", weight_format_name(part.format));
        const std::int64_t index = (first_output + row) / panel_outputs;
        write_block_row(part.format, blocks.data(), (first_output + row) % panel_outputs,
                        shape_of(*this),
                        {.panel = writable(panel(index)), .scales = writable(scales(index))});
      }
      if (part.copied) part.copied(blocks_of(told, last));
    }
  });
}

void PreparedWeight::add_part(WeightFormat format, std::int64_t panels) {
  const PreparedFormat functions = format_of(format);
  const std::int64_t first = parts_.empty() ? 0 : parts_.back().first_panel + parts_.back().panels;
  parts_.push_back({.format = format,
                    .first_panel = first,
                    .panels = panels,
                    .panel_bytes = functions.panel_bytes(shape_of(*this)),
                    .scale_bytes = functions.scale_bytes(shape_of(*this)),
                    .begin = 0});
}

void PreparedWeight::place_parts() {
  bytes_ = 0;
  for (Part& part : parts_) {
    part.begin = bytes_;
    bytes_ += part.bytes();
  }
}

void PreparedWeight::allocate(WeightMemory* memory) {
  data_ = memory == nullptr ? WeightMemory(bytes_).take(bytes_) : memory->take(bytes_);
}

const std::byte* PreparedWeight::on_accelerator() const {
  const std::lock_guard lock(accelerator_copy_->mutex);
  Memory& copy = accelerator_copy_->bytes;
  if (copy == nullptr && bytes_ > 0) {
    Memory made(allocate_on_accelerator(static_cast<std::size_t>(bytes_)), {});
    copy_bytes(made.get(), data_.get(), static_cast<std::size_t>(bytes_));
    copy = std::move(made);
  }
  return copy.get();
}

Tensor<float> PreparedWeight::restored() const {
  const PanelShape shape = shape_of(*this);
  Tensor<float> weight(Shape{outputs_, inputs_});
  parallel_ranges(panels(), 4, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> panel_values(static_cast<std::size_t>(padded_inputs_ * panel_outputs));
    for (std::int64_t index = begin; index < end; ++index) {
      format_of(part_of(index).format)
          .read_panel(run_of(*this, index, 1), shape, 0, padded_inputs_,
                      {.to = panel_values.data()});
      const std::int64_t first = index * panel_outputs;
      for (std::int64_t o = 0; o < std::min(panel_outputs, outputs_ - first); ++o) {
        for (std::int64_t i = 0; i < inputs_; ++i) {
          weight.data()[(first + o) * inputs_ + i] = panel_values[i * panel_outputs + o];
        }
      }
    }
  });
  return weight;
}

std::vector<float> PreparedWeight::restored_row(std::int64_t output) const {
  std::vector<float> panel_values(static_cast<std::size_t>(padded_inputs_ * panel_outputs));
  read_prepared_panel(*this, output / panel_outputs, 0, padded_inputs_,
                      {.to = panel_values.data()});
  std::vector<float> row(static_cast<std::size_t>(inputs_));
  for (std::int64_t i = 0; i < inputs_; ++i) {
    row[i] = panel_values[i * panel_outputs + output % panel_outputs];
  }
  return row;
}

MultipliedWeight::MultipliedWeight(const LinearParameters<float>& linear) : linear_(linear) {
  if (linear.prepared != nullptr) restored_ = linear.prepared->restored();
}

std::vector<float> multiplied_row(const LinearParameters<float>& linear, std::int64_t output) {
  if (linear.prepared != nullptr) return linear.prepared->restored_row(output);
  const View<const float> row = linear.weight[output];
  std::vector<float> values(static_cast<std::size_t>(row.size()));
  copy(row, View<float>(values.data(), row.shape()));
  return values;
}

void cpu::prepared_linear_forward(View<const float> x, const PreparedWeight& weight,
                                  View<const float> bias, View<float> out, std::int64_t positions) {
  const std::int64_t rows = x.extent(0);
  require_shape(x, {rows, weight.inputs()}, "x");
  require_shape(out, {rows, weight.outputs()}, "out");
  if (bias.present()) require_shape(bias, {weight.outputs()}, "bias");
  checks::positions(positions);
  if (rows == 0 || weight.outputs() == 0) return;
  PreparedFormat format = format_of(weight.format());
  for (const PreparedWeight::Part& part : weight.parts()) {
    format.few_rows = std::min(format.few_rows, format_of(part.format).few_rows);
  }
  const bool is_step = positions == decoding_step;
  const std::int64_t length =
      positions == 0 || format.counts_rows ? rows : (is_step ? 1 : positions);
  const bool has_integers = holds_integers(weight.format());
  // A step of decoding reads every weight once: in integers, whether prompts are refused them or
  // not.
  if (length <= format.few_rows || (is_step && has_integers)) {
    return multiply_panels(format, x, weight, bias.data(), out);
  }
  // f32 without bf16 instructions, where rounding x would only cost time, and where it is demanded
  const bool in_f32 = !has_bf16_products() || (has_integers && !integers_are_allowed());
  multiply({.a = {.data = x.data(), .stride = weight.inputs()},
            .prepared_b = &weight,
            .c = out.data(),
            .rows = rows,
            .columns = weight.outputs(),
            .inner = weight.inputs(),
            .initial = bias.data(),
            .precision = in_f32 ? Precision::f32 : Precision::bf16});
}

void read_prepared_panel(const PreparedWeight& weight, std::int64_t index, std::int64_t first,
                         std::int64_t count, const RestoredPanel& restored) {
  format_of(weight.part_of(index).format)
      .read_panel(run_of(weight, index, 1), shape_of(weight), first, count, restored);
}

}  // namespace heed::kernels
