// Small tokenizer.json documents of the kinds that BERT and T5 have.
#pragma once

#include "base/json.h"
#include "tokenizer/small_charsmap.h"

namespace heed {

inline Json small_special(int id, const char* content) {
  return {{"id", id}, {"content", content}, {"special", true}, {"normalized", false}};
}

inline Json small_template(const char* before, int before_id, const char* after, int after_id) {
  Json single = Json::array();
  Json special = Json::object();
  const auto put = [&](const char* content, int id) {
    if (content == nullptr) return;
    single.push_back({{"SpecialToken", {{"id", content}, {"type_id", 0}}}});
    special[content] = {{"id", content}, {"ids", {id}}, {"tokens", {content}}};
  };
  put(before, before_id);
  single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  put(after, after_id);
  return {{"type", "TemplateProcessing"}, {"single", single}, {"special_tokens", special}};
}

inline Json small_word_piece_document() {
  Json vocabulary = Json::object();
  for (const char* token :
       {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "un", "##able", "##s",
        "##a",   "##ffa", "##ff",  "a",     ",",      ".",   "'",   "s",   "注", "eleve",  "##d"}) {
    vocabulary.emplace(token, vocabulary.size());
  }
  return {
      {"added_tokens",
       {small_special(0, "[PAD]"), small_special(1, "[UNK]"), small_special(2, "[CLS]"),
        small_special(3, "[SEP]"), small_special(4, "[MASK]")}},
      {"normalizer", {{"type", "BertNormalizer"}, {"lowercase", true}, {"strip_accents", nullptr}}},
      {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
      {"post_processor", small_template("[CLS]", 2, "[SEP]", 3)},
      {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}},
      {"model",
       {{"type", "WordPiece"},
        {"unk_token", "[UNK]"},
        {"continuing_subword_prefix", "##"},
        {"max_input_chars_per_word", 100},
        {"vocab", vocabulary}}}};
}

inline Json small_unigram_document() {
  Json vocabulary = Json::array();
  const auto add = [&](const char* token, double score) {
    vocabulary.push_back(Json::array({token, score}));
  };
  add("<pad>", 0);
  add("</s>", 0);
  add("<unk>", 0);
  double score = -1;
  for (const char* token : {"▁the", "▁t", "he", "▁", "t", "h", "e", "f", "i", "é", ".", "▁▁"}) {
    add(token, score);
    score -= 0.5;
  }
  const Json spaces = {{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", "always"}};
  return {{"added_tokens",
           {small_special(0, "<pad>"), small_special(1, "</s>"), small_special(2, "<unk>"),
            small_special(15, "<extra_id_0>")}},
          {"normalizer",
           {{"type", "Precompiled"}, {"precompiled_charsmap", encode_base64(small_charsmap())}}},
          {"pre_tokenizer",
           {{"type", "Sequence"}, {"pretokenizers", {{{"type", "WhitespaceSplit"}}, spaces}}}},
          {"post_processor", small_template(nullptr, 0, "</s>", 1)},
          {"decoder", spaces},
          {"model", {{"type", "Unigram"}, {"unk_id", 2}, {"vocab", vocabulary}}}};
}

}  // namespace heed
