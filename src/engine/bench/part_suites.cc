// The suites of single components: attention and the tokenizer.
#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "base/random.h"
#include "base/threads.h"
#include "engine/bench/measurer.h"
#include "engine/bench/work_cost.h"
#include "engine/embedded_files.h"
#include "engine/loaded_model.h"
#include "kernels/elements.h"
#include "kernels/kernels.h"
#include "microworld/microworld.h"
#include "tensor/tensor.h"

namespace heed {
namespace {

using kernels::WeightFormat;

Tensor<float> random_tensor(const Shape& shape, std::uint64_t stream) {
  Tensor<float> tensor(shape);
  RandomStream random(1, stream);
  for (float& value : tensor.span()) value = static_cast<float>(2 * random.uniform() - 1);
  if (default_device().is_cpu()) return tensor;
  Tensor<float> there(shape, default_device());
  kernels::copy(tensor, there);
  return there;
}

// Queries, keys and values interleaved as in the output of the QKV projection: (B, T, 3, H, D).
class AttentionWork {
 public:
  AttentionWork(const AttentionShape& shape, kernels::Precision precision)
      : shape_(shape),
        precision_(precision),
        projected_(random_tensor({shape.batch, shape.positions, 3 * width()}, 1)),
        d_out_(random_tensor({shape.batch, shape.positions, shape.heads, shape.head_size}, 2)),
        out_(d_out_.shape(), d_out_.device()),
        log_sum_exp_({shape.batch, shape.heads, shape.positions}, d_out_.device()),
        d_projected_(projected_.shape(), projected_.device()) {}

  void forward() { kernels::attention_forward(input(), out_, log_sum_exp_); }

  void backward() {
    kernels::attention_backward(
        input(), out_, log_sum_exp_, d_out_,
        {part(d_projected_.view(), 0), part(d_projected_.view(), 1), part(d_projected_.view(), 2)});
  }

 private:
  std::int64_t width() const { return shape_.heads * shape_.head_size; }

  // (B, T, H, D) of (B, T, 3·H·D)
  View<float> part(View<float> projected, std::int64_t index) const {
    return projected.slice(2, index * width(), (index + 1) * width())
        .split_last(shape_.heads, shape_.head_size);
  }

  kernels::AttentionInput<float> input() {
    const View<float> projected = projected_.view();
    return {.query = part(projected, 0),
            .key = part(projected, 1),
            .value = part(projected, 2),
            .scale = 1.0F / std::sqrt(static_cast<float>(shape_.head_size)),
            .precision = precision_};
  }

  AttentionShape shape_;
  kernels::Precision precision_;
  Tensor<float> projected_;
  Tensor<float> d_out_;
  Tensor<float> out_;
  Tensor<float> log_sum_exp_;
  Tensor<float> d_projected_;
};

std::string text_of(const BenchmarkOptions& options) {
  constexpr std::int64_t stories = 10'000;  // about 8 MB
  if (options.text_file.empty()) {
    return microworld::corpus(microworld::Microworld(1), 0, stories);
  }
  std::string text = read_text_file(options.text_file);
  require(!text.empty(), ErrorCode::invalid_argument, "'{}' is empty", options.text_file);
  return text;
}

}  // namespace

BenchmarkReport measure_attention(const BenchmarkOptions& options) {
  require(options.dtype == WeightFormat::f32 || options.dtype == WeightFormat::bf16,
          ErrorCode::unsupported, "attention is in f32 or bf16, not in {}",
          kernels::weight_format_name(options.dtype));
  const StackSpecification config = options.model.empty()
                                        ? find_stack_config(options.config)
                                        : load_model(options.model).transformer.specification();
  const AttentionShape shape{.batch = options.batch.value_or(1),
                             .positions = options.context.value_or(4096),
                             .heads = config.heads(),
                             .head_size = config.head_size()};
  const std::int64_t count = options.count.value_or(1);
  AttentionWork work(shape, options.dtype == WeightFormat::bf16 ? kernels::Precision::bf16
                                                                : kernels::Precision::f32);

  BenchmarkReport report{.model = options.model.empty() ? options.config : options.model,
                         .batch = shape.batch,
                         .context = shape.positions,
                         .count = count};
  BenchmarkMeasurer measurer(options, options.repeats.value_or(5), report);
  const auto add = [&](const char* name, const WorkCost& once, void (AttentionWork::*call)()) {
    const WorkCost cost = once * real(count);
    measurer.add({.name = name,
                  .dtype = options.dtype,
                  .tokens = real(shape.batch * shape.positions * count),
                  .flops = cost.flops,
                  .bytes = cost.bytes,
                  .limit = product_limit(options.dtype)},
                 [&] {
                   for (std::int64_t i = 0; i < count; ++i) {
                     measurer.check_stop();
                     (work.*call)();
                   }
                 });
  };
  add("forward", attention_forward_cost(shape), &AttentionWork::forward);
  add("backward", attention_backward_cost(shape), &AttentionWork::backward);
  return report;
}

BenchmarkReport measure_tokenizer(const BenchmarkOptions& options) {
  const std::string name = options.model.empty() ? std::string(starter_name) : options.model;
  const std::unique_ptr<Tokenizer> tokenizer = load_model_tokenizer(name);
  const std::string text = text_of(options);
  const std::int64_t count = options.count.value_or(1);
  const std::int64_t tokens = std::ssize(tokenizer->encode(text));

  BenchmarkReport report{.model = name, .count = count};
  BenchmarkMeasurer measurer(options, options.repeats.value_or(5), report);
  const auto add = [&](const char* row) {
    measurer.add(
        {.name = row, .tokens = real(tokens * count), .bytes = real(std::ssize(text) * count)},
        [&] {
          for (std::int64_t i = 0; i < count; ++i) {
            measurer.check_stop();
            tokenizer->encode(text);
          }
        });
  };
  {
    const ScopedThreadCount one(1);
    add("one thread");
  }
  if (thread_count() > 1) add("all threads");
  return report;
}

}  // namespace heed
