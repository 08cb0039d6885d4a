// Damaged and unfitting files of published kinds: each gives one error that names file and value.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "base/json.h"
#include "tokenizer/small_metaspace.h"
#include "tokenizer/small_tokenizer.h"
#include "tokenizer/tokenizer_files.h"
#include "tokenizer/words.h"

namespace heed {
namespace {

using ::testing::HasSubstr;

std::int32_t end_id() { return *small_tokenizer()->end_of_text(); }

// LLaMA 3's steps around the vocabulary of the small tokenizer.
Json llama3_json() {
  Json document = Json::parse(small_tokenizer()->to_json());
  const Json byte_level = {{"type", "ByteLevel"}, {"add_prefix_space", false}};
  Json alone = byte_level;
  alone["use_regex"] = false;
  document["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       Json::array({{{"type", "Split"},
                     {"pattern", {{"Regex", word_pattern_text(WordPattern::llama3)}}},
                     {"behavior", "Isolated"},
                     {"invert", false}},
                    alone})}};
  document["post_processor"] = {
      {"type", "Sequence"},
      {"processors",
       Json::array(
           {byte_level,
            {{"type", "TemplateProcessing"},
             {"single", Json::array({{{"SpecialToken", {{"id", "<|endoftext|>"}}}},
                                     {{"Sequence", {{"id", "A"}}}}})},
             {"special_tokens", {{"<|endoftext|>", {{"ids", Json::array({end_id()})}}}}}}})}};
  document["model"]["ignore_merges"] = true;
  return document;
}

void expect_refused(Json document, ErrorCode code, const std::function<void(Json&)>& change,
                    const std::string& part) {
  change(document);
  try {
    parse_tokenizer_json(document.dump(), "file.json");
    ADD_FAILURE() << "accepted; expected " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_THAT(error.what(), AllOf(HasSubstr("file.json"), HasSubstr(part)));
  }
}

TEST(BadLlama3Json, Patterns) {
  const auto unsupported = [](const std::function<void(Json&)>& change, const std::string& part) {
    expect_refused(
        llama3_json(), ErrorCode::unsupported,
        [&](Json& d) { change(d["pre_tokenizer"]["pretokenizers"]); }, part);
  };
  unsupported([](Json& s) { s[0]["pattern"]["Regex"] = R"(\p{L}+|\d)"; }, R"(\\p{L}+|\\d)");
  unsupported([](Json& s) { s[0]["pattern"] = {{"String", " "}}; }, "String");
  unsupported([](Json& s) { s[0]["behavior"] = "Removed"; }, "'Removed'");
  unsupported([](Json& s) { s[0]["behavior"] = "MergedWithNext"; }, "'MergedWithNext'");
  unsupported([](Json& s) { s[0]["type"] = "Digits"; }, "'Digits'");
  unsupported([](Json& s) { s[1]["type"] = "Metaspac"; }, "'Metaspac'");
  unsupported([](Json& s) { s[1]["use_regex"] = true; }, "use_regex");
  unsupported([](Json& s) { s[1]["add_prefix_space"] = true; }, "add_prefix_space");
  unsupported([](Json& s) { s.erase(1); }, "no step of type ByteLevel");
  unsupported([](Json& s) { s.push_back(s[0]); }, "'Split'");
  unsupported([](Json& s) { s.push_back(s[1]); }, "'ByteLevel'");
  const auto corrupt = [](const std::function<void(Json&)>& change, const std::string& part) {
    expect_refused(llama3_json(), ErrorCode::corrupt_data, change, part);
  };
  corrupt([](Json& d) { d["pre_tokenizer"]["pretokenizers"][0].erase("pattern"); }, "'pattern'");
  corrupt([](Json& d) { d["pre_tokenizer"]["pretokenizers"] = 3; }, "'pretokenizers' is '3'");
  corrupt([](Json& d) { d["pre_tokenizer"]["pretokenizers"][1] = 3; }, "'type' is missing");
  corrupt([](Json& d) { d["pre_tokenizer"]["pretokenizers"][1].erase("type"); }, "'type'");
  corrupt([](Json& d) { d["model"]["ignore_merges"] = 1; }, "ignore_merges");
}

