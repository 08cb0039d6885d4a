// What a model has read: the file reading.json beside its weights.
//
//   {"title": "200,000 short stories made by a grammar of about 1,100 words",
//    "tokens": 26214400,
//    "words": "A All April …",
//    "target_words": "Ab Aber …"}
//
// `title` says it in one line; `tokens` is how many tokens training read. `words` are those that
// were read whole often enough, as they were read ("Lily" and "lily" are two), separated by spaces;
// of a translator, `words` are of its sources and `target_words` of its targets. Without `words`
// nothing is claimed about words.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/json_fwd.h"

namespace heed {

inline constexpr const char* reading_file_name = "reading.json";

// What a file may have.
inline constexpr std::size_t max_reading_bytes = std::size_t{8} << 20;
inline constexpr std::size_t max_read_words = 60'000;
inline constexpr std::size_t max_read_word_bytes = 64;
inline constexpr std::size_t max_title_bytes = 300;

// Words as they were read.
class WordSet {
 public:
  WordSet() = default;
  explicit WordSet(std::vector<std::string> words);

  // Whether a word was read whole; a word with an apostrophe may have been read in two parts, such
  // as "teacher" and "'s".
  bool knows(std::string_view word) const;
  bool knows_as_first(std::string_view word) const;  // of a sentence, whose capital it may be

  // Of different words, whatever their case; endings such as "'s" do not count.
  std::int64_t size() const { return size_; }
  // Ascending.
  const std::vector<std::string>& words() const { return words_; }

 private:
  bool holds(std::string_view word) const;

  std::vector<std::string> words_;
  std::int64_t size_ = 0;
};

struct ReadingRecord {
  std::string title;
  std::int64_t tokens = 0;
  std::optional<WordSet> words;  // of a text or a source
  std::optional<WordSet> target_words{};
};

// Throws Error{corrupt_data} naming `source` for another form, and for more than the bounds above.
ReadingRecord parse_reading(std::string_view text, std::string_view source);

std::string reading_text(const ReadingRecord& reading);

// That of a model directory; nothing where it has no such file. Throws as parse_reading, and
// Error{input_output}.
std::optional<ReadingRecord> find_reading(const std::filesystem::path& directory);

// {"title", "tokens", "words", "target_words"}: how many words of each kind, null where nothing is
// claimed about them.
OrderedJson reading_json(const ReadingRecord& reading);

// Counts the words of texts. Once there are a million different ones, those that were seen once are
// forgotten.
class WordCounter {
 public:
  void add(std::string_view text);

  // Those that were read at least `least` times where every text was read `passes` times: at most
  // max_read_words, the most frequent ones.
  WordSet read_words(double passes, std::int64_t least = usual_least) const;

  // Fewer readings leave little in a model: it has as good as not read the word.
  static constexpr std::int64_t usual_least = 10;

 private:
  void count(std::string_view word);

  std::unordered_map<std::string, std::int64_t> counts_;
};

}  // namespace heed
