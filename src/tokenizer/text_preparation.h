// What happens to a text before its words become tokens: added tokens are found and the rest is
// normalised, in the order of Hugging Face's `tokenizers`.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/added_token_matcher.h"
#include "tokenizer/metaspace.h"
#include "tokenizer/normalisation.h"
#include "tokenizer/normaliser_steps.h"

namespace heed {

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

// A text ready to be cut into words.
class PreparedText {
 public:
  PreparedText(std::string_view source, std::vector<AddedTokenMatch> matches)
      : source_(source), matches_(std::move(matches)) {}
  PreparedText(ChangedText changed, std::vector<AddedTokenMatch> matches)
      : is_changed_(true), changed_(std::move(changed)), matches_(std::move(matches)) {}

  std::string_view text() const { return is_changed_ ? changed_.text() : source_; }
  const std::vector<AddedTokenMatch>& matches() const { return matches_; }  // in text()
  SourceOffsets source_offsets() const { return SourceOffsets(changed_.changes()); }

 private:
  bool is_changed_ = false;
  std::string_view source_;
  ChangedText changed_;
  std::vector<AddedTokenMatch> matches_;
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
  ChangedText normalised(std::string_view part, bool may_prepend) const;
  // Puts a space before every part, whatever it is: U+2581, or what stands for it.
  bool prepends_to_parts() const;
  std::string_view prepended_space() const;
  // Whether one is put before a part that does not begin with a space.
  bool prepends_missing(bool begins_text, bool continues) const;
  void append_words(const ChangedText& part, TextRange range, bool prepends,
                    ChangedText& result) const;

  TextNormalisation normalisation_;
  // Added tokens are looked for in the text as given, then those that are normalised in the parts
  // between, normalised.
  AddedTokenMatcher given_;
  AddedTokenMatcher normalised_;
};

}  // namespace heed