// StarCoder2's: digits apart, then GPT-2's words.
Json starcoder2_json(const Json& digits) {
  Json document = Json::parse(small_tokenizer()->to_json());
  document["pre_tokenizer"] = {{"type", "Sequence"},
                               {"pretokenizers", Json::array({digits, document["pre_tokenizer"]})}};
  return document;
}

TEST(Starcoder2Json, IsReadUnchanged) {
  for (const bool individual : {false, true}) {
    const Json document = starcoder2_json({{"type", "Digits"}, {"individual_digits", individual}});
    const auto tokenizer = parse_tokenizer_json(document.dump(), "file.json");
    // The vocabulary has "12" and " 12" from its text; each digit alone has neither.
    EXPECT_EQ(tokenizer->encode("12").size(), individual ? 2U : 1U);
    EXPECT_EQ(tokenizer->encode(" 12").size(), individual ? 3U : 2U);
    EXPECT_EQ(tokenizer->encode(" the cat"), small_tokenizer()->encode(" the cat"));
    const Json written = Json::parse(tokenizer->to_json());
    EXPECT_EQ(written["pre_tokenizer"], document["pre_tokenizer"]);
  }
  // Runs, if it does not say.
  EXPECT_EQ(parse_tokenizer_json(starcoder2_json({{"type", "Digits"}}).dump(), "file.json")
                ->encode("12")
                .size(),
            1U);
}

TEST(Starcoder2Json, OtherStepsAreRefused) {
  const auto refused = [](ErrorCode code, const std::function<void(Json&)>& change,
                          const std::string& part) {
    expect_refused(
        starcoder2_json({{"type", "Digits"}, {"individual_digits", true}}), code,
        [&](Json& d) { change(d["pre_tokenizer"]["pretokenizers"]); }, part);
  };
  refused(
      ErrorCode::unsupported, [](Json& s) { s[1]["use_regex"] = false; }, "'use_regex'");
  refused(
      ErrorCode::unsupported, [](Json& s) { s.erase(1); }, "no step of type ByteLevel");
  refused(
      ErrorCode::unsupported, [](Json& s) { s.insert(s.begin(), s[0]); }, "'Digits'");
  refused(
      ErrorCode::unsupported, [](Json& s) { std::swap(s[0], s[1]); }, "'Digits'");
  refused(
      ErrorCode::corrupt_data, [](Json& s) { s[0]["individual_digits"] = 1; }, "individual_digits");
}

TEST(FalconJson, IsReadUnchanged) {
  Json document = Json::parse(small_tokenizer()->to_json());
  const Json byte_level = document["pre_tokenizer"];
  document["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers", Json::array({{{"type", "Punctuation"}, {"behavior", "Contiguous"}},
                                     byte_level,
                                     {{"type", "Digits"}, {"individual_digits", false}},
                                     {{"type", "Split"},
                                      {"pattern", {{"Regex", "[0-9][0-9][0-9]"}}},
                                      {"behavior", "Isolated"},
                                      {"invert", false}}})}};
  const auto tokenizer = parse_tokenizer_json(document.dump(), "file.json");
  EXPECT_EQ(Json::parse(tokenizer->to_json())["pre_tokenizer"], document["pre_tokenizer"]);
  // The vocabulary has "'s" and " 12" from its text, which are cut here.
  EXPECT_EQ(tokenizer->encode("cat's").size(), small_tokenizer()->encode("cat's").size() + 1);
  EXPECT_EQ(tokenizer->encode(" 12").size(), 2U);
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("aòb 1234½, isn't")), "aòb 1234½, isn't");
  expect_refused(
      document, ErrorCode::unsupported,
      [](Json& d) { d["pre_tokenizer"]["pretokenizers"][0]["behavior"] = "Isolated"; },
      "'Punctuation'");
}

