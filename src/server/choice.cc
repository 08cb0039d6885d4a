#include "server/choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"

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

OrderedJson finish_reason_json(std::optional<SequenceEnd> end) {
  if (!end) return nullptr;
  return *end == SequenceEnd::stop ? "stop" : "length";
}

// Where the text of the next token, of these bytes, begins; then counts it.
std::int64_t Choice::offset_after(std::string_view bytes) {
  const std::int64_t offset = decoded_characters_;
  decoded_characters_ += characters(decoded_.push(bytes));
  return offset;
}

void Choice::echo(std::span<const std::int32_t> prompt, std::span<const TokenScore> scores) {
  TextStream stream;
  const std::vector<std::string> pieces = model_.text_pieces(prompt);
  for (std::size_t i = 0; i < prompt.size(); ++i) {
    text_ += stream.push(pieces[i]);
    const std::int64_t offset = offset_after(pieces[i]);
    if (!options_.has_log_probabilities) continue;
    const bool is_first = i == 0;
    scored_.push_back({.offset = offset,
                       .score = is_first ? TokenScore{.token = {prompt[0], 0}} : scores[i - 1],
                       .is_first = is_first});
  }
  text_ += stream.finish();
  certain_ = characters(text_);
}

void Choice::add(const Sequence::Piece& piece) {
  std::string_view text = piece.text;
  certain_ += characters(text);
  if (options_.trims_start && !has_begun_) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
    has_begun_ = !text.empty();
  }
  text_ += text;
  if (!piece.token) return;
  has_end_of_text_ = piece.is_end_of_text;
  const bool has_text = !piece.is_end_of_text && !piece.is_hidden;
  const std::int64_t offset =
      has_text ? offset_after(model_.token_bytes(*piece.token)) : decoded_characters_;
  if (!piece.score) return;
  sum_ += piece.score->token.value;
  ++tokens_;
  if (!options_.has_log_probabilities) return;
  scored_.push_back(
      {.offset = offset, .score = *piece.score, .is_end_of_text = piece.is_end_of_text});
}

void Choice::finish(SequenceEnd end) { end_ = end; }

Choice::Part Choice::take() {
  Part part{.text = std::move(text_), .tokens = {}, .end = end_};
  text_.clear();
  end_taken_ = end_.has_value();
  // Tokens whose text has begun to appear. Those that a stop string took away never do; a text that
  // ended for its length or by its end-of-text token has all, that token included: clients
  // that score a prompt rely on one score for the token after it.
  const bool all = end_ && (*end_ == SequenceEnd::length || has_end_of_text_);
  while (!scored_.empty() && (all || scored_.front().offset < certain_)) {
    part.tokens.push_back(std::move(scored_.front()));
    scored_.pop_front();
  }
  return part;
}

}  // namespace heed::server
