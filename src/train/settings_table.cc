#include "train/settings.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/numbers.h"
#include "formats/config_fields.h"

namespace heed {
namespace {

[[noreturn]] void refuse(const char* name, const char* expected, const Json& value) {
  fail(ErrorCode::invalid_argument, "the setting '{}' takes {}, not {}", name, expected,
       value.dump());
}

// JSON integers beyond the range of the setting's type are refused, not wrapped.
template <class Access>
Setting integer(const char* name, Access access) {
  return {name,
          [=](TrainSettings& settings, const Json& value) {
            if (!value.is_number_integer()) refuse(name, "a whole number", value);
            using Integer = std::remove_reference_t<decltype(access(settings))>;
            const bool fits = value.is_number_unsigned()
                                  ? std::in_range<Integer>(value.get<std::uint64_t>())
                                  : std::in_range<Integer>(value.get<std::int64_t>());
            if (!fits) {
              refuse(name,
                     std::is_unsigned_v<Integer> ? "a whole number between 0 and 2^64 - 1"
                                                 : "a whole number below 2^63",
                     value);
            }
            access(settings) = value.get<Integer>();
          },
          [=](const TrainSettings& settings) {
            return Json(access(const_cast<TrainSettings&>(settings)));
          }};
}

// Written with the fewest digits that read back as the same number.
Json shortest(double value) { return value; }
Json shortest(float value) { return shortest_decimal(value); }

template <class Access>
Setting number(const char* name, Access access) {
  return {name,
          [=](TrainSettings& settings, const Json& value) {
            if (!value.is_number()) refuse(name, "a number", value);
            using Number = std::remove_reference_t<decltype(access(settings))>;
            access(settings) = value.get<Number>();
          },
          [=](const TrainSettings& settings) {
            return shortest(access(const_cast<TrainSettings&>(settings)));
          }};
}

template <class Access>
Setting boolean(const char* name, Access access) {
  return {name,
          [=](TrainSettings& settings, const Json& value) {
            if (!value.is_boolean()) refuse(name, "true or false", value);
            access(settings) = value.get<bool>();
          },
          [=](const TrainSettings& settings) {
            return Json(access(const_cast<TrainSettings&>(settings)));
          }};
}

// A value out of a fixed list of words.
template <class Access, class Value>
Setting choice(const char* name, Access access, std::vector<std::pair<const char*, Value>> words) {
  return {name,
          [=](TrainSettings& settings, const Json& value) {
            std::string expected;
            for (const auto& [word, meaning] : words) {
              if (value.is_string() && value.get<std::string>() == word) {
                access(settings) = meaning;
                return;
              }
              expected += fmt::format("{}{}", expected.empty() ? "" : ", ", word);
            }
            refuse(name, ("one of " + expected).c_str(), value);
          },
          [=](const TrainSettings& settings) {
            for (const auto& [word, meaning] : words) {
              if (access(const_cast<TrainSettings&>(settings)) == meaning) return Json(word);
            }
            return Json();
          }};
}

std::vector<std::pair<const char*, Activation>> activation_words() {
  std::vector<std::pair<const char*, Activation>> words;
  for (const auto& row : kernels::activations) {
    words.emplace_back(activation_name(row.activation), row.activation);
  }
  return words;
}

// All biases at once; each has a setting of its own.
Setting biases() {
  return {"bias",
          [](TrainSettings& settings, const Json& value) {
            if (!value.is_boolean()) refuse("bias", "true or false", value);
            set_biases(settings.model, value.get<bool>() ? Biases::all : Biases::none);
          },
          [](const TrainSettings& settings) { return Json(has_biases(settings.model)); }};
}

// The window of each layer, or one for all; 0 or [] for none.
Setting attention_windows() {
  return {"attention_windows",
          [](TrainSettings& settings, const Json& value) {
            MaskSpecification mask;
            const auto add = [&](const Json& window) {
              if (!window.is_number_integer()) refuse("attention_windows", "whole numbers", value);
              mask.windows.push_back(window.get<std::int64_t>());
            };
            if (value.is_array()) {
              for (const Json& window : value) add(window);
            } else {
              for (std::int64_t layer = 0; layer < settings.model.layers; ++layer) add(value);
            }
            const auto none = [](std::int64_t window) { return window == 0; };
            if (std::ranges::all_of(mask.windows, none)) mask.windows.clear();
            if (!mask.windows.empty()) {
              mask.kind = MaskKind::banded;
            } else if (settings.task == Task::masked) {
              mask.kind = MaskKind::full;
            }
            settings.model.block.attention.mask = std::move(mask);
          },
          [](const TrainSettings& settings) {
            return Json(settings.model.block.attention.mask.windows);
          }};
}

// As config.json has it: {"rope_type": …, "factor": …}; null for none.
Setting rotary_scaling() {
  return {"rotary_scaling",
          [](TrainSettings& settings, const Json& value) {
            RotarySpecification& rotary = settings.model.block.attention.rotary;
            const RotarySpecification before = rotary;
            rotary.scaling = {};
            read_rotary({Json{{"rope_scaling", value}}, "rotary_scaling"}, settings.model.context,
                        rotary);
            rotary.base = before.base;
            rotary.fraction = before.fraction;
          },
          [](const TrainSettings& settings) {
            OrderedJson json;
            write_rotary_scaling(settings.model.block.attention.rotary, json);
            return json.contains("rope_scaling") ? Json(json["rope_scaling"]) : Json(nullptr);
          }};
}

#define HEED_MEMBER(member) \
  [](TrainSettings & settings) -> auto& { return settings.member; /* NOLINT(*-macro-*) */ }

}  // namespace

const std::vector<Setting>& all_settings() {
  static const std::vector<Setting> table{
      choice("task", HEED_MEMBER(task),
             std::vector<std::pair<const char*, Task>>{{"language_model", Task::language_model},
                                                       {"masked", Task::masked},
                                                       {"pairs", Task::pairs}}),
      integer("vocabulary_size", HEED_MEMBER(model.vocabulary_size)),
      integer("context", HEED_MEMBER(model.context)),
      integer("channels", HEED_MEMBER(model.channels)),
      integer("layers", HEED_MEMBER(model.layers)),
      integer("encoder_layers", HEED_MEMBER(encoder_layers)),
      integer("heads", HEED_MEMBER(model.block.attention.query_heads)),
      integer("key_value_heads", HEED_MEMBER(model.block.attention.key_value_heads)),
      integer("head_size", HEED_MEMBER(model.block.attention.head_size)),
      integer("feed_forward", HEED_MEMBER(model.block.feed_forward.width)),
      choice("activation", HEED_MEMBER(model.block.feed_forward.activation), activation_words()),
      boolean("gated", HEED_MEMBER(model.block.feed_forward.gated)),
      choice("norm", HEED_MEMBER(model.block.norm.kind),
             std::vector<std::pair<const char*, NormKind>>{{"layer", NormKind::layer},
                                                           {"rms", NormKind::rms}}),
      choice("norm_placement", HEED_MEMBER(model.block.norm.placement),
             std::vector<std::pair<const char*, NormPlacement>>{{"pre", NormPlacement::pre},
                                                                {"post", NormPlacement::post},
                                                                {"output", NormPlacement::output},
                                                                {"around", NormPlacement::around}}),
      boolean("final_norm", HEED_MEMBER(model.final_norm)),
      number("norm_epsilon", HEED_MEMBER(model.block.norm.epsilon)),
      choice("positions", HEED_MEMBER(model.block.attention.positions),
             std::vector<std::pair<const char*, PositionKind>>{
                 {"learned", PositionKind::learned},
                 {"sinusoidal", PositionKind::sinusoidal},
                 {"rotary", PositionKind::rotary},
                 {"relative", PositionKind::relative},
                 {"none", PositionKind::none}}),
      choice("sinusoids", HEED_MEMBER(model.block.attention.sinusoids),
             std::vector<std::pair<const char*, SinusoidOrder>>{
                 {"interleaved", SinusoidOrder::interleaved}, {"halves", SinusoidOrder::halves}}),
      integer("relative_buckets", HEED_MEMBER(model.block.attention.relative.buckets)),
      integer("relative_distance", HEED_MEMBER(model.block.attention.relative.max_distance)),
      number("rotary_base", HEED_MEMBER(model.block.attention.rotary.base)),
      number("rotary_fraction", HEED_MEMBER(model.block.attention.rotary.fraction)),
      number("rotary_local_base", HEED_MEMBER(model.block.attention.rotary.local_base)),
      rotary_scaling(),
      attention_windows(),
      boolean("query_key_norm", HEED_MEMBER(model.block.attention.query_key_norm)),
      choice(
          "query_key_norm_of", HEED_MEMBER(model.block.attention.head_norms),
          std::vector<std::pair<const char*, HeadNormExtent>>{
              {"each_head", HeadNormExtent::each_head}, {"all_heads", HeadNormExtent::all_heads}}),
      choice("residual", HEED_MEMBER(model.block.residual),
             std::vector<std::pair<const char*, ResidualKind>>{
                 {"sequential", ResidualKind::sequential},
                 {"parallel", ResidualKind::parallel},
                 {"parallel_shared", ResidualKind::parallel_shared}}),
      number("initial_deviation", HEED_MEMBER(model.initial_deviation)),
      number("embedding_scale", HEED_MEMBER(model.embedding_scale)),
      boolean("embedding_norm", HEED_MEMBER(model.embedding_norm)),
      integer("token_types", HEED_MEMBER(model.token_types)),
      number("logit_scale", HEED_MEMBER(model.logit_scale)),
      number("logit_soft_cap", HEED_MEMBER(model.logit_cap)),
      boolean("prediction_head", HEED_MEMBER(model.prediction_head)),
      biases(),
      boolean("norm_bias", HEED_MEMBER(model.block.norm.bias)),
      boolean("query_bias", HEED_MEMBER(model.block.attention.query_bias)),
      boolean("output_bias", HEED_MEMBER(model.block.attention.output_bias)),
      boolean("feed_forward_bias", HEED_MEMBER(model.block.feed_forward.bias)),
      boolean("tied_head", HEED_MEMBER(model.tied_unembedding)),
      boolean("head_bias", HEED_MEMBER(model.unembedding_bias)),
      integer("end_of_text", HEED_MEMBER(model.end_of_text)),
      number("embedding_dropout", HEED_MEMBER(model.embedding_dropout)),
      number("attention_dropout", HEED_MEMBER(model.attention_dropout)),
      number("residual_dropout", HEED_MEMBER(model.residual_dropout)),
      {"tokenizer",
       [](TrainSettings& settings, const Json& value) {
         if (!value.is_string()) refuse("tokenizer", "char, bpe, joint or a path", value);
         settings.tokenizer = value.get<std::string>();
       },
       [](const TrainSettings& settings) { return Json(settings.tokenizer); }},
      number("validation_fraction", HEED_MEMBER(validation_fraction)),
      integer("steps", HEED_MEMBER(steps)),
      integer("batch_size", HEED_MEMBER(batch_size)),
      integer("batch_tokens", HEED_MEMBER(batch_tokens)),
      integer("accumulation", HEED_MEMBER(accumulation)),
      integer("sequence_length", HEED_MEMBER(sequence_length)),
      integer("sequence_parallel", HEED_MEMBER(sequence_parallel)),
      choice("windows", HEED_MEMBER(windows),
             std::vector<std::pair<const char*, Windows>>{{"stream", Windows::stream},
                                                          {"documents", Windows::documents},
                                                          {"prompts", Windows::prompts}}),
      number("masked_fraction", HEED_MEMBER(masked_fraction)),
      choice("precision", HEED_MEMBER(precision),
             std::vector<std::pair<const char*, std::optional<kernels::Precision>>>{
                 {"auto", std::nullopt},
                 {"f32", kernels::Precision::f32},
                 {"bf16", kernels::Precision::bf16}}),
      boolean("recompute", HEED_MEMBER(recompute)),
      integer("shard", HEED_MEMBER(shard)),
      choice("wire", HEED_MEMBER(wire),
             std::vector<std::pair<const char*, Wire>>{{"f32", Wire::f32}, {"bf16", Wire::bf16}}),
      number("label_smoothing", HEED_MEMBER(label_smoothing)),
      number("learning_rate", HEED_MEMBER(learning_rate)),
      number("min_learning_rate", HEED_MEMBER(min_learning_rate)),
      choice(
          "schedule", HEED_MEMBER(schedule),
          std::vector<std::pair<const char*, Schedule>>{{"constant", Schedule::constant},
                                                        {"linear", Schedule::linear},
                                                        {"cosine", Schedule::cosine},
                                                        {"inverse_sqrt", Schedule::inverse_sqrt}}),
      integer("warmup_steps", HEED_MEMBER(warmup_steps)),
      integer("decay_steps", HEED_MEMBER(decay_steps)),
      number("beta1", HEED_MEMBER(beta1)),
      number("beta2", HEED_MEMBER(beta2)),
      number("epsilon", HEED_MEMBER(epsilon)),
      number("weight_decay", HEED_MEMBER(weight_decay)),
      number("clip", HEED_MEMBER(clip)),
      integer("seed", HEED_MEMBER(seed)),
      integer("evaluate_every", HEED_MEMBER(evaluate_every)),
      integer("evaluation_batches", HEED_MEMBER(evaluation_batches)),
      integer("early_stop", HEED_MEMBER(early_stop)),
      integer("average_checkpoints", HEED_MEMBER(average_checkpoints)),
      integer("checkpoint_every", HEED_MEMBER(checkpoint_every)),
      integer("keep_every", HEED_MEMBER(keep_every)),
      integer("sample_every", HEED_MEMBER(sample_every)),
      integer("sample_tokens", HEED_MEMBER(sample_tokens)),
      choice(
          "measure", HEED_MEMBER(measure),
          std::vector<std::pair<const char*, Measure>>{
              {"none", Measure::none}, {"induction", Measure::induction}, {"bleu", Measure::bleu}}),
      integer("beams", HEED_MEMBER(beams)),
      number("length_penalty", HEED_MEMBER(length_penalty)),
  };
  return table;
}

#undef HEED_MEMBER

}  // namespace heed
