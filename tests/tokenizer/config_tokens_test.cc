// What tokenizer_config.json, special_tokens_map.json and added_tokens.json say beside a tokenizer.
#include "tokenizer/tokenizer_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "base/temporary_directory.h"
#include "tokenizer/sentence_piece_directories.h"
#include "tokenizer/small_metaspace.h"
#include "tokenizer/small_published.h"
#include "tokenizer/small_tokenizer.h"

namespace heed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ids = std::vector<std::int32_t>;

constexpr EncodeOptions all_around{.add_beginning = true, .add_ending = true};

// A directory of files by name.
class ConfigTokens : public ::testing::Test {
 protected:
  std::unique_ptr<Tokenizer> load(const std::map<std::string, std::string>& files) {
    directory_ = testing::new_directory("config_tokens");
    for (const auto& [name, text] : files) write_text_file(directory_ / name, text);
    return load_tokenizer(directory_);
  }
  std::string refusal(const std::map<std::string, std::string>& files) {
    try {
      load(files);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::corrupt_data);
      return error.what();
    }
    ADD_FAILURE() << "nothing was refused";
    return "";
  }

  std::filesystem::path directory_;
  std::string bytes_ = small_tokenizer()->to_json();  // 320 tokens
  std::string spaces_ = small_metaspace_json().dump();
};

