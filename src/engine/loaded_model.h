// A model and its tokenizer, found by name.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/gpt.h"
#include "tokenizer/tokenizer.h"

namespace heed {

struct LoadedModel {
  std::string name;  // as it was asked for
  Gpt gpt;
  std::unique_ptr<Tokenizer> tokenizer;  // null when the directory has none
  bool is_starter = false;               // the built-in one, whatever it is called

  // Throws Error{not_found} when there is none.
  const Tokenizer& require_tokenizer() const;

  // Ids of a text. Throws Error{invalid_argument} for one that has no tokens.
  std::vector<std::int32_t> encode(std::string_view text) const;

  // The bytes that a token stands for; "#17" where there is no tokenizer or it has no such token.
  std::string token_bytes(std::int32_t id) const;
  std::vector<std::string> token_bytes(std::span<const std::int32_t> ids) const;
};

// A directory in the Hugging Face layout, a safetensors file in one, or the built-in name "starter"
// (write ./starter for a directory of that name). Throws what load_gpt and load_tokenizer throw.
LoadedModel load_model(const std::string& name_or_path);

// The same for its tokenizer alone. Also takes a tokenizer.json itself.
std::unique_ptr<Tokenizer> load_model_tokenizer(const std::string& name_or_path);

// What a model is called before others: the last folder of its path, never where that lies.
std::string shown_model_name(const std::string& name_or_path);

// For who reads many prompts: packs the weights (GptParameters::pack) where that takes at most a
// quarter of the memory that is free.
void pack_for_prompts(LoadedModel& model);

}  // namespace heed
