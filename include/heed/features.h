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

#include <cstdint>
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
  // A directory of SAELens, params.npz of Gemma Scope, or transcoders of circuit-tracer, one for
  // each layer. Throws Error{not_found}, Error{corrupt_data} and Error{unsupported} with what is
  // wrong in which file.
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

}  // namespace heed
