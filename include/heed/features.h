// Sparse dictionaries: autoencoders and transcoders, whose features become points of a pass.
//
//   std::vector<heed::SparseDictionary> saes = heed::SparseDictionary::load("gpt2-small-res-jb");
//   heed::Array acts = saes[0].encode(activations);             // (…, F)
//
//   heed::Splice splice(model, saes);
//   splice.hook({{"hook_sae_acts_post", [](const heed::HookedPoint&, heed::Array& acts) {…}}});
//   heed::run(model, {tokens}, {.hooks = splice.hooks()});
//
// Names as SAELens has them; of a dictionary that reads blocks.3.hook_resid_pre:
//   blocks.3.hook_resid_pre.hook_sae_input      (B, T, I)
//   blocks.3.hook_resid_pre.hook_sae_acts_pre   (B, T, F)
//   blocks.3.hook_resid_pre.hook_sae_acts_post  (B, T, F)
// and at the point that it writes, which is the same one of an autoencoder:
//   ….hook_sae_recons (B, T, O)
//   ….hook_sae_error (B, T, O)    where the error term is added: what was there, less the
//                                 reconstruction by features that no hook changed
//   ….hook_sae_output (B, T, O)   what the pass goes on with
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heed/activations.h"
#include "heed/array.h"
#include "heed/heed.h"

namespace heed {

// What the files do not say, or what is wanted instead.
struct DictionaryLoad {
  std::string input_point{};
  std::string output_point{};
  // By which activations were multiplied in training (normalize_activations:
  // expected_average_only_in), where it is not folded into the weights yet.
  std::optional<double> norm_scaling_factor{};
};

struct DictionaryInfo {
  std::string architecture;             // "standard", "gated", "topk", "batchtopk", "jumprelu"
  std::string input_norm;               // "none", "constant_norm_rescale", "layer_norm"
  bool subtracts_decoder_bias = false;  // apply_b_dec_to_input
  bool is_transcoder = false;
  std::int64_t inputs = 0;    // I, d_in
  std::int64_t features = 0;  // F, d_sae
  std::int64_t outputs = 0;   // O, d_out
  std::int64_t k = 0;
  std::string input_point;
  std::vector<std::string> output_points;  // several of a cross-layer transcoder
  std::int64_t input_head = -1;            // −1: all heads, side by side
  std::int64_t output_head = -1;
  std::string model;
  std::int64_t parameters = 0;
};

class Dictionary;

// Copies share the weights.
class SparseDictionary {
 public:
  // A directory of SAELens, or one of such directories, params.npz of Gemma Scope, or transcoders
  // of circuit-tracer, one for each layer; or "starter", those that heed carries for this model
  // (write ./starter for a directory of that name). Throws Error{not_found}, Error{corrupt_data}
  // and Error{unsupported} with what is wrong in which file.
  static std::vector<SparseDictionary> load(const std::string& path,
                                            const DictionaryLoad& options = {});
  explicit SparseDictionary(std::shared_ptr<const Dictionary> dictionary)
      : dictionary_(std::move(dictionary)) {}

  DictionaryInfo info() const;
  // (…, F) of x (…, I), and (…, O) of both at one of the output points. A dictionary that
  // normalises what it reads, or has W_skip, decodes with x.
  Array encode(const Array& x) const;
  Array decode(const Array& acts, const Array& x = {}, std::int64_t point = 0) const;
  // "W_enc" (F, I), "W_dec" (F, P, O), "b_enc", "b_dec", "threshold", … as heed multiplies by
  // them, shared. Throws Error{not_found} for one that it does not have.
  SharedView weight(std::string_view name) const;
  // In SAELens's layout.
  void save(const std::string& directory) const;

  const Dictionary& dictionary() const { return *dictionary_; }
  const std::shared_ptr<const Dictionary>& shared() const { return dictionary_; }

