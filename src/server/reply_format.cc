#include "server/reply_format.h"

#include "server/exchange.h"

namespace heed::server {
namespace {

// {"tokens", "token_logprobs", "top_logprobs", "text_offset"}: lists of equal length.
OrderedJson legacy_log_probabilities(const LoadedModel& model, const Choice::Part& part) {
  OrderedJson tokens = OrderedJson::array();
  OrderedJson values = OrderedJson::array();
  OrderedJson likeliest = OrderedJson::array();
  OrderedJson offsets = OrderedJson::array();
  for (const Choice::ScoredToken& scored : part.tokens) {
    const TokenScore& score = scored.score;
    tokens.push_back(token_name(model, score.token.token));
    values.push_back(scored.is_first ? OrderedJson(nullptr) : json_number(score.token.value));
    OrderedJson top = OrderedJson::object();
    for (const LogProbability& other : score.likeliest) {
      top.emplace(token_name(model, other.token), json_number(other.value));
    }
    likeliest.push_back(scored.is_first || top.empty() ? OrderedJson(nullptr) : std::move(top));
    offsets.push_back(scored.offset);
  }
  return {{"tokens", std::move(tokens)},
          {"token_logprobs", std::move(values)},
          {"top_logprobs", std::move(likeliest)},
          {"text_offset", std::move(offsets)}};
}

// {"token", "logprob", "bytes"}.
OrderedJson token_json(const LoadedModel& model, const LogProbability& token) {
  OrderedJson bytes = OrderedJson::array();
  for (const char byte : model.token_bytes(token.token)) {
    bytes.push_back(static_cast<unsigned char>(byte));
  }
  return {{"token", token_name(model, token.token)},
          {"logprob", json_number(token.value)},
          {"bytes", std::move(bytes)}};
}

OrderedJson chunk(OrderedJson delta, OrderedJson log_probabilities, std::optional<SequenceEnd> end,
                  std::int64_t index) {
  return {{"index", index},
          {"delta", std::move(delta)},
          {"logprobs", std::move(log_probabilities)},
          {"finish_reason", finish_reason_json(end)}};
}

}  // namespace

OrderedJson TextFormat::choice(const Choice::Part& part, std::int64_t index) const {
  OrderedJson json{{"text", part.text}, {"index", index}, {"logprobs", nullptr}};
  if (options_.has_log_probabilities) json["logprobs"] = legacy_log_probabilities(model_, part);
  json["finish_reason"] = finish_reason_json(part.end);
  return json;
}

std::vector<OrderedJson> TextFormat::chunks(const Choice::Part& part, std::int64_t index,
                                            ChunkPlace) const {
  return {choice(part, index)};
}

OrderedJson ChatFormat::log_probabilities(const Choice::Part& part) const {
  if (!options_.has_log_probabilities) return nullptr;
  OrderedJson content = OrderedJson::array();
  for (const Choice::ScoredToken& scored : part.tokens) {
    if (scored.is_end_of_text) continue;  // OpenAI's chats do not list it
    OrderedJson token = token_json(model_, scored.score.token);
    token["top_logprobs"] = OrderedJson::array();
    for (const LogProbability& other : scored.score.likeliest) {
      token["top_logprobs"].push_back(token_json(model_, other));
    }
    content.push_back(std::move(token));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

OrderedJson ChatFormat::choice(const Choice::Part& part, std::int64_t index) const {
  return {{"index", index},
          {"message", {{"role", "assistant"}, {"content", part.text}, {"refusal", nullptr}}},
          {"logprobs", log_probabilities(part)},
          {"finish_reason", finish_reason_json(part.end)}};
}

std::vector<OrderedJson> ChatFormat::chunks(const Choice::Part& part, std::int64_t index,
                                            ChunkPlace place) const {
  std::vector<OrderedJson> chunks;
  if (place == ChunkPlace::first) {
    chunks.push_back(chunk({{"role", "assistant"}, {"content", ""}}, nullptr, {}, index));
  }
  if (!part.text.empty() || !part.tokens.empty()) {
    chunks.push_back(chunk({{"content", part.text}}, log_probabilities(part), {}, index));
  }
  if (part.end) chunks.push_back(chunk(OrderedJson::object(), nullptr, part.end, index));
  return chunks;
}

}  // namespace heed::server
