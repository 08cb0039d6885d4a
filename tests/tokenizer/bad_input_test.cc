// Damaged and unfitting tokenizer files: each gives one error that names the file and the value.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/random.h"
#include "base/temporary_directory.h"
#include "tokenizer/byte_pair_tokenizer.h"
#include "tokenizer/small_tokenizer.h"
#include "tokenizer/tokenizer_files.h"

namespace heed {
namespace {

using ::testing::HasSubstr;

struct Refusal {
  ErrorCode code;
  std::string message;
};

Refusal refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {ErrorCode::internal, "accepted"};
}

// What comes of a good tokenizer.json after `change`.
Refusal changed(const std::function<void(Json&)>& change) {
  Json document = Json::parse(small_tokenizer()->to_json());
  change(document);
  return refusal([&] { parse_tokenizer_json(document.dump(), "file.json"); });
}

void expect_corrupt(const Refusal& actual, const std::string& part) {
  EXPECT_EQ(actual.code, ErrorCode::corrupt_data) << actual.message;
  EXPECT_THAT(actual.message, AllOf(HasSubstr("file"), HasSubstr(part)));
}

void expect_unsupported(const Refusal& actual, const std::string& part) {
  EXPECT_EQ(actual.code, ErrorCode::unsupported) << actual.message;
  EXPECT_THAT(actual.message, AllOf(HasSubstr("file.json"), HasSubstr(part)));
}

TEST(BadTokenizerJson, Vocabulary) {
  expect_corrupt(changed([](Json& d) { d["model"].erase("vocab"); }), "'vocab' is missing");
  expect_corrupt(changed([](Json& d) { d["model"]["vocab"] = 3; }), "vocabulary is '3'");
  expect_corrupt(changed([](Json& d) { d["model"]["vocab"]["!"] = 1; }), "same id 1");
  expect_corrupt(changed([](Json& d) { d["model"]["vocab"]["!"] = -1; }), "id -1");
  expect_corrupt(changed([](Json& d) { d["model"]["vocab"]["!"] = 5000; }), "id 5000");
  expect_corrupt(changed([](Json& d) { d["model"]["vocab"]["!"] = 1e30; }), "'!'");
  expect_corrupt(changed([](Json& d) { d["model"]["vocab"]["!"] = UINT64_MAX; }), "'!'");
  expect_corrupt(changed([](Json& d) { d["model"]["vocab"]["!"] = "0"; }), "whole number");
  expect_corrupt(changed([](Json& d) { d["model"]["vocab"].erase("!"); }), "byte 0x21");
  expect_corrupt(changed([](Json& d) {
                   d["model"]["vocab"].erase("!");
                   d["model"]["vocab"]["!!"] = 0;
                 }),
                 "byte 0x21");
  expect_corrupt(changed([](Json& d) {
                   const auto size = d["model"]["vocab"].size();
                   d["model"]["vocab"]["注意"] = size;
                 }),
                 "注意");
  expect_corrupt(changed([](Json& d) {
                   const auto size = d["model"]["vocab"].size();
                   d["model"]["vocab"][""] = size;
                 }),
                 "''");
}

TEST(BadTokenizerJson, Merges) {
  expect_corrupt(changed([](Json& d) { d["model"].erase("merges"); }), "'merges' is missing");
  expect_corrupt(changed([](Json& d) { d["model"]["merges"] = "a b"; }), "expected an array");
  expect_corrupt(changed([](Json& d) { d["model"]["merges"][0] = 7; }), "merge 0");
  expect_corrupt(changed([](Json& d) { d["model"]["merges"][0] = "ab"; }), "'ab'");
  expect_corrupt(changed([](Json& d) { d["model"]["merges"][0] = "a b c"; }), "'a b c'");
  expect_corrupt(changed([](Json& d) { d["model"]["merges"][0] = {"a", "b", "c"}; }), "merge 0");
  expect_corrupt(changed([](Json& d) { d["model"]["merges"][0] = "a zzz"; }), "'zzz'");
  expect_corrupt(changed([](Json& d) { d["model"]["merges"][0] = "zzz a"; }), "'zzz'");
  expect_corrupt(changed([](Json& d) { d["model"]["merges"][0] = "Z Z"; }), "'ZZ'");
  expect_corrupt(changed([](Json& d) { d["model"]["merges"][1] = d["model"]["merges"][0]; }),
                 "twice");
}

TEST(BadTokenizerJson, AddedTokens) {
  expect_corrupt(changed([](Json& d) { d["added_tokens"] = 1; }), "expected an array");
  expect_corrupt(changed([](Json& d) { d["added_tokens"][0] = 1; }), "'content' is missing");
  expect_corrupt(changed([](Json& d) { d["added_tokens"][0].erase("id"); }), "'id' is missing");
  expect_corrupt(changed([](Json& d) { d["added_tokens"][0]["id"] = 3; }), "id 3");
  expect_corrupt(changed([](Json& d) { d["added_tokens"][0]["id"] = -3; }), "id -3");
  expect_corrupt(changed([](Json& d) { d["added_tokens"][0]["special"] = "yes"; }), "special");
  expect_corrupt(changed([](Json& d) { d["added_tokens"].push_back(d["added_tokens"][0]); }),
                 "twice");
  expect_corrupt(changed([](Json& d) { d["added_tokens"][0]["lstrip"] = 1; }), "lstrip");
}

TEST(BadTokenizerJson, WhatWouldTokenizeDifferently) {
  const Json whitespace = {{"type", "Whitespace"}};
  expect_unsupported(changed([&](Json& d) { d["pre_tokenizer"] = whitespace; }), "Whitespace");
  expect_unsupported(changed([](Json& d) { d["pre_tokenizer"] = nullptr; }), "missing");
  expect_unsupported(changed([](Json& d) { d["pre_tokenizer"]["add_prefix_space"] = true; }),
                     "add_prefix_space");
  expect_unsupported(changed([](Json& d) { d["pre_tokenizer"].erase("add_prefix_space"); }),
                     "add_prefix_space");
  expect_unsupported(changed([](Json& d) { d["pre_tokenizer"]["use_regex"] = false; }),
                     "use_regex");
  expect_unsupported(changed([](Json& d) { d["normalizer"] = {{"type", "NFKC"}}; }), "NFKC");
  expect_unsupported(changed([](Json& d) { d["post_processor"] = {{"type", "Other"}}; }), "Other");
  expect_unsupported(changed([](Json& d) { d["decoder"] = {{"type", "Metaspace"}}; }), "Metaspace");
  expect_unsupported(changed([](Json& d) { d["model"]["type"] = "WordWise"; }), "WordWise");
  expect_unsupported(changed([](Json& d) { d["model"]["type"] = "WordLevel"; }), "WordLevel");
  expect_unsupported(changed([](Json& d) { d["model"]["dropout"] = 0.1; }), "dropout");
  expect_unsupported(changed([](Json& d) { d["model"]["byte_fallback"] = true; }), "byte_fallback");
  expect_unsupported(changed([](Json& d) { d["model"]["end_of_word_suffix"] = "</w>"; }), "</w>");
}

TEST(TokenizerJson, ReadsTheVariantsThatTokenizeAlike) {
  const auto tokenizer = small_tokenizer();
  const auto same_after = [&](const std::function<void(Json&)>& change) {
    Json document = Json::parse(tokenizer->to_json());
    change(document);
    return parse_tokenizer_json(document.dump(), "file.json")->content_key() ==
           tokenizer->content_key();
  };
  EXPECT_TRUE(same_after([](Json& d) {
    for (Json& merge : d["model"]["merges"]) {
      const auto text = merge.get<std::string>();
      const auto space = text.find(' ');
      merge = {text.substr(0, space), text.substr(space + 1)};
    }
  }));
  EXPECT_TRUE(same_after([](Json& d) {
    d["pre_tokenizer"] = {{"type", "Sequence"},
                          {"pretokenizers", Json::array({d["pre_tokenizer"]})}};
    d["model"]["continuing_subword_prefix"] = "";
    d["truncation"] = {{"max_length", 8}};
    d.erase("post_processor");
    d.erase("normalizer");
  }));
  // An added token that the model does not know takes the id after the model's.
  EXPECT_TRUE(same_after([](Json& d) { d["model"]["vocab"].erase("<|endoftext|>"); }));
}

TEST(BadTokenizerJson, NoDocument) {
  const std::string good = small_tokenizer()->to_json();
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("{}"), std::string("\xFF"), good + "x"}) {
    expect_corrupt(refusal([&] { parse_tokenizer_json(text, "file.json"); }), "");
  }
  for (std::size_t size = 0; size + 2 < good.size(); size += 97) {
    expect_corrupt(refusal([&] { parse_tokenizer_json(good.substr(0, size), "file.json"); }), "");
  }
}

