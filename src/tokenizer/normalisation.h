// Changes of a text before it is cut into words, and the way back to its offsets.
#pragma once

#include <utf8proc.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/utf8.h"

namespace heed {

// A normaliser of a file may make at most this many bytes of each byte of a text. The longest
// replacement of Unicode makes 11 of one (U+FDFA in form KC), and 13 with U+2581 for its spaces.
inline constexpr std::size_t max_normalised_growth = 16;

// Bytes of a text, [begin, end).
struct TextRange {
  std::size_t begin = 0;
  std::size_t end = 0;

  friend bool operator==(const TextRange&, const TextRange&) = default;
};

// A part of a source text, [source_begin, source_end), and what it became.
struct ChangedPart {
  std::size_t source_begin = 0;
  std::size_t source_end = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
};

// A text that is made from another, part by part.
class ChangedText {
 public:
  const std::string& text() const { return text_; }
  const std::vector<ChangedPart>& changes() const { return changes_; }
  std::size_t source_size() const { return source_size_; }

  void reserve(std::size_t bytes) { text_.reserve(bytes); }

  // From now on replace() throws Error{unsupported} where the text would be longer than `bytes`.
  void limit_size(std::size_t bytes) { max_bytes_ = bytes; }

  // The part of the source that [begin, end) of the text was made from: all of a changed part, but
  // nothing that was dropped before or after.
  TextRange source_of(std::size_t begin, std::size_t end) const;

  // The next `part` of the source, as it is.
  void keep(std::string_view part);
  // `replacement` for the next `source_size` bytes of the source, 0 for an insertion.
  void replace(std::size_t source_size, std::string_view replacement);
  // [begin, end) of `other`, which continues this text's source.
  void append(const ChangedText& other, std::size_t begin, std::size_t end);
  // What `next`, made from this text, is made of this text's source.
  ChangedText then(const ChangedText& next) const;

 private:
  std::string text_;
  std::vector<ChangedPart> changes_;  // in order
  std::size_t source_size_ = 0;
  std::size_t max_bytes_ = SIZE_MAX;
};

// Finds source offsets for ascending positions in a changed text. Inside a changed part, where no
// position corresponds, it is the end of the part: its first token stands for all of it.
class SourceOffsets {
 public:
  explicit SourceOffsets(const std::vector<ChangedPart>& changes) : changes_(changes) {}
  std::size_t at(std::size_t position);

 private:
  const std::vector<ChangedPart>& changes_;
  std::size_t next_ = 0;  // the first part that ends after the last position
};

// Normalisation form C. False where the text certainly is in this form.
bool may_change_in_nfc(std::string_view text);

// Appends the text in normalisation form C by the Unicode version of utf8proc. Bytes that are not
// UTF-8 stay.
void append_nfc(std::string_view text, ChangedText& result);

// Appends the lower-case form of a character, as Unicode has it for a character alone.
void append_lowercase(char32_t code_point, std::string& text);

// `append(code_point, mapped)` appends to `mapped` what becomes of a character. Bytes that are not
// UTF-8 stay.
template <class Append>
void map_characters(std::string_view text, ChangedText& result, Append&& append) {
  std::size_t kept = 0;  // everything before is in `result`
  std::string mapped;
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Character character = read_utf8(text, i);
    const std::string_view source = text.substr(i, character.length);
    mapped.clear();
    if (character.valid) {
      append(character.code_point, mapped);
      if (mapped != source) {
        result.keep(text.substr(kept, i - kept));
        result.replace(source.size(), mapped);
        kept = i + source.size();
      }
    }
    i += source.size();
  }
  result.keep(text.substr(kept));
}

// The normaliser of a tokenizer.json as a list of steps, each of which makes a text from a text.
class NormaliserStep {
 public:
  virtual ~NormaliserStep() = default;

  // Appends what becomes of `text`, the whole source of `result`.
  virtual void apply(std::string_view text, ChangedText& result) const = 0;

  // As tokenizer.json has it.
  virtual std::string json() const = 0;
};

class NormaliserSteps {
 public:
  NormaliserSteps() = default;
  explicit NormaliserSteps(std::vector<std::unique_ptr<const NormaliserStep>> steps)
      : steps_(std::move(steps)) {}

  bool empty() const { return steps_.empty(); }
  ChangedText apply(std::string_view text) const;

  // A step alone, or a Sequence.
  std::string json() const;

 private:
  std::vector<std::unique_ptr<const NormaliserStep>> steps_;
};

// BERT's normaliser, in this order.
struct BertNormalisation {
  bool clean_text = true;            // drops control characters; white space becomes a space
  bool handle_chinese_chars = true;  // puts spaces around ideographs
  bool strip_accents = true;         // drops nonspacing marks, with everything in form D
  bool lowercase = true;
};

std::unique_ptr<const NormaliserStep> make_bert_step(BertNormalisation options);

// Where white space is dropped from a text.
struct StrippedEnds {
  bool left = true;
  bool right = true;
};
std::unique_ptr<const NormaliserStep> make_strip_step(StrippedEnds ends);

// `from`, not empty, becomes `to`.
std::unique_ptr<const NormaliserStep> make_replace_step(std::string from, std::string to);

// Two or more spaces in a row become `to`: the regular expression " {2,}".
std::unique_ptr<const NormaliserStep> make_collapse_step(std::string to);

std::unique_ptr<const NormaliserStep> make_lowercase_step();

// Canonical decomposition of characters (Unicode's form D), by utf8proc.

// The canonical combining class of a character; 0: it begins a sequence of marks.
int combining_class(utf8proc_int32_t point);

void append_decomposition(char32_t code_point, std::vector<utf8proc_int32_t>& points);

// The marks after each character in the order of their classes, which utf8proc sorts in quadratic
// time.
void sort_marks(std::vector<utf8proc_int32_t>& points);

}  // namespace heed
