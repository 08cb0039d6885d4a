// Directories of T5's and Marian's tokenizers, made of the golden models.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "base/files.h"
#include "base/json.h"
#include "base/temporary_directory.h"
#include "tokenizer/sentence_piece_model.h"

namespace heed {

inline std::filesystem::path sentence_piece_goldens() {
  return HEED_SOURCE_DIR "/tests/golden/sentence_piece";
}

// The Unigram model, and tokenizer_config.json if `config` is not empty.
inline std::filesystem::path t5_directory(const std::string& config) {
  const auto directory = testing::new_directory("t5_tokenizer");
  write_text_file(directory / "spiece.model",
                  read_text_file(sentence_piece_goldens() / "unigram.model"));
  if (!config.empty()) write_text_file(directory / "tokenizer_config.json", config);
  return directory;
}

// The model of BPE that takes no spaces away, likewise.
inline std::filesystem::path llama_directory(const std::string& config) {
  const auto directory = testing::new_directory("llama_tokenizer");
  write_text_file(directory / "tokenizer.model",
                  read_text_file(sentence_piece_goldens() / "llama.model"));
  if (!config.empty()) write_text_file(directory / "tokenizer_config.json", config);
  return directory;
}

struct MarianOptions {
  bool separate = false;   // vocabularies of their own
  std::string extra = {};  // one more token
};

// </s>, <unk>, >>de<<, the pieces of the models by their texts, `extra`, <pad>.
inline std::string marian_vocabulary(const std::set<std::string>& pieces,
                                     const std::string& extra) {
  Json vocabulary = {{"</s>", 0}, {"<unk>", 1}, {">>de<<", 2}};
  const auto add = [&](const std::string& token) {
    if (!vocabulary.contains(token)) vocabulary.emplace(token, vocabulary.size());
  };
  for (const std::string& piece : pieces) {
    if (piece != "<pad>") add(piece);
  }
  if (!extra.empty()) add(extra);
  add("<pad>");
  return vocabulary.dump();
}

inline std::filesystem::path marian_directory(const MarianOptions& options) {
  const auto directory = testing::new_directory("marian_tokenizer");
  std::set<std::string> source;
  std::set<std::string> target;
  for (auto* pieces : {&source, &target}) {
    const bool is_source = pieces == &source;
    const auto model =
        read_text_file(sentence_piece_goldens() / (is_source ? "unigram.model" : "bpe.model"));
    write_text_file(directory / (is_source ? "source.spm" : "target.spm"), model);
    for (const SentencePiece& piece : read_sentence_piece_model(model, "golden").pieces) {
      pieces->insert(piece.text);
    }
  }
  if (options.separate) {
    write_text_file(directory / "target_vocab.json", marian_vocabulary(target, options.extra));
  } else {
    source.insert(target.begin(), target.end());
  }
  write_text_file(directory / "vocab.json", marian_vocabulary(source, options.extra));
  return directory;
}

}  // namespace heed