TEST(BadLlama3Json, Templates) {
  const auto refused = [](ErrorCode code, const std::function<void(Json&)>& change,
                          const std::string& part) {
    expect_refused(
        llama3_json(), code, [&](Json& d) { change(d["post_processor"]["processors"]); }, part);
  };
  const ErrorCode corrupt = ErrorCode::corrupt_data;
  refused(
      corrupt, [](Json& s) { s[1].erase("single"); }, "'single' is missing");
  refused(
      corrupt, [](Json& s) { s[1]["single"].erase(1); }, "Sequence A 0 times");
  refused(
      corrupt, [](Json& s) { s[1]["single"].push_back(s[1]["single"][1]); }, "2 times");
  refused(
      corrupt, [](Json& s) { s[1]["single"][1]["Sequence"]["id"] = "B"; }, "Sequence A");
  refused(
      corrupt, [](Json& s) { s[1]["single"][0] = 7; }, "'7'");
  refused(
      corrupt, [](Json& s) { s[1]["special_tokens"] = Json::object(); }, "<|endoftext|>");
  refused(
      corrupt, [](Json& s) { s[1]["special_tokens"]["<|endoftext|>"]["ids"] = {320}; }, "320");
  refused(
      corrupt, [](Json& s) { s[1]["special_tokens"]["<|endoftext|>"]["ids"] = {-1}; }, "-1");
  refused(
      ErrorCode::unsupported, [](Json& s) { s[0]["type"] = "OtherProcessing"; }, "OtherProcessing");
  refused(
      ErrorCode::unsupported, [](Json& s) { s.push_back(s[1]); }, "two steps");
}

TEST(BadLlama3Json, IsReadUnchanged) {
  const auto tokenizer = parse_tokenizer_json(llama3_json().dump(), "file.json");
  EXPECT_EQ(tokenizer->beginning_of_text(), end_id());
  EXPECT_EQ(tokenizer->encode("a", {.add_beginning = true}).front(), end_id());
  const auto again = parse_tokenizer_json(tokenizer->to_json(), "saved");
  EXPECT_EQ(again->to_json(), tokenizer->to_json());
  EXPECT_EQ(again->encode("The cat'S\n\n12345"), tokenizer->encode("The cat'S\n\n12345"));
  EXPECT_NE(tokenizer->content_key(), small_tokenizer()->content_key());
}

TEST(Llama3Json, TakesAWordThatIsATokenWhole) {
  Json document = llama3_json();
  document["model"]["vocab"]["zzz"] = end_id() + 1;  // no merge makes it
  const auto tokenizer = parse_tokenizer_json(document.dump(), "file.json");
  EXPECT_THAT(tokenizer->encode("zzz"), ::testing::ElementsAre(end_id() + 1));
  EXPECT_EQ(tokenizer->encode("zzzz").size(), 4u);
  document["model"]["ignore_merges"] = false;
  EXPECT_EQ(parse_tokenizer_json(document.dump(), "file.json")->encode("zzz").size(), 3u);
}

TEST(TokenizerJson, MayHaveIdsWithoutTokens) {
  Json document = llama3_json();
  document["model"]["vocab"]["zzz"] = end_id() + 11;
  const auto tokenizer = parse_tokenizer_json(document.dump(), "file.json");
  EXPECT_EQ(tokenizer->vocabulary_size(), end_id() + 12);
  EXPECT_EQ(tokenizer->token_bytes(end_id() + 1), "");
  EXPECT_EQ(tokenizer->decode(std::vector<std::int32_t>{end_id() + 1, end_id() + 11}), "zzz");
  const auto again = parse_tokenizer_json(tokenizer->to_json(), "saved");
  EXPECT_EQ(again->content_key(), tokenizer->content_key());
}

