// Tokenizers of the public facade.
#include "heed/tokenizer.h"

#include "engine/loaded_model.h"
#include "tokenizer/byte_pair_tokenizer.h"
#include "tokenizer/train_byte_pair.h"

namespace heed {

TextTokenizer::TextTokenizer(std::shared_ptr<const Tokenizer> tokenizer)
    : tokenizer_(std::move(tokenizer)) {}

TextTokenizer TextTokenizer::load(const std::string& name_or_path) {
  return TextTokenizer(load_model_tokenizer(name_or_path));
}

TextTokenizer TextTokenizer::learn(std::span<const std::string> texts, std::int32_t vocabulary_size,
                                   const std::atomic<bool>* stop) {
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  return TextTokenizer(
      train_byte_pair_tokenizer(views, {.vocabulary_size = vocabulary_size}, {}, stop));
}

std::string TextTokenizer::kind() const { return tokenizer_kind_name(tokenizer_->kind()); }
std::int32_t TextTokenizer::vocabulary_size() const { return tokenizer_->vocabulary_size(); }

std::vector<std::int32_t> TextTokenizer::encode(std::string_view text) const {
  return tokenizer_->encode(text);
}

std::string TextTokenizer::decode(std::span<const std::int32_t> tokens) const {
  return tokenizer_->decode(tokens);
}

std::vector<std::string> TextTokenizer::token_texts(std::span<const std::int32_t> tokens) const {
  std::vector<std::string> texts;
  for (const std::int32_t token : tokens) texts.push_back(tokenizer_->token_bytes(token));
  return texts;
}

void TextTokenizer::save(const std::string& directory) const { tokenizer_->save(directory); }

}  // namespace heed
