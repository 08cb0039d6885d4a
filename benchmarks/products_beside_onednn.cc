// The products of linear layers beside oneDNN's inner product, in turns: forward and both backward,
// at the shapes of GPT-2 124M and of LLaMA 3.2 1B.
//
//   apt install libdnnl-dev
//   products_beside_onednn [INSTRUCTION SET ...] [LAYERS ...]    all of them where none is named
//   HEED_THREADS=1 products_beside_onednn AVX2 "gpt2 feed-forward"
//
// oneDNN chooses its layout of the weights (and of nothing else): of forward they are converted
// beforehand, as heed packs them beforehand. In backward both begin and end with plain matrices;
// heed adds the gradient of weights to what is there, which it reads too, and oneDNN overwrites it.
// Rates are of the fastest repeat, ratios the medians of those of neighbouring repeats, of which
// each second one has the order turned round.
#include <fmt/format.h>
#include <omp.h>
#include <sys/wait.h>
#include <unistd.h>
#include <oneapi/dnnl/dnnl.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "base/threads.h"
#include "kernels/instruction_sets.h"
#include "kernels/kernels.h"
#include "kernels/machine_peak.h"
#include "kernels/packed_weight.h"
#include "tensor/tensor.h"

namespace heed::kernels {
namespace {

using Memory = dnnl::memory;

struct Layer {
  const char* name;
  std::int64_t inputs;
  std::int64_t outputs;
};

constexpr std::int64_t rows = 1024;
constexpr Layer layers[] = {
    {"gpt2 query, key, value", 768, 2304},    {"gpt2 attention's output", 768, 768},
    {"gpt2 feed-forward, in", 768, 3072},     {"gpt2 feed-forward, out", 3072, 768},
    {"gpt2 unembedding", 768, 50257},         {"llama query, key, value", 2048, 3072},
    {"llama attention's output", 2048, 2048}, {"llama feed-forward, in", 2048, 16384},
    {"llama feed-forward, out", 8192, 2048}};

// oneDNN's name of the best set that is no better than one of Highway's.
std::optional<const char*> onednn_name(std::string_view set) {
  if (set.starts_with("AVX3")) return "AVX512_CORE";
  if (set == "AVX2") return "AVX2";
  if (set == "SSE4") return "SSE41";
  return std::nullopt;
}

Tensor<float> random_tensor(const Shape& shape) {
  Tensor<float> tensor(shape);
  RandomStream random(1, 1);
  for (float& value : tensor.span()) value = static_cast<float>(random.uniform() * 2.0 - 1.0);
  return tensor;
}

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// A product in both programs.
struct Contest {
  std::string name;
  double operations;
  std::function<void()> heed;
  std::function<void()> onednn;
};

struct Outcome {
  double heed = std::numeric_limits<double>::infinity();  // seconds
  double onednn = std::numeric_limits<double>::infinity();
  double ratio = 0;  // of speed, heed's by oneDNN's
};

Outcome hold(const Contest& contest) {
  contest.heed();
  contest.onednn();
  const double once = seconds_of(contest.heed);
  const int calls = std::max(1, static_cast<int>(0.02 / once));
  const auto some = [&](const std::function<void()>& work) {
    return seconds_of([&] {
             for (int i = 0; i < calls; ++i) work();
           }) /
           calls;
  };
  Outcome outcome;
  std::vector<double> ratios;
  const int repeats = once > 0.2 ? 5 : 15;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    double heed = 0, onednn = 0;
    if (repeat % 2 == 0) heed = some(contest.heed);
    onednn = some(contest.onednn);
    if (repeat % 2 == 1) heed = some(contest.heed);
    outcome.heed = std::min(outcome.heed, heed);
    outcome.onednn = std::min(outcome.onednn, onednn);
    ratios.push_back(onednn / heed);
  }
  outcome.ratio = median(ratios);
  return outcome;
}

double largest_difference(const Tensor<float>& a, const Tensor<float>& b) {
  double largest = 0;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(a.data()[i]) - b.data()[i]));
  }
  return largest;
}

