#include "server/field_support.h"

#include <algorithm>
#include <string_view>

#include "base/numbers.h"

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
