// What the models that heed carries have read, measured: no word of held-out texts of their own
// kind is unread, and of ordinary sentences exactly those words that their training text does not
// have.
#include "heed/reading.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/temporary_directory.h"
#include "engine/embedded_files.h"
#include "engine/loaded_model.h"
#include "engine/views/reading_json.h"
#include "engine/views/token_json.h"
#include "heed/train.h"
#include "microworld/bilingual/bilingual.h"
#include "microworld/microworld.h"
#include "tokenizer/reading.h"

namespace heed {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Of no training text: both models were trained on seed 1.
constexpr std::uint64_t held_out_seed = 20260;
constexpr std::int64_t held_out = 30;

const Model& starter() {
  static const Model model = Model::load("starter");
  return model;
}

const Translator& carried_translator() {
  static const Translator translator = Translator::load("translator");
  return translator;
}

std::vector<std::string> unread_texts(const UnreadText& unread) {
  std::vector<std::string> words;
  for (const UnreadText::Word& word : unread.words) words.push_back(word.text);
  return words;
}

TEST(StarterReading, SaysWhatItHasRead) {
  if (!starter_files()) GTEST_SKIP() << "this build carries no starter";
  const std::optional<ReadTexts> read = read_texts(starter());
  ASSERT_TRUE(read);
  EXPECT_THAT(read->title, HasSubstr("stories"));
  EXPECT_EQ(read->words, 1115) << "the grammar's words (docs/microworld.md)";
  EXPECT_GT(read->tokens, 20'000'000);
}

TEST(StarterReading, HasReadEveryWordOfHeldOutStories) {
  if (!starter_files()) GTEST_SKIP() << "this build carries no starter";
  const microworld::Microworld world(held_out_seed);
  for (std::int64_t i = 0; i < held_out; ++i) {
    const std::string text = world.story(i).text;
    const std::optional<UnreadText> unread = unread_words(starter(), text);
    ASSERT_TRUE(unread);
    EXPECT_THAT(unread_texts(*unread), IsEmpty()) << text;
    EXPECT_EQ(unread->note, "");
  }
}

// What the 104,000 stories of its training have fewer than ten times, counted by another program
// (a regular expression over the stories).
const std::vector<std::pair<std::string, std::vector<std::string>>>& ordinary_sentences() {
  static const std::vector<std::pair<std::string, std::vector<std::string>>> sentences{
      {"I love pizza with extra cheese and", {"pizza", "extra", "cheese"}},
      {"My brother plays football after school.", {"brother", "plays", "football"}},
      {"The doctor told her to rest for a week.", {"rest", "week"}},
      {"She bought a new laptop yesterday.", {"yesterday"}},
      {"We went to the beach in the summer.", {}},
      {"The cat sat on the mat.", {}},
      {"He didn't want to go to work today.", {"want", "work", "today"}},
      {"Our teacher's car broke down on the highway.", {"teacher's", "broke", "highway"}},
      {"The Eiffel Tower is in Paris.", {"Tower"}},
      {"Pizza is my favourite food.", {"Pizza", "favourite", "food"}},
      {"Can you help me with my homework?", {"help", "homework"}},
      {"The children were playing in the garden.", {"children"}},
      {"It rained all night, and the river rose.", {"rained"}},
      {"Grandmother's cookies are the best!", {"Grandmother's", "cookies"}},
      {"They live in a well-known old house.", {"live", "known"}},
      {"The café on the corner sells espresso.", {"café", "sells", "espresso"}},
      {"Don't forget your umbrella.", {"Don't", "umbrella"}},
      {"The price rose by 20 % in 2023.", {"price"}},
      {"Tom and Lucy got married last June.", {"got", "married", "June"}},
      {"A stitch in time saves nine.", {"stitch", "saves"}},
      {"The president gave a long speech.", {"president", "gave", "speech"}},
      {"I think, therefore I am.", {"think"}},
      {"The bank of the river was muddy.", {}},
      {"Apple announced a new phone.", {}},
      {"She sings beautifully in the choir.", {"sings", "beautifully", "choir"}},
      {"The astronaut floated above the Earth.", {"astronaut", "floated", "Earth"}},
      {"Why is the sky blue?", {"Why"}},
      {"He whispered something in her ear.", {"something"}},
      {"Dogs bark, but cats purr.", {"Dogs", "bark", "cats", "purr"}},
      {"To be or not to be, that is the question.", {"or", "question"}},
  };
  return sentences;
}

TEST(StarterReading, NamesExactlyTheUnreadWordsOfOrdinarySentences) {
  if (!starter_files()) GTEST_SKIP() << "this build carries no starter";
  ASSERT_EQ(ordinary_sentences().size(), 30u);
  for (const auto& [text, expected] : ordinary_sentences()) {
    const std::optional<UnreadText> unread = unread_words(starter(), text);
    ASSERT_TRUE(unread);
    EXPECT_THAT(unread_texts(*unread), ElementsAreArray(expected)) << text;
    EXPECT_EQ(unread->note.empty(), expected.empty()) << text;
    for (const UnreadText::Word& word : unread->words) {
      EXPECT_EQ(text.substr(word.begin, word.end - word.begin), word.text);
      EXPECT_THAT(unread->note, HasSubstr(word.text));
    }
  }
}

TEST(TranslatorReading, HasReadEveryWordOfHeldOutPairs) {
  if (!translator_files()) GTEST_SKIP() << "this build carries no translator";
  const std::optional<ReadTexts> read = read_texts(carried_translator());
  ASSERT_TRUE(read && read->words && read->target_words);
  const microworld::bilingual::Bilingual world(held_out_seed);
  const auto record = parse_reading(translator_files()->reading, "the translator's reading.json");
  for (std::int64_t i = 0; i < held_out; ++i) {
    const auto pair = world.pair(i);
    const std::optional<UnreadText> unread = unread_words(carried_translator(), pair.english.text);
    ASSERT_TRUE(unread);
    EXPECT_THAT(unread_texts(*unread), IsEmpty()) << pair.english.text;
    const auto german = find_unread(*record.target_words, pair.german.text, {},
                                    *load_model_tokenizer("translator"));
    EXPECT_THAT(german.different_unread, IsEmpty()) << pair.german.text;
  }
}

TEST(TranslatorReading, KnowsTheSentenceOfItsDocumentation) {
  if (!translator_files()) GTEST_SKIP() << "this build carries no translator";
  const std::optional<UnreadText> barks = unread_words(carried_translator(), "The dog barks.");
  ASSERT_TRUE(barks);
  EXPECT_THAT(unread_texts(*barks), ElementsAreArray({"barks"}));
  EXPECT_THAT(barks->note, HasSubstr("1 of these 3 words (barks)"));
  EXPECT_THAT(barks->note, HasSubstr("its translation means little"));
  const std::string known = "The dog sleeps.";
  EXPECT_THAT(unread_texts(*unread_words(carried_translator(), known)), IsEmpty());
  EXPECT_EQ(carried_translator().translate(known).front().text, "Der Hund schläft.");
}

// A run on a text, and one that goes on from it.
TEST(TrainedReading, StandsBesideTheModelAndGrowsWithFineTuning) {
  const testing::TemporaryDirectory directory;
  std::string text;
  for (int i = 0; i < 60; ++i) text += "The quick brown fox jumps over it. ";
  text += "Once only.";
  write_text_file(directory / "tales.txt", text);
  TrainingOptions options{.files = {directory / "tales.txt"},
                          .out = directory / "run",
                          .preset = "shakespeare-char-cpu",
                          .settings = {{"tokenizer", "bpe"},
                                       {"vocabulary_size", "270"},
                                       {"layers", "1"},
                                       {"heads", "1"},
                                       {"channels", "8"},
                                       {"context", "16"},
                                       {"batch_size", "4"},
                                       {"steps", "20"},
                                       {"validation_fraction", "0"}}};
  const TrainingResult result = train_model(options);
  const std::optional<ReadingRecord> read = find_reading(result.checkpoint);
  ASSERT_TRUE(read && read->words);
  EXPECT_EQ(read->title, "tales.txt") << "no directories";
  EXPECT_EQ(read->tokens, 20 * 4 * 16);
  EXPECT_THAT(read->words->words(),
              ElementsAreArray({"The", "brown", "fox", "it", "jumps", "over", "quick"}));
  const Model model = Model::load(result.checkpoint.string());
  EXPECT_THAT(unread_texts(*unread_words(model, "The fox jumps once")), ElementsAreArray({"once"}));

  std::string other;
  for (int i = 0; i < 60; ++i) other += "A slow hare waits. ";
  write_text_file(directory / "more.txt", other);
  options.preset.clear();
  options.settings = {{"steps", "20"}, {"batch_size", "4"}, {"validation_fraction", "0"}};
  options.files = {directory / "more.txt"};
  options.from = result.checkpoint;
  options.out = directory / "second";
  const std::optional<ReadingRecord> both = find_reading(train_model(options).checkpoint);
  ASSERT_TRUE(both && both->words);
  EXPECT_EQ(both->title, "tales.txt; then more.txt");
  EXPECT_TRUE(both->words->knows("fox") && both->words->knows("hare"));

  // What a model without the file has read before is not known, and nothing is claimed.
  std::filesystem::remove(result.checkpoint / reading_file_name);
  options.out = directory / "third";
  const std::filesystem::path third = train_model(options).checkpoint;
  EXPECT_FALSE(find_reading(third));
  EXPECT_FALSE(unread_words(Model::load(third.string()), "zebra"));
}

TEST(NamedBytes, AreNumbersWhereTheyAreNoText) {
  EXPECT_EQ(named_bytes(" mole"), " mole");
  EXPECT_EQ(named_bytes("水"), "水");
  EXPECT_EQ(named_bytes("\xE6\xB0"), "‹E6 B0›");
  EXPECT_EQ(named_bytes(" \xD9"), " ‹D9›") << "half an Arabic letter";
  EXPECT_EQ(named_bytes("a\xB4水\xF0\x9F"), "a‹B4›水‹F0 9F›");
  EXPECT_EQ(named_bytes(""), "");
}

}  // namespace
}  // namespace heed
