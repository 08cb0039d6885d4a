// What happens to a text before its words become tokens: added tokens are found and the rest is
// normalised, in the order of Hugging Face's `tokenizers`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "tokenizer/normalisation.h"
#include "tokenizer/vocabulary.h"

namespace heed {

// Finds added tokens in a text as Hugging Face's `tokenizers` does: leftmost first, the longest if
// several start at one position.

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

// Where a space is put before a part of the text between added tokens.
enum class PrependScheme { never, first, always };

struct TextNormalisation {
  bool nfc = false;

  // SentencePiece's spaces: U+2581 and the space are one character, written as a space here.
  bool metaspace = false;
  // It already is U+2581, and no white space, when added tokens are looked for in normalised text.
  bool replaces_spaces = false;
  // Before every part, whatever it begins with (the normaliser Prepend).
  bool prepend_always = false;
  // Before parts that do not begin with a space (the pre-tokenizer Metaspace): all, or the one at
  // the beginning of the text.
  PrependScheme prepend_missing = PrependScheme::never;

  // Steps of the file, instead of all of the above; null: none.
  std::shared_ptr<const NormaliserSteps> steps = nullptr;

  bool changes_text() const { return nfc || metaspace || steps != nullptr; }
  bool prepends() const { return prepend_always || prepend_missing != PrependScheme::never; }
};

// Where a part between added tokens begins: with a text, with one that continues another, or
// further on.
enum class PartPlace { first, continuation, later };

// A text ready to be cut into words.
class PreparedText {
 public:
  // `begin` is the place of its first part.
  PreparedText(std::string_view source, std::vector<AddedTokenMatch> matches, PartPlace begin)
      : source_(source), matches_(std::move(matches)), begin_(begin) {}
  PreparedText(ChangedText changed, std::vector<AddedTokenMatch> matches, PartPlace begin)
      : is_changed_(true),
        changed_(std::move(changed)),
        matches_(std::move(matches)),
        begin_(begin) {}

  std::string_view text() const { return is_changed_ ? changed_.text() : source_; }
  const std::vector<AddedTokenMatch>& matches() const { return matches_; }  // in text()
  PartPlace place_of(std::size_t part_begin) const {
    return part_begin == 0 ? begin_ : PartPlace::later;
  }
  SourceOffsets source_offsets() const { return SourceOffsets(changed_.changes()); }

 private:
  bool is_changed_ = false;
  std::string_view source_;
  ChangedText changed_;
  std::vector<AddedTokenMatch> matches_;
  PartPlace begin_;
};

struct PreparationOptions {
  bool special_tokens = true;                                // find them; else they are text
  std::optional<std::span<const TextRange>> special_ranges;  // only within these, if given
  bool continues = false;  // the text continues another: no space is put before it
};

class TextPreparation {
 public:
  TextPreparation(TextNormalisation normalisation, const std::vector<AddedToken>& added);

  const TextNormalisation& normalisation() const { return normalisation_; }
  PreparedText prepare(std::string_view text, PreparationOptions options) const;

  // Whether no added token and no space reaches across `position`, a word boundary, if the text is
  // cut there.
  bool may_cut(std::string_view text, std::size_t position) const;

 private:
  std::vector<AddedTokenMatch> find(std::string_view text, const MayBeSpecial& may) const;
  std::vector<AddedTokenMatch> find_normalised(const ChangedText& part,
                                               const MayBeSpecial& may) const;
  ChangedText normalised(std::string_view part, PartPlace place) const;
  // Puts a space before every part, whatever it is: U+2581, or what stands for it.
  bool prepends_to_parts() const;
  std::string_view prepended_space() const;
  // Whether one is put before a part that does not begin with a space.
  bool prepends_missing(PartPlace place) const;
  void append_words(const ChangedText& part, TextRange range, PartPlace place,
                    ChangedText& result) const;

  TextNormalisation normalisation_;
  // Added tokens are looked for in the text as given, then those that are normalised in the parts
  // between, normalised.
  AddedTokenMatcher given_;
  AddedTokenMatcher normalised_;
};

}  // namespace heed
