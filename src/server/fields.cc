#include "server/fields.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "base/numbers.h"
#include "base/text.h"
#include "microscope/traces/point_names.h"

namespace heed::server {
namespace {

constexpr std::size_t max_names = 16;
constexpr std::size_t max_shown_name = 40;

// Fields for OpenAI's accounting, and performance hints.
constexpr std::string_view without_effect =
    "user,metadata,store,service_tier,safety_identifier,prompt_cache_key,prediction,"
    "prompt_cache_retention,parallel_tool_calls";

// What they would change in a reply, unless they are absent, false or empty: OpenAI's, beside
// "tools" and "tool_choice", which chat templates in Jinja take, and those of other servers.
constexpr std::string_view unsupported =
    "suffix,functions,function_call,response_format,modalities,audio,grammar,json_schema,"
    "web_search_options,structured_outputs,regex,ebnf,bad_words,allowed_token_ids,"
    "logits_processors,prompt_logprobs,truncate_prompt_tokens,include_stop_str_in_output,"
    "return_tokens_as_token_ids,use_beam_search,early_stopping,negative_prompt,samplers";
constexpr std::string_view guided = "guided_";  // decoding: guided_json, guided_choice, …

// Settings of other samplers, by the value that turns each off. What only tunes them is ignored.
constexpr std::string_view off_at_0 =
    "mirostat,mirostat_mode,top_a,dry_multiplier,xtc_probability,dynatemp_range,smoothing_factor,"
    "epsilon_cutoff,eta_cutoff,no_repeat_ngram_size,penalty_alpha,n_probs";
constexpr std::string_view off_at_1 =
    "typical_p,tfs_z,encoder_repetition_penalty,guidance_scale,length_penalty,num_beams";

// Values that are equivalent to the default behaviour.
bool asks_for_nothing(std::string_view name, const Json& value) {
  if (value.is_null() || value == false) return true;
  if (value.is_string() || value.is_array() || value.is_object()) {
    if (value.empty() || value == "") return true;
  }
  if (name == "function_call" || name == "tool_choice") return value == "none" || value == "auto";
  if (name == "response_format") return value == Json{{"type", "text"}};
  if (name == "modalities") return value == Json::array({"text"});
  return false;
}

void refuse_sampler(const Fields& fields, std::string_view name, int off) {
  const std::string field(name);
  const Json* const value = fields.find(field.c_str());
  require_field(value == nullptr || *value == off || *value == false, fields.path(field.c_str()),
                field_code::unsupported,
                "{} is not supported by this server; leave the field out, or turn it off with {}",
                field, off);
}

// Field names are untrusted: they must not end the header or be mistaken for another name.
std::string printable(const std::string& name) {
  std::string result;
  for (const char c : name.substr(0, max_shown_name)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-' || c == '.' || c == '[' || c == ']';
    result += plain ? c : '?';
  }
  return name.size() > max_shown_name ? result + "..." : result;
}

}  // namespace

std::string shown(const Json& value) { return shown_json(value); }

Fields::Fields(const Json& object, std::string what, std::string path)
    : object_(object), what_(std::move(what)), path_(std::move(path)) {
  require_field(object_.is_object(), path_, field_code::invalid_type,
                "{} must be a JSON object, not {}", owner(), shown(object_));
}

const char* Fields::owner() const { return what_.empty() ? "the request" : what_.c_str(); }

std::string Fields::label(const char* name) const {
  return what_.empty() ? name : fmt::format("{} of {}", name, what_);
}

std::string Fields::path(const char* name) const {
  return path_.empty() ? name : fmt::format("{}.{}", path_, name);
}

std::vector<std::string> Fields::unread() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : object_.items()) {
    if (!value.is_null() && !read_.contains(name)) names.push_back(name);
  }
  return names;
}

