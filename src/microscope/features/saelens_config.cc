#include "microscope/features/saelens_config.h"

#include <fmt/ranges.h>

#include <array>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "base/utf8.h"

namespace heed {
namespace {

using enum ErrorCode;

// More than any published dictionary: sizes are checked against tensors, too.
constexpr std::int64_t most_inputs = 1 << 24, most_features = 1 << 28;

struct SaelensArchitecture {
  std::string_view name;
  FeatureActivation activation;
  bool is_transcoder = false;
  bool has_skip = false;
};
constexpr std::array saelens_architectures = {
    SaelensArchitecture{"standard", FeatureActivation::relu},
    SaelensArchitecture{"gated", FeatureActivation::gated},
    SaelensArchitecture{"topk", FeatureActivation::top_k},
    SaelensArchitecture{"batchtopk", FeatureActivation::batch_top_k},
    SaelensArchitecture{"matryoshka_batchtopk", FeatureActivation::batch_top_k},
    SaelensArchitecture{"jumprelu", FeatureActivation::jump_relu},
    SaelensArchitecture{"transcoder", FeatureActivation::relu, true},
    SaelensArchitecture{"skip_transcoder", FeatureActivation::relu, true, true},
    SaelensArchitecture{"jumprelu_transcoder", FeatureActivation::jump_relu, true}};

class SaelensFields {
 public:
  SaelensFields(const Json& config, const std::string& source) : config_(config), source_(source) {
    require(config.is_object(), corrupt_data, "{}: is {}, expected an object", source,
            shown_json(config));
    metadata_ = find_json_member(config, "metadata");
    require(metadata_ == nullptr || metadata_->is_object(), corrupt_data,
            "{}: metadata is no object", source);
  }

  // A field by any of its names, at the top or in the metadata; null where it is absent.
  const Json* find(std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      if (const Json* const value = find_json_member(config_, name)) return value;
      if (metadata_ == nullptr) continue;
      if (const Json* const value = find_json_member(*metadata_, name)) return value;
    }
    return nullptr;
  }
  JsonLabel label(const char* name) const { return {fmt::format("{}: {}", source_, name)}; }

  std::string text(std::initializer_list<const char*> names, std::string_view absent = {}) const {
    const Json* const value = find(names);
    return value == nullptr ? std::string(absent) : json_string(*value, label(*names.begin()));
  }
  bool flag(const char* name, bool absent) const {
    const Json* const value = find({name});
    return value == nullptr ? absent : json_boolean(*value, label(name));
  }
  std::int64_t size(const char* name, std::int64_t most) const {
    const Json* const value = find({name});
    require(value != nullptr, corrupt_data, "{}: {} is missing", source_, name);
    return json_integer(*value, label(name), 1, most);
  }
  std::int64_t index(std::initializer_list<const char*> names) const {
    const Json* const value = find(names);
    return value == nullptr ? -1 : json_integer(*value, label(*names.begin()), 0, 1 << 20);
  }

