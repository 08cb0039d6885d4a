// A dictionary in SAELens's layout.
#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "microscope/features/dictionary_files.h"

namespace heed {

void save_dictionary(const Dictionary& dictionary, const std::filesystem::path& directory,
                     const OrderedJson& metadata) {
  const DictionarySpecification& own = dictionary.specification();
  const DictionaryWeights& weights = dictionary.weights();
  require(own.points() == 1, ErrorCode::unsupported,
          "a cross-layer transcoder cannot be saved in SAELens's layout");
  std::string architecture(activation_name(own.activation));
  const bool is_transcoder = own.is_transcoder();
  if (is_transcoder) {
    require(own.activation == FeatureActivation::relu ||
                own.activation == FeatureActivation::jump_relu ||
                own.activation == FeatureActivation::top_k,
            ErrorCode::unsupported, "a {} transcoder cannot be saved in SAELens's layout",
            architecture);
    architecture = own.activation == FeatureActivation::jump_relu ? "jumprelu_transcoder"
                   : weights.skip.present()                       ? "skip_transcoder"
                                                                  : "transcoder";
  }
  OrderedJson about = metadata.is_object() ? metadata : OrderedJson::object();
  about["model_name"] = own.model;
  about["hook_name"] = own.input_point;
  about["hook_head_index"] =
      own.input_head < 0 ? OrderedJson(nullptr) : OrderedJson(own.input_head);
  constexpr const char* norms[] = {"none", "constant_norm_rescale", "layer_norm"};
  const bool is_z = own.input_head < 0 && own.input_point.ends_with("hook_z");
  OrderedJson config{{"architecture", architecture},
                     {"d_in", own.inputs},
                     {"d_sae", own.features},
                     {"dtype", "float32"},
                     {"device", "cpu"},
                     {"apply_b_dec_to_input", own.subtracts_decoder_bias},
                     {"normalize_activations", norms[static_cast<int>(own.input_norm)]},
                     {"reshape_activations", is_z ? "hook_z" : "none"}};
  if (own.k > 0) {
    config["k"] = own.k;
    // SAELens's transcoders have no TopK of their own: the older fields say so.
    if (is_transcoder) {
      config["activation_fn"] = "topk";
      config["activation_fn_kwargs"] = {{"k", own.k}};
    }
  }
  if (is_transcoder) {
    config["d_out"] = own.outputs;
    config["hook_name_out"] = own.output_points.front();
    config["hook_head_index_out"] =
        own.output_head < 0 ? OrderedJson(nullptr) : OrderedJson(own.output_head);
  }
  config["metadata"] = std::move(about);

  Tensor<float> logarithms;  // r_mag
  std::vector<OutgoingTensor> tensors;
  const auto add = [&](const char* name, const Tensor<float>& values) {
    if (values.present()) tensors.push_back(outgoing<float>(name, values));
  };
  tensors.push_back(outgoing_transposed("W_enc", weights.encoder));
  tensors.push_back(outgoing<float>(
      "W_dec", View<const float>(weights.decoder.data(), {own.features, own.outputs})));
  add("b_dec", weights.decoder_bias);
  if (own.activation == FeatureActivation::gated) {
    logarithms = Tensor<float>(weights.magnitude.shape());
    for (std::int64_t f = 0; f < own.features; ++f) logarithms[f] = std::log(weights.magnitude[f]);
    add("r_mag", logarithms);
    add("b_gate", weights.gate_bias);
    add("b_mag", weights.encoder_bias);
  } else {
    add("b_enc", weights.encoder_bias);
  }
  add("threshold", weights.threshold);
  add("W_skip", weights.skip);

  OutputDirectory made(directory);
  AtomicFile weights_file(directory / saelens_weights_name),
      config_file(directory / saelens_config_name);
  write_safetensors(weights_file, tensors);
  config_file.write(config.dump(2) + "\n");
  weights_file.finish();
  config_file.finish();
  weights_file.commit();
  config_file.commit();
  made.keep();
}

}  // namespace heed
