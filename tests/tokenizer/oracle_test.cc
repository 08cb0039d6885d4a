// Compares heed with what tiktoken made of the same texts; see oracle/run.sh.
#include <gtest/gtest.h>
#include <utf8proc.h>

#include <cstdlib>
#include <iostream>

#include "base/files.h"
#include "base/utf8.h"
#include "tokenizer/character_class.h"
#include "tokenizer/records.h"
#include "tokenizer/test_data.h"
#include "tokenizer/tokenizer.h"

namespace heed {
namespace {

// Code points that tiktoken's version of Unicode puts into another class than utf8proc's.
std::vector<bool> disputed_characters(std::string_view classes) {
  std::vector<bool> disputed(classes.size());
  for (std::size_t point = 0; point < classes.size(); ++point) {
    disputed[point] =
        static_cast<char>(character_class(static_cast<char32_t>(point))) != classes[point];
  }
  return disputed;
}

// tiktoken 1.0.22 knows Unicode 16. Until utf8proc knows more, they may only differ about
// characters that utf8proc does not know yet.
void expect_disputed_only_for_age(const std::vector<bool>& disputed) {
  if (std::atoi(utf8proc_unicode_version()) > 16) return;
  for (std::size_t point = 0; point < disputed.size(); ++point) {
    if (!disputed[point]) continue;
    ASSERT_EQ(utf8proc_category(static_cast<utf8proc_int32_t>(point)), UTF8PROC_CATEGORY_CN)
        << "U+" << std::hex << point;
  }
}

TEST(Oracle, EqualsTiktoken) {
  const char* records_path = std::getenv("HEED_TIKTOKEN_RECORDS");
  if (records_path == nullptr) {
    GTEST_SKIP() << "HEED_TIKTOKEN_RECORDS is not set; tests/tokenizer/oracle/run.sh makes it";
  }
  HEED_NEEDS_DATA("gpt2");
  const auto tokenizer = load_tokenizer(test_data() / "gpt2");
  const MappedFile classes(std::string(records_path) + ".classes");
  const auto disputed = disputed_characters(classes.text());
  ASSERT_EQ(disputed.size(), 0x110000u);
  expect_disputed_only_for_age(disputed);

  const MappedFile file(records_path);
  RecordReader reader(file.text());
  std::size_t compared = 0;
  std::size_t skipped = 0;
  std::size_t tokens = 0;
  while (!reader.at_end()) {
    const bool special = reader.number() == 1;
    const std::string_view text = reader.text();
    const std::vector<std::int32_t> expected = reader.ids();
    if (holds_disputed(text, disputed)) {
      ++skipped;
      continue;
    }
    const auto actual = tokenizer->encode(text, {.special_tokens = special});
    ASSERT_EQ(actual, expected) << "text " << compared + skipped << ": " << in_quotes(text);
    ASSERT_EQ(tokenizer->decode(actual), text);
    ++compared;
    tokens += expected.size();
  }
  std::cout << "heed equals tiktoken: " << compared << " texts, " << tokens << " tokens; "
            << skipped << " texts left out for characters of a newer Unicode\n";
  EXPECT_GE(compared, 100000u);
}

}  // namespace
}  // namespace heed