struct Gpt2Files {
  Json vocabulary = Json::object();
  std::string merges = "#version: 0.2\na b\nab c\n";

  Gpt2Files() {
    for (int id = 0; id < 256; ++id) {
      vocabulary[bytes_to_letters(std::string(1, static_cast<char>(bytes_by_letter()[id])))] = id;
    }
    vocabulary["ab"] = 256;
    vocabulary["abc"] = 257;
  }
  std::unique_ptr<Tokenizer> parse() const {
    const std::string text = vocabulary.dump();
    return parse_vocabulary_and_merges({.vocabulary = text,
                                        .merges = merges,
                                        .vocabulary_source = "file.json",
                                        .merges_source = "file.txt"});
  }
};

TEST(Gpt2Files, AreReadWithAndWithoutAVersionLine) {
  Gpt2Files files;
  const auto tokenizer = files.parse();
  EXPECT_THAT(tokenizer->encode("abcab"), ::testing::ElementsAre(257, 256));
  EXPECT_EQ(tokenizer->end_of_text(), std::nullopt);
  for (const char* merges : {"a b\nab c", "a b\r\nab c\r\n", "#version: 9\na b\n\nab c\n\n"}) {
    files.merges = merges;
    EXPECT_EQ(files.parse()->content_key(), tokenizer->content_key()) << merges;
  }
  files.vocabulary["<|endoftext|>"] = 258;
  EXPECT_EQ(files.parse()->end_of_text(), 258);
}

