#include "microscope/explain/neurons.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "microscope/explain/context_recorder.h"
#include "model/input_checks.h"

namespace heed {

void copy_neuron_output(const Transformer& model, std::int64_t layer, std::int64_t neuron,
                        std::span<float> out) {
  const View<const float> weight =
      model.parameters().restored(model.parameters().block(layer).down.weight);  // (C, F)
  for (std::size_t c = 0; c < out.size(); ++c) {
    out[c] = weight(static_cast<std::int64_t>(c), neuron);
  }
}

std::vector<double> neuron_output_lengths(const Transformer& model, std::int64_t layer) {
  const View<const float> weight =
      model.parameters().restored(model.parameters().block(layer).down.weight);
  std::vector<double> squares(static_cast<std::size_t>(weight.extent(1)), 0.0);
  for (std::int64_t c = 0; c < weight.extent(0); ++c) {
    for (std::size_t n = 0; n < squares.size(); ++n) {
      const double value = weight(c, static_cast<std::int64_t>(n));
      squares[n] += value * value;
    }
  }
  for (double& square : squares) square = std::sqrt(square);
  return squares;
}

std::vector<NeuronStrength> strongest_neurons(const Transformer& model, std::int64_t layer,
                                              std::span<const float> activations,
                                              std::size_t count) {
  const std::vector<double> lengths = neuron_output_lengths(model, layer);
  std::vector<NeuronStrength> neurons;
  for (std::size_t n = 0; n < lengths.size(); ++n) {
    neurons.push_back({static_cast<std::int64_t>(n), activations[n],
                       std::abs(static_cast<double>(activations[n])) * lengths[n]});
  }
  count = std::min(count, neurons.size());
  std::ranges::partial_sort(neurons, neurons.begin() + static_cast<std::ptrdiff_t>(count),
                            std::ranges::greater{}, &NeuronStrength::strength);
  neurons.resize(count);
  return neurons;
}

std::vector<double> direct_neuron_effects(const Transformer& model, std::int64_t layer,
                                          std::span<const float> activations,
                                          const LogitDirection& direction, double scale) {
  std::vector<double> effects = direction.through(model.parameters().block(layer).down);
  check(effects.size() == activations.size(), "every neuron has an activation");
  for (std::size_t n = 0; n < effects.size(); ++n) effects[n] *= activations[n] / scale;
  return effects;
}

namespace {

// Observes the requested columns of mlp.hook_post.
class NeuronProbe final : public Probe {
 public:
  NeuronProbe(std::span<const std::int32_t> corpus, std::vector<ContextRecorder>& recorders)
      : corpus_(corpus), recorders_(recorders) {}

  void start(std::int64_t first) { first_ = first; }
  // What has to be computed.
  LayerRange layers() const {
    LayerRange range{.end = 0};
    for (const ContextRecorder& recorder : recorders_) {
      range.end = std::max(range.end, recorder.id().layer + 1);
    }
    return range;
  }
  bool wants(const Point& point) const override {
    return point.kind == PointKind::neurons_post &&
           std::ranges::any_of(recorders_, [&](const ContextRecorder& recorder) {
             return recorder.id().layer == point.layer;
           });
  }

  // values (B, T, F)
  void observe(const Point& point, View<const float> values) override {
    std::vector<float> activations(static_cast<std::size_t>(values.extent(1)));
    for (ContextRecorder& recorder : recorders_) {
      if (recorder.id().layer != point.layer) continue;
      for (std::int64_t b = 0; b < values.extent(0); ++b) {
        for (std::int64_t t = 0; t < values.extent(1); ++t) {
          activations[t] = values(b, t, recorder.id().neuron);
        }
        const std::int64_t first = first_ + b * values.extent(1);
        recorder.read(corpus_.subspan(first, activations.size()), first, activations);
      }
    }
  }

 private:
  std::span<const std::int32_t> corpus_;
  std::vector<ContextRecorder>& recorders_;
  std::int64_t first_ = 0;
};

// Runs `batch` windows of `window` tokens, starting at `first`.
void read_windows(const Transformer& model, std::span<const std::int32_t> corpus,
                  std::int64_t first, const StackActivations& activations, NeuronProbe& probe) {
  probe.start(first);
  const Pass pass{.sequences = {activations.batch(), activations.positions()},
                  .probe = &probe,
                  .layers = probe.layers()};
  model.forward({corpus.data() + first, {activations.batch(), activations.positions()}}, pass,
                activations);
}

void require_neurons(const StackSpecification& config, std::span<const NeuronId> neurons) {
  for (const NeuronId& id : neurons) {
    checked_layer(id.layer, config);
    checked_neuron(id.neuron, config);
  }
}

VocabularyProjection what_it_says(const Transformer& model, const NeuronId& id, std::int64_t top) {
  Tensor<float> column(Shape{1, model.specification().channels});
  copy_neuron_output(model, id.layer, id.neuron, column.span());
  return project_to_logits(model, column, top).front();
}

}  // namespace

std::vector<NeuronMemory> find_neuron_contexts(const Transformer& model,
                                               std::span<const std::int32_t> corpus,
                                               std::span<const NeuronId> neurons,
                                               const NeuronSearch& search) {
  require_sums_to_logits(model.specification(), "what neurons write");
  require_tokens(corpus, "the corpus");
  require(search.top > 0 && search.window > 0 && search.batch > 0, ErrorCode::invalid_argument,
          "top, window and batch of a neuron search must be at least 1");
  require_neurons(model.specification(), neurons);
  std::vector<ContextRecorder> recorders;
  for (const NeuronId& id : neurons) recorders.emplace_back(id, search);
  NeuronProbe probe(corpus, recorders);

  const std::int64_t total = std::ssize(corpus);
  const std::int64_t window = std::min({search.window, model.specification().context, total});
  const std::int64_t batch = std::min(search.batch, total / window);
  const StackActivations activations(model.specification(), batch, window, Keep::one_block, 0,
                                     model.device());
  std::int64_t done = 0;
  const auto report = [&] {
    if (search.progress) search.progress({"reading", done, total});
    require(!stop_requested(search.stop), ErrorCode::interrupted,
            "interrupted after {} of {} tokens", done, total);
  };
  for (; done + batch * window <= total; done += batch * window) {
    report();
    read_windows(model, corpus, done, activations, probe);
  }
  while (done < total) {  // the windows that do not fill a batch, and the last, shorter one
    report();
    const std::int64_t rest = std::min(window, total - done);
    read_windows(model, corpus, done,
                 {model.specification(), 1, rest, Keep::one_block, 0, model.device()}, probe);
    done += rest;
  }
  std::vector<NeuronMemory> memories;
  for (ContextRecorder& recorder : recorders) {
    memories.push_back(std::move(recorder).result());
    memories.back().says = what_it_says(model, memories.back().id, search.top);
  }
  return memories;
}

}  // namespace heed
