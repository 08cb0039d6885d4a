// Changes of a text before it is cut into words, and the way back to its offsets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

// A normaliser of a file may make at most this many bytes of each byte of a text. The longest
// replacement of Unicode makes 11 of one (U+FDFA in form KC), and 13 with U+2581 for its spaces.
inline constexpr std::size_t most_normalised_growth = 16;

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
  void limit_size(std::size_t bytes) { most_bytes_ = bytes; }

  // The part of the source that [begin, end) of the text was made from: all of a changed part, but
  // nothing that was dropped before or behind.
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
  std::size_t most_bytes_ = SIZE_MAX;
};

// Finds source offsets for ascending positions in a changed text. Inside a changed part, where no
// position corresponds, it is the end of the part: its first token stands for all of it.
class SourceOffsets {
 public:
  explicit SourceOffsets(const std::vector<ChangedPart>& changes) : changes_(changes) {}
  std::size_t at(std::size_t position);

 private:
  const std::vector<ChangedPart>& changes_;
  std::size_t next_ = 0;  // the first part that ends behind the last position
};

// Normalisation form C. False where the text certainly is in this form.
bool may_change_in_nfc(std::string_view text);

// Appends the text in normalisation form C by the Unicode version of utf8proc. Bytes that are not
// UTF-8 stay.
void append_nfc(std::string_view text, ChangedText& result);

}  // namespace heed
