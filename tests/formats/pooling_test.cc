// How the states of an encoder become one vector, by the files of sentence-transformers, by
// config.json and by GGUF files.
#include "formats/pooling.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "base/files.h"
#include "formats/gguf_config.h"
#include "formats/gguf_save.h"
#include "formats/model_files.h"
#include "support/small_encoder.h"
#include "support/small_model.h"

namespace heed {
namespace {

namespace fs = std::filesystem;
using testing::expect_error;

class Pooling : public ::testing::Test {
 protected:
  Pooling() { testing::write_small_encoder(scratch_.path()); }

  fs::path at(const std::string& name) const { return scratch_.path() / name; }
  void write(const char* name, const std::string& text) const {
    fs::create_directories(at(name).parent_path());
    write_text_file(at(name), text);
  }
  TokenPooling read() const { return read_pooling(scratch_.path()); }

  testing::ScratchDirectory scratch_;
};

TEST_F(Pooling, IsTheMeanUnlessFilesSayOtherwise) {
  EXPECT_EQ(read(), TokenPooling::mean);
  Json config = read_config_document(at("config.json"));
  const std::vector<TokenPooling> by_type = {TokenPooling::mean, TokenPooling::mean,
                                             TokenPooling::first, TokenPooling::last};
  for (std::size_t type = 0; type < by_type.size(); ++type) {
    config[pooling_field] = type;
    write("config.json", config.dump());
    EXPECT_EQ(read(), by_type[type]) << type;
  }
  // The other file leads.
  write(pooling_file_name, R"({"pooling_mode_cls_token": true, "pooling_mode_max_tokens": false})");
  EXPECT_EQ(read(), TokenPooling::first);
  EXPECT_EQ(read_pooling(at("model.safetensors")), TokenPooling::first);
  write(pooling_file_name,
        R"({"pooling_mode_mean_sqrt_len_tokens": true, "include_prompt": true})");
  EXPECT_EQ(read(), TokenPooling::mean);
  write(pooling_file_name, R"({"pooling_mode_lasttoken": true})");
  EXPECT_EQ(read(), TokenPooling::last);
  write(modules_file_name,
        R"([{"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"},
            {"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
            {"idx": 2, "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}])");
  EXPECT_EQ(read(), TokenPooling::last);
}

TEST_F(Pooling, OfOtherKindsIsRefused) {
  const auto refused = [&](ErrorCode code, const char* because) {
    expect_error(
        code, [&] { read(); }, because);
  };
  Json config = read_config_document(at("config.json"));
  config[pooling_field] = 4;
  write("config.json", config.dump());
  refused(ErrorCode::unsupported, "'pooling_type' is 4, a rank");
  const auto says = [&](const char* text, ErrorCode code, const char* because) {
    write(pooling_file_name, text);
    refused(code, because);
  };
  says(R"({"pooling_mode_max_tokens": true})", ErrorCode::unsupported, "'pooling_mode_max_tokens'");
  says(R"({"pooling_mode_mean_tokens": true, "pooling_mode_cls_token": true})",
       ErrorCode::unsupported, "'pooling_mode_cls_token' beside 'pooling_mode_mean_tokens'");
  says(R"({"pooling_mode_mean_tokens": 1})", ErrorCode::corrupt_data,
       "'pooling_mode_mean_tokens' must be");
  says("[]", ErrorCode::corrupt_data, "expected a JSON object");
  const auto lists = [&](const char* text, ErrorCode code, const char* because) {
    write(modules_file_name, text);
    refused(code, because);
  };
  lists(R"([{"type": "sentence_transformers.models.Dense", "path": "2_Dense"}])",
        ErrorCode::unsupported, "the module 'sentence_transformers.models.Dense' is not computed");
  lists(R"([{"type": "sentence_transformers.models.Pooling", "path": "../1_Pooling"}])",
        ErrorCode::unsupported, "the path of 'sentence_transformers.models.Pooling'");
  lists(R"([{"path": ""}])", ErrorCode::corrupt_data, "a module has no 'type'");
  lists("{}", ErrorCode::corrupt_data, "expected a list of modules");
}

// A converted model is pooled as it was: in a directory, in a file, and in a directory of that.
TEST_F(Pooling, GoesWhereTheModelGoes) {
  write(pooling_file_name, R"({"pooling_mode_cls_token": true})");
  write(modules_file_name, "[]");
  const Transformer model = load_transformer(StacksWanted::one, scratch_.path());
  const fs::path copy = at("copy"), file = at("file.gguf"), back = at("back");
  save_transformer(model, copy, read_source_files(scratch_.path()));
  EXPECT_EQ(read_text_file(copy / pooling_file_name), read_text_file(at(pooling_file_name)));
  EXPECT_EQ(read_pooling(copy), TokenPooling::first);
  save_gguf(model, file, read_source_files(copy), {.name = "small"}, GgufWeights::f32);
  EXPECT_EQ(read_pooling(file), TokenPooling::first);
  save_transformer(load_transformer(StacksWanted::one, file), back, read_source_files(file));
  EXPECT_EQ(read_pooling(back), TokenPooling::first);
  // Another model in the same place is not pooled as the one before.
  fs::remove_all(at("1_Pooling"));
  save_transformer(model, copy, read_source_files(scratch_.path()));
  EXPECT_FALSE(fs::exists(copy / pooling_file_name));
  EXPECT_EQ(read_pooling(copy), TokenPooling::mean);
  // What no key can say is no reason not to write the file.
  write(pooling_file_name, R"({"pooling_mode_max_tokens": true})");
  EXPECT_EQ(pooling_type_of(read_source_files(scratch_.path())), 0);
}

}  // namespace
}  // namespace heed