TEST_F(ConfigTokens, ComeFromAddedTokensDecoder) {
  const auto tokenizer = load({{"tokenizer.json", bytes_}, {"tokenizer_config.json", R"({
      "added_tokens_decoder": {"321": {"content": "<|im_end|>", "special": true},
                               "320": {"content": "<|im_start|>", "special": true,
                                       "rstrip": true, "normalized": false}}})"}});
  EXPECT_THAT(tokenizer->encode("<|im_start|>\n<|im_end|>"), ElementsAre(320, 321));
  EXPECT_EQ(tokenizer->vocabulary_size(), 322);
  // What is saved is the whole of it.
  tokenizer->save(directory_ / "saved");
  EXPECT_EQ(load_tokenizer(directory_ / "saved")->content_key(), tokenizer->content_key());
}

TEST_F(ConfigTokens, ReplaceWhatWasKnownOfATokenButItsId) {
  const auto tokenizer = load({{"tokenizer.json", spaces_}, {"tokenizer_config.json", R"({
      "added_tokens_decoder": {"77": {"content": "</s>", "special": true, "rstrip": true}}})"}});
  EXPECT_THAT(tokenizer->encode("</s> \n</s>"), ElementsAre(2, 2));
}

TEST_F(ConfigTokens, ComeFromAddedTokensJson) {
  const std::string old = R"({"<|end|>": 321, "<tool>": 320})";
  const std::string map = R"({"eos_token": {"content": "<|end|>"}})";
  const auto tokenizer = load(
      {{"tokenizer.json", bytes_}, {"added_tokens.json", old}, {"special_tokens_map.json", map}});
  EXPECT_THAT(tokenizer->encode("<tool><|end|>"), ElementsAre(320, 321));
  EXPECT_EQ(tokenizer->decode(Ids{320, 321}, {.special_tokens = false}), "<tool>");
  // The newer list leads.
  const auto newer = load({{"tokenizer.json", bytes_},
                           {"added_tokens.json", old},
                           {"tokenizer_config.json", R"({"added_tokens_decoder": {}})"}});
  EXPECT_GT(newer->encode("<tool>").size(), 1u);
}

TEST_F(ConfigTokens, ThatHaveARoleAreSpecial) {
  Json document = small_metaspace_json();
  document["model"]["vocab"]["<|im_end|>"] = document["model"]["vocab"].size();
  document["model"]["vocab"]["<extra>"] = document["model"]["vocab"].size();
  const auto tokenizer = load({{"tokenizer.json", document.dump()}, {"tokenizer_config.json", R"({
          "eos_token": "<|im_end|>", "pad_token": "<nowhere>",
          "additional_special_tokens": ["</s>", {"content": "<extra>", "lstrip": true}]})"}});
  const auto size = static_cast<std::int32_t>(document["model"]["vocab"].size());
  EXPECT_THAT(tokenizer->encode(" \n<extra><|im_end|></s>"), ElementsAre(size - 1, size - 2, 2));
  EXPECT_EQ(tokenizer->decode(Ids{size - 1, size - 2}, {.special_tokens = false}), "");
  EXPECT_EQ(tokenizer->vocabulary_size(), size);
}

TEST_F(ConfigTokens, SayWhatStandsAroundTexts) {
  const auto with = [&](const std::string& config, const std::string& text) {
    return load({{"tokenizer.json", text}, {"tokenizer_config.json", config}})
        ->encode("", all_around);
  };
  // LLaMA's own template has <s>.
  EXPECT_THAT(with("{}", spaces_), ElementsAre(1));
  EXPECT_THAT(with(R"({"add_bos_token": true, "bos_token": "<s>"})", spaces_), ElementsAre(1));
  EXPECT_THAT(with(R"({"add_bos_token": false, "bos_token": "<s>"})", spaces_), ElementsAre());
  EXPECT_THAT(with(R"({"add_eos_token": true, "eos_token": "</s>"})", spaces_), ElementsAre(1, 2));
  const std::string ends = R"("bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>")";
  const std::int32_t end = small_tokenizer()->end_of_text().value();
  EXPECT_THAT(with("{" + ends + "}", bytes_), ElementsAre());
  EXPECT_THAT(with("{" + ends + R"(, "add_bos_token": true, "add_eos_token": false})", bytes_),
              ElementsAre(end));
  EXPECT_THAT(refusal({{"tokenizer.json", spaces_},
                       {"tokenizer_config.json", R"({"add_bos_token": true})"}}),
              HasSubstr("add_bos_token"));
}

TEST_F(ConfigTokens, AreReadBesideEveryKindOfTokenizer) {
  const std::string listed = R"({"added_tokens_decoder": {"ID": {"content": "<y>"}}})";
  const auto config = [&](std::int32_t id) {
    std::string text = listed;
    return text.replace(text.find("ID"), 2, std::to_string(id));
  };
  const auto expect_token = [](const Tokenizer& tokenizer, std::int32_t id) {
    EXPECT_THAT(tokenizer.encode("<y>"), ElementsAre(id)) << tokenizer_kind_name(tokenizer.kind());
  };
  const auto piece = [](const Json& document) { return document.dump(); };
  expect_token(*load({{"tokenizer.json", piece(small_word_piece_document())},
                      {"tokenizer_config.json", config(22)}}),
               22);
  expect_token(*load({{"tokenizer.json", piece(small_unigram_document())},
                      {"tokenizer_config.json", config(16)}}),
               16);
  expect_token(*load({{"vocab.txt", "[UNK]\nthe\n"}, {"tokenizer_config.json", config(2)}}), 2);
  const Json whole = Json::parse(bytes_);
  std::string merges;
  for (const Json& merge : whole["model"]["merges"]) merges += merge.get<std::string>() + "\n";
  expect_token(*load({{"vocab.json", whole["model"]["vocab"].dump()},
                      {"merges.txt", merges},
                      {"tokenizer_config.json", config(320)}}),
               320);
  const std::int32_t pieces =
      load_tokenizer(sentence_piece_goldens() / "unigram.model")->vocabulary_size();
  expect_token(*load_tokenizer(t5_directory(config(pieces))), pieces);
}

TEST_F(ConfigTokens, AreRefusedByName) {
  const auto refused = [&](const std::string& config) {
    return refusal({{"tokenizer.json", bytes_}, {"tokenizer_config.json", config}});
  };
  EXPECT_THAT(refused("[]"), HasSubstr("tokenizer_config.json"));
  EXPECT_THAT(refused(R"({"added_tokens_decoder": []})"), HasSubstr("added_tokens_decoder"));
  EXPECT_THAT(refused(R"({"added_tokens_decoder": {"x": {"content": "a"}}})"), HasSubstr("'x'"));
  EXPECT_THAT(refused(R"({"added_tokens_decoder": {"5": {"content": "<y>"}}})"), HasSubstr("<y>"));
  EXPECT_THAT(refused(R"({"added_tokens_decoder": {"99999": {"content": "<y>"}}})"),
              HasSubstr("99999"));
  EXPECT_THAT(refused(R"({"eos_token": 5})"), HasSubstr("special token"));
  EXPECT_THAT(refused(R"({"add_bos_token": "yes"})"), HasSubstr("add_bos_token"));
  EXPECT_THAT(refusal({{"tokenizer.json", bytes_}, {"added_tokens.json", R"({"<y>": "1"})"}}),
              HasSubstr("<y>"));
}

}  // namespace
}  // namespace heed
