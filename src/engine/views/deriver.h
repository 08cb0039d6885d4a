// How every point of a pass is derived: a method each, the stream in deriver.cc, the branches of a
// block in derive_branches.cc.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "engine/views/derivation.h"
#include "model/attention.h"
#include "model/probe.h"

namespace heed {

// Derives one element of one pass. All borrowed.
class Deriver {
 public:
  Deriver(const DerivedPass& from, const PointElement& element)
      : from_(from),
        pass_(from.pass),
        config_(from.model.transformer.specification()),
        element_(element) {}

  Derivation at(const Point& point);

 private:
  const AttentionSpecification& attention() const { return config_.block.attention; }
  // The key/value head that the chosen head reads; points of keys and values name one themselves.
  std::int64_t key_head() const;
  const Parameters& parameters() const { return from_.model.transformer.parameters(); }
  const BlockParameters& weights() const { return parameters().block(layer_); }
  const BlockActivations& block() const { return pass_.activations().block(layer_); }
  View<const float> last_residual() const { return pass_.activations().last_residual(); }
  const NormSaved& final_saved() const { return pass_.activations().final_norm_saved(); }
  void require_index(std::int64_t count, const char* what) const;
  std::int64_t channel() const;
  void describe(const char* formula, const char* latex, const char* operation);
  void add(std::string label, double left, double right);
  void number(double value, std::initializer_list<std::int64_t> indices);
  std::string token_label(std::int64_t position) const;
  void linear(View<const float> x, const LinearWeights& matrix, std::int64_t output,
              const char* input = "channel");
  Tensor<float> observed(const Point& point) const;
  double observed_embedding(PointKind kind) const;
  bool is_edited(const Point& point) const;
  // The stream (T, C) as the second norm reads it.
  View<const float> feed_forward_in();
  void copied(const Point& point, const char* stream_name, View<const float> stream);
  void embedding();
  void position_embedding();
  void residual_pre();
  void residual_post(std::int64_t layer, const char* name);
  void parallel_sum(const char* name, std::int64_t layer, View<const float> sum);
  void stream_sum(const char* name, const char* before, View<const float> stream, const char* what,
                  View<const float> added, View<const float> sum);
  void scale(View<const float> x, const NormSaved& saved);
  void normalized(View<const float> x, const NormSaved& saved);
  bool is_rms() const { return config_.block.norm.kind == NormKind::rms; }
  void projection(std::int64_t first, std::int64_t head, const char* letter, const char* matrix);
  void positioned(const Point& point, std::int64_t first, std::int64_t head, const char* letter);
  // The heads as attention reads them; keys and values of the chosen head's group.
  Heads<const float> heads() const { return attention_heads(attention(), 1, block().attention); }
  std::int64_t group() const { return element_.head / attention().group_size(); }
  std::vector<float> row(AttentionValues values) const;
  void scores();
  void capped_score();
  void add_capped(double u, double cap);
  void pattern();
  void mixed_values();
  double add_head_result(std::int64_t head, std::int64_t c);
  void head_result();
  void normalised_out(PointKind out, PointKind normalized, const NormWeights& norm,
                      const char* letter);
  void attention_out();
  bool is_visible() const;
  void neuron(const LinearWeights& matrix, View<const float> values, const char* letter,
              const char* name);
  void neurons_post();
  double gate(double x) const;
  void feed_forward_out();
  void unembedding_in();
  void logits();

  const DerivedPass& from_;
  const RecordedPass& pass_;
  const StackSpecification& config_;
  const PointElement& element_;
  std::int64_t layer_ = -1;
  Tensor<float> edited_;
  Derivation derivation_;
};

}  // namespace heed