 private:
  const Json& config_;
  const std::string& source_;
  const Json* metadata_ = nullptr;
};

const SaelensArchitecture& architecture_named(const std::string& name, const std::string& source) {
  std::vector<std::string_view> known;
  for (const SaelensArchitecture& architecture : saelens_architectures) {
    if (architecture.name == name) return architecture;
    known.push_back(architecture.name);
  }
  fail(unsupported, "{}: the architecture {} is unknown, expected {}", source, in_quotes(name),
       fmt::join(known, ", "));
}

// "blocks.{layer}.hook_resid_pre" of the oldest ones, with a layer beside it.
std::string with_layer(std::string point, std::int64_t layer, const std::string& source) {
  constexpr std::string_view place = "{layer}";
  if (const std::size_t at = point.find(place); at != std::string::npos) {
    require(layer >= 0, corrupt_data, "{}: the point {} names no layer", source, in_quotes(point));
    point.replace(at, place.size(), std::to_string(layer));
  }
  return point;
}

// k, and the activation that older configs of "standard" name beside it.
void read_activation(const SaelensFields& fields, const std::string& source,
                     DictionarySpecification& specification) {
  const std::string function = fields.text({"activation_fn_str", "activation_fn"}, "relu");
  if (function.starts_with("topk")) {
    if (specification.activation == FeatureActivation::relu) {
      specification.activation = FeatureActivation::top_k;
    }
  } else {
    require(function == "relu", unsupported,
            "{}: the activation {} is unknown, expected relu or topk", source, in_quotes(function));
  }
  const bool takes_k = specification.activation == FeatureActivation::top_k ||
                       specification.activation == FeatureActivation::batch_top_k;
  if (!takes_k) return;
  const Json* k = fields.find({"k"});
  if (k == nullptr) {
    const Json* const arguments = fields.find({"activation_fn_kwargs"});
    if (arguments != nullptr) k = find_json_member(*arguments, "k");
  }
  require(k != nullptr, corrupt_data, "{}: k is missing, the number of active features", source);
  // BatchTopK's may be a fraction on average; it is rounded down, as its threshold is learned.
  specification.k =
      k->is_number_float()
          ? static_cast<std::int64_t>(json_real(*k, fields.label("k"), 1, double{most_features}))
          : json_integer(*k, fields.label("k"), 1, most_features);
}

void read_norm(const SaelensFields& fields, const std::string& source, SaelensConfig& read) {
  const Json* const value = fields.find({"normalize_activations"});
  if (value == nullptr) return;
  if (value->is_boolean()) {
    read.expects_average_norm = value->get<bool>();
    return;
  }
  const std::string norm = json_string(*value, fields.label("normalize_activations"));
  if (norm == "constant_norm_rescale") {
    read.specification.input_norm = InputNorm::constant_norm;
  } else if (norm == "layer_norm") {
    read.specification.input_norm = InputNorm::layer_norm;
  } else if (norm == "expected_average_only_in") {
    read.expects_average_norm = true;
  } else {
    require(norm == "none", unsupported,
            "{}: normalize_activations is {}, expected none, expected_average_only_in, "
            "constant_norm_rescale or layer_norm",
            source, in_quotes(norm));
  }
}

}  // namespace

SaelensConfig read_saelens_config(const Json& config, const std::string& source) {
  const SaelensFields fields(config, source);
  const SaelensArchitecture& architecture =
      architecture_named(fields.text({"architecture"}, "standard"), source);
  SaelensConfig read;
  DictionarySpecification& own = read.specification;
  own.activation = architecture.activation;
  own.inputs = fields.size("d_in", most_inputs);
  own.features = fields.size("d_sae", most_features);
  read_activation(fields, source, own);
  read_norm(fields, source, read);
  own.model = fields.text({"model_name"});
  own.input_point = with_layer(fields.text({"hook_name", "hook_point"}),
                               fields.index({"hook_layer", "hook_point_layer"}), source);
  own.input_head = fields.index({"hook_head_index", "hook_point_head_index"});
  const bool is_transcoder = architecture.is_transcoder || fields.flag("is_transcoder", false);
  if (is_transcoder) {
    const Json* const width = fields.find({"d_out"});
    own.outputs =
        width == nullptr ? own.inputs : json_integer(*width, fields.label("d_out"), 1, most_inputs);
    own.output_points = {
        with_layer(fields.text({"hook_name_out", "out_hook_point"}, own.input_point),
                   fields.index({"hook_layer_out", "out_hook_point_layer"}), source)};
    own.output_head = fields.index({"hook_head_index_out"});
  } else {
    own.outputs = own.inputs;
    own.output_points = {own.input_point};
    own.output_head = own.input_head;
    own.subtracts_decoder_bias = fields.flag("apply_b_dec_to_input", true);
  }
  read.has_skip = architecture.has_skip;
  read.has_decoder_scale = fields.flag("finetuning_scaling_factor", false);
  read.rescales_by_decoder = fields.flag("rescale_acts_by_decoder_norm", false);
  const std::string reshaped = fields.text({"reshape_activations"}, "none");
  require(reshaped == "none" || reshaped == "hook_z", unsupported,
          "{}: reshape_activations is {}, expected none or hook_z", source, in_quotes(reshaped));
  return read;
}

}  // namespace heed
