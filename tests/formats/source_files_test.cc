// What a model that is saved again keeps of the directory that it was loaded from.
#include "formats/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/expect_error.h"
#include "base/files.h"
#include "base/temporary_directory.h"
#include "checkpoint/safetensors.h"
#include "formats/model_files.h"
#include "formats/text_ends.h"

namespace heed {
namespace {
namespace source_files {

using testing::expect_error;
using testing::TemporaryDirectory;

std::vector<std::filesystem::path> golden_models() {
  std::vector<std::filesystem::path> models;
  for (const char* const kind : {"families", "pairs"}) {
    const auto folder = std::filesystem::path(HEED_SOURCE_DIR) / "tests/golden" / kind;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (std::filesystem::exists(entry.path() / weights_file_name)) models.push_back(entry.path());
    }
  }
  return models;
}

void save_again(const std::filesystem::path& from, const std::filesystem::path& to,
                kernels::WeightFormat format = kernels::WeightFormat::f32) {
  const SourceFiles source = read_source_files(from);
  if (is_encoder_decoder_directory(from)) {
    save_transformer(load_transformer(StacksWanted::two, from), to, source, format);
  } else {
    save_transformer(load_transformer(StacksWanted::one, from), to, source, format);
  }
}

std::set<std::string> bare_names(const std::filesystem::path& directory) {
  std::set<std::string> names;
  const auto file = SafetensorsFile::open(directory / weights_file_name);
  for (const TensorEntry& entry : file.tensors()) {
    names.insert(entry.name);
  }
  return names;
}

// A directory with what people publish beside a model.
void publish(const std::filesystem::path& model, const std::filesystem::path& to) {
  std::filesystem::copy(model / weights_file_name, to / weights_file_name);
  OrderedJson config =
      parse_ordered_config(R"({"zeta": {"unknown": [1, 2.5]}, "alpha": Infinity})", "");
  config.update(read_ordered_config(model / config_file_name));
  config["bos_token_id"] = 3;
  config["eos_token_id"] = {5, 4};
  config["pad_token_id"] = 2;
  config.erase("forced_bos_token_id");
  write_text_file(to / config_file_name, config_text(config));
  write_text_file(to / generation_config_file_name, R"({"eos_token_id": [1, 0], "top_k": 5})");
  for (const char* const name :
       {"chat_template.jinja", "tokenizer_config.json", "added_tokens.json",
        "special_tokens_map.json", "tokenizer.json", "tokenizer.model"}) {
    write_text_file(to / name, std::string("of ") + name);
  }
}

TEST(SourceFiles, SurviveSavingInEveryFamily) {
  for (const std::filesystem::path& model : golden_models()) {
    SCOPED_TRACE(model.string());
    const TemporaryDirectory from, to, rounded;
    publish(model, from.path());
    save_again(from.path(), to.path());
    for (const char* const name :
         {"generation_config.json", "chat_template.jinja", "tokenizer_config.json",
          "added_tokens.json", "special_tokens_map.json", "tokenizer.json", "tokenizer.model"}) {
      EXPECT_EQ(read_text_file(to / name), read_text_file(from / name)) << name;
    }
    OrderedJson before = read_ordered_config(from / config_file_name);
    // Gemma's says how the scale of its embedding is rounded.
    const bool is_gemma = before.value("model_type", "").starts_with("gemma");
    for (const char* const key : {"torch_dtype", "dtype"}) {
      if (before.contains(key) && !is_gemma) before[key] = "float32";
    }
    const bool is_own = before.contains("heed") && before["model_type"] == "marian";
    if (is_own) {  // which had no type of their own
      before["model_type"] = "heed_translator";
      before["architectures"] = {"HeedTranslator"};
    }
    EXPECT_EQ(read_ordered_config(to / config_file_name).dump(), before.dump());
    EXPECT_THAT(read_text_file(to / config_file_name), ::testing::HasSubstr("\"alpha\": Infinity"));
    const Architecture architecture = read_architecture(to.path());
    EXPECT_EQ(architecture, read_architecture(from.path()));
    EXPECT_EQ(architecture.decoder().end_of_text, 1) << "generation_config.json leads";
    EXPECT_EQ(read_end_tokens(read_model_fields(to.path()), 6), (std::vector<std::int64_t>{1, 0}));
    EXPECT_EQ(read_beginning_of_text(read_model_fields(to.path()), 6), 3);
    // In bf16, and back in f32.
    save_again(from.path(), rounded.path(), kernels::WeightFormat::bf16);
    EXPECT_EQ(read_config_document(rounded / config_file_name)["heed"]["dtype"], "bf16");
    const TemporaryDirectory back;
    save_again(rounded.path(), back.path());
    EXPECT_EQ(read_text_file(back / config_file_name), read_text_file(to / config_file_name));
  }
}

TEST(SourceFiles, ChangeWhatTrainingChanges) {
  const auto golden = std::filesystem::path(HEED_SOURCE_DIR) / "tests/golden/families";
  for (const auto& [family, key] :
       {std::pair("gpt2", "attn_pdrop"), std::pair("qwen3", "attention_dropout")}) {
    const TemporaryDirectory from, to;
    publish(golden / family, from.path());
    Transformer transformer = load_transformer(StacksWanted::one, from.path());
    const float rest = transformer.specification().residual_dropout;
    transformer.set_dropout(transformer.specification().embedding_dropout, 0.375F, rest);
    save_transformer(transformer, to.path(), read_source_files(from.path()));
    OrderedJson before = read_ordered_config(from / config_file_name);
    before[key] = 0.375;
    for (const char* const dtype : {"torch_dtype", "dtype"}) {
      if (before.contains(dtype)) before[dtype] = "float32";
    }
    EXPECT_EQ(Json(read_ordered_config(to / config_file_name)), Json(before));
    EXPECT_EQ(load_transformer(StacksWanted::one, to.path()).specification(),
              transformer.specification());
  }
}

// A source of another family says nothing about a model.
TEST(SourceFiles, DoNotMakeAnotherModelOfIt) {
  const auto golden = std::filesystem::path(HEED_SOURCE_DIR) / "tests/golden/families";
  const TemporaryDirectory to;
  const Transformer transformer = load_transformer(StacksWanted::one, golden / "neox");
  save_transformer(transformer, to.path(), read_source_files(golden / "llama_biased"));
  EXPECT_EQ(load_transformer(StacksWanted::one, to.path()).specification(),
            transformer.specification());
}

TEST(SourceFiles, OfAnotherModelAreRemoved) {
  const auto golden = std::filesystem::path(HEED_SOURCE_DIR) / "tests/golden/families";
  const TemporaryDirectory first, second, to;
  publish(golden / "gpt2", first.path());
  publish(golden / "llama", second.path());
  std::filesystem::remove(second / "chat_template.jinja");
  std::filesystem::remove(second / generation_config_file_name);
  write_text_file(to / "notes.txt", "mine");
  save_again(first.path(), to.path());
  save_again(second.path(), to.path());
  EXPECT_FALSE(std::filesystem::exists(to / "chat_template.jinja"));
  EXPECT_FALSE(std::filesystem::exists(to / generation_config_file_name));
  EXPECT_EQ(read_text_file(to / "notes.txt"), "mine");
  EXPECT_EQ(read_architecture(to.path()), read_architecture(second.path()));
}

TEST(SourceFiles, KeepTheNamesOfTensorsOfTheirFormat) {
  // A Mistral without a window could be written as a LLaMA too.
  const auto golden = std::filesystem::path(HEED_SOURCE_DIR) / "tests/golden/families";
  const TemporaryDirectory from, to;
  publish(golden / "mistral", from.path());
  Json config = read_config_document(from / config_file_name);
  config["sliding_window"] = nullptr;
  write_text_file(from / config_file_name, config_text(OrderedJson(config)));
  save_again(from.path(), to.path());
  EXPECT_EQ(read_config_document(to / config_file_name)["model_type"], "mistral");
  EXPECT_EQ(bare_names(to.path()), bare_names(golden / "mistral"));
}

}  // namespace source_files
}  // namespace
}  // namespace heed
