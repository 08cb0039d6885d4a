// The cost of the microscope, relative to the observed computation.
//
//   microscope_benchmark attention [T] [H]   statistics, tiles and maps, relative to plain
//   attention microscope_benchmark tracing [rounds]    prompts and decoding, with and without
//   probes microscope_benchmark memory [T] [L]      peaks of a full trace, and of L layers kept
//   lazily
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "base/memory.h"
#include "base/random.h"
#include "generate/session.h"
#include "kernels/attention_summaries.h"
#include "kernels/kernels.h"
#include "microscope/attention/head_scan.h"
#include "microscope/attention/lazy_attention.h"
#include "microscope/attention/recorded_attention.h"
#include "microscope/traces/activation_trace.h"
#include "microscope/traces/capture.h"
#include "model/presets.h"

namespace heed {
namespace {

constexpr double gibibyte = 1024.0 * 1024.0 * 1024.0;

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median_seconds(int repeats, const std::function<void()>& work) {
  std::vector<double> seconds;
  for (int i = 0; i < repeats; ++i) seconds.push_back(seconds_of(work));
  std::ranges::sort(seconds);
  return seconds[seconds.size() / 2];
}

// A layer of random queries and keys, as the joint projection lays them out.
struct Layer {
  Tensor<float> joint;  // (1, T, 3·H·D)
  Tensor<float> out;
  Tensor<float> log_sum_exp;
  kernels::AttentionInput<float> input;

