// Finds added tokens in a text as Hugging Face's `tokenizers` does: leftmost first, the longest if
// several start at one position.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/utf8.h"
#include "tokenizer/vocabulary.h"

namespace heed {

// A token and what it takes of the text, with the white space that it strips.
struct AddedTokenMatch {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::int32_t id = 0;
};

// What U+0020 is to tokens that strip white space.
enum class SpaceRole { white_space, symbol };

class AddedTokenMatcher {
 public:
  AddedTokenMatcher() = default;
  explicit AddedTokenMatcher(std::vector<AddedToken> tokens,
                             SpaceRole space = SpaceRole::white_space);

  bool empty() const { return tokens_.empty(); }

  // All matches in `text`, in order; they do not overlap.
  std::vector<AddedTokenMatch> find_all(std::string_view text) const;

  // Whether the text may be cut at `position`, before white space that follows something else: no
  // match reaches across.
  bool may_cut(std::string_view text, std::size_t position) const;

  // Whether the text before `position` ends with a token.
  bool may_end_at(std::string_view text, std::size_t position) const;

 private:
  const AddedToken* longest_at(std::string_view text, std::size_t position) const;

  bool strips(const Utf8Character& character) const;
  std::size_t spaces_before(std::string_view text, std::size_t end) const;
  std::size_t spaces_after(std::string_view text, std::size_t begin) const;

  SpaceRole space_ = SpaceRole::white_space;
  std::vector<AddedToken> tokens_;  // by first byte, the longer ones first
  // The tokens that begin with byte b are tokens_[first_[b]] .. tokens_[first_[b + 1] - 1].
  std::array<std::uint32_t, 257> first_{};
  // Whether a token may begin with bytes a and b, at 256 * a + b: spaces are in every text, but few
  // begin the runs of spaces that GPT-NeoX has as tokens.
  std::vector<bool> pairs_;
  std::vector<AddedToken> crossing_;  // those that strip to the right or hold ASCII white space
};

}  // namespace heed
