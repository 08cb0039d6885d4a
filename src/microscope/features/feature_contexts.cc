#include "microscope/features/feature_contexts.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/error.h"
#include "microscope/explain/context_recorder.h"
#include "microscope/features/dictionary_run.h"
#include "model/input_checks.h"

namespace heed {
namespace {

// A window of a text, and the activations of its positions.
using EachWindow = std::function<void(std::span<const std::int32_t> tokens, std::int64_t first,
                                      const FeatureRows& acts, std::int64_t first_row)>;

// Calls each(window) for the windows of the text's beginning; the number of tokens that were read.
std::int64_t read_text(const Transformer& model, const Tokenizer& tokenizer, std::string_view text,
                       const Dictionary& dictionary, const FeatureContextSearch& search,
                       const EachWindow& each) {
  const DictionarySpecification& own = dictionary.specification();
  const std::int64_t window = std::min(search.windows.window, model.specification().context);
  TokenWindows windows(tokenizer, text, window);
  const DictionaryPoints points(own, model.architecture());
  std::int64_t read = 0;
  while (true) {
    require(!stop_requested(search.windows.stop), ErrorCode::interrupted,
            "interrupted after {} tokens", read);
    const std::int64_t left = (search.tokens - read) / window;
    const std::int64_t batch = read == 0 ? 1 : std::min(search.windows.batch, left);
    if (batch < 1) break;
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(batch * window));
    windows.next(tokens);
    if (windows.passes() > 0) break;
    Tensor<float> x(Shape{batch * window, own.inputs}), y;
    if (!points.is_autoencoder()) y = Tensor<float>(Shape{batch * window, own.outputs});
    WindowActivations(model, points, batch, window)
        .read(tokens, x, y.present() ? y.view() : View<float>{});
    const FeatureRows acts = dictionary.encode(x);
    for (std::int64_t b = 0; b < batch; ++b) {
      each(std::span(tokens).subspan(static_cast<std::size_t>(b * window),
                                     static_cast<std::size_t>(window)),
           read + b * window, acts, b * window);
    }
    read += batch * window;
    if (search.windows.progress) search.windows.progress({"reading", read, search.tokens});
  }
  require(read > 0, ErrorCode::invalid_argument, "the text has no window of {} tokens", window);
  return read;
}

std::vector<std::int64_t> densest(const std::vector<std::int64_t>& active, std::int64_t count) {
  std::vector<std::int64_t> order(active.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::ranges::stable_sort(order, std::ranges::greater{}, [&](std::int64_t feature) {
    return active[static_cast<std::size_t>(feature)];
  });
  order.resize(std::min(order.size(), static_cast<std::size_t>(count)));
  return order;
}

// Whether rows of W_dec are added to the stream.
bool writes_stream(const Dictionary& dictionary, const Transformer& model) {
  const DictionaryPoints points(dictionary.specification(), model.architecture());
  switch (points.output.kind) {
    case PointKind::residual_pre:
    case PointKind::residual_mid:
    case PointKind::residual_post:
    case PointKind::attention_out:
    case PointKind::feed_forward_out: return true;
    default: return false;
  }
}

}  // namespace

FeatureStatistics find_feature_contexts(const Transformer& model, const Tokenizer& tokenizer,
                                        std::string_view text, const Dictionary& dictionary,
                                        const FeatureContextSearch& search) {
  const DictionarySpecification& own = dictionary.specification();
  require_fits(dictionary, model.architecture());
  require(search.count >= 1 && search.windows.top >= 1 && search.windows.window >= 1 &&
              search.windows.batch >= 1 && search.tokens >= 1,
          ErrorCode::invalid_argument,
          "count, top, window, batch and tokens of a search must be at least 1");
  for (const std::int64_t feature : search.features) {
    require(feature >= 0 && feature < own.features, ErrorCode::invalid_argument,
            "feature {} does not exist: there are features 0 to {}", feature, own.features - 1);
  }
  FeatureStatistics found{.active =
                              std::vector<std::int64_t>(static_cast<std::size_t>(own.features))};
  std::vector<std::int64_t> features = search.features;
  const auto count = [&](std::span<const std::int32_t> window, std::int64_t,
                         const FeatureRows& acts, std::int64_t first_row) {
    const auto begin = static_cast<std::size_t>(first_row);
    for (auto e = static_cast<std::size_t>(acts.begins[begin]);
         e < static_cast<std::size_t>(acts.begins[begin + window.size()]); ++e) {
      ++found.active[static_cast<std::size_t>(acts.features[e])];
    }
  };
  if (features.empty()) {
    read_text(model, tokenizer, text, dictionary, search, count);
    features = densest(found.active, search.count);
    std::ranges::fill(found.active, 0);
  }
  std::vector<ContextRecorder> recorders;
  std::vector<std::int32_t> place(static_cast<std::size_t>(own.features), -1);
  for (const std::int64_t feature : features) {
    if (place[static_cast<std::size_t>(feature)] >= 0) continue;
    place[static_cast<std::size_t>(feature)] = static_cast<std::int32_t>(recorders.size());
    recorders.emplace_back(NeuronId{-1, feature}, search.windows);
  }
  found.tokens = read_text(model, tokenizer, text, dictionary, search,
                           [&](std::span<const std::int32_t> window, std::int64_t first,
                               const FeatureRows& acts, std::int64_t first_row) {
                             count(window, first, acts, first_row);
                             std::vector<std::vector<float>> activations(
                                 recorders.size(), std::vector<float>(window.size(), 0.0F));
                             for (std::size_t t = 0; t < window.size(); ++t) {
                               const auto row = static_cast<std::size_t>(first_row) + t;
                               for (auto e = static_cast<std::size_t>(acts.begins[row]);
                                    e < static_cast<std::size_t>(acts.begins[row + 1]); ++e) {
                                 const std::int32_t at =
                                     place[static_cast<std::size_t>(acts.features[e])];
                                 if (at >= 0)
                                   activations[static_cast<std::size_t>(at)][t] = acts.values[e];
                               }
                             }
                             for (std::size_t r = 0; r < recorders.size(); ++r) {
                               recorders[r].read(window, first, activations[r]);
                             }
                           });
  const bool says = writes_stream(dictionary, model);
  for (ContextRecorder& recorder : recorders) {
    NeuronMemory memory = std::move(recorder).result();
    // Windows in which it is nowhere active are no contexts.
    std::erase_if(memory.contexts, [](const NeuronContext& each) { return each.activation <= 0; });
    if (says) {
      const float* const row =
          dictionary.weights().decoder.data() + memory.id.neuron * own.points() * own.outputs;
      memory.says =
          project_to_logits(model, View<const float>(row, {1, own.outputs}), search.windows.top)
              .front();
    }
    found.memories.push_back(std::move(memory));
  }
  return found;
}

}  // namespace heed
