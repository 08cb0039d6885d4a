#include "server/choice.h"

#include <algorithm>

#include "tokenizer/utf8.h"

namespace heed::server {
namespace {

// Of valid UTF-8.
std::int64_t characters(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; });
}

}  // namespace

std::string token_name(const LoadedModel& model, std::int32_t token) {
  std::string bytes = model.token_bytes(token);
  if (is_valid_utf8(bytes)) return bytes;
  std::string name = "bytes:";
  for (const char byte : bytes) name += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  return name;
}

// Where the text of `token`, the next one, begins; then counts it.
std::int64_t Choice::offset_behind(std::int32_t token) {
  const std::int64_t offset = decoded_characters_;
  decoded_characters_ += characters(decoded_.push(model_.token_bytes(token)));
  return offset;
}

void Choice::echo(std::span<const std::int32_t> prompt, std::span<const TokenScore> scores) {
  TextStream stream;
  for (std::size_t i = 0; i < prompt.size(); ++i) {
    text_ += stream.push(model_.token_bytes(prompt[i]));
    const std::int64_t offset = offset_behind(prompt[i]);
    if (!has_log_probabilities_) continue;
    const bool is_first = i == 0;
    scored_.push_back(
        {offset, is_first ? TokenScore{.token = {prompt[0], 0}} : scores[i - 1], is_first});
  }
  text_ += stream.finish();
  certain_ = characters(text_);
}

void Choice::add(const Sequence::Piece& piece) {
  text_ += piece.text;
  certain_ += characters(piece.text);
  if (!piece.token) return;
  const std::int64_t offset = offset_behind(*piece.token);
  if (!piece.score) return;
  sum_ += piece.score->token.value;
  ++tokens_;
  if (has_log_probabilities_) scored_.push_back({offset, *piece.score, false});
}

void Choice::finish(SequenceEnd end) { finish_reason_ = end; }

OrderedJson Choice::take(std::int64_t index) {
  OrderedJson json{{"text", text_}, {"index", index}, {"logprobs", nullptr}};
  text_.clear();
  if (has_log_probabilities_) json["logprobs"] = take_log_probabilities();
  json["finish_reason"] = nullptr;
  told_end_ = finish_reason_.has_value();
  if (finish_reason_)
    json["finish_reason"] = *finish_reason_ == SequenceEnd::stop ? "stop" : "length";
  return json;
}

// Of tokens whose text has begun to appear. Those that a stop string took away never do; a text
// that ended for its length has all.
OrderedJson Choice::take_log_probabilities() {
  OrderedJson tokens = OrderedJson::array();
  OrderedJson values = OrderedJson::array();
  OrderedJson likeliest = OrderedJson::array();
  OrderedJson offsets = OrderedJson::array();
  const bool all = finish_reason_ == SequenceEnd::length;
  while (!scored_.empty() && (all || scored_.front().offset < certain_)) {
    const Scored& scored = scored_.front();
    tokens.push_back(token_name(model_, scored.score.token.token));
    values.push_back(scored.is_first ? OrderedJson(nullptr) : json_float(scored.score.token.value));
    OrderedJson top = OrderedJson::object();
    for (const LogProbability& other : scored.score.likeliest) {
      top.emplace(token_name(model_, other.token), json_float(other.value));
    }
    likeliest.push_back(scored.is_first || top.empty() ? OrderedJson(nullptr) : std::move(top));
    offsets.push_back(scored.offset);
    scored_.pop_front();
  }
  return {{"tokens", std::move(tokens)},
          {"token_logprobs", std::move(values)},
          {"top_logprobs", std::move(likeliest)},
          {"text_offset", std::move(offsets)}};
}

}  // namespace heed::server
