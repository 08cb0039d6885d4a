#include "engine/sense_sentences.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/embedded_file.h"
#include "base/error.h"
#include "microworld/microworld.h"
#include "microworld/scenes.h"
#include "microworld/tables.h"

HEED_EMBED(heed_senses, HEED_SENSES)

namespace heed {
namespace {

constexpr std::uint64_t held_out_seed = 2;    // the starter was trained on other stories
constexpr std::int64_t max_stories = 4000;    // a few hundred are enough
constexpr std::size_t scenes_of_sense = 6;    // ends of stories, of two to four sentences
constexpr std::size_t captions_of_sense = 2;  // "American shrew mole"
constexpr std::size_t max_scene = 200;        // bytes

bool is_capital(char c) { return c >= 'A' && c <= 'Z'; }
bool is_letter(char c) { return is_capital(c) || (c >= 'a' && c <= 'z'); }

std::size_t count_of_word(std::string_view text, std::string_view word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string_view::npos;
       at = text.find(word, at + word.size())) {
    const std::size_t end = at + word.size();
    count += (at == 0 || !is_letter(text[at - 1])) && (end == text.size() || !is_letter(text[end]));
  }
  return count;
}

// Whether a sentence begins at `at`, after the end of another one.
bool begins_sentence(std::string_view text, std::size_t at) {
  if (at < 2 || (text[at - 1] != ' ' && text[at - 1] != '\n')) return false;
  if (text[at] != '"' && !is_capital(text[at])) return false;
  const char end = text[at - 2] == '"' && at > 2 ? text[at - 3] : text[at - 2];
  return end == '.' || end == '!' || end == '?';
}

// The last `count` sentences of a text, on one line.
std::string last_sentences(std::string_view text, std::size_t count) {
  std::size_t begin = text.size();
  while (begin > 0 && count > 0) count -= begins_sentence(text, --begin) ? 1 : 0;
  std::string sentences(text.substr(begin));
  std::ranges::replace(sentences, '\n', ' ');
  return sentences;
}

// The line of a text that ends at its end.
std::string last_line(std::string_view text) {
  return std::string(text.substr(text.rfind('\n') + 1));
}

// Collects the sentences of one word.
class Collector {
 public:
  explicit Collector(std::string word) : word_(std::move(word)) {}

  const std::string& word() const { return word_; }
  void add_sense(std::string sense) { senses_.push_back({.name = std::move(sense)}); }
  bool is_full() const {
    return std::ranges::all_of(senses_, [](const Sense& sense) {
      return sense.scenes.size() == scenes_of_sense && sense.captions.size() == captions_of_sense;
    });
  }

  // A story up to the end of the word.
  void read(microworld::StoryKind kind, std::string_view story, std::string_view sense) {
    Sense& found = *std::ranges::find(senses_, sense, &Sense::name);
    const bool is_caption = kind == microworld::StoryKind::album;
    std::vector<std::string>& to = is_caption ? found.captions : found.scenes;
    // Of different lengths, so that where a word stands does not tell its sense.
    std::string text = is_caption ? last_line(story) : last_sentences(story, 2 + to.size() % 3);
    if (to.size() == (is_caption ? captions_of_sense : scenes_of_sense) ||
        text.size() > max_scene || count_of_word(text, word_) != 1 ||
        std::ranges::find(to, text) != to.end()) {
      return;
    }
    to.push_back(std::move(text));
  }

  WordSenses result() && {
    WordSenses result{.word = word_};
    for (Sense& sense : senses_) {
      for (std::vector<std::string>* texts : {&sense.scenes, &sense.captions}) {
        for (std::string& text : *texts) {
          result.sentences.push_back({std::move(text), result.senses.size()});
        }
      }
      result.senses.push_back(std::move(sense.name));
    }
    return result;
  }

 private:
  struct Sense {
    std::string name;
    std::vector<std::string> scenes{};
    std::vector<std::string> captions{};
  };
  std::string word_;
  std::vector<Sense> senses_;
};

SenseLibrary of_microworld() {
  using microworld::StoryKind;
  std::vector<Collector> words;
  for (const microworld::Scene& scene : microworld::sense_scenes()) {
    if (words.empty() || words.back().word() != scene.word) {
      words.emplace_back(std::string(scene.word));
    }
    words.back().add_sense(std::string(scene.reading));
  }
  const microworld::Microworld world(held_out_seed,
                                     {StoryKind::outing, StoryKind::letter, StoryKind::album});
  for (std::int64_t i = 0; i < max_stories && !std::ranges::all_of(words, &Collector::is_full);
       ++i) {
    const microworld::Story story = world.story(i);
    for (const microworld::SenseMark& mark : story.senses) {
      if (mark.recalled) continue;
      std::ranges::find(words, mark.word, &Collector::word)
          ->read(story.kind, std::string_view(story.text).substr(0, mark.span.end), mark.sense);
    }
  }
  check(std::ranges::all_of(words, &Collector::is_full), "stories have sentences of every sense");
  SenseLibrary library{.source = "microworld"};
  for (Collector& word : words) library.words.push_back(std::move(word).result());
  return library;
}

SenseLibrary of_english() {
  SenseLibrary library{.source = "English"};
  const microworld::WordTables tables(
      {heed_senses_begin, static_cast<std::size_t>(heed_senses_end - heed_senses_begin)});
  for (const microworld::TableRow& row : tables.rows("senses")) {
    if (library.words.empty() || library.words.back().word != row[0]) {
      library.words.push_back({.word = std::string(row[0])});
    }
    WordSenses& word = library.words.back();
    if (word.senses.empty() || word.senses.back() != row[1]) word.senses.emplace_back(row[1]);
    word.sentences.push_back({std::string(row[2]), word.senses.size() - 1});
  }
  return library;
}

}  // namespace

const SenseLibrary& sense_library(const LoadedModel& model) {
  if (model.is_starter()) {
    static const SenseLibrary library = of_microworld();
    return library;
  }
  static const SenseLibrary library = of_english();
  return library;
}

const WordSenses& senses_of(const SenseLibrary& library, std::string_view word) {
  const auto found = std::ranges::find(library.words, word, &WordSenses::word);
  if (found != library.words.end()) return *found;
  std::string known;
  for (const WordSenses& each : library.words) known += (known.empty() ? "" : ", ") + each.word;
  fail(ErrorCode::not_found, "there are no sentences for '{}', but for {}", word.substr(0, 40),
       known);
}

}  // namespace heed
