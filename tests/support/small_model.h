// Small models with random weights, in memory and on disk.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "formats/model_files.h"
#include "microworld/microworld.h"
#include "model/transformer.h"
#include "tokenizer/train_byte_pair.h"

namespace heed::testing {

// 2 layers of 3 heads of 8. The weights are larger than at the start of training, so that attention
// is not even.
inline Transformer small_gpt(std::int64_t vocabulary_size, std::int64_t context = 64) {
  StackSpecification config = make_gpt_config(2, 3, 24, context, vocabulary_size);
  config.initial_deviation = 0.4F;
  Transformer transformer({.stacks = {config}});
  transformer.parameters().initialize(5);
  return transformer;
}

inline std::unique_ptr<Tokenizer> microworld_tokenizer() {
  const std::string text = microworld::corpus(microworld::Microworld(3), 0, 200);
  const std::string_view texts[] = {text};
  return train_byte_pair_tokenizer(std::span<const std::string_view>(texts),
                                   {.vocabulary_size = 400});
}

// A directory of its own, removed with the object.
class ScratchDirectory {
 public:
  ScratchDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "heed-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~ScratchDirectory() { std::filesystem::remove_all(path_); }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// A small model and its tokenizer, written there.
inline void write_small_model(const std::filesystem::path& directory) {
  const auto tokenizer = microworld_tokenizer();
  save_transformer(small_gpt(tokenizer->vocabulary_size(), 128), directory);
  tokenizer->save(directory);
}

// Tests that share one directory with a small model.
class SmallModelTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = new ScratchDirectory;
    write_small_model(directory_->path());
  }
  static void TearDownTestSuite() {
    delete directory_;
    directory_ = nullptr;
  }

  static inline ScratchDirectory* directory_ = nullptr;
};

}  // namespace heed::testing
