// What a translator reads and writes, as text.
#include "engine/loaded_translator.h"

#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"
#include "generate/text_stream.h"

namespace heed {
namespace {

const Tokenizer& tokenizer_of(const LoadedTranslator& model, PairSide side) {
  const Tokenizer* const tokenizer = model.tokenizer(side);
  require(tokenizer != nullptr, ErrorCode::not_found,
          "the model '{}' has no tokenizer: give token ids instead of a text", model.name);
  return *tokenizer;
}

void require_words(std::string_view text, std::string_view name) {
  require(text.find_first_not_of(" \t\r\n\v\f") != std::string_view::npos,
          ErrorCode::invalid_argument, "{} is empty", name);
  require(is_valid_utf8(text), ErrorCode::invalid_argument, "{} is not UTF-8", name);
}

// Tokens that stand for no text: starts, ends, padding.
std::vector<std::int32_t> special_tokens(const LoadedTranslator& model, PairSide side) {
  const Architecture& architecture = model.architecture();
  std::vector<std::int32_t> tokens;
  const auto add = [&](std::int64_t token) {
    if (token >= 0) tokens.push_back(static_cast<std::int32_t>(token));
  };
  add(architecture.decoder_start);
  add(architecture.padding);
  add(architecture.encoder().end_of_text);
  for (const std::int32_t end : architecture.end_tokens()) add(end);
  if (const Tokenizer* const tokenizer = model.tokenizer(side)) {
    for (const AddedToken& added : tokenizer->added_tokens()) add(added.id);
  }
  return tokens;
}

}  // namespace

std::vector<std::int32_t> LoadedTranslator::encode_source(std::string_view text) const {
  require_words(text, "the source");
  return tokenizer_of(*this, PairSide::source)
      .encode(text, {.add_beginning = true, .add_ending = true});
}

std::vector<std::int32_t> LoadedTranslator::encode_target(std::string_view text) const {
  require_words(text, "the target");
  const std::vector<std::int32_t> tokens =
      tokenizer_of(*this, PairSide::target).encode(text, {.add_beginning = true});
  const bool has_start = !tokens.empty() && tokens.front() == architecture().decoder_start;
  return decoder_input(architecture(), std::span(tokens).subspan(has_start ? 1 : 0));
}

std::vector<std::int32_t> LoadedTranslator::encode_part(PairSide side,
                                                        std::string_view text) const {
  return tokenizer_of(*this, side).encode(text, {});
}

std::string LoadedTranslator::target_text(std::span<const std::int32_t> tokens) const {
  TextStream stream;  // valid UTF-8 of any bytes
  std::string bytes;
  if (tokenizers.target != nullptr) {
    bytes = tokenizers.target->decode(tokens, {.special_tokens = false});
  } else {
    for (const std::string& each : token_bytes(PairSide::target, tokens)) {
      bytes += (bytes.empty() ? "" : " ") + each;
    }
  }
  std::string text = stream.push(bytes);
  return text + stream.finish();
}

std::vector<std::string> LoadedTranslator::token_bytes(PairSide side,
                                                       std::span<const std::int32_t> ids) const {
  const Tokenizer* const own = tokenizer(side);
  std::vector<std::string> bytes;
  bytes.reserve(ids.size());
  for (const std::int32_t id : ids) {
    const bool is_known = own != nullptr && id >= 0 && id < own->vocabulary_size();
    std::string text = is_known ? own->token_bytes(id) : "";
    bytes.push_back(text.empty() ? fmt::format("#{}", id) : std::move(text));
  }
  return bytes;
}

std::vector<TextWord> LoadedTranslator::words(PairSide side,
                                              std::span<const std::int32_t> ids) const {
  const std::vector<std::string> bytes = token_bytes(side, ids);
  const std::vector<std::int32_t> special = special_tokens(*this, side);
  const auto is_special = [&](std::size_t at) {
    return tokenizer(side) == nullptr || std::ranges::find(special, ids[at]) != special.end();
  };
  std::vector<TextWord> words;
  for (std::size_t begin = 0; begin < ids.size();) {
    if (is_special(begin)) {
      const auto at = static_cast<std::int64_t>(begin++);
      words.push_back({bytes[static_cast<std::size_t>(at)], at, at + 1});
      continue;
    }
    std::size_t end = begin;
    while (end < ids.size() && !is_special(end)) ++end;
    for (TextWord& word : units_of(std::span(bytes).subspan(begin, end - begin))) {
      word.begin += static_cast<std::int64_t>(begin);
      word.end += static_cast<std::int64_t>(begin);
      words.push_back(std::move(word));
    }
    begin = end;
  }
  return words;
}

PairTexts translated_pair(const LoadedTranslator& model, std::vector<std::int32_t> source,
                          StopFlag stop) {
  // The decoder reads all but the last token that it writes.
  const GreedyTranslation translation =
      translate_greedily(model.model, source,
                         {.max_length = model.architecture().decoder().context - 1, .stop = stop});
  PairTexts texts{.tokens = {}, .is_translation = true};
  texts.tokens.target = decoder_input(model.architecture(), translation.tokens);
  texts.tokens.source = std::move(source);
  return texts;
}

}  // namespace heed
