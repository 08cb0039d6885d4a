#include "server/completion_request.h"

#include "server/chat_messages.h"
#include "server/fields.h"
#include "server/sampling_fields.h"

namespace heed::server {

namespace {

constexpr std::size_t max_stop_strings = 16;
constexpr std::size_t max_stop_string = 1024;
constexpr std::size_t max_stop_tokens = 64;
constexpr std::int64_t max_likeliest = 20;
constexpr std::int64_t unlimited_tokens = INT32_MAX;

std::vector<std::string> read_stop_strings(const Fields& fields, const LoadedModel& model) {
  std::vector<std::string> stops = fields.strings("stop", max_stop_strings);
  for (const std::string& stop : stops) {
    require_field(!stop.empty() && stop.size() <= max_stop_string, fields.path("stop"),
                  field_code::invalid_value, "a stop string has 1 to {} bytes, not {}",
                  max_stop_string, stop.size());
  }
  if (!stops.empty()) model.require_tokenizer();
  return stops;
}

bool read_streams_usage(const Fields& fields) {
  if (!fields.has("stream_options")) return false;
  return fields.required_object("stream_options").boolean("include_usage").value_or(false);
}

// `max_completion_tokens` is OpenAI's newer name and takes precedence; `n_predict` is llama.cpp's,
// where -1 is as many as fit.
std::optional<std::int64_t> read_max_tokens(const Fields& fields) {
  const auto older = fields.integer("max_tokens", 0, unlimited_tokens);
  const auto newer = fields.integer("max_completion_tokens", 0, unlimited_tokens);
  auto others = fields.integer("n_predict", -1, unlimited_tokens);
  if (others == -1) others = unlimited_tokens;
  return newer ? newer : older ? older : others;
}

std::vector<std::int32_t> read_stop_tokens(const Fields& fields, std::int64_t vocabulary) {
  if (!fields.has("stop_token_ids")) return {};
  const std::size_t count = fields.required_list("stop_token_ids").size();
  require_field(count <= max_stop_tokens, fields.path("stop_token_ids"), field_code::invalid_value,
                "stop_token_ids has {} ids; at most {} are accepted", count, max_stop_tokens);
  return fields.required_token_ids("stop_token_ids", vocabulary);
}

// At most as many as the reply may have.
std::int64_t read_min_tokens(const Fields& fields, std::int64_t max_tokens) {
  const std::int64_t least = fields.integer("min_tokens", 0, unlimited_tokens).value_or(0);
  require_field(least <= max_tokens, fields.path("min_tokens"), field_code::invalid_value,
                "min_tokens ({}) must not be greater than max_tokens ({})", least, max_tokens);
  return least;
}

// Chats return neither their prompt nor the best of several replies.
void refuse_fields_of_completions(const Fields& fields, std::int64_t choices) {
  require_field(!fields.boolean("echo").value_or(false), "echo", field_code::unsupported,
                "echo is not supported in chats; use /v1/completions");
  require_field(fields.integer("best_of").value_or(choices) == choices, "best_of",
                field_code::unsupported, "best_of is not supported in chats; use /v1/completions");
}

// Fields of both kinds of request.
CompletionRequest read_common(const Fields& fields, const LoadedModel& model,
                              const CompletionLimits& limits) {
  const std::int64_t vocabulary = model.transformer.specification().vocabulary_size;
  refuse_unsupported(fields);
  CompletionRequest request;
  request.context = limits.prompts.tokens;
  request.choices = fields.integer("n", 1, limits.choices).value_or(1);
  request.candidates = request.choices;
  request.streams = fields.boolean("stream").value_or(false);
  request.streams_usage = read_streams_usage(fields);
  request.sequence.sampling = read_sampling(fields);
  request.sequence.logit_bias = read_logit_bias(fields, vocabulary);
  request.sequence.stop_strings = read_stop_strings(fields, model);
  request.sequence.stop_tokens = read_stop_tokens(fields, vocabulary);
  request.sequence.ignore_end_of_text = fields.boolean("ignore_eos").value_or(false);
  request.sequence.hides_special_tokens = fields.boolean("skip_special_tokens").value_or(true);
  return request;
}

}  // namespace

CompletionRequest read_completion_request(const Fields& fields, const LoadedModel& model,
                                          const CompletionLimits& limits) {
  CompletionRequest request = read_common(fields, model, limits);
  refuse_field(fields, "tools");
  refuse_field(fields, "tool_choice");
  request.candidates = fields.integer("best_of", 1, limits.choices).value_or(request.choices);
  request.echoes = fields.boolean("echo").value_or(false);
  request.log_probabilities = fields.integer("logprobs", 0, max_likeliest);
  require_field(request.candidates >= request.choices, "best_of", field_code::invalid_value,
                "best_of ({}) must not be smaller than n ({})", request.candidates,
                request.choices);
  require_field(!request.streams || request.candidates == request.choices, "best_of",
                field_code::invalid_value,
                "best_of cannot be streamed: the best text is known only at the end");
  request.sequence.max_tokens = read_max_tokens(fields).value_or(default_max_tokens);
  request.sequence.min_tokens = read_min_tokens(fields, request.sequence.max_tokens);
  request.prompts = read_prompts(fields.find("prompt"), model, limits.prompts, "prompt");
  const std::int64_t sequences = std::ssize(request.prompts) * request.candidates;
  require_field(sequences <= limits.sequences, request.prompts.size() > 1 ? "prompt" : "n",
                field_code::invalid_value,
                "{} prompts with {} choices each are {} texts, more than the {} of one request",
                request.prompts.size(), request.candidates, sequences, limits.sequences);
  // Candidates are ranked by the mean log-probability of their tokens.
  const bool ranks = request.candidates > request.choices;
  request.sequence.top = request.log_probabilities;
  if (ranks && !request.sequence.top) request.sequence.top = 0;
  request.sequence.scores_prompt = request.echoes && request.log_probabilities.has_value();
  return request;
}

CompletionRequest read_chat_request(const ChatRequestText& text, const LoadedModel& model,
                                    const ChatTemplate& chat_template,
                                    const CompletionLimits& limits) {
  const Fields& fields = text.fields;
  CompletionRequest request = read_common(fields, model, limits);
  refuse_fields_of_completions(fields, request.choices);
  const auto likeliest = fields.integer("top_logprobs", 0, max_likeliest);
  const bool has_log_probabilities = fields.boolean("logprobs").value_or(false);
  require_field(has_log_probabilities || !likeliest, "top_logprobs", field_code::invalid_value,
                "top_logprobs needs \"logprobs\": true");
  if (has_log_probabilities) request.log_probabilities = likeliest.value_or(0);
  request.sequence.top = request.log_probabilities;
  request.sequence.max_tokens = read_max_tokens(fields).value_or(unlimited_tokens);
  request.sequence.min_tokens = read_min_tokens(fields, request.sequence.max_tokens);
  require_field(request.choices <= limits.sequences, "n", field_code::invalid_value,
                "n ({}) is more than the {} texts of one request", request.choices,
                limits.sequences);
  ChatRequestPrompt chat = read_chat_prompt(fields, text.body, chat_template);
  request.prompts = {chat_template.encode(chat.prompt, model.require_tokenizer(), text.stop)};
  require_field(!request.prompts.front().empty(), "messages", field_code::invalid_value,
                "{} makes no text of these messages", chat_template.name());
  request.continues_message = chat.prompt.end == chat::ChatEnd::turn_open;
  request.ignored = std::move(chat.ignored);
  require_prompt_fits(request.prompts.front(), limits.prompts, "messages");
  for (const std::string& stop : chat_template.stop_strings()) {
    request.sequence.stop_strings.push_back(stop);
  }
  return request;
}

namespace {

std::vector<std::int32_t> beginning_of_text(const LoadedModel& model, const char* field) {
  if (model.is_encoder() && model.tokenizer != nullptr) {
    const auto tokens = model.tokenizer->encode("", {.add_beginning = true, .add_ending = true});
    if (!tokens.empty()) return tokens;
  }
  const std::optional<std::int32_t> beginning = model.beginning_of_text();
  require_field(beginning.has_value(), field, field_code::invalid_value,
                "{} is empty, and this model has no token that begins a text", field);
  return {*beginning};
}

std::vector<std::int32_t> read_prompt(const Json& prompt, const LoadedModel& model,
                                      const char* field) {
  if (prompt.is_array()) {
    require_field(!prompt.empty(), field, field_code::invalid_value,
                  "{} holds a list without tokens", field);
    return token_ids(prompt, model.transformer.specification().vocabulary_size, field, field);
  }
  require_field(prompt.is_string(), field, field_code::invalid_type,
                "{} must be a string, a list of token ids, or a list of either, not {}", field,
                shown(prompt));
  const auto& text = prompt.get_ref<const std::string&>();
  if (text.empty()) return beginning_of_text(model, field);
  return model.encode(text);
}

}  // namespace

std::vector<std::vector<std::int32_t>> read_prompts(const Json* prompt, const LoadedModel& model,
                                                    const PromptLimits& limits, const char* field) {
  std::vector<std::vector<std::int32_t>> prompts;
  const bool is_list =
      prompt != nullptr && prompt->is_array() && !prompt->empty() && !prompt->front().is_number();
  if (prompt == nullptr) {
    prompts.push_back(beginning_of_text(model, field));
  } else if (!is_list) {
    prompts.push_back(read_prompt(*prompt, model, field));
  } else {
    require_field(prompt->size() <= limits.most, field, field_code::invalid_value,
                  "{} may hold {} texts, not {}", field, limits.most, prompt->size());
    for (const Json& item : *prompt) prompts.push_back(read_prompt(item, model, field));
  }
  for (const auto& tokens : prompts) require_prompt_fits(tokens, limits, field);
  return prompts;
}

void require_prompt_fits(const std::vector<std::int32_t>& tokens, const PromptLimits& limits,
                         const char* field) {
  require_field(std::ssize(tokens) <= limits.tokens, field, field_code::context_length,
                "{} has {} tokens, more than the context of {}; shorten it", field, tokens.size(),
                limits.tokens);
}

}  // namespace heed::server