 private:
  std::shared_ptr<const Dictionary> dictionary_;
};

enum class ErrorTerm { none, added };

// Dictionaries in the passes of a model, in place of what stands at the points that they write.
// Several may write one point (of a cross-layer transcoder): their reconstructions are added. For
// one pass at a time.
class Splice {
 public:
  // Throws Error{invalid_argument} for another model's dictionaries, and for two that read one
  // point.
  Splice(const Model& model, std::vector<SparseDictionary> dictionaries,
         ErrorTerm error = ErrorTerm::none);

  // The points of features, in the order of a pass.
  const std::vector<std::string>& names() const;
  // Those that a name, its end ("hook_sae_acts_post") or a glob selects.
  std::vector<std::string> names_like(std::string_view name) const;

  // Functions at these points, in forward and backward. heed does not know the derivative of what
  // they do to values: gradients past a point whose values a hook changed are refused, unless a
  // gradient hook stands at the same point.
  void hook(std::vector<Hook> hooks);
  void hook_gradients(std::vector<Hook> gradient_hooks);
  // Keeps copies of the values at these points in every pass, and of the gradients at those that
  // end in "_grad".
  void keep(const std::vector<std::string>& names);
  // What was kept: of texts of different lengths, with zeros after the ends of others. Throws
  // Error{not_found} for what was not.
  Array kept(std::string_view name) const;

  // For RunOptions: hooks go behind those of the user, gradient hooks before them. The error term
  // is a constant of the backward pass, as it is in SAELens: gradients reach what a dictionary read
  // through its features alone.
  std::vector<Hook> hooks() const;
  std::vector<Hook> gradient_hooks() const;

 private:
  struct Parts;
  std::shared_ptr<Parts> parts_;
};

// Training.
struct DictionaryTraining {
  // "topk", "standard" (ReLU with a penalty on activations) or "jumprelu" (with a penalty on how
  // many are active)
  std::string architecture = "topk";
  std::int64_t features = 0;  // F
  std::int64_t k = 32;        // active features of a row, of topk
  double l1 = 5.0;            // of standard: · mean over rows of Σ activations
  double l0 = 1.0;            // of jumprelu: · mean over rows of active features
  double learning_rate = 3e-4;
  std::int64_t steps = 1000;
  double warmup = 0.05;  // share of the steps over which the rate, and the penalty, rise from 0
  double decay = 0.2;    // share of them over which the rate falls to 0 at the end
  // A feature that was not active for so many rows is dead. Dead features learn to reconstruct what
  // the others miss (AuxK), the auxiliary_k of a row with the largest pre-activations; 0: half of
  // the outputs.
  std::int64_t dead_after = 1'000'000;
  std::int64_t auxiliary_k = 0;
  double auxiliary = 1.0 / 32;  // of its loss; 0: none
  // Every so many steps, until the rate falls, dead features are set anew to rows of a high loss
  // (Bricken et al. 2023); 0: never.
  std::int64_t resample_every = 0;
  double resample_norm = 0.2;  // of the encoder, beside the mean of living features
  std::uint64_t seed = 0;
};

struct DictionaryProgress {
  std::int64_t step = 0;  // finished
  std::int64_t steps = 0;
  double loss = 0;  // mean squared error of a row, where the activations' mean square is 1
  double penalty = 0;
  double auxiliary = 0;
  double active = 0;     // L0: features a row
  double explained = 0;  // share of the variance, of this batch
  std::int64_t dead = 0;
  std::int64_t resampled = 0;  // features, at the end of the step
};

// On rows of the caller's.
class DictionaryTrainingSession {
 public:
  // `first` (N, I), and `targets` (N, O) of a transcoder, give the scale and the first b_dec.
  struct Start {
    Array first;
    Array targets{};
    std::string input_point{};
    std::string output_point{};
    std::string model{};
  };
  DictionaryTrainingSession(const DictionaryTraining& training, const Start& start);

