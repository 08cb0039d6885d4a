// Small GGUF files in memory, with keys and tensors that a test changes.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "checkpoint/gguf_writer.h"
#include "formats/gguf_config.h"

namespace heed::testing {

// The description of a LLaMA of one layer, without the keys of `left_out`.
inline GgufMetadata small_llama(const std::string& left_out = "") {
  GgufMetadata metadata;
  const auto add = [&](const char* key, auto value) {
    if (left_out != key) metadata.add(key, value);
  };
  add("general.architecture", std::string_view("llama"));
  add("llama.context_length", std::uint32_t{64});
  add("llama.embedding_length", std::uint32_t{8});
  add("llama.block_count", std::uint32_t{1});
  add("llama.feed_forward_length", std::uint32_t{16});
  add("llama.attention.head_count", std::uint32_t{2});
  add("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  return metadata;
}

// The description of a BERT of one layer, likewise.
inline GgufMetadata small_bert(const std::string& left_out = "") {
  GgufMetadata metadata;
  const auto add = [&](const char* key, auto value) {
    if (left_out != key) metadata.add(key, value);
  };
  add("general.architecture", std::string_view("bert"));
  add("bert.context_length", std::uint32_t{64});
  add("bert.embedding_length", std::uint32_t{8});
  add("bert.block_count", std::uint32_t{1});
  add("bert.feed_forward_length", std::uint32_t{16});
  add("bert.attention.head_count", std::uint32_t{2});
  add("bert.attention.layer_norm_epsilon", 1e-12F);
  add("bert.attention.causal", false);
  add("bert.pooling_type", std::uint32_t{1});
  add("tokenizer.ggml.token_type_count", std::uint32_t{2});
  return metadata;
}

// What the metadata is read as, beside an embedding of these rows, and one of two types of tokens.
inline Json read_small(const GgufMetadata& metadata, std::int64_t rows = 10,
                       const Shape& types = {2, 8}) {
  const std::string bytes = gguf_header(metadata, {});
  const GgufFile file = GgufFile::parse(std::as_bytes(std::span(bytes)), "small.gguf");
  const TensorEntry entries[] = {
      {.name = "token_embd.weight", .dtype = DType::f32, .shape = {rows, 8}, .bytes = {}},
      {.name = "token_types.weight", .dtype = DType::f32, .shape = types, .bytes = {}}};
  return gguf_config(file, [&](std::string_view name) -> const TensorEntry* {
    const auto found = std::ranges::find(entries, name, &TensorEntry::name);
    return found == std::end(entries) ? nullptr : found;
  });
}

}  // namespace heed::testing