// A layer's operands and oneDNN's three primitives over them.
class Linear {
 public:
  explicit Linear(const Layer& layer)
      : layer_(layer),
        x_(random_tensor({rows, layer.inputs})),
        weight_(random_tensor({layer.outputs, layer.inputs})),
        d_out_(random_tensor({rows, layer.outputs})),
        out_(d_out_.shape()),
        d_x_(x_.shape()),
        d_weight_(weight_.shape()),
        other_out_(d_out_.shape()),
        other_d_x_(x_.shape()),
        other_d_weight_(weight_.shape()),
        packed_(weight_) {
    prepare();
  }

  std::vector<Contest> contests() {
    const double operations = 2.0 * rows * static_cast<double>(layer_.inputs * layer_.outputs);
    return {{"forward", operations,
             [this] {
               linear_forward(x_, {.weight = weight_, .bias = {}, .packed = &packed_}, out_, 0);
             },
             [this] { run(*forward_, forward_arguments_); }},
            {"gradient of inputs", operations,
             [this] { linear_backward_input(weight_, d_out_, d_x_, Precision::f32); },
             [this] { run(*backward_data_, backward_data_arguments_); }},
            {"gradient of weights", operations,
             [this] {
               linear_backward_parameters(x_, d_out_, {.weight = d_weight_, .bias = {}},
                                          Precision::f32);
             },
             [this] { run(*backward_weights_, backward_weights_arguments_); }}};
  }

  void check_equal() {
    d_weight_.fill(0);
    for (const Contest& contest : contests()) {
      contest.heed();
      contest.onednn();
    }
    const double bound = 1e-3;
    const double differences[] = {largest_difference(out_, other_out_),
                                  largest_difference(d_x_, other_d_x_),
                                  largest_difference(d_weight_, other_d_weight_)};
    for (const double difference : differences) {
      require(difference < bound * std::sqrt(static_cast<double>(layer_.outputs)),
              ErrorCode::invalid_argument, "{}: results differ by {}", layer_.name, difference);
    }
  }

 private:
  using Arguments = std::unordered_map<int, Memory>;

  void run(const dnnl::primitive& primitive, const Arguments& arguments) {
    primitive.execute(stream_, arguments);
    stream_.wait();
  }

  Memory plain(Tensor<float>& tensor) {
    return {
        {{tensor.shape()[0], tensor.shape()[1]}, Memory::data_type::f32, Memory::format_tag::ab},
        engine_,
        tensor.data()};
  }

  // In the layout that a primitive asks for.
  Memory converted(Memory from, const Memory::desc& to) {
    if (from.get_desc() == to) return from;
    Memory result(to, engine_);
    dnnl::reorder(from, result).execute(stream_, from, result);
    stream_.wait();
    return result;
  }

  void prepare() {
    const Memory x = plain(x_), weight = plain(weight_), d_out = plain(d_out_);
    const Memory out = plain(other_out_), d_x = plain(other_d_x_),
                 d_weight = plain(other_d_weight_);
    const Memory::desc any({layer_.outputs, layer_.inputs}, Memory::data_type::f32,
                           Memory::format_tag::any);
    const dnnl::inner_product_forward::primitive_desc forward(
        {dnnl::prop_kind::forward_training, x.get_desc(), any, out.get_desc()}, engine_);
    forward_ = dnnl::inner_product_forward(forward);
    forward_arguments_ = {{DNNL_ARG_SRC, x},
                          {DNNL_ARG_WEIGHTS, converted(weight, forward.weights_desc())},
                          {DNNL_ARG_DST, out}};

    const dnnl::inner_product_backward_data::primitive_desc data(
        {x.get_desc(), weight.get_desc(), out.get_desc()}, engine_, forward);
    backward_data_ = dnnl::inner_product_backward_data(data);
    backward_data_arguments_ = {
        {DNNL_ARG_DIFF_SRC, d_x}, {DNNL_ARG_WEIGHTS, weight}, {DNNL_ARG_DIFF_DST, d_out}};

    const dnnl::inner_product_backward_weights::primitive_desc weights(
        {x.get_desc(), weight.get_desc(), out.get_desc()}, engine_, forward);
    backward_weights_ = dnnl::inner_product_backward_weights(weights);
    backward_weights_arguments_ = {
        {DNNL_ARG_SRC, x}, {DNNL_ARG_DIFF_WEIGHTS, d_weight}, {DNNL_ARG_DIFF_DST, d_out}};
  }

