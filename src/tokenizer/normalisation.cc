#include "tokenizer/normalisation.h"

#include <utf8proc.h>
#include <algorithm>
#include <iterator>

#include "base/error.h"

namespace heed {

namespace {

// Below U+0300 every character is in form C, and none combines with the one before.
constexpr unsigned char first_unstable_byte = 0xCC;

// No canonical decomposition exists from here on.
constexpr char32_t decomposition_end = 0x30000;

// A character and those that may combine with it, composed.
void compose(std::vector<utf8proc_int32_t>& points) {
  sort_marks(points);
  const utf8proc_ssize_t count =
      utf8proc_normalize_utf32(points.data(), std::ssize(points),
                               static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  check(count >= 0, "decomposed characters compose");
  points.resize(static_cast<std::size_t>(count));
}

// What form C may do to each character.
struct Stability {
  std::vector<bool> joins;    // a mark, or it may combine with a character before it
  std::vector<bool> changes;  // something else stands for it even alone

  Stability() : joins(decomposition_end), changes(decomposition_end) {
    std::vector<utf8proc_int32_t> points;
    for (char32_t point = 0; point < decomposition_end; ++point) {
      if (point >= 0xD800 && point < 0xE000) continue;
      points.clear();
      append_decomposition(point, points);
      // Also of class 0, U+0F73 for example is made of marks.
      if (combining_class(points[0]) != 0) joins[point] = true;
      if (points.size() == 1 && points[0] == static_cast<utf8proc_int32_t>(point)) continue;
      for (std::size_t i = 1; i < points.size(); ++i)
        joins[static_cast<std::size_t>(points[i])] = true;
      compose(points);
      changes[point] = points.size() != 1 || points[0] != static_cast<utf8proc_int32_t>(point);
    }
  }
};

const Stability& stability() {
  static const Stability known;
  return known;
}

bool joins(const Utf8Character& character) {
  return character.valid && character.code_point < decomposition_end &&
         stability().joins[character.code_point];
}

bool changes(const Utf8Character& character) {
  return character.valid && character.code_point < decomposition_end &&
         stability().changes[character.code_point];
}

std::size_t find_unstable_byte(std::string_view text, std::size_t position) {
  while (position < text.size() &&
         static_cast<unsigned char>(text[position]) < first_unstable_byte) {
    ++position;
  }
  return position;
}

// Where the character that ends at `end` begins; `end` where no valid one does.
std::size_t character_start_before(std::string_view text, std::size_t end) {
  for (std::size_t length = 1; length <= 4 && length <= end; ++length) {
    const Utf8Character character = read_utf8(text, end - length);
    if (character.valid && character.length == length) return end - length;
  }
  return end;
}

}  // namespace

void ChangedText::keep(std::string_view part) {
  text_ += part;
  source_size_ += part.size();
}

void ChangedText::replace(std::size_t source_size, std::string_view replacement) {
  require(replacement.size() <= max_bytes_ && text_.size() <= max_bytes_ - replacement.size(),
          ErrorCode::unsupported,
          "the normaliser of this tokenizer makes more than {} bytes of a text; supported are {} "
          "bytes for each of the text",
          max_bytes_, max_normalised_growth);
  changes_.push_back(
      {source_size_, source_size_ + source_size, text_.size(), text_.size() + replacement.size()});
  text_ += replacement;
  source_size_ += source_size;
}

void ChangedText::append(const ChangedText& other, std::size_t begin, std::size_t end) {
  auto change = std::lower_bound(
      other.changes_.begin(), other.changes_.end(), begin,
      [](const ChangedPart& part, std::size_t position) { return part.begin < position; });
  const std::string_view text = other.text_;
  std::size_t position = begin;
  if (change != other.changes_.begin() && std::prev(change)->end > begin) {
    // The rest of a part whose source was taken with its beginning.
    position = std::min(std::prev(change)->end, end);
    replace(0, text.substr(begin, position - begin));
  }
  while (position < end) {
    if (change == other.changes_.end() || change->begin >= end) {
      keep(text.substr(position, end - position));
      break;
    }
    keep(text.substr(position, change->begin - position));
    position = std::min(change->end, end);
    replace(change->source_end - change->source_begin,
            text.substr(change->begin, position - change->begin));
    ++change;
  }
}

TextRange ChangedText::source_of(std::size_t begin, std::size_t end) const {
  TextRange source{begin, end};
  const auto after = std::ranges::partition_point(
      changes_, [&](const ChangedPart& change) { return change.end <= begin; });
  if (after != changes_.end() && after->begin < begin) {
    source.begin = after->source_begin;
  } else if (after != changes_.begin()) {
    source.begin = std::prev(after)->source_end + (begin - std::prev(after)->end);
  }
  const auto from_end = std::ranges::partition_point(
      changes_, [&](const ChangedPart& change) { return change.begin < end; });
  if (from_end != changes_.begin()) {
    const ChangedPart& last = *std::prev(from_end);
    source.end = last.source_end + (end - std::min(end, last.end));
  }
  return source;
}

ChangedText ChangedText::then(const ChangedText& next) const {
  ChangedText result;
  result.reserve(next.text().size());
  std::size_t position = 0;  // in this text
  for (const ChangedPart& change : next.changes()) {
    result.append(*this, position, change.source_begin);
    ChangedText replaced;
    replaced.append(*this, change.source_begin, change.source_end);
    const std::string_view text = next.text();
    result.replace(replaced.source_size(), text.substr(change.begin, change.end - change.begin));
    position = change.source_end;
  }
  result.append(*this, position, text_.size());
  return result;
}

std::size_t SourceOffsets::at(std::size_t position) {
  while (next_ < changes_.size() && changes_[next_].end <= position) ++next_;
  if (next_ < changes_.size() && changes_[next_].begin < position)
    return changes_[next_].source_end;
  if (next_ == 0) return position;
  const ChangedPart& before = changes_[next_ - 1];
  return before.source_end + (position - before.end);
}

bool may_change_in_nfc(std::string_view text) {
  for (std::size_t i = 0; (i = find_unstable_byte(text, i)) < text.size();) {
    const Utf8Character character = read_utf8(text, i);
    if (joins(character) || changes(character)) return true;
    i += character.length;
  }
  return false;
}

void append_nfc(std::string_view text, ChangedText& result) {
  std::size_t kept = 0;  // everything before is in `result`
  std::vector<utf8proc_int32_t> points;
  for (std::size_t i = 0; (i = find_unstable_byte(text, i)) < text.size();) {
    // A character and all that may join it.
    std::size_t begin = i;
    if (joins(read_utf8(text, i)) && i > kept) begin = character_start_before(text, i);
    const Utf8Character first = read_utf8(text, begin);
    std::size_t end = begin + first.length;
    bool stable = !joins(first) && !changes(first);
    while (first.valid && end < text.size()) {
      const Utf8Character next = read_utf8(text, end);
      if (!joins(next)) break;
      end += next.length;
      stable = false;
    }
    i = end;
    if (stable || !first.valid) continue;
    points.clear();
    for (std::size_t position = begin; position < end;) {
      const Utf8Character character = read_utf8(text, position);
      append_decomposition(character.code_point, points);
      position += character.length;
    }
    compose(points);
    std::string composed;
    for (const utf8proc_int32_t point : points) {
      append_utf8(composed, static_cast<char32_t>(point));
    }
    if (composed == text.substr(begin, end - begin)) continue;
    result.keep(text.substr(kept, begin - kept));
    result.replace(end - begin, composed);
    kept = end;
  }
  result.keep(text.substr(kept));
}

int combining_class(utf8proc_int32_t point) {
  return utf8proc_get_property(point)->combining_class;
}

void append_decomposition(char32_t code_point, std::vector<utf8proc_int32_t>& points) {
  utf8proc_int32_t parts[32];  // the longest has 4
  int boundary = 0;
  const utf8proc_ssize_t count =
      utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code_point), parts, std::size(parts),
                              UTF8PROC_DECOMPOSE, &boundary);
  check(count > 0 && count <= std::ssize(parts), "a character has a short decomposition");
  points.insert(points.end(), parts, parts + count);
}

void sort_marks(std::vector<utf8proc_int32_t>& points) {
  const auto is_starter = [](utf8proc_int32_t point) { return combining_class(point) == 0; };
  for (auto begin = points.begin(); begin != points.end();) {
    begin = std::find_if_not(begin, points.end(), is_starter);
    const auto end = std::find_if(begin, points.end(), is_starter);
    std::stable_sort(begin, end, [](utf8proc_int32_t left, utf8proc_int32_t right) {
      return combining_class(left) < combining_class(right);
    });
    begin = end;
  }
}

}  // namespace heed
