#include "engine/long_texts.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"
#include "base/utf8.h"

namespace heed {
namespace {

constexpr std::array<std::string_view, 3> treatment_names{"refuse", "crop", "split"};
constexpr std::string_view spaces = " \t\v\f";

bool begins_character(std::string_view text, std::size_t position) {
  return position >= text.size() || (static_cast<unsigned char>(text[position]) & 0xC0U) != 0x80U;
}

class Fitting {
 public:
  explicit Fitting(const LoadedModel& translator)
      : tokenizer_(translator.require_tokenizer(PairSide::source)),
        most_(translator.architecture().encoder().context) {}

  bool fits(std::string_view text) const {
    return std::ssize(tokenizer_.encode(text, {.add_beginning = true, .add_ending = true})) <=
           most_;
  }

  // The bytes of the longest beginning that fits, as far as bisection finds it; at least one
  // character. `text` does not fit.
  std::size_t longest_beginning(std::string_view text) const {
    std::size_t fitting = 0;
    // A beginning that does not fit is looked for first: a part costs what a part is long.
    std::size_t failing = std::min<std::size_t>(static_cast<std::size_t>(most_), text.size());
    while (failing < text.size() && fits(whole_characters(text, failing))) {
      fitting = failing;
      failing = std::min(2 * failing, text.size());
    }
    while (failing - fitting > 1) {
      const std::size_t middle = fitting + (failing - fitting) / 2;
      (fits(whole_characters(text, middle)) ? fitting : failing) = middle;
    }
    const std::size_t bytes = whole_characters(text, fitting).size();
    return bytes > 0 ? bytes : read_utf8(text, 0).length;
  }

 private:
  static std::string_view whole_characters(std::string_view text, std::size_t bytes) {
    while (bytes > 0 && !begins_character(text, bytes)) --bytes;
    return text.substr(0, bytes);
  }

  const Tokenizer& tokenizer_;
  std::int64_t most_;  // tokens
};

// Where the last word of the first `bytes` bytes of a longer text ends; 0: it has one word.
std::size_t last_word_end(std::string_view text, std::size_t bytes) {
  const std::size_t space = text.find_last_of(spaces, bytes);
  if (space == std::string_view::npos) return 0;
  return text.find_last_not_of(spaces, space) + 1;  // 0 where only spaces come before
}

// Where the last sentence ends that ends there; 0: none does.
std::size_t last_sentence_end(std::string_view text, std::size_t bytes) {
  constexpr std::array<std::string_view, 7> marks{".", "!", "?", "…", "。", "！", "？"};
  std::size_t last = 0;
  for (const std::string_view mark : marks) {
    const bool stands_alone = mark.size() == 1 || mark == "…";  // a space follows
    for (std::size_t at = text.rfind(mark, bytes); at != std::string_view::npos && at > 0;
         at = text.rfind(mark, at - 1)) {
      const std::size_t end = at + mark.size();
      if (end > bytes || end == text.size()) continue;
      if (stands_alone && spaces.find(text[end]) == std::string_view::npos) continue;
      last = std::max(last, end);
      break;
    }
  }
  return last;
}

}  // namespace

std::vector<std::string> long_texts_names() {
  return {treatment_names.begin(), treatment_names.end()};
}

LongTexts parse_long_texts(std::string_view name) {
  const auto found = std::ranges::find(treatment_names, name);
  require(found != treatment_names.end(), ErrorCode::invalid_argument,
          "long lines are {}, not '{}'", fmt::join(treatment_names, ", "), name);
  return static_cast<LongTexts>(found - treatment_names.begin());
}

std::vector<std::string> fitting_parts(const LoadedModel& translator, std::string_view text,
                                       LongTexts treatment) {
  const Fitting fitting(translator);
  // Others are refused where they are encoded.
  const bool is_text = is_valid_utf8(text) && !trimmed(text, spaces).empty();
  if (treatment == LongTexts::refuse || !is_text || fitting.fits(text)) return {std::string(text)};
  std::vector<std::string> parts;
  for (std::string_view rest = trimmed(text, spaces); !rest.empty();) {
    if (fitting.fits(rest)) {
      parts.emplace_back(rest);
      break;
    }
    const std::size_t longest = fitting.longest_beginning(rest);
    std::size_t end = treatment == LongTexts::split ? last_sentence_end(rest, longest) : 0;
    if (end == 0) end = last_word_end(rest, longest);
    if (end == 0) end = longest;
    parts.emplace_back(trimmed(rest.substr(0, end), spaces));
    if (treatment == LongTexts::crop) break;
    rest = trimmed(rest.substr(end), spaces);
  }
  return parts;
}

}  // namespace heed
