#include "train/settings.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "base/error.h"
#include "base/nearest_names.h"

namespace heed {
namespace {

// A setting has a name, a reader from JSON and a writer to JSON. Text from the command line is
// parsed as JSON, or taken as a string where it is not valid JSON.
struct Setting {
  const char* name;
  std::function<void(TrainSettings&, const Json&)> read;
  std::function<Json(const TrainSettings&)> write;
};

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

// Written with the fewest digits that read back as the same float.
Json shortest(double value) { return value; }
Json shortest(float value) { return std::stod(fmt::format("{}", value)); }

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

std::vector<std::pair<const char*, Activation>> named(std::initializer_list<Activation> kinds) {
  std::vector<std::pair<const char*, Activation>> names;
  for (const Activation kind : kinds) names.emplace_back(activation_name(kind), kind);
  return names;
}

#define HEED_MEMBER(member) \
  [](TrainSettings & settings) -> auto& { return settings.member; /* NOLINT(*-macro-*) */ }

const std::vector<Setting>& all_settings() {
  static const std::vector<Setting> table{
      integer("vocabulary_size", HEED_MEMBER(model.vocabulary_size)),
      integer("context", HEED_MEMBER(model.context)),
      integer("channels", HEED_MEMBER(model.channels)),
      integer("layers", HEED_MEMBER(model.layers)),
      integer("heads", HEED_MEMBER(model.heads)),
      integer("head_size", HEED_MEMBER(model.head_size)),
      integer("feed_forward", HEED_MEMBER(model.feed_forward)),
      choice("activation", HEED_MEMBER(model.activation),
             named({Activation::gelu_tanh, Activation::gelu_erf, Activation::relu})),
      number("norm_epsilon", HEED_MEMBER(model.norm_epsilon)),
      number("initial_deviation", HEED_MEMBER(model.initial_deviation)),
      boolean("bias", HEED_MEMBER(model.has_bias)),
      boolean("tied_head", HEED_MEMBER(model.tied_unembedding)),
      boolean("head_bias", HEED_MEMBER(model.unembedding_bias)),
      integer("end_of_text", HEED_MEMBER(model.end_of_text)),
      number("embedding_dropout", HEED_MEMBER(model.embedding_dropout)),
      number("attention_dropout", HEED_MEMBER(model.attention_dropout)),
      number("residual_dropout", HEED_MEMBER(model.residual_dropout)),
      {"tokenizer",
       [](TrainSettings& settings, const Json& value) {
         if (!value.is_string()) refuse("tokenizer", "char, bpe or a path", value);
         settings.tokenizer = value.get<std::string>();
       },
       [](const TrainSettings& settings) { return Json(settings.tokenizer); }},
      number("validation_fraction", HEED_MEMBER(validation_fraction)),
      integer("steps", HEED_MEMBER(steps)),
      integer("batch_size", HEED_MEMBER(batch_size)),
      integer("accumulation", HEED_MEMBER(accumulation)),
      integer("sequence_length", HEED_MEMBER(sequence_length)),
      choice("windows", HEED_MEMBER(windows),
             std::vector<std::pair<const char*, Windows>>{{"stream", Windows::stream},
                                                          {"documents", Windows::documents},
                                                          {"prompts", Windows::prompts}}),
      choice("precision", HEED_MEMBER(precision),
             std::vector<std::pair<const char*, kernels::Precision>>{
                 {"f32", kernels::Precision::f32}, {"bf16", kernels::Precision::bf16}}),
      boolean("recompute", HEED_MEMBER(recompute)),
      number("learning_rate", HEED_MEMBER(learning_rate)),
      number("min_learning_rate", HEED_MEMBER(min_learning_rate)),
      choice("schedule", HEED_MEMBER(schedule),
             std::vector<std::pair<const char*, Schedule>>{{"constant", Schedule::constant},
                                                           {"linear", Schedule::linear},
                                                           {"cosine", Schedule::cosine}}),
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
      integer("checkpoint_every", HEED_MEMBER(checkpoint_every)),
      integer("keep_every", HEED_MEMBER(keep_every)),
      integer("sample_every", HEED_MEMBER(sample_every)),
      integer("sample_tokens", HEED_MEMBER(sample_tokens)),
      choice("measure", HEED_MEMBER(measure),
             std::vector<std::pair<const char*, Measure>>{{"none", Measure::none},
                                                          {"induction", Measure::induction}}),
  };
  return table;
}

#undef HEED_MEMBER

const Setting* find_setting(std::string_view name) {
  const auto& settings = all_settings();
  const auto found = std::ranges::find(settings, name, &Setting::name);
  return found == settings.end() ? nullptr : &*found;
}

const Setting& get_setting(std::string_view name, const std::string& source) {
  if (const Setting* setting = find_setting(name)) return *setting;
  std::vector<std::string> names;
  for (const Setting& setting : all_settings()) names.emplace_back(setting.name);
  fail(ErrorCode::invalid_argument, "{}there is no setting '{}'; did you mean '{}'?", source, name,
       nearest_names(name, names, 1).front());
}

// "dropout" stands for all three rates.
constexpr const char* dropout_rates[] = {"embedding_dropout", "attention_dropout",
                                         "residual_dropout"};

void apply_one(TrainSettings& settings, std::string_view name, const Json& value,
               const std::string& source) {
  if (name == "dropout") {
    for (const char* rate : dropout_rates) get_setting(rate, source).read(settings, value);
    return;
  }
  get_setting(name, source).read(settings, value);
}

// Sizes that follow from others keep the usual proportions until they are set themselves.
void derive_sizes(TrainSettings& settings, std::string_view changed) {
  GptConfig& model = settings.model;
  if ((changed == "channels" || changed == "heads") && model.heads > 0) {
    model.head_size = model.channels / model.heads;
  }
  if (changed == "channels") model.feed_forward = 4 * model.channels;
}

// With these, no count of a step's tokens or of a run's passes can pass 2^63.
constexpr std::int64_t most_steps = std::int64_t{1} << 32;
constexpr std::int64_t most_sequences = std::int64_t{1} << 16;

void require_between(std::int64_t value, std::int64_t least, std::int64_t most, const char* name) {
  require(value >= least && value <= most, ErrorCode::invalid_argument,
          "the setting '{}' must be between {} and {}, not {}", name, least, most, value);
}

void require_at_least(std::int64_t value, std::int64_t least, const char* name) {
  require(value >= least, ErrorCode::invalid_argument,
          "the setting '{}' must be at least {}, not {}", name, least, value);
}

void require_number(double value, bool holds, const char* name, const char* expected) {
  require(std::isfinite(value) && holds, ErrorCode::invalid_argument,
          "the setting '{}' must be {}, not {}", name, expected, value);
}

}  // namespace

void TrainSettings::validate() const {
  // Under the names that settings have: the model's own are those of config.json.
  for (const auto& [name, rate] : {std::pair("embedding_dropout", model.embedding_dropout),
                                   std::pair("attention_dropout", model.attention_dropout),
                                   std::pair("residual_dropout", model.residual_dropout)}) {
    require_number(rate, rate >= 0 && rate < 1, name, "at least 0 and below 1");
  }
  model.validate();
  require(model.channels % model.heads == 0 || model.head_size != model.channels / model.heads,
          ErrorCode::invalid_argument,
          "{} channels cannot be divided into {} heads of equal size: change one of them, or set "
          "head_size",
          model.channels, model.heads);
  require(!tokenizer.empty(), ErrorCode::invalid_argument, "the setting 'tokenizer' is empty");
  require_number(validation_fraction, validation_fraction >= 0 && validation_fraction < 1,
                 "validation_fraction", "at least 0 and below 1");
  require_between(steps, 1, most_steps, "steps");
  require_between(batch_size, 1, most_sequences, "batch_size");
  require_between(accumulation, 1, most_sequences, "accumulation");
  require(sequence_length >= 0 && sequence_length <= model.context, ErrorCode::invalid_argument,
          "the setting 'sequence_length' must be between 0 and the context of {}, not {}",
          model.context, sequence_length);
  require_number(learning_rate, learning_rate > 0, "learning_rate", "positive");
  require_number(min_learning_rate, min_learning_rate >= 0, "min_learning_rate", "at least 0");
  require_at_least(warmup_steps, 0, "warmup_steps");
  require_at_least(decay_steps, 0, "decay_steps");
  require_number(beta1, beta1 >= 0 && beta1 < 1, "beta1", "at least 0 and below 1");
  require_number(beta2, beta2 >= 0 && beta2 < 1, "beta2", "at least 0 and below 1");
  require_number(epsilon, epsilon > 0, "epsilon", "positive");
  require_number(weight_decay, weight_decay >= 0, "weight_decay", "at least 0");
  require_number(clip, clip >= 0, "clip", "at least 0");
  require_at_least(evaluate_every, 0, "evaluate_every");
  require_at_least(evaluation_batches, 0, "evaluation_batches");
  require_at_least(checkpoint_every, 0, "checkpoint_every");
  require_at_least(keep_every, 0, "keep_every");
  require_at_least(sample_every, 0, "sample_every");
  require_at_least(sample_tokens, 1, "sample_tokens");
}

void set_setting(TrainSettings& settings, std::string_view name, std::string_view value) {
  Json parsed = Json::parse(value.begin(), value.end(), nullptr, /*allow_exceptions=*/false);
  if (parsed.is_discarded()) parsed = std::string(value);
  apply_one(settings, name, parsed, "");
  derive_sizes(settings, name);
}

void apply_settings(TrainSettings& settings, const Json& values, const std::string& source) {
  require(values.is_object(), ErrorCode::corrupt_data, "{}: expected a JSON object of settings",
          source);
  // First what others follow from, so that a file may state them in any order.
  for (const char* leading : {"channels", "heads"}) {
    if (!values.contains(leading)) continue;
    apply_one(settings, leading, values[leading], source + ": ");
    derive_sizes(settings, leading);
  }
  for (const auto& [name, value] : values.items()) {
    apply_one(settings, name, value, source + ": ");
  }
}

OrderedJson settings_to_json(const TrainSettings& settings) {
  OrderedJson json;
  for (const Setting& setting : all_settings()) json[setting.name] = setting.write(settings);
  return json;
}

std::vector<std::string> settings_differences(const TrainSettings& before,
                                              const TrainSettings& after) {
  std::vector<std::string> differences;
  for (const Setting& setting : all_settings()) {
    const Json was = setting.write(before);
    const Json is = setting.write(after);
    if (was != is) {
      differences.push_back(fmt::format("{}: {} -> {}", setting.name, was.dump(), is.dump()));
    }
  }
  return differences;
}

}  // namespace heed
