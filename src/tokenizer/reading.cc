#include "tokenizer/reading.h"

#include <utf8proc.h>

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/utf8.h"
#include "tokenizer/written_words.h"

namespace heed {
namespace {

std::string lower_first(std::string_view word) {
  if (word.empty()) return {};
  const Utf8Character first = read_utf8(word, 0);
  if (!first.valid) return std::string(word);
  std::string lower;
  append_utf8(lower, static_cast<char32_t>(
                         utf8proc_tolower(static_cast<utf8proc_int32_t>(first.code_point))));
  return lower.append(word.substr(first.length));
}

std::string lower_case(std::string_view word) {
  std::string lower;
  for (std::size_t i = 0; i < word.size();) {
    const Utf8Character character = read_utf8(word, i);
    if (character.valid) {
      append_utf8(lower, static_cast<char32_t>(utf8proc_tolower(
                             static_cast<utf8proc_int32_t>(character.code_point))));
    } else {
      lower += word[i];
    }
    i += character.length;
  }
  return lower;
}

std::vector<std::string> split_words(const Json& value, const std::string& label) {
  const std::string& text = json_string(value, {label});
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    if (end > begin) {
      require(words.size() < max_read_words, ErrorCode::corrupt_data,
              "{} must have at most {} words", label, max_read_words);
      require(end - begin <= max_read_word_bytes, ErrorCode::corrupt_data,
              "{} must have words of at most {} bytes, not {}", label, max_read_word_bytes,
              in_quotes(std::string_view(text).substr(begin, end - begin)));
      words.push_back(text.substr(begin, end - begin));
    }
    begin = end + 1;
  }
  return words;
}

std::string joined(const WordSet& words) {
  std::string text;
  for (const std::string& word : words.words()) {
    if (!text.empty()) text += ' ';
    text += word;
  }
  return text;
}

}  // namespace

WordSet::WordSet(std::vector<std::string> words) : words_(std::move(words)) {
  std::ranges::sort(words_);
  words_.erase(std::unique(words_.begin(), words_.end()), words_.end());
  std::unordered_set<std::string> different;
  for (const std::string& word : words_) {
    if (find_apostrophe(word) != 0) different.insert(lower_case(word));
  }
  size_ = std::ssize(different);
}

bool WordSet::holds(std::string_view word) const {
  const auto found = std::ranges::lower_bound(
      words_, word, {}, [](const std::string& each) { return std::string_view(each); });
  return found != words_.end() && *found == word;
}

bool WordSet::knows(std::string_view word) const {
  if (holds(word)) return true;
  const std::size_t apostrophe = find_apostrophe(word);
  if (apostrophe == std::string_view::npos || apostrophe == 0) return false;
  return holds(word.substr(apostrophe)) && knows(word.substr(0, apostrophe));
}

bool WordSet::knows_as_first(std::string_view word) const {
  return knows(word) || knows(lower_first(word));
}

ReadingRecord parse_reading(std::string_view text, std::string_view source) {
  require(text.size() <= max_reading_bytes, ErrorCode::corrupt_data,
          "'{}' must have at most {} bytes, not {}", source, max_reading_bytes, text.size());
  const Json document = parse_json(text, source);
  const auto member = [&](const char* key) { return find_json_member(document, key); };
  const auto label = [&](const char* key) { return fmt::format("'{}': \"{}\"", source, key); };
  for (const char* const key : {"title", "tokens"}) {
    require(member(key) != nullptr, ErrorCode::corrupt_data, "'{}' has no \"{}\"", source, key);
  }
  ReadingRecord reading{.title = json_string(*member("title"), {label("title")}),
                        .tokens = json_integer(*member("tokens"), {label("tokens")}, 0),
                        .words = std::nullopt};
  require(!reading.title.empty() && reading.title.size() <= max_title_bytes &&
              escape_controls(reading.title) == reading.title,
          ErrorCode::corrupt_data,
          "{} must be one line of 1 to {} bytes, without control characters, not {}",
          label("title"), max_title_bytes, in_quotes(reading.title));
  if (member("words")) reading.words.emplace(split_words(*member("words"), label("words")));
  if (member("target_words")) {
    reading.target_words.emplace(split_words(*member("target_words"), label("target_words")));
  }
  return reading;
}

std::string reading_text(const ReadingRecord& reading) {
  OrderedJson document{{"title", reading.title}, {"tokens", reading.tokens}};
  if (reading.words) document["words"] = joined(*reading.words);
  if (reading.target_words) document["target_words"] = joined(*reading.target_words);
  return document.dump(1) + "\n";
}

std::optional<ReadingRecord> find_reading(const std::filesystem::path& directory) {
  const std::filesystem::path file = directory / reading_file_name;
  if (!std::filesystem::exists(file)) return std::nullopt;
  return parse_reading(read_text_file(file, max_reading_bytes), file.string());
}

OrderedJson reading_json(const ReadingRecord& reading) {
  const auto count = [](const std::optional<WordSet>& words) {
    return words ? OrderedJson(words->size()) : OrderedJson(nullptr);
  };
  return {{"title", reading.title},
          {"tokens", reading.tokens},
          {"words", count(reading.words)},
          {"target_words", count(reading.target_words)}};
}

void WordCounter::count(std::string_view word) {
  constexpr std::size_t most = 1'000'000;
  if (word.size() > max_read_word_bytes) return;
  if (counts_.size() >= most) {
    std::erase_if(counts_, [](const auto& entry) { return entry.second == 1; });
  }
  // Where that does not help, words of a text this large stay as they are.
  if (counts_.size() < most || counts_.contains(std::string(word))) ++counts_[std::string(word)];
}

void WordCounter::add(std::string_view text) {
  for_each_written_word(text, [&](const WrittenWord& found) {
    const std::string_view word = text.substr(found.begin, found.end - found.begin);
    count(word);
    const std::size_t apostrophe = find_apostrophe(word);
    if (apostrophe != std::string_view::npos) count(word.substr(apostrophe));
  });
}

WordSet WordCounter::read_words(double passes, std::int64_t least) const {
  std::vector<std::pair<std::int64_t, std::string_view>> often;
  for (const auto& [word, times] : counts_) {
    if (static_cast<double>(times) * passes >= static_cast<double>(least)) {
      often.emplace_back(-times, word);
    }
  }
  std::ranges::sort(often);
  if (often.size() > max_read_words) often.resize(max_read_words);
  std::vector<std::string> words;
  for (const auto& [times, word] : often) words.emplace_back(word);
  return WordSet(std::move(words));
}

}  // namespace heed
