// An added token with every combination of its flags, in every kind of tokenizer that puts spaces
// before texts or does not: golden ids of the Rust library `tokenizers`, and more of them where
// HEED_ADDED_MATRIX names the file. oracle/published/matrix.mjs makes both.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/files.h"
#include "base/json.h"
#include "base/utf8.h"
#include "tokenizer/tokenizer_files.h"

namespace heed {
namespace {

Json with_token(const Json& tokenizer, const std::string& flags) {
  Json document = tokenizer["document"];
  const auto has = [&](char flag) { return flags.find(flag) != std::string::npos; };
  document["added_tokens"].push_back({{"id", tokenizer["id"]},
                                      {"content", "<x>"},
                                      {"lstrip", has('l')},
                                      {"rstrip", has('r')},
                                      {"single_word", has('w')},
                                      {"normalized", has('n')},
                                      {"special", has('s')}});
  return document;
}

int count_compared(const Json& matrix) {
  int compared = 0;
  for (const auto& [name, tokenizer] : matrix["tokenizers"].items()) {
    for (const auto& [flags, expected] : tokenizer["ids"].items()) {
      const std::string text = with_token(tokenizer, flags).dump();
      const auto made = parse_tokenizer_json(text, name);
      for (std::size_t i = 0; i < matrix["texts"].size(); ++i) {
        const auto given = matrix["texts"][i].get<std::string>();
        const auto wanted = expected[i].get<std::vector<std::int32_t>>();
        EXPECT_EQ(made->encode(given), wanted)
            << name << " with <x> '" << flags << "': " << printable(given);
        // The whole text as one range in which special tokens may be found is no other rule.
        const TextRange whole[] = {{0, given.size()}};
        EXPECT_EQ(made->encode(given, {.special_ranges = whole}), wanted)
            << name << " with <x> '" << flags << "': " << printable(given);
        ++compared;
      }
    }
  }
  return compared;
}

TEST(AddedMatrix, EqualsGoldenIds) {
  const std::string file = HEED_SOURCE_DIR "/tests/golden/added_matrix.json";
  EXPECT_EQ(count_compared(parse_json(read_text_file(file), file)), 10 * 32 * 8);
}

TEST(AddedMatrix, EqualsTheRustLibrary) {
  const char* const file = std::getenv("HEED_ADDED_MATRIX");
  if (file == nullptr) {
    GTEST_SKIP() << "HEED_ADDED_MATRIX is not set; tests/tokenizer/oracle/run.sh makes it";
  }
  const int compared = count_compared(parse_json(read_text_file(file), file));
  std::cout << "added tokens: heed equals tokenizers on " << compared << " texts\n";
  EXPECT_GE(compared, 10 * 32 * 300);
}

}  // namespace
}  // namespace heed
