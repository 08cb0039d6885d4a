// Finds added tokens in a text: leftmost first, the longest if several start at one position.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/vocabulary.h"

namespace heed {

struct AddedTokenMatch {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::int32_t id = 0;
};

class AddedTokenMatcher {
 public:
  AddedTokenMatcher() = default;
  explicit AddedTokenMatcher(std::vector<AddedToken> tokens);

  // All matches in `text`, in order; they do not overlap.
  std::vector<AddedTokenMatch> find_all(std::string_view text) const;

 private:
  const AddedToken* longest_at(std::string_view text, std::size_t position) const;

  std::vector<AddedToken> tokens_;  // by first byte, the longer ones first
  // The tokens that begin with byte b are tokens_[first_[b]] .. tokens_[first_[b + 1] - 1].
  std::array<std::uint32_t, 257> first_{};
};

}  // namespace heed