// BART's: the same files, whose vocabulary begins with the tokens around a text.
TEST(Gpt2Files, OfBartPutTokensAroundATextAsTokenizerJsonDoes) {
  Gpt2Files files;
  std::int32_t id = 258;
  for (const char* special : {"<s>", "<pad>", "</s>", "<unk>", "<|endoftext|>", "<mask>"}) {
    files.vocabulary[special] = id++;
  }
  const auto tokenizer = files.parse();
  EXPECT_THAT(tokenizer->encode("abc", {.add_beginning = true, .add_ending = true}),
              ::testing::ElementsAre(258, 257, 260));
  EXPECT_EQ(tokenizer->start(), 258);
  EXPECT_EQ(tokenizer->padding(), 259);
  EXPECT_EQ(tokenizer->end_of_text(), 260);
  // The mask takes along the space before it; <|endoftext|> is text.
  EXPECT_THAT(tokenizer->encode("abc <mask>"), ::testing::ElementsAre(257, 263));
  EXPECT_GT(tokenizer->encode("<|endoftext|>").size(), 1U);

  // Without </s>, or where merges make <s>, the files are GPT-2's.
  Gpt2Files other = files;
  other.vocabulary.erase("</s>");
  EXPECT_TRUE(other.parse()->text_template().before.empty());
  EXPECT_EQ(other.parse()->end_of_text(), 262);
  other = files;
  other.vocabulary["<s"] = id;
  other.merges += "< s\n<s >\n";
  EXPECT_TRUE(other.parse()->text_template().before.empty());
}

TEST(Gpt2Files, DamagedAreRefused) {
  const auto damaged = [](const std::function<void(Gpt2Files&)>& change) {
    Gpt2Files files;
    change(files);
    return refusal([&] { files.parse(); });
  };
  expect_corrupt(damaged([](Gpt2Files& f) { f.merges = "a b\nabc\n"; }), "line 2 is 'abc'");
  expect_corrupt(damaged([](Gpt2Files& f) { f.merges = "a b c\n"; }), "line 1");
  expect_corrupt(damaged([](Gpt2Files& f) { f.merges = "a \n"; }), "line 1");
  expect_corrupt(damaged([](Gpt2Files& f) { f.merges = "a b\n#version: 0.2 x\n"; }), "line 2");
  expect_corrupt(damaged([](Gpt2Files& f) { f.merges = "b c\n"; }), "'bc'");
  expect_corrupt(damaged([](Gpt2Files& f) { f.merges = "a b\na b\n"; }), "twice");
  expect_corrupt(damaged([](Gpt2Files& f) { f.vocabulary.erase("abc"); }), "'abc'");
  expect_corrupt(damaged([](Gpt2Files& f) { f.vocabulary = Json::array(); }), "object");
  expect_corrupt(damaged([](Gpt2Files& f) { f.vocabulary["ab"] = 600; }), "600");
}

TEST(LoadTokenizer, SaysWhatIsMissing) {
  const auto directory = testing::new_directory("load_tokenizer");
  std::filesystem::remove_all(directory);
  const auto load = [&] { return refusal([&] { load_tokenizer(directory); }); };
  EXPECT_EQ(load().code, ErrorCode::not_found);
  make_directory(directory);
  EXPECT_EQ(load().code, ErrorCode::not_found);
  EXPECT_THAT(load().message, HasSubstr(directory.string()));
  write_text_file(directory / "vocab.json", Gpt2Files().vocabulary.dump());
  EXPECT_EQ(load().code, ErrorCode::not_found);
  EXPECT_THAT(load().message, HasSubstr("merges.txt is missing"));
  write_text_file(directory / "merges.txt", Gpt2Files().merges);
  EXPECT_EQ(load_tokenizer(directory)->vocabulary_size(), 258);
  small_tokenizer()->save(directory);  // takes precedence
  EXPECT_EQ(load_tokenizer(directory)->content_key(), small_tokenizer()->content_key());
}

}  // namespace
}  // namespace heed
