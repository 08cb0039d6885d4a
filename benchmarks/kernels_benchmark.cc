// Benchmarks of every kernel on the cases of the tests. `of_peak` is the rate divided by that of a
// pure multiply-add loop, measured in the same process with the same number of threads.
//
//   kernels_benchmark --benchmark_filter=attention
//   HEED_INSTRUCTION_SET=AVX2 HEED_THREADS=1 kernels_benchmark
#include <benchmark/benchmark.h>

#include <cstdlib>

#include "base/random.h"
#include "kernels/cases.h"
#include "kernels/instruction_sets.h"
#include "kernels/kernels.h"
#include "kernels/machine_peak.h"
#include "kernels/prepared_weight.h"
#include "kernels/quantised_cache.h"
#include "tensor/tensor.h"

namespace heed::kernels {
namespace {

Tensor<float> random_tensor(const Shape& shape) {
  Tensor<float> tensor(shape);
  RandomStream random(1, 1);
  for (float& value : tensor.span()) value = static_cast<float>(random.uniform() * 2.0 - 1.0);
  return tensor;
}

double peak() {
  static const double operations = measure_peak_flops();
  return operations;
}

// Operations a second, and their share of the peak.
void report_operations(benchmark::State& state, double operations) {
  state.counters["FLOP/s"] =
      benchmark::Counter(operations, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["of_peak"] =
      benchmark::Counter(operations / peak(), benchmark::Counter::kIsIterationInvariantRate);
}

void report_bytes(benchmark::State& state, double bytes) {
  state.counters["B/s"] = benchmark::Counter(bytes, benchmark::Counter::kIsIterationInvariantRate);
}

template <class Body>
void measure(const std::string& name, Body body) {
  benchmark::RegisterBenchmark(name.c_str(), body)->UseRealTime()->MeasureProcessCPUTime();
}

// Keys or values (B, S, G, D) from (B, G, S, D), the order of a cache.
template <class T>
View<T> positions_first(const View<T>& heads) {
  const Shape shape{heads.extent(0), heads.extent(2), heads.extent(1), heads.extent(3)};
  return {heads.data(), shape, {heads.stride(0), heads.stride(2), heads.stride(1), 1}};
}

Shape memory_shape(const cases::Attention& shape) {
  if (shape.queries == 1) return {shape.batch, shape.key_heads(), shape.memory, shape.head_size};
  return {shape.batch, shape.memory, shape.key_heads(), shape.head_size};
}

// Decoding reads a cache; otherwise heads lie as projections write them.
struct AttentionOperands {
  explicit AttentionOperands(const cases::Attention& shape)
      : query(random_tensor({shape.batch, shape.queries, shape.heads, shape.head_size})),
        key(random_tensor(memory_shape(shape))),
        value(random_tensor(key.shape())),
        out(query.shape()),
        log_sum_exp({shape.batch, shape.heads, shape.queries}),
        d_query(query.shape()),
        d_key(key.shape()),
        d_value(key.shape()),
        input{.query = query,
              .key = key,
              .value = value,
              .mask = shape.mask,
              .scale = shape.scale(),
              .dropout = {shape.dropout, 7},
              .window = shape.window,
              .soft_cap = shape.soft_cap} {
    if (shape.biased) {
      bias = random_tensor({shape.heads, shape.distances()});
      d_bias = Tensor<float>(bias.shape());
      input.position_bias = {bias, shape.first_distance()};
    }
    if (shape.queries > 1) return;
    input.key = positions_first(input.key);
    input.value = positions_first(input.value);
  }
  Tensor<float> query, key, value, bias, d_bias, out, log_sum_exp, d_query, d_key, d_value;
  AttentionInput<float> input;
};

void add_attention() {
  for (const cases::Attention& shape : cases::attention()) {
    if (!cases::measured(shape.use)) continue;
    measure("attention_forward/" + shape.name(), [shape](benchmark::State& state) {
      AttentionOperands operands(shape);
      for (auto _ : state) {
        attention_forward(operands.input, operands.out, operands.log_sum_exp);
      }
      report_operations(state, shape.operations());
      if (shape.queries == 1)
        report_bytes(state, 2.0 * 4.0 * static_cast<double>(operands.key.size()));
    });
    if (shape.queries == 1) continue;
    measure("attention_backward/" + shape.name(), [shape](benchmark::State& state) {
      AttentionOperands operands(shape);
      attention_forward(operands.input, operands.out, operands.log_sum_exp);
      for (auto _ : state) {
        attention_backward(operands.input, operands.out, operands.log_sum_exp, operands.out,
                           {operands.d_query, operands.d_key, operands.d_value, operands.d_bias});
      }
      report_operations(state, 2.5 * shape.operations());  // five products instead of two
    });
  }
}

// One query against a cache in each short format.
void add_decoding() {
  for (const cases::Attention& shape : cases::attention()) {
    if (!cases::measured(shape.use) || shape.queries > 1) continue;
    for (const CacheType type : {CacheType::bf16, CacheType::int8}) {
      const std::string name =
          fmt::format("attention_decode_{}/{}", cache_type_name(type), shape.name());
      measure(name, [shape, type](benchmark::State& state) {
        AttentionOperands operands(shape);
        const auto rows = [&](View<const float> from, Tensor<std::byte>& bytes,
                              Tensor<float>& scales) {
          const Shape& extents = from.shape();  // (B, S, G, D)
          bytes = Tensor<std::byte>(
              {extents[0], extents[2], extents[1], cache_row_bytes(type, extents[3])});
          scales = Tensor<float>({extents[0], extents[1], extents[2]});
          quantise_rows(from, {type, positions_first(bytes.view()), scales});
          return ConstQuantisedRows{type, positions_first(bytes.view()), scales};
        };
        Tensor<std::byte> key_bytes, value_bytes;
        Tensor<float> key_scales, value_scales;
        const QuantisedCacheAttention input{
            .query = operands.query,
            .key = rows(operands.input.key, key_bytes, key_scales),
            .value = rows(operands.input.value, value_bytes, value_scales),
            .mask = shape.mask,
            .scale = shape.scale(),
            .window = shape.window,
            .soft_cap = shape.soft_cap};
        for (auto _ : state) attention_forward(input, operands.out, operands.log_sum_exp);
        report_operations(state, shape.operations());
        const double positions =
            static_cast<double>(shape.batch * shape.memory * shape.key_heads());
        report_bytes(state,
                     2.0 * positions *
                         static_cast<double>(cache_row_bytes_with_scale(type, shape.head_size)));
      });
    }
  }
}

// In a format of blocks, random ones: bytes below 64, so that no scale is infinite.
PreparedWeight prepared_weight(const cases::Linear& shape, WeightFormat format) {
  if (!holds_blocks(format)) {
    return PreparedWeight(random_tensor({shape.outputs, shape.inputs}), format);
  }
  const BlockSize size = block_size(format);
  std::vector<std::byte> blocks(
      static_cast<std::size_t>(shape.outputs * shape.inputs / size.values * size.bytes));
  RandomStream random(1, 2);
  for (std::byte& byte : blocks) byte = static_cast<std::byte>(random.below(64));
  return PreparedWeight(
      BlockMatrix{.blocks = blocks, .shape = {shape.outputs, shape.inputs}, .format = format});
}

// Weights laid out once, in every format that they may have.
void add_prepared() {
  using enum WeightFormat;
  for (const cases::Linear& shape : cases::linear()) {
    if (!cases::measured(shape.use)) continue;
    for (const WeightFormat format :
         {bf16, int8, int4, q8_0, q4_0, q4_1, q5_0, q5_1, q2_k, q3_k, q4_k, q5_k, q6_k}) {
      if (holds_blocks(format) && shape.inputs % block_size(format).values != 0) continue;
      const std::string name =
          fmt::format("prepared_{}/{}", weight_format_name(format), shape.name());
      measure(name, [shape, format](benchmark::State& state) {
        const Tensor<float> x = random_tensor({shape.rows, shape.inputs});
        const Tensor<float> bias = random_tensor({shape.outputs});
        const PreparedWeight weight = prepared_weight(shape, format);
        Tensor<float> out({shape.rows, shape.outputs});
        for (auto _ : state) {
          prepared_linear_forward(x, weight, shape.bias ? bias.view() : View<const float>{}, out);
        }
        report_operations(state, shape.operations());
        if (shape.rows <= 8) report_bytes(state, static_cast<double>(weight.bytes()));
      });
    }
  }
}

void add_linear() {
  for (const cases::Linear& shape : cases::linear()) {
    if (!cases::measured(shape.use)) continue;
    const auto operation = [shape](auto call) {
      return [shape, call](benchmark::State& state) {
        Tensor<float> x = random_tensor({shape.rows, shape.inputs});
        Tensor<float> weight = random_tensor({shape.outputs, shape.inputs});
        Tensor<float> bias = random_tensor({shape.outputs});
        Tensor<float> out({shape.rows, shape.outputs});
        const View<float> optional = shape.bias ? bias.view() : View<float>{};
        for (auto _ : state) call(x.view(), weight.view(), optional, out.view());
        report_operations(state, shape.operations());
        if (shape.rows <= 8) report_bytes(state, 4.0 * static_cast<double>(weight.size()));
      };
    };
    using Matrix = View<float>;
    measure("linear_forward/" + shape.name(),
            operation([](Matrix x, Matrix weight, Matrix bias, Matrix out) {
              linear_forward(x, {weight, bias}, out);
            }));
    if (shape.rows <= 8) continue;
    measure("linear_forward_bf16/" + shape.name(),
            operation([](Matrix x, Matrix weight, Matrix bias, Matrix out) {
              linear_forward(x, {weight, bias, Precision::bf16}, out);
            }));
    measure("linear_backward_input/" + shape.name(),
            operation([](Matrix x, Matrix weight, Matrix, Matrix out) {
              linear_backward_input(weight, out, x);
            }));
    measure("linear_backward_input_bf16/" + shape.name(),
            operation([](Matrix x, Matrix weight, Matrix, Matrix out) {
              linear_backward_input(weight, out, x, Precision::bf16);
            }));
    measure("linear_backward_parameters_bf16/" + shape.name(),
            operation([](Matrix x, Matrix weight, Matrix bias, Matrix out) {
              linear_backward_parameters(x, out, {weight, bias}, Precision::bf16);
            }));
    measure("linear_backward_parameters/" + shape.name(),
            operation([](Matrix x, Matrix weight, Matrix bias, Matrix out) {
              linear_backward_parameters(x, out, {weight, bias});
            }));
  }
}

void add_rows_and_elements() {
  for (const cases::Matrix& shape : cases::matrices()) {
    if (!cases::measured(shape.use)) continue;
    // `touched` arrays of the matrix's size are read or written.
    const auto operation = [shape](double touched, auto call) {
      return [shape, touched, call](benchmark::State& state) {
        Tensor<float> x = random_tensor({shape.rows, shape.columns}), y = random_tensor(x.shape());
        Tensor<float> out(x.shape());
        for (auto _ : state) call(x.view(), y.view(), out.view());
        report_bytes(state, touched * 4.0 * shape.elements());
      };
    };
    using Matrix = View<float>;
    measure("gelu_tanh_forward/" + shape.name(), operation(2, [](Matrix x, Matrix, Matrix out) {
              activation_forward(x, Activation::gelu_tanh, out);
            }));
    measure("gelu_tanh_backward/" + shape.name(), operation(3, [](Matrix x, Matrix y, Matrix out) {
              activation_backward(x, Activation::gelu_tanh, y, out);
            }));
    measure("gelu_erf_forward/" + shape.name(), operation(2, [](Matrix x, Matrix, Matrix out) {
              activation_forward(x, Activation::gelu_erf, out);
            }));
    measure("dropout/" + shape.name(), operation(2, [](Matrix x, Matrix, Matrix out) {
              dropout(x, {.rate = 0.1F, .key = 3}, out);
            }));
    measure("add/" + shape.name(),
            operation(3, [](Matrix x, Matrix y, Matrix out) { add(x, y, out); }));
    measure("layer_norm_forward/" + shape.name(), [shape](benchmark::State& state) {
      Tensor<float> x = random_tensor({shape.rows, shape.columns}), out(x.shape());
      Tensor<float> gain = random_tensor({shape.columns}), bias = random_tensor({shape.columns});
      Tensor<float> mean({shape.rows}), reciprocal({shape.rows});
      for (auto _ : state) layer_norm_forward(x, {gain, bias}, out, {mean, reciprocal});
      report_bytes(state, 2 * 4.0 * shape.elements());
    });
    measure("layer_norm_backward/" + shape.name(), [shape](benchmark::State& state) {
      Tensor<float> x = random_tensor({shape.rows, shape.columns}),
                    d_out = random_tensor(x.shape());
      Tensor<float> gain = random_tensor({shape.columns}), d_x(x.shape()), out(x.shape());
      Tensor<float> mean({shape.rows}), reciprocal({shape.rows}), d_gain({shape.columns});
      Tensor<float> d_bias({shape.columns});
      layer_norm_forward(x, {gain}, out, {mean, reciprocal});
      for (auto _ : state) {
        layer_norm_backward(x, {gain}, {mean, reciprocal}, d_out, d_x, {d_gain, d_bias});
      }
      report_bytes(state, 4 * 4.0 * shape.elements());
    });
  }
}

void add_decoder_layers() {
  for (const cases::Matrix& shape : cases::matrices()) {
    if (!cases::measured(shape.use)) continue;
    measure("rms_norm_forward/" + shape.name(), [shape](benchmark::State& state) {
      Tensor<float> x = random_tensor({shape.rows, shape.columns}), out(x.shape());
      Tensor<float> gain = random_tensor({shape.columns}), reciprocal({shape.rows});
      for (auto _ : state) rms_norm_forward(x, {gain, {}}, out, reciprocal);
      report_bytes(state, 2 * 4.0 * shape.elements());
    });
    measure("rms_norm_backward/" + shape.name(), [shape](benchmark::State& state) {
      Tensor<float> x = random_tensor({shape.rows, shape.columns});
      Tensor<float> d_out = random_tensor(x.shape()), gain = random_tensor({shape.columns});
      Tensor<float> reciprocal({shape.rows}), d_x(x.shape()), d_gain({shape.columns});
      rms_norm_forward(x, {gain, {}}, d_x, reciprocal);
      for (auto _ : state) {
        rms_norm_backward(x, {gain, {}}, reciprocal, d_out, d_x, {d_gain, {}});
      }
      report_bytes(state, 4 * 4.0 * shape.elements());
    });
    measure("gated_silu_forward/" + shape.name(), [shape](benchmark::State& state) {
      Tensor<float> gate = random_tensor({shape.rows, shape.columns});
      Tensor<float> up = random_tensor(gate.shape()), out(gate.shape());
      for (auto _ : state) gated_activation_forward(gate, up, Activation::silu, out);
      report_bytes(state, 3 * 4.0 * shape.elements());
    });
    measure("gated_silu_backward/" + shape.name(), [shape](benchmark::State& state) {
      Tensor<float> gate = random_tensor({shape.rows, shape.columns});
      Tensor<float> up = random_tensor(gate.shape()), d_out = random_tensor(gate.shape());
      Tensor<float> d_gate(gate.shape()), d_up(gate.shape());
      for (auto _ : state) {
        gated_activation_backward(gate, up, Activation::silu, d_out, d_gate, d_up);
      }
      report_bytes(state, 5 * 4.0 * shape.elements());
    });
  }
  for (const cases::Heads& shape : cases::heads()) {
    if (!cases::measured(shape.use)) continue;
    for (const RotaryPairing pairing : {RotaryPairing::halves, RotaryPairing::neighbours}) {
      const char* const kind = pairing == RotaryPairing::halves ? "halves" : "neighbours";
      measure(fmt::format("rotary_{}/{}", kind, shape.name()), [=](benchmark::State& state) {
        Tensor<float> x = random_tensor({shape.rows, shape.heads, shape.head_size});
        Tensor<float> cosine({shape.rows, shape.rotated / 2}), sine(cosine.shape());
        cosine.fill(0.6F);
        sine.fill(0.8F);
        for (auto _ : state) rotary_forward(x, {cosine, sine, pairing});
        report_bytes(state, 2 * 4.0 * shape.elements());
      });
    }
  }
}

void add_ends() {
  for (const cases::Embedding& shape : cases::embedding()) {
    if (!cases::measured(shape.use)) continue;
    const auto operation = [shape](bool backward) {
      return [shape, backward](benchmark::State& state) {
        Tensor<std::int32_t> tokens({shape.batch, shape.positions});
        RandomStream random(2, 2);
        for (std::int32_t& token : tokens.span()) {
          token =
              static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(shape.vocabulary)));
        }
        Tensor<float> table({shape.vocabulary, shape.channels});
        Tensor<float> positions({shape.positions, shape.channels});
        Tensor<float> out({shape.batch, shape.positions, shape.channels});
        const EmbeddingInput<float> input{tokens, table, positions};
        for (auto _ : state) {
          if (backward) {
            embedding_backward(input, out, {table, positions});
          } else {
            embedding_forward(input, out);
          }
        }
        report_bytes(state, 3 * 4.0 * static_cast<double>(out.size()));
      };
    };
    measure("embedding_forward/" + shape.name(), operation(false));
    measure("embedding_backward/" + shape.name(), operation(true));
  }
  for (const cases::Logits& shape : cases::logits()) {
    if (!cases::measured(shape.use)) continue;
    measure("cross_entropy_forward_backward/" + shape.name(), [shape](benchmark::State& state) {
      Tensor<float> logits = random_tensor({shape.rows, shape.vocabulary}), losses({shape.rows});
      Tensor<std::int32_t> targets({shape.rows});
      for (auto _ : state) cross_entropy_forward_backward(logits, targets, 1.0F, losses);
      report_bytes(state, 2 * 4.0 * shape.elements());
    });
  }
  for (const cases::Arena& shape : cases::arenas()) {
    if (!cases::measured(shape.use)) continue;
    measure("adamw_step/" + shape.name(), [shape](benchmark::State& state) {
      Tensor<float> parameters({shape.size}), gradients({shape.size}), first({shape.size});
      Tensor<float> second({shape.size});
      gradients.fill(0.5F);
      for (auto _ : state) {
        adamw_step({parameters.span(), gradients.span(), first.span(), second.span()},
                   {.learning_rate = 1e-4F});
      }
      report_bytes(state, 7 * 4.0 * static_cast<double>(shape.size));
    });
    measure("squared_norm/" + shape.name(), [shape](benchmark::State& state) {
      Tensor<float> x({shape.size});
      for (auto _ : state) benchmark::DoNotOptimize(squared_norm(x.span()));
      report_bytes(state, 4.0 * static_cast<double>(shape.size));
    });
  }
}

}  // namespace
}  // namespace heed::kernels

int main(int argument_count, char** arguments) {
  if (const char* name = std::getenv("HEED_INSTRUCTION_SET")) {
    heed::kernels::use_instruction_set(name);
  }
  heed::kernels::add_attention();
  heed::kernels::add_decoding();
  heed::kernels::add_linear();
  heed::kernels::add_prepared();
  heed::kernels::add_rows_and_elements();
  heed::kernels::add_decoder_layers();
  heed::kernels::add_ends();
  benchmark::Initialize(&argument_count, arguments);
  benchmark::AddCustomContext("instruction_set", heed::kernels::current_instruction_set());
  benchmark::AddCustomContext("peak_FLOP/s",
                              fmt::format("{:.4g}", heed::kernels::measure_peak_flops()));
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
