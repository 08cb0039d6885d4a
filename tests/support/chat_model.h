// A small random model with a chat template, on disk.
#pragma once

#include <array>
#include <filesystem>
#include <string>

#include "base/files.h"
#include "base/json.h"
#include "support/small_model.h"

namespace heed::testing {

inline constexpr const char* turn_begin = "<|turn|>";
inline constexpr const char* turn_end = "<|end|>";

// <|endoftext|>[<|turn|>ROLE\nTEXT<|end|>\n]…<|turn|>assistant\n
inline constexpr const char* chat_template_source =
    "{{ bos_token }}{% for message in messages %}"
    "{% if message['role'] == 'tool' %}{{ raise_exception('no tools here') }}{% endif %}"
    "<|turn|>{{ message['role'] }}\n{{ message['content'] }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|turn|>assistant\n{% endif %}";

inline std::unique_ptr<Tokenizer> chat_tokenizer() {
  const std::string text = microworld::corpus(microworld::Microworld(3), 0, 200);
  const std::string_view texts[] = {text};
  return train_byte_pair_tokenizer(
      std::span<const std::string_view>(texts),
      {.vocabulary_size = 400,
       .special_tokens = {std::string(end_of_text_name), turn_begin, turn_end}});
}

// Ids of the tokens that end a text and a turn are in generation_config.json.
inline void write_chat_model(const std::filesystem::path& directory, std::int64_t context = 256) {
  const auto tokenizer = chat_tokenizer();
  save_transformer(small_gpt(tokenizer->vocabulary_size(), context), directory);
  tokenizer->save(directory);
  const auto id = [&](const char* token) {
    return tokenizer->encode(token, {.special_tokens = true}).front();
  };
  Json config{{"bos_token", end_of_text_name}, {"eos_token", {{"content", turn_end}}}};
  config["chat_template"] = chat_template_source;
  write_text_file(directory / "tokenizer_config.json", config.dump());
  const Json ends{{"eos_token_id", {id("<|endoftext|>"), id(turn_end)}}};
  write_text_file(directory / "generation_config.json", ends.dump());
}

}  // namespace heed::testing
