// Finds added tokens in a text as Hugging Face's `tokenizers` does: leftmost first, the longest if
// several start at one position.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "tokenizer/token_trie.h"
#include "tokenizer/vocabulary.h"

namespace heed {

// A token and what it takes of the text, with the white space that it strips.
struct AddedTokenMatch {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::int32_t id = 0;
};

// Whether [begin, end) of a text may be a special token; null: any part may.
using MayBeSpecial = std::function<bool(std::size_t begin, std::size_t end)>;

// What U+0020 is to tokens that strip white space.
enum class SpaceRole { white_space, symbol };

class AddedTokenMatcher {
 public:
  AddedTokenMatcher() = default;
  // Contents are not empty; of tokens with one content the first is found.
  explicit AddedTokenMatcher(std::vector<AddedToken> tokens,
                             SpaceRole space = SpaceRole::white_space);

  bool empty() const { return tokens_.empty(); }

  // All matches in `text`, in order; they do not overlap. Special tokens that `may_be_special`
  // refuses are text, in which other tokens may be found. White space that a token strips is no
  // part of what it is asked of.
  std::vector<AddedTokenMatch> find_all(std::string_view text,
                                        const MayBeSpecial& may_be_special = {}) const;

  // Whether the text may be cut at `position`, before white space that follows something else: no
  // match reaches across.
  bool may_cut(std::string_view text, std::size_t position) const;

  // Whether the text before `position` ends with a token.
  bool may_end_at(std::string_view text, std::size_t position) const;

 private:
  const AddedToken* longest_at(std::string_view text, std::size_t position,
                               const MayBeSpecial& may_be_special) const;
  // Calls visit(token, end) for the tokens that begin at a place before `position`, so near that
  // one may reach it.
  template <class Visit>
  void for_each_before(std::string_view text, std::size_t position, Visit&& visit) const;

  bool strips(const Utf8Character& character) const;
  std::size_t spaces_before(std::string_view text, std::size_t end) const;
  std::size_t spaces_after(std::string_view text, std::size_t begin) const;

  SpaceRole space_ = SpaceRole::white_space;
  std::vector<AddedToken> tokens_;
  TokenTrie trie_;  // of indices in tokens_
  std::size_t longest_ = 0;
  bool one_first_byte_ = false;
  // Whether a token may begin with bytes a and b, at 256 * a + b: spaces are in every text, but few
  // begin the runs of spaces that GPT-NeoX has as tokens.
  std::vector<bool> pairs_;
};

}  // namespace heed