TEST(BadMetaspaceJson, Steps) {
  const auto unsupported = [](const std::function<void(Json&)>& change, const std::string& part) {
    expect_refused(small_metaspace_json(), ErrorCode::unsupported, change, part);
  };
  unsupported([](Json& d) { d["normalizer"]["normalizers"][0]["prepend"] = "_"; }, "'Prepend'");
  unsupported(
      [](Json& d) {
        d["normalizer"]["normalizers"].push_back({{"type", "NFKC"}});
      },
      "'NFKC'");
  unsupported([](Json& d) { d["normalizer"] = nullptr; }, "pre_tokenizer is missing");
  unsupported([](Json& d) { d["pre_tokenizer"] = {{"type", "ByteLevel"}}; }, "'ByteLevel'");
  unsupported([](Json& d) { d["decoder"] = {{"type", "WordPiece"}}; }, "'WordPiece'");
  unsupported([](Json& d) { d["decoder"]["decoders"][3]["start"] = 2; }, "'start' is '2'");
  unsupported([](Json& d) { d["post_processor"]["type"] = "OtherProcessing"; }, "OtherProcessing");
  unsupported([](Json& d) { d["model"]["ignore_merges"] = true; }, "ignore_merges");
  unsupported([](Json& d) { d["model"]["dropout"] = 0.1; }, "dropout");
  unsupported([](Json& d) { d["model"]["continuing_subword_prefix"] = "##"; }, "##");
  unsupported(
      [](Json& d) {
        d["model"]["byte_fallback"] = false;
        d["model"]["unk_token"] = nullptr;
      },
      "would disappear");
}

TEST(BadMetaspaceJson, PreTokenizers) {
  const auto refused = [](ErrorCode code, const std::function<void(Json&)>& change,
                          const std::string& part) {
    expect_refused(
        small_metaspace_json("first", true), code, [&](Json& d) { change(d["pre_tokenizer"]); },
        part);
  };
  refused(
      ErrorCode::unsupported, [](Json& s) { s["replacement"] = "_"; }, "'replacement'");
  refused(
      ErrorCode::corrupt_data, [](Json& s) { s["prepend_scheme"] = "last"; }, "'last'");
  refused(
      ErrorCode::corrupt_data, [](Json& s) { s["add_prefix_space"] = false; }, "'first'");
  refused(
      ErrorCode::corrupt_data, [](Json& s) { s["split"] = "no"; }, "'split'");
  refused(
      ErrorCode::unsupported,
      [](Json& s) {
        s = {{"type", "Sequence"}, {"pretokenizers", Json::array({s, {{"type", "Digits"}}})}};
      },
      "pre_tokenizer");
}

TEST(BadMetaspaceJson, Vocabulary) {
  const auto corrupt = [](const std::function<void(Json&)>& change, const std::string& part) {
    expect_refused(
        small_metaspace_json(), ErrorCode::corrupt_data, [&](Json& d) { change(d["model"]); },
        part);
  };
  corrupt([](Json& m) { m["vocab"].erase("<0x41>"); }, "<0x41>");
  corrupt([](Json& m) { m["unk_token"] = "<unknown>"; }, "<unknown>");
  corrupt([](Json& m) { m["unk_token"] = 0; }, "unk_token");
  corrupt([](Json& m) { m["merges"][0] = "t zz"; }, "'zz'");
  corrupt([](Json& m) { m["merges"][0] = "n n"; }, "'nn'");
  corrupt([](Json& m) { m["merges"][1] = m["merges"][0]; }, "twice");
  corrupt([](Json& m) { m["fuse_unk"] = 2; }, "fuse_unk");
  corrupt(
      [](Json& m) {
        m["merges"] = Json::array();
        m["vocab"].erase("▁");
      },
      "the space");
  expect_refused(
      small_metaspace_json(), ErrorCode::unsupported,
      [](Json& d) {
        d["model"]["vocab"]["<0x41>t"] = d["model"]["vocab"].size();
        d["model"]["merges"].push_back("<0x41> t");
      },
      "'<0x41>'");
}

}  // namespace
}  // namespace heed