const Json* Fields::find(const char* name) const {
  read_.insert(name);
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

const Json& Fields::at(const char* name) const {
  const Json* const value = find(name);
  require_field(value != nullptr, path(name), field_code::missing, "{} has no \"{}\"", owner(),
                name);
  return *value;
}

std::optional<std::int64_t> Fields::integer(const char* name, std::int64_t min,
                                            std::int64_t max) const {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  // What is above the range of a signed number is refused as too large.
  const bool fits = value->is_number_integer() &&
                    !(value->is_number_unsigned() &&
                      value->get<std::uint64_t>() > static_cast<std::uint64_t>(highest_integer));
  const bool bounded = min != lowest_integer || max != highest_integer;
  const char* const code =
      value->is_number_integer() ? field_code::invalid_value : field_code::invalid_type;
  require_field(fits && value->get<std::int64_t>() >= min && value->get<std::int64_t>() <= max,
                path(name), code, "{} must be a whole number{}, not {}", label(name),
                bounded ? fmt::format(" from {} to {}", min, max) : "", shown(*value));
  return value->get<std::int64_t>();
}

std::optional<double> Fields::number(const char* name, double min, double max) const {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  const bool bounded = min != -highest_number || max != highest_number;
  const char* const code =
      value->is_number() ? field_code::invalid_value : field_code::invalid_type;
  require_field(value->is_number() && value->get<double>() >= min && value->get<double>() <= max,
                path(name), code, "{} must be a number{}, not {}", label(name),
                bounded ? fmt::format(" from {} to {}", min, max) : "", shown(*value));
  return value->get<double>();
}

std::optional<bool> Fields::boolean(const char* name) const {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  require_field(value->is_boolean(), path(name), field_code::invalid_type,
                "{} must be true or false, not {}", label(name), shown(*value));
  return value->get<bool>();
}

std::optional<std::string> Fields::string(const char* name) const {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  require_field(value->is_string(), path(name), field_code::invalid_type,
                "{} must be a string, not {}", label(name), shown(*value));
  return value->get<std::string>();
}

std::vector<std::string> Fields::strings(const char* name, std::size_t max) const {
  const Json* value = find(name);
  if (value == nullptr) return {};
  if (value->is_string()) return {value->get<std::string>()};
  require_field(value->is_array() && value->size() <= max, path(name),
                value->is_array() ? field_code::invalid_value : field_code::invalid_type,
                "{} must be a string or up to {} of them, not {}", label(name), max, shown(*value));
  std::vector<std::string> strings;
  for (const Json& item : *value) {
    require_field(item.is_string(), path(name), field_code::invalid_type,
                  "{} must hold strings, not {}", label(name), shown(item));
    strings.push_back(item.get<std::string>());
  }
  return strings;
}

std::int64_t Fields::required_integer(const char* name) const {
  at(name);
  return *integer(name);
}

float Fields::required_float(const char* name) const {
  const Json& value = at(name);
  const bool fits = value.is_number() && std::isfinite(value.get<float>());
  require_field(fits, path(name), field_code::invalid_type,
                "{} must be a finite 32-bit number, not {}", label(name), shown(value));
  return value.get<float>();
}

std::string Fields::required_string(const char* name) const {
  at(name);
  return *string(name);
}

const Json& Fields::required_list(const char* name) const {
  const Json& value = at(name);
  require_field(value.is_array(), path(name), field_code::invalid_type, "{} must be a list, not {}",
                label(name), shown(value));
  return value;
}

std::vector<float> Fields::required_floats(const char* name) const {
  std::vector<float> values;
  for (const Json& value : required_list(name)) {
    const bool fits = value.is_number() && std::isfinite(value.get<float>());
    require_field(fits, path(name), field_code::invalid_type,
                  "{} must hold finite 32-bit numbers, not {}", label(name), shown(value));
    values.push_back(value.get<float>());
  }
  return values;
}

std::vector<std::int32_t> Fields::required_token_ids(const char* name,
                                                     std::int64_t vocabulary) const {
  return token_ids(required_list(name), vocabulary, label(name), path(name));
}

Fields Fields::required_object(const char* name) const {
  return Fields(at(name), label(name), path(name));
}

void Fields::expect_only(const std::vector<std::string_view>& names) const {
  for (const auto& [key, value] : object_.items()) {
    if (std::ranges::find(names, key) != names.end()) continue;
    const std::vector<std::string> candidates(names.begin(), names.end());
    const std::vector<std::string> nearest = nearest_names(key, candidates, 1);
    const std::string hint =
        nearest.empty() ? "it has no fields" : fmt::format("did you mean \"{}\"?", nearest.front());
    throw FieldError(path(key.substr(0, 100).c_str()), field_code::unknown,
                     fmt::format("{} has an unknown {}; {}", owner(), shown(key), hint));
  }
}

std::vector<std::int32_t> token_ids(const Json& array, std::int64_t vocabulary,
                                    const std::string& label, const std::string& path) {
  std::vector<std::int32_t> ids;
  for (const Json& item : array) {
    // As a double nothing wraps around.
    require_field(item.is_number_integer() && item.get<double>() >= 0 &&
                      item.get<double>() < static_cast<double>(vocabulary),
                  path, field_code::invalid_value,
                  "{} holds {}, which is not a token id from 0 to {}", label, shown(item),
                  vocabulary - 1);
    ids.push_back(item.get<std::int32_t>());
  }
  return ids;
}

void refuse_field(const Fields& fields, std::string_view name) {
  const std::string field(name);
  const Json* const value = fields.find(field.c_str());
  require_field(value == nullptr || asks_for_nothing(name, *value), fields.path(field.c_str()),
                field_code::unsupported, "{} is not supported by this server; leave the field out",
                name);
}

void refuse_unsupported(const Fields& fields) {
  for (const std::string_view name : split_list(unsupported)) refuse_field(fields, name);
  for (const std::string_view name : split_list(off_at_0)) refuse_sampler(fields, name, 0);
  for (const std::string_view name : split_list(off_at_1)) refuse_sampler(fields, name, 1);
  for (const std::string& name : fields.unread()) {
    if (name.starts_with(guided)) refuse_field(fields, name.substr(0, max_shown_name));
  }
}

std::optional<std::string> ignored_fields(const Fields& fields,
                                          const std::vector<std::string>& others) {
  std::vector<std::string> names = fields.unread();
  names.insert(names.end(), others.begin(), others.end());
  const std::vector<std::string_view> known = split_list(without_effect);
  std::erase_if(names, [&](const std::string& name) {
    return std::ranges::find(known, name) != known.end();
  });
  if (names.empty()) return std::nullopt;
  std::string listed;
  for (std::size_t i = 0; i < std::min(names.size(), max_names); ++i) {
    listed += (i == 0 ? "" : ", ") + printable(names[i]);
  }
  if (names.size() > max_names) listed += fmt::format(" and {} more", names.size() - max_names);
  return "ignored fields: " + listed;
}

void warn_of_ignored(const Fields& fields, Reply& reply, const std::vector<std::string>& others) {
  if (auto warning = ignored_fields(fields, others)) {
    reply.headers.emplace_back(warning_header, std::move(*warning));
  }
}

}  // namespace heed::server