  Layer layer_;
  Tensor<float> x_, weight_, d_out_;
  Tensor<float> out_, d_x_, d_weight_;
  Tensor<float> other_out_, other_d_x_, other_d_weight_;
  PackedWeight packed_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::optional<dnnl::primitive> forward_, backward_data_, backward_weights_;
  Arguments forward_arguments_, backward_data_arguments_, backward_weights_arguments_;
};

bool is_wanted(const Layer& layer, const std::vector<std::string>& names) {
  return names.empty() || std::ranges::any_of(names, [&](const std::string& name) {
           return std::string_view(layer.name).starts_with(name);
         });
}

void compare(const std::string& set, const std::vector<std::string>& names) {
  omp_set_num_threads(thread_count());  // oneDNN's
  use_instruction_set(set);
  double ceiling = measure_peak_flops();
  fmt::print("\n{}, {} threads, {} rows, f32\n{:<26}{:<21}{:>10}{:>10}{:>9}{:>9}\n", set,
             thread_count(), rows, "layer", "product", "heed", "oneDNN", "times", "of peak");
  double heed = 0, onednn = 0, least = std::numeric_limits<double>::infinity();
  for (const Layer& layer : layers) {
    if (!is_wanted(layer, names)) continue;
    Linear linear(layer);
    linear.check_equal();
    for (const Contest& contest : linear.contests()) {
      const Outcome outcome = hold(contest);
      ceiling = std::max(ceiling, measure_peak_flops());
      heed += outcome.heed;
      onednn += outcome.onednn;
      least = std::min(least, outcome.ratio);
      const auto rate = [&](double seconds) { return contest.operations / seconds; };
      fmt::print("{:<26}{:<21}{:>10.1f}{:>10.1f}{:>9.2f}{:>9.2f}\n", layer.name, contest.name,
                 rate(outcome.heed) / 1e9, rate(outcome.onednn) / 1e9, outcome.ratio,
                 rate(outcome.heed) / ceiling);
      std::fflush(stdout);
    }
  }
  fmt::print(
      "GFLOP/s. Ceiling {:.1f}. The sum of the fastest: heed {:.2f} s, oneDNN {:.2f} s, {:.2f} "
      "times; the least of the ratios {:.2f}\n",
      ceiling / 1e9, heed, onednn, onednn / heed, least);
}

// oneDNN takes the limit of its instruction set once in a process.
int compare_in_child(const std::string& set, const std::vector<std::string>& names) {
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("DNNL_MAX_CPU_ISA", *onednn_name(set), 1);  // NOLINT(concurrency-mt-unsafe)
    int status = 0;
    try {
      compare(set, names);
    } catch (const std::exception& error) {
      fmt::print(stderr, "{}\n", error.what());
      status = 1;
    }
    std::fflush(stdout);
    ::_exit(status);
  }
  int status = 1;
  ::waitpid(child, &status, 0);
  return status;
}

}  // namespace
}  // namespace heed::kernels

int main(int count, char** arguments) {
  const std::vector<std::string> present = heed::kernels::available_instruction_sets();
  std::vector<std::string> sets, names;
  for (const std::string& argument : std::vector<std::string>(arguments + 1, arguments + count)) {
    (std::ranges::find(present, argument) != present.end() ? sets : names).push_back(argument);
  }
  if (sets.empty()) sets = present;
  int failures = 0;
  for (const std::string& set : sets) {
    if (!heed::kernels::onednn_name(set)) continue;  // f32 is multiplied as by another
    failures += heed::kernels::compare_in_child(set, names) == 0 ? 0 : 1;
  }
  return failures;
}
