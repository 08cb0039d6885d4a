// A small tokenizer as LLaMA 2 has it, written by hand.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "tokenizer/tokenizer_files.h"

namespace heed {

// Tokens: <unk>, <s>, </s>, 256 bytes, characters, results of merges. "o▁" and "o▁t" have a space
// behind their first character.
inline Json small_metaspace_json() {
  Json vocabulary = {{"<unk>", 0}, {"<s>", 1}, {"</s>", 2}};
  const auto add = [&](const std::string& token) { vocabulary.emplace(token, vocabulary.size()); };
  for (int byte = 0; byte < 256; ++byte) add(fmt::format("<0x{:02X}>", byte));
  for (const char* token : {"▁", "t", "h", "e", "c", "a", "o", "s", "n", "é", "注"}) add(token);
  Json merges = Json::array();
  const std::vector<std::pair<std::string, std::string>> pairs = {
      {"▁", "t"},   {"h", "e"}, {"▁t", "he"}, {"a", "t"}, {"▁", "c"},   {"▁c", "at"}, {"▁", "▁"},
      {"▁▁", "▁▁"}, {"o", "▁"}, {"o▁", "t"},  {"e", "e"}, {"ee", "ee"}, {"▁", "a"}};
  for (const auto& [left, right] : pairs) {
    add(left + right);
    merges.push_back(left + " " + right);
  }
  const auto added = [](int id, const char* content) {
    return Json{{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
                {"rstrip", false}, {"normalized", false}, {"special", true}};
  };
  return {
      {"version", "1.0"},
      {"added_tokens", Json::array({added(0, "<unk>"), added(1, "<s>"), added(2, "</s>")})},
      {"normalizer",
       {{"type", "Sequence"},
        {"normalizers",
         Json::array({{{"type", "Prepend"}, {"prepend", "▁"}},
                      {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "▁"}}})}}},
      {"pre_tokenizer", nullptr},
      {"post_processor",
       {{"type", "TemplateProcessing"},
        {"single", Json::array({{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}},
                                {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}})},
        {"special_tokens",
         {{"<s>", {{"id", "<s>"}, {"ids", Json::array({1})}, {"tokens", Json::array({"<s>"})}}}}}}},
      {"decoder",
       {{"type", "Sequence"},
        {"decoders",
         Json::array({{{"type", "Replace"}, {"pattern", {{"String", "▁"}}}, {"content", " "}},
                      {{"type", "ByteFallback"}},
                      {{"type", "Fuse"}},
                      {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}})}}},
      {"model",
       {{"type", "BPE"},
        {"dropout", nullptr},
        {"unk_token", "<unk>"},
        {"fuse_unk", true},
        {"byte_fallback", true},
        {"vocab", vocabulary},
        {"merges", merges}}}};
}

inline std::unique_ptr<Tokenizer> small_metaspace(const Json& document = small_metaspace_json()) {
  return parse_tokenizer_json(document.dump(), "file.json");
}

// The same with a pre-tokenizer of type Metaspace instead of the normaliser.
inline Json small_metaspace_json(const char* prepend_scheme, bool split) {
  Json document = small_metaspace_json();
  document["normalizer"] = nullptr;
  document["pre_tokenizer"] = {{"type", "Metaspace"},
                               {"replacement", "▁"},
                               {"prepend_scheme", prepend_scheme},
                               {"split", split}};
  if (std::string_view(prepend_scheme) == "never") document["decoder"] = nullptr;
  return document;
}

}  // namespace heed