  Layer(std::int64_t positions, std::int64_t heads, std::int64_t size)
      : joint(Shape{1, positions, 3 * heads * size}),
        out(Shape{1, positions, heads, size}),
        log_sum_exp(Shape{1, heads, positions}) {
    RandomStream random(20, 1);
    for (float& value : joint.span()) value = static_cast<float>(random.normal());
    const auto part = [&](std::int64_t index) {
      return joint.view()
          .slice(2, index * heads * size, (index + 1) * heads * size)
          .split_last(heads, size);
    };
    input = {part(0), part(1), part(2), kernels::Mask::causal,
             1.0F / std::sqrt(static_cast<float>(size))};
  }
  void forward() { kernels::attention_forward(input, out, log_sum_exp); }
};

void measure_attention(std::int64_t positions, std::int64_t heads) {
  constexpr std::int64_t size = 64;
  constexpr int repeats = 3;
  Layer layer(positions, heads, size);
  const double forward = median_seconds(repeats, [&] { layer.forward(); });
  fmt::print("T {}, {} heads of {}\n", positions, heads, size);
  fmt::print("attention forward      {:8.3f} s\n", forward);

  Tensor<std::int32_t> tokens(Shape{1, positions});
  for (std::int64_t i = 0; i < positions; ++i) tokens[i] = static_cast<std::int32_t>(i * i % 997);
  const StackSpecification config = make_gpt_config(1, heads, heads * size, positions, 1000);
  HeadScan scan(Architecture{.stacks = {config}},
                {.detectors = {{.pattern = HeadPattern::induction}}});
  scan.expect(tokens);
  const double statistics =
      median_seconds(repeats, [&] { scan.observe_attention(0, layer.input, layer.log_sum_exp); });
  fmt::print("statistics             {:8.3f} s  {:.2f} x forward\n", statistics,
             statistics / forward);

  LazyAttention lazy(config, {}, positions);
  lazy.observe_attention(0, layer.input, layer.log_sum_exp);
  Layer one(positions, 1, size);
  const double head_forward = median_seconds(repeats, [&] { one.forward(); });
  AttentionPyramid pyramid(lazy, 0, 0);
  const double build = seconds_of([&] { pyramid.build(); });
  fmt::print("one head forward       {:8.3f} s\n", head_forward);
  fmt::print("its pyramid            {:8.3f} s  {:.2f} x forward, {:.1f} MB\n", build,
             build / head_forward, static_cast<double>(pyramid.bytes()) / 1e6);
  for (std::int64_t level = 0; level < pyramid.levels(); ++level) {
    const std::int64_t last = std::max<std::int64_t>(pyramid.tiles(level).rows - 2, 0);
    const double tile =
        median_seconds(2 * repeats + 1, [&] { pyramid.tile(level, last, last / 2, Pooling::max); });
    fmt::print("tile at level {:2}       {:8.2f} ms\n", level, 1e3 * tile);
  }
  const double row = median_seconds(repeats, [&] { lazy.most_attended(0, 0, positions - 1, 10); });
  const double column = median_seconds(repeats, [&] { lazy.most_attending(0, 0, 10, 10); });
  fmt::print("top 10 of a row        {:8.2f} ms\ntop 10 of a column     {:8.2f} ms\n", 1e3 * row,
             1e3 * column);
}

std::vector<std::int32_t> some_tokens(std::int64_t count) {
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<std::int32_t>(i * 37 % 5000));
  return tokens;
}

Transformer random_gpt2() {
  Transformer gpt({.stacks = {model_preset("gpt2").config}});
  gpt.parameters().initialize(1);
  return gpt;
}

// Unprobed and probed in turn, so that whatever else the machine does meets both.
void measure_tracing(std::int64_t rounds) {
  constexpr std::int64_t prompt = 512, decoded = 128;
  const Transformer gpt = random_gpt2();
  const auto tokens = some_tokens(prompt + decoded);
  enum Kind { plain, nothing_wanted, residuals };
  struct Times {
    std::vector<double> prompt, decode;
  };
  std::vector<Times> times(3);
  std::vector<std::vector<float>> logits(3);
  for (std::int64_t round = 0; round < rounds; ++round) {
    for (const Kind kind : {plain, nothing_wanted, residuals}) {
      Capture nothing{std::vector<Point>{}};
      ActivationTrace trace(gpt.architecture(), {.points = {"hook_resid_*"}},
                            {.positions = prompt + decoded});
      Probe* const probe = kind == plain            ? nullptr
                           : kind == nothing_wanted ? static_cast<Probe*>(&nothing)
                                                    : static_cast<Probe*>(&trace);
      Session session(gpt, prompt + decoded);
      times[kind].prompt.push_back(
          seconds_of([&] { session.feed(std::span(tokens).first(prompt), probe); }));
      times[kind].decode.push_back(seconds_of([&] {
        for (std::int64_t i = 0; i < decoded; ++i) {
          const auto last = session.feed(std::span(tokens).subspan(prompt + i, 1), probe);
          if (i + 1 == decoded) logits[kind].assign(last.begin(), last.end());
        }
      }));
    }
  }
  const auto median = [](std::vector<double> seconds) {
    std::ranges::sort(seconds);
    return seconds[seconds.size() / 2];
  };
  for (const Kind kind : {plain, nothing_wanted, residuals}) {
    const char* const names[] = {"no probe", "a probe that wants nothing", "all residuals traced"};
    fmt::print("{:28} prompt {:.4f} s ({:.3f} x), decoding {:.4f} s ({:.3f} x), logits {}\n",
               names[kind], median(times[kind].prompt),
               median(times[kind].prompt) / median(times[plain].prompt), median(times[kind].decode),
               median(times[kind].decode) / median(times[plain].decode),
               logits[kind] == logits[plain] ? "equal to the bit" : "DIFFERENT");
  }
}

void measure_memory(std::int64_t positions, std::int64_t layers) {
  {
    const Transformer gpt = random_gpt2();
    const auto tokens = some_tokens(1024);
    reset_peak_resident_bytes();
    const auto before = static_cast<double>(peak_resident_bytes());
    const Trace trace =
        trace_prompt(gpt, tokens,
                     {.points = {"hook_*", "hook_resid_*", "hook_attn_out", "hook_mlp_out", "q",
                                 "k", "v", "z", "mlp.*", "ln1.*", "ln2.*", "ln_final.*"}});
    fmt::print(
        "full trace of GPT-2 at T 1024 without planes: {} arrays, {:.3f} GiB beside the model\n",
        trace.arrays.size(), (static_cast<double>(peak_resident_bytes()) - before) / gibibyte);
  }
  // Statistics are taken of what attention reads anyway; tiles, of the queries and keys that are
  // kept.
  constexpr std::int64_t heads = 12, size = 64;
  const StackSpecification config = make_gpt_config(layers, heads, heads * size, positions, 1000);
  Layer layer(positions, heads, size);
  layer.log_sum_exp.fill(12.0F);
  reset_peak_resident_bytes();
  const auto before = static_cast<double>(peak_resident_bytes());
  LazyAttention lazy(config, {}, positions);
  for (std::int64_t l = 0; l < layers; ++l) {
    lazy.observe_attention(l, layer.input, layer.log_sum_exp);
  }
  HeadScan(Architecture{.stacks = {config}})
      .observe_attention_at({PointKind::pattern, 0}, layer.input, layer.log_sum_exp);
  AttentionPyramid pyramid(lazy, layers - 1, heads - 1);
  pyramid.build();
  pyramid.tile(pyramid.levels() - 1, 0, 0, Pooling::mean);
  const double kept = 2.0 * static_cast<double>(layers * positions * heads * size) * 4;
  fmt::print(
      "T {}, {} layers of {} heads of {}: Q and K {:.3f} GiB, with statistics and a pyramid "
      "{:.3f} GiB\n",
      positions, layers, heads, size, kept / gibibyte,
      (static_cast<double>(peak_resident_bytes()) - before) / gibibyte);
}

}  // namespace
}  // namespace heed

int main(int count, char** words) {
  const std::string what = count > 1 ? words[1] : "attention";
  const auto number = [&](int index, std::int64_t otherwise) {
    return count > index ? std::strtoll(words[index], nullptr, 10) : otherwise;
  };
  if (what == "attention") heed::measure_attention(number(2, 65536), number(3, 2));
  if (what == "tracing") heed::measure_tracing(number(2, 5));
  if (what == "memory") heed::measure_memory(number(2, 65536), number(3, 12));
  return 0;
}
