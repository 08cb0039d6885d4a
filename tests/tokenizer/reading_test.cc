// What a model has read: words as people write them, the file that lists them, and those of a text
// that are not among them.
#include "tokenizer/reading.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/temporary_directory.h"
#include "tokenizer/small_tokenizer.h"
#include "tokenizer/unread_words.h"
#include "tokenizer/written_words.h"

namespace heed {
namespace {

using ::testing::ElementsAre;
using testing::expect_error;
using ::testing::IsEmpty;

std::vector<std::string> words_in(std::string_view text) {
  std::vector<std::string> words;
  for_each_written_word(text, [&](const WrittenWord& word) {
    words.emplace_back(text.substr(word.begin, word.end - word.begin));
  });
  return words;
}

TEST(WrittenWords, AreLettersWithApostrophesBetweenThem) {
  EXPECT_THAT(words_in("The well-known dog's 'mat', isn’t it?"),
              ElementsAre("The", "well", "known", "dog's", "mat", "isn’t", "it"));
  EXPECT_THAT(words_in("Ärger über naïve Käse, été"),
              ElementsAre("Ärger", "über", "naïve", "Käse", "été"));
  EXPECT_THAT(words_in("привет κόσμε سلام"), ElementsAre("привет", "κόσμε", "سلام"));
}

TEST(WrittenWords, NumbersSignsTagsAndStrayBytesAreNone) {
  EXPECT_THAT(
      words_in("20 % of 3rd_place, B2B … — «!» <|endoftext|> 👩‍👧 \xE6\xB0 ok\xFF"),
      ElementsAre("of", "ok"));
  EXPECT_THAT(words_in(""), IsEmpty());
}

TEST(WrittenWords, OfScriptsWithoutSpacesAreCharacters) {
  EXPECT_THAT(words_in("我喝水。OK"), ElementsAre("我", "喝", "水", "OK"));
  EXPECT_THAT(words_in("ありがとう"), ElementsAre("あ", "り", "が", "と", "う"));
}

TEST(WrittenWords, KnowWhereASentenceBegins) {
  std::vector<bool> begins;
  for_each_written_word("Oh no. “Yes”, he said\nThen, (so) he",
                        [&](const WrittenWord& word) { begins.push_back(word.begins_sentence); });
  EXPECT_THAT(begins, ElementsAre(true, false, true, true, false, true, false, false));
}

TEST(VisibleCharacter, IsWhatPeopleSee) {
  const std::string family = "👩‍👧", letter = "e\xCC\x81";
  EXPECT_EQ(visible_character_end(family + "x", 0), family.size());
  EXPECT_EQ(visible_character_end(letter + "x", 0), letter.size());
  EXPECT_EQ(visible_character_end("水火", 0), 3u);
  EXPECT_EQ(visible_character_end("\xE6\xB0", 0), 1u);
}

TEST(WordSet, KnowsACapitalOnlyAtTheBeginningOfASentence) {
  const WordSet words({"pizza", "Lily", "teacher", "'s", "it"});
  EXPECT_TRUE(words.knows("pizza"));
  EXPECT_TRUE(words.knows_as_first("Pizza"));
  EXPECT_FALSE(words.knows("Pizza"));
  EXPECT_FALSE(words.knows_as_first("PIZZA"));
  EXPECT_TRUE(words.knows("Lily"));
  EXPECT_FALSE(words.knows("lily")) << "as read: its tokens are others";
  EXPECT_TRUE(words.knows("teacher's")) << "in two parts";
  EXPECT_TRUE(words.knows_as_first("Teacher's"));
  EXPECT_FALSE(words.knows("friend's"));
  EXPECT_FALSE(words.knows("teacher’s")) << "this apostrophe has not been read";
  EXPECT_EQ(words.size(), 4);
}

TEST(WordSet, CountsDifferentWordsWhateverTheirCase) {
  EXPECT_EQ(WordSet({"The", "the", "Öl", "öl", "cat", "'s"}).size(), 3);
}

TEST(WordCounter, CountsReadingsOfWholeWords) {
  WordCounter counter;
  for (int i = 0; i < 5; ++i) counter.add("The cat's mat. " + std::string(i == 0 ? "rare" : "the"));
  EXPECT_THAT(counter.read_words(1, 5).words(), ElementsAre("'s", "The", "cat's", "mat"));
  EXPECT_THAT(counter.read_words(2, 8).words(), ElementsAre("'s", "The", "cat's", "mat", "the"));
  EXPECT_THAT(counter.read_words(0).words(), IsEmpty()) << "an untrained model has read nothing";
  counter.add(std::string(max_read_word_bytes + 1, 'a'));
  EXPECT_THAT(counter.read_words(1000, 1).words(),
              ElementsAre("'s", "The", "cat's", "mat", "rare", "the"));
}

ReadingRecord small_record() {
  return {.title = "eleven tales", .tokens = 12, .words = WordSet({"a", "Über"})};
}

TEST(ReadingFile, RoundTrips) {
  ReadingRecord record = small_record();
  const ReadingRecord read = parse_reading(reading_text(record), "file");
  EXPECT_EQ(read.title, record.title);
  EXPECT_EQ(read.tokens, 12);
  EXPECT_EQ(read.words->words(), record.words->words());
  EXPECT_FALSE(read.target_words);
  record.target_words.emplace(std::vector<std::string>{"ein"});
  record.words.reset();
  const ReadingRecord other = parse_reading(reading_text(record), "file");
  EXPECT_FALSE(other.words);
  EXPECT_THAT(other.target_words->words(), ElementsAre("ein"));
  EXPECT_EQ(reading_json(other).dump(),
            R"({"title":"eleven tales","tokens":12,"words":null,"target_words":1})");
}

TEST(ReadingFile, IsFoundBesideAModel) {
  const testing::TemporaryDirectory directory;
  EXPECT_FALSE(find_reading(directory.path()));
  write_text_file(directory / reading_file_name, reading_text(small_record()));
  EXPECT_EQ(find_reading(directory.path())->title, "eleven tales");
}

TEST(ReadingFile, RefusesWhatItCannotBe) {
  const auto refuses = [](const std::string& text, const std::string& message) {
    expect_error(
        ErrorCode::corrupt_data, [&] { parse_reading(text, "beside/reading.json"); }, message);
  };
  refuses("[]", "no \"title\"");
  refuses(R"({"title": "a"})", "no \"tokens\"");
  refuses(R"({"title": 3, "tokens": 1})", "must be");
  refuses(R"({"title": "", "tokens": 1})", "must be one line");
  refuses(R"({"title": "a\nb", "tokens": 1})", "must be one line");
  refuses(R"({"title": "a\u001b[2J", "tokens": 1})", "must be one line");
  refuses(R"({"title": ")" + std::string(max_title_bytes + 1, 'a') + R"(", "tokens": 1})",
          "must be one line");
  refuses(R"({"title": "a", "tokens": -1})", "must be");
  refuses(R"({"title": "a", "tokens": 1, "words": ["a"]})", "must be");
  refuses(R"({"title": "a", "tokens": 1, "words": ")" + std::string(max_read_word_bytes + 1, 'a') +
              "\"}",
          "words of at most");
  std::string many;
  for (std::size_t i = 0; i <= max_read_words; ++i) many += "a ";
  refuses(R"({"title": "a", "tokens": 1, "words": ")" + many + "\"}", "at most");
  refuses(std::string(max_reading_bytes + 1, ' '), "at most");
}

UnreadWords unread_of(const std::string& text, const WordSet& words) {
  const auto tokenizer = small_tokenizer();
  return find_unread(words, text, tokenizer->encode_with_offsets(text), *tokenizer);
}

TEST(UnreadWords, HaveTheirBytesAndTokens) {
  const auto tokenizer = small_tokenizer();
  const std::string text = "the cat ate Käse<|endoftext|>The pizza";
  const std::vector<TokenSpan> tokens = tokenizer->encode_with_offsets(text);
  const UnreadWords unread = find_unread(WordSet({"the", "cat"}), text, tokens, *tokenizer);
  ASSERT_EQ(unread.words.size(), 3u);
  for (const UnreadWord& word : unread.words) {
    EXPECT_EQ(text.substr(word.begin, word.end - word.begin), word.text);
    const auto first = static_cast<std::size_t>(word.first_token);
    const auto last = static_cast<std::size_t>(word.last_token);
    EXPECT_LE(tokens[first].begin, word.begin);
    EXPECT_GT(tokens[first].end, word.begin) << "the first token has a byte of the word";
    EXPECT_GE(tokens[last].end, word.end);
    EXPECT_LT(tokens[last].begin, word.end) << "and so has the last";
  }
  EXPECT_THAT(unread.different_unread, ElementsAre("ate", "Käse", "pizza"));
  EXPECT_EQ(unread.different, 6) << "the, cat, ate, Käse, The, pizza; the tag is no word";
  // The same text by the bytes of its tokens.
  std::vector<std::int32_t> ids;
  std::vector<std::string> pieces;
  for (const TokenSpan& token : tokens) {
    ids.push_back(token.id);
    pieces.push_back(tokenizer->token_bytes(token.id));
  }
  const UnreadWords same = find_unread(WordSet({"the", "cat"}), ids, pieces, *tokenizer);
  EXPECT_EQ(unread_json(same).dump(), unread_json(unread).dump());
}

TEST(UnreadWords, SpecialTokensAreNoWords) {
  const auto tokenizer = small_tokenizer();
  const std::int32_t end = *tokenizer->end_of_text();
  const std::vector<std::int32_t> ids{end};
  const std::vector<std::string> pieces{"end"};  // whatever it is called
  EXPECT_THAT(find_unread(WordSet(), ids, pieces, *tokenizer).words, IsEmpty());
}

TEST(UnreadNote, SaysWhichAndOfHowMany) {
  std::vector<std::string> known{"I", "love", "with", "and"};
  for (int i = 0; i < 1089; ++i) {
    std::string word = "w";
    for (int rest = i; rest > 0; rest /= 26) word += static_cast<char>('a' + rest % 26);
    known.push_back(word);
  }
  const WordSet words(known);
  ASSERT_EQ(words.size(), 1093);
  EXPECT_EQ(unread_note(unread_of("I love pizza with extra cheese and", words)),
            "3 of these 7 words (pizza, extra, cheese) are not among the about 1,100 that this "
            "model has read: its guesses mean little.");
  EXPECT_EQ(unread_note(unread_of("I love pizza", words)),
            "1 of these 3 words (pizza) is not among the about 1,100 that this model has read: its "
            "guesses mean little.");
  EXPECT_EQ(unread_note(unread_of("pizza", words)),
            "The word “pizza” is not among the about 1,100 that this model has read: its guesses "
            "mean little.");
  EXPECT_EQ(unread_note(unread_of("pizza, cheese", words), UnreadFor::translation),
            "None of these 2 words (pizza, cheese) is among the about 1,100 that this model has "
            "read: its translation means little.");
  EXPECT_EQ(unread_note(unread_of("I love love with and wb pizza", words)),
            "1 of these 6 words (pizza) is not among the about 1,100 that this model has read: it "
            "may misread it.");
  EXPECT_EQ(unread_note(unread_of("I love", words)), "");
  EXPECT_EQ(unread_note(unread_of("a b c d e f g h", words)).substr(0, 50),
            "None of these 8 words (a, b, c, d, e, f and 2 more");
  EXPECT_EQ(unread_note(unread_of("I", WordSet())),
            "This model has not read any word often enough: its guesses mean little.");
  EXPECT_EQ(unread_json(unread_of("I love", words))["note"], nullptr);
}

}  // namespace
}  // namespace heed
