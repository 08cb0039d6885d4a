// SentencePiece's precompiled map of characters: which strings a normaliser replaces, and by what.
//
// The bytes are the size of a double array (u32), the array (u32 units), and the replacements, each
// ended by a zero byte. Unit 0 is the root. The child of a node for byte b is the unit at
// `base of the node ^ b`, if the low byte of that unit is b; a child with a leaf has its value, the
// offset of the replacement, at its own base.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/normalisation.h"

namespace heed {

class Charsmap {
 public:
  // Throws Error{corrupt_data} naming `source` unless every walk through the array stays inside,
  // ends, and finds replacements that are UTF-8.
  Charsmap(std::string_view bytes, std::string_view source);

  // What replaces the shortest key that `text` begins with, as Hugging Face's `tokenizers` has it.
  std::optional<std::string_view> replacement(std::string_view text) const;

  // The longest key that `text` begins with, as SentencePiece has it.
  struct Match {
    std::size_t size = 0;  // bytes of the key; 0: none
    std::string_view replacement;
  };
  Match longest_match(std::string_view text) const;

 private:
  void check_strings(std::string_view source) const;
  void check_array(std::string_view source) const;
  template <class Visit>
  void for_each_key(std::string_view text, Visit&& visit) const;
  std::size_t base_of(std::size_t node) const;
  bool is_child(std::size_t node, unsigned char byte) const;
  bool has_leaf(std::size_t node) const;
  std::size_t value_at(std::size_t base) const;

  std::vector<std::uint32_t> units_;
  std::string strings_;
};

// The step Precompiled, as Hugging Face's `tokenizers` has it: a grapheme of up to five bytes is
// replaced by the shortest key that it begins with; else each of its characters is. `encoded` is
// the map in base64.
std::unique_ptr<const NormaliserStep> make_precompiled_step(std::string encoded,
                                                            std::string_view source);

// Base64 (RFC 4648) with padding. Nothing for a text that is not base64.
std::optional<std::string> decode_base64(std::string_view text);
std::string encode_base64(std::string_view bytes);

}  // namespace heed
