// A sparse dictionary: a sparse autoencoder, which writes back what it read, or a transcoder, which
// writes what stands at other points.
//
//   x̂ = normalised(x) − b_dec            (N, I); b_dec only where it is subtracted
//   pre = x̂ · W_encᵀ + b_enc             (N, F)
//   acts = activation(pre)               (N, F), few of which are not 0
//   reconstruction = acts · W_dec + b_dec    (N, O), and x · W_skipᵀ where there is one
//
// Features are numbered from 0 to F − 1. Rows of both matrices are features, so that what active
// features read and write is dense in memory.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/architecture.h"
#include "model/probe.h"
#include "tensor/tensor.h"

namespace heed {

enum class FeatureActivation {
  relu,         // "standard"
  gated,        // where a gate is open (Rajamanoharan et al. 2024)
  top_k,        // the k largest of a row (Gao et al. 2024)
  batch_top_k,  // the k · N largest of N rows (Bussmann et al. 2024)
  jump_relu,    // where it exceeds the feature's threshold (Rajamanoharan et al. 2024)
};
// "standard", "gated", "topk", "batchtopk", "jumprelu": SAELens's names.
std::string_view activation_name(FeatureActivation activation);

enum class InputNorm {
  none,
  constant_norm,  // x · √I / ‖x‖
  layer_norm,  // (x − mean) / (deviation + 1e-5), whose square is Σ (x − mean)² / (I − 1)
};

struct DictionarySpecification {
  FeatureActivation activation = FeatureActivation::relu;
  InputNorm input_norm = InputNorm::none;
  bool subtracts_decoder_bias = false;
  std::int64_t inputs = 0;                   // I
  std::int64_t features = 0;                 // F
  std::int64_t outputs = 0;                  // O, at each output point
  std::int64_t k = 0;                        // of top_k and batch_top_k
  std::string input_point{};                 // "blocks.3.hook_resid_pre"
  std::vector<std::string> output_points{};  // P of them; several of a cross-layer transcoder
  // The one head of a point of heads that it reads or writes; −1: all of them, side by side.
  std::int64_t input_head = -1;
  std::int64_t output_head = -1;
  std::string model{};  // that it was trained on, as its file names it

  bool is_transcoder() const {
    return output_points.size() != 1 || output_points.front() != input_point;
  }
  std::int64_t points() const { return static_cast<std::int64_t>(output_points.size()); }  // P
};

struct DictionaryWeights {
  Tensor<float> encoder{};       // (F, I)
  Tensor<float> encoder_bias{};  // (F)
  Tensor<float> gate_bias{};     // (F), of gated; else absent
  Tensor<float> magnitude{};  // (F), of gated: magnitudes are x̂ · W_encᵀ · magnitude + b_enc
  Tensor<float> threshold{};  // (F), of jump_relu; else absent
  Tensor<float> decoder{};    // (F, P, O)
  Tensor<float> decoder_bias{};  // (O), of the first output point
  Tensor<float> skip{};          // (O, I), or absent
};

// What is not 0 of activations (N, F), row by row, features ascending.
struct FeatureRows {
  std::vector<std::int64_t> begins{0};  // (N + 1): where a row's entries begin
  std::vector<std::int32_t> features{};
  std::vector<float> values{};

  std::int64_t rows() const { return static_cast<std::int64_t>(begins.size()) - 1; }
  std::int64_t entries() const { return static_cast<std::int64_t>(features.size()); }
  // Into dense (N, F), zero elsewhere.
  void copy_to(View<float> dense) const;
  static FeatureRows of(View<const float> dense);
};

// What the input norm took from each row, which the reconstruction is multiplied by.
struct InputScales {
  std::vector<float> scale{};  // (N); empty: none
  std::vector<float> mean{};   // (N); empty: 0
};

class Dictionary {
 public:
  // Throws Error{corrupt_data} for weights of other shapes and for numbers that are not finite;
  // messages begin with `source`.
  Dictionary(DictionarySpecification specification, DictionaryWeights weights,
             const std::string& source);

  const DictionarySpecification& specification() const { return specification_; }
  const DictionaryWeights& weights() const { return weights_; }
  DictionaryWeights& weights() { return weights_; }  // for training
  std::int64_t parameters() const;

  // The activations of rows x (N, I).
  FeatureRows encode(View<const float> x) const;
  // out (N, O), at one of the output points; x (N, I) is what was read. An autoencoder undoes the
  // norm of its input.
  void decode(const FeatureRows& acts, View<const float> x, View<float> out,
              std::int64_t point = 0) const;

  // The same step by step, for hooks between them.
  struct Encoding {
    Tensor<float> input;  // x̂ (N, I)
    InputScales scales;
  };
  Encoding read(View<const float> x) const;
  struct PreActivations {
    Tensor<float> values;  // (N, F)
    Tensor<float> gate;    // (N, F), of gated
  };
  PreActivations pre_activations(View<const float> input) const;
  FeatureRows activate(View<const float> pre, View<const float> gate) const;
  FeatureRows encode_input(View<const float> input) const;
  // Memory of encode_input() of so many rows, at most, beside what it gives.
  double bytes_of_encoding(std::int64_t rows) const;
  // Before the norm is undone and without what is skipped.
  void reconstruct(const FeatureRows& acts, View<float> out, std::int64_t point = 0) const;
  // The reconstruction in the scale of what was read, and what skips the features.
  void finish(View<float> out, View<const float> x, const InputScales& scales,
              std::int64_t point = 0) const;

  // Backward, the steps undone in reverse. d_out (N, O) becomes the gradient of the reconstruction;
  // d_x (N, I) accumulates what goes past the features. `recons` is what reconstruct() gave.
  void finish_backward(View<const float> recons, View<const float> x, const InputScales& scales,
                       View<float> d_out, View<float> d_x, std::int64_t point = 0) const;
  // d_acts at the entries of `acts` alone, (E), accumulates d_recons · W_decᵀ; or all of (N, F).
  void reconstruct_backward(const FeatureRows& acts, View<const float> d_recons,
                            std::span<float> d_acts, std::int64_t point = 0) const;
  void reconstruct_backward(View<const float> d_recons, View<float> d_acts,
                            std::int64_t point = 0) const;
  // d_input (N, I), of x̂, from the gradients d_pre (E) of the entries: an active feature's
  // activation is its magnitude, so that they are those of its pre-activation.
  void encode_backward(const FeatureRows& acts, std::span<const float> d_pre,
                       View<float> d_input) const;
  // d_x (N, I) accumulates, from that of x̂.
  void read_backward(View<const float> x, const InputScales& scales, View<const float> d_input,
                     View<float> d_x) const;

 private:
  void require_shapes(const std::string& source) const;

  DictionarySpecification specification_;
  DictionaryWeights weights_;
};

// Throws Error{invalid_argument} unless the model's points have the dictionary's widths, with both.
void require_fits(const Dictionary& dictionary, const Architecture& architecture);

// The elements of a row at a point, of one head, or of all side by side (−1): D, H · D, C, F, ….
// Throws Error{unsupported} for points that are no rows of numbers, such as patterns, and
// Error{invalid_argument} for a head that there is not.
std::int64_t point_width(const Point& point, std::int64_t head, const Architecture& architecture);

}  // namespace heed
