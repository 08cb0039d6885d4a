#include "engine/model_chat.h"

#include <gtest/gtest.h>

#include "tokenizer/small_metaspace.h"

namespace heed {
namespace {

// <s>[INST] … [/INST] as LLaMA 2 writes it: Prepend puts a space behind each <s>.
TEST(PromptWriter, LeavesTheTokensToTheTokenizer) {
  Json document = small_metaspace_json();
  document["added_tokens"].push_back({{"id", document["model"]["vocab"].size()},
                                      {"content", "<|end|>"},
                                      {"special", true},
                                      {"normalized", false},
                                      {"rstrip", true}});
  const auto tokenizer = small_metaspace(document);
  PromptWriter writer(*tokenizer);
  writer.write_template("<s>the ");
  writer.write_text("cat");
  writer.write_template("");
  writer.write_template(" the");
  writer.write_template("</s><s>");
  writer.write_text("the");
  writer.write_template("<|end|>\n");
  writer.write_text(" cat");
  const std::string text = "<s>the cat the</s><s>the<|end|>\n cat";
  EXPECT_EQ(writer.finish(), tokenizer->encode(text));
}

TEST(PromptWriter, KeepsWhatWasGivenAsText) {
  const auto tokenizer = small_metaspace();
  PromptWriter writer(*tokenizer);
  writer.write_template("<s>");
  writer.write_text("<s></s>the</");
  writer.write_template("s>");  // no one wrote </s>
  writer.write_template("</");
  writer.write_template("s>");  // the template did
  const std::vector<std::int32_t> ids = writer.finish();
  EXPECT_EQ(std::ranges::count(ids, 1), 1);
  EXPECT_EQ(std::ranges::count(ids, 2), 1);
  EXPECT_EQ(ids.front(), 1);
  EXPECT_EQ(ids.back(), 2);
}

}  // namespace
}  // namespace heed
