#include "tokenizer/normalisation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <utf8proc.h>

#include <cstdlib>

#include "base/random.h"
#include "base/utf8.h"
#include "tokenizer/small_tokenizer.h"
#include "tokenizer/tokenizer_files.h"

namespace heed {
namespace {

using ::testing::ElementsAre;

std::string nfc(std::string_view text) {
  ChangedText changed;
  append_nfc(text, changed);
  return changed.text();
}

std::string nfc_of_utf8proc(const std::string& text) {
  utf8proc_uint8_t* result = utf8proc_NFC(reinterpret_cast<const utf8proc_uint8_t*>(text.c_str()));
  std::string copy(reinterpret_cast<const char*>(result));
  std::free(result);
  return copy;
}

std::string character(char32_t point) {
  std::string text;
  append_utf8(text, point);
  return text;
}

TEST(Nfc, EqualsUtf8procForEveryCharacter) {
  for (char32_t point = 1; point < 0x110000; ++point) {
    if (point >= 0xD800 && point < 0xE000) continue;
    const std::string text = "x" + character(point) + "\u0323y\u0345" + character(point);
    ASSERT_EQ(nfc(text), nfc_of_utf8proc(text)) << static_cast<int>(point);
    if (!may_change_in_nfc(text)) {
      ASSERT_EQ(nfc(text), text);
    }
  }
}

const std::vector<std::string> combining_parts = {
    "a",      "e",      " ",  "\n",     "\u0301", "\u0323", "\u0345", "\u0334", "\u0344",
    "å",      "\u212B", "か", "\u3099", "ᄒ",     "ᅡ",     "ᆫ",     "하",     "語",
    "\uF900", "\u0958", "ậ",  "\u0F73", "\u0B47", "\u0B3E", "𝅗𝅥",     "👩"};

TEST(Nfc, EqualsUtf8procOnRandomTexts) {
  RandomStream random(21, 0);
  int changed = 0;
  for (int round = 0; round < 50000; ++round) {
    std::string text;
    for (int i = 0; i < 10; ++i) text += combining_parts[random.below(combining_parts.size())];
    const std::string expected = nfc_of_utf8proc(text);
    ASSERT_EQ(nfc(text), expected) << printable(text);
    if (expected != text) {
      ++changed;
      ASSERT_TRUE(may_change_in_nfc(text)) << printable(text);
    }
  }
  EXPECT_GT(changed, 10000);
}

TEST(Nfc, LeavesInvalidBytes) {
  EXPECT_EQ(nfc("\xFF\u0301"
                "e\u0301\xC3"),
            "\xFF\u0301é\xC3");
  EXPECT_EQ(nfc("\xCC"), "\xCC");
}

// Sorting by insertion would take hours: 10^6 / 2 marks of two alternating classes.
TEST(Nfc, TakesLongRunsOfMarksInStride) {
  std::string text = "a";
  while (text.size() < 1'000'000) text += "\u0301\u0323";
  const std::string normal = nfc(text);
  EXPECT_EQ(normal.substr(0, 3), "ạ");
  EXPECT_EQ(nfc(normal), normal);
}

TEST(ChangedText, LeadsBackToItsSource) {
  ChangedText changed;
  append_nfc("ae\u0301b\u212B", changed);  // a, e and a mark (3 bytes), b, a sign of 3 bytes
  EXPECT_EQ(changed.text(), "aébÅ");
  SourceOffsets offsets(changed.changes());
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i <= changed.text().size(); ++i) found.push_back(offsets.at(i));
  EXPECT_THAT(found, ElementsAre(0, 1, 4, 4, 5, 8, 8));
}

TEST(ChangedText, IsAppendedInParts) {
  RandomStream random(22, 0);
  for (int round = 0; round < 5000; ++round) {
    std::string text;
    for (int i = 0; i < 6; ++i) text += combining_parts[random.below(combining_parts.size())];
    ChangedText whole;
    append_nfc(text, whole);
    ChangedText joined;
    for (std::size_t begin = 0; begin < whole.text().size();) {
      const std::size_t end =
          std::min<std::size_t>(begin + 1 + random.below(5), whole.text().size());
      joined.append(whole, begin, end);
      begin = end;
    }
    ASSERT_EQ(joined.text(), whole.text());
    SourceOffsets offsets(joined.changes());
    SourceOffsets expected(whole.changes());
    for (std::size_t i = 0; i <= whole.text().size(); ++i) {
      ASSERT_EQ(offsets.at(i), expected.at(i)) << printable(text) << " at " << i;
    }
  }
}

TEST(Nfc, OfATokenizerKeepsSpansOfTheText) {
  auto document = small_tokenizer()->to_json();
  const std::string none = R"("normalizer": null)";
  document.replace(document.find(none), none.size(), R"("normalizer": {"type": "NFC"})");
  const auto tokenizer = parse_tokenizer_json(document, "nfc");
  const std::string text = "the na\u0069\u0308ve cat";
  EXPECT_EQ(tokenizer->encode(text), small_tokenizer()->encode("the naïve cat"));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), "the naïve cat");
  std::string joined;
  std::size_t end = 0;
  for (const TokenSpan& span : tokenizer->encode_with_offsets(text)) {
    EXPECT_EQ(span.begin, end);
    end = span.end;
    joined += text.substr(span.begin, span.end - span.begin);
  }
  EXPECT_EQ(joined, text);
  EXPECT_NE(tokenizer->content_key(), small_tokenizer()->content_key());
  EXPECT_EQ(parse_tokenizer_json(tokenizer->to_json(), "saved")->content_key(),
            tokenizer->content_key());
}

}  // namespace
}  // namespace heed