  // Of rows x (N, I), and y (N, O) of a transcoder. Throws Error{diverged}.
  DictionaryProgress step(const Array& x, const Array& y = {});
  SparseDictionary dictionary() const;

 private:
  struct Parts;
  std::shared_ptr<Parts> parts_;
};

// Mean next-token losses, in nats, of the model, with the dictionary in its pass, and with zeros in
// its place.
struct DictionaryQuality {
  std::int64_t tokens = 0;
  double loss = 0;
  double loss_with = 0;
  double loss_with_zeros = 0;
  double recovered = 0;  // 1: the model's own loss; 0: that of zeros
  double active = 0;
  double explained = 0;
  std::int64_t used = 0;  // features that were active at all
};
DictionaryQuality evaluate_dictionary(const Model& model, const SparseDictionary& dictionary,
                                      std::string_view text, std::int64_t tokens = 1 << 15,
                                      std::int64_t window = 128);

// On a model's activations over a text: passes, a buffer from which rows are drawn in random order,
// and nothing on disk.
struct DictionaryTrainingRun {
  DictionaryTraining training{};
  std::string input_point{};
  std::string output_point{};        // empty: the same point
  std::int64_t head = -1;            // of a point of heads; −1: all of them, side by side
  std::string file{};                // a text, which is mapped
  std::string text{};                // or this one
  std::string validation{};          // a file; empty: the last 5 % of the text, not trained on
  std::string out{};                 // a directory, in SAELens's layout
  std::int64_t batch = 4096;         // rows of a step
  std::int64_t buffer = 1 << 15;     // rows
  std::int64_t window = 128;         // tokens of the text that see each other
  std::int64_t evaluated = 1 << 14;  // tokens; 0: none
  // After every step, on the thread that called; an exception ends the training.
  std::function<void(const DictionaryProgress&)> progress{};
  // Set to true to stop: the steps so far are saved.
  const std::atomic<bool>* stop = nullptr;
};

struct DictionaryTrainingResult {
  std::int64_t steps = 0;
  std::int64_t tokens = 0;  // of the text, that were read
  bool interrupted = false;
  DictionaryProgress last{};
  std::optional<DictionaryQuality> quality{};
};

// Throws Error{invalid_argument} for settings that make no sense, Error{conflict} for a directory
// that holds a dictionary, Error{out_of_memory} with an estimate, before the work begins.
DictionaryTrainingResult train_dictionary(const Model& model, const DictionaryTrainingRun& run);

// What a feature is.
struct FeatureContext {
  std::int64_t position = 0;         // of the token in the text
  float activation = 0;              // there
  std::vector<std::int32_t> tokens;  // around it
  std::vector<float> activations;    // at each of them
  std::int64_t peak = 0;             // which of them it is
};
struct FeatureLogit {
  std::int32_t token = 0;
  float score = 0;  // of W_dec's row through the final norm's gain and the unembedding
};
struct FeatureReport {
  std::int64_t feature = 0;
  double density = 0;  // share of tokens where it is active
  double mean = 0;     // activation, over all tokens
  float largest = 0;
  std::vector<FeatureContext> contexts{};  // the strongest first, one of a window
  // Where it writes the stream; else none.
  std::vector<FeatureLogit> raised{}, lowered{};
};
struct FeatureSearch {
  std::vector<std::int64_t> features{};  // empty: `count` of them, from the densest on
  std::int64_t count = 10;
  std::int64_t top = 8;  // contexts, and logits at each end
  std::int64_t tokens = 1 << 16;
  std::int64_t window = 128;
  const std::atomic<bool>* stop = nullptr;
};
struct FeatureSurvey {
  std::int64_t tokens = 0;  // read
  Array densities{};        // (F)
  std::vector<FeatureReport> reports{};
};
// Of a text, read in windows; memory does not grow with it.
FeatureSurvey survey_features(const Model& model, const SparseDictionary& dictionary,
                              std::string_view text, const FeatureSearch& search = {});

}  // namespace heed
