// Whole models from a hub that may misbehave, and their use by name.
#include "engine/pull.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/directories.h"
#include "base/environment_variable.h"
#include "base/expect_error.h"
#include "base/files.h"
#include "checkpoint/tensor_source.h"
#include "engine/loaded_model.h"
#include "formats/pooling.h"
#include "support/hub_server.h"
#include "support/small_model.h"
#include "support/small_translator_files.h"
#include "tokenizer/sentence_piece_directories.h"
#include "tokenizer/tokenizer_files.h"

namespace heed {
namespace {

using testing::expect_error;
using testing::HubAnswer;
using testing::HubRequest;
using testing::HubServer;

class PullModel : public testing::SmallModelTest {
 protected:
  PullModel() { server_.set_files(directory_->path()); }

  PullOptions options() {
    return {.cache = default_model_cache(),
            .hub = {.settings = {.endpoint = server_.endpoint()},
                    .retry = {.pause = [](std::chrono::milliseconds) {}}}};
  }
  PulledModel pull(const std::string& name = "org/small") { return pull_model(name, options()); }

  std::filesystem::path pulled_path() const { return default_model_cache() / "org--small"; }

  std::set<std::string> names_on_disk() const {
    std::set<std::string> names;
    if (!std::filesystem::exists(pulled_path())) return names;
    for (const auto& entry : std::filesystem::directory_iterator(pulled_path())) {
      names.insert(entry.path().filename().string());
    }
    return names;
  }

  // Every file is the hub's or absent; partial ones do not count.
  void expect_right_or_absent() const {
    for (const std::string& name : names_on_disk()) {
      if (name.find(".partial") != std::string::npos) continue;
      const auto file = server_.files().find(name);
      ASSERT_NE(file, server_.files().end()) << name;
      EXPECT_EQ(read_text_file(pulled_path() / name), file->second) << name;
    }
  }

  // The weights as one shard of an index.
  void set_shards() {
    const std::string weights = server_.files().at("model.safetensors");
    OrderedJson weight_map;
    const TensorSource source = open_tensor_source(directory_->path());
    for (const TensorEntry* tensor : source.tensors()) {
      weight_map[tensor->name] = "model-00001-of-00001.safetensors";
    }
    server_.remove_file("model.safetensors");
    server_.set_file("model-00001-of-00001.safetensors", weights);
    server_.set_file("model.safetensors.index.json",
                     OrderedJson{{"weight_map", weight_map}}.dump());
  }

  const testing::EnvironmentVariable no_proxy_{"no_proxy", "127.0.0.1,localhost"};
  testing::ScratchDirectory cache_;
  const testing::EnvironmentVariable cache_variable_{"HEED_CACHE", cache_.path().c_str()};
  HubServer server_;
};

TEST_F(PullModel, DownloadsWhatHeedReadsAndNoMore) {
  for (const char* name : {"vocab.json", "merges.txt", "README.md", "pytorch_model.bin",
                           "onnx/model.onnx", "tokenizer_config.json", "generation_config.json",
                           "added_tokens.json", "special_tokens_map.json", "chat_template.json"}) {
    server_.set_file(name, "{}");
  }
  const PulledModel pulled = pull();
  EXPECT_EQ(pulled.commit, HubServer::commit);
  EXPECT_EQ(pulled.directory, pulled_path());
  EXPECT_EQ(names_on_disk(), (std::set<std::string>{"added_tokens.json", "chat_template.json",
                                                    "config.json", "generation_config.json",
                                                    "model.safetensors", "special_tokens_map.json",
                                                    "tokenizer.json", "tokenizer_config.json"}));
  EXPECT_EQ(pulled.files.size(), 8U);
  expect_right_or_absent();

  // Again: all is there.
  server_.forget_requests();
  const PulledModel again = pull();
  EXPECT_EQ(server_.requests().size(), 1U) << "the listing alone";
  for (const PulledFile& file : again.files) EXPECT_FALSE(file.is_new) << file.file.name;
}

TEST_F(PullModel, IsLoadedByItsName) {
  expect_error(
      ErrorCode::not_found, [] { load_model("org/small"); }, "`heed pull org/small`");
  pull();
  const LoadedModel model = load_model("org/small");
  EXPECT_EQ(model.name, "small");
  EXPECT_NE(model.tokenizer, nullptr);
  EXPECT_NE(load_model_tokenizer("org/small"), nullptr);
  EXPECT_EQ(find_stack_config("org/small").layers, 2);
  EXPECT_EQ(model_path("org/small"), pulled_path());
  // Revisions are models of their own.
  expect_error(
      ErrorCode::not_found, [] { load_model("org/small@v1"); }, "`heed pull org/small@v1`");
  pull("org/small@v1");
  EXPECT_EQ(load_model("org/small@v1").name, "small@v1");
  // Paths and files are not suggested.
  for (const char* path : {"/nowhere/small", "nowhere.safetensors", "../small"}) {
    try {
      load_model(path);
      ADD_FAILURE() << path;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), ::testing::Not(::testing::HasSubstr("heed pull"))) << path;
    }
  }
}

TEST_F(PullModel, APathComesFirst) {
  pull();
  const testing::ScratchDirectory elsewhere;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(elsewhere.path());
  make_directory("org/small");
  EXPECT_EQ(model_path("org/small"), "org/small");
  std::filesystem::current_path(before);
}

TEST_F(PullModel, TakesVocabularyAndMergesWithoutATokenizerJson) {
  server_.remove_file("tokenizer.json");
  server_.set_file("vocab.json", "{}");
  server_.set_file("merges.txt", "");
  pull();
  EXPECT_EQ(names_on_disk(), (std::set<std::string>{"config.json", "merges.txt",
                                                    "model.safetensors", "vocab.json"}));
}

TEST_F(PullModel, TakesSentencePieceModelsWithoutATokenizerJson) {
  server_.remove_file("tokenizer.json");
  for (const char* name : {"source.spm", "target.spm", "vocab.json"}) server_.set_file(name, "{}");
  pull();
  EXPECT_EQ(names_on_disk(), (std::set<std::string>{"config.json", "model.safetensors",
                                                    "source.spm", "target.spm", "vocab.json"}));
}

TEST_F(PullModel, TakesNoVocabularyThatNothingReads) {
  server_.remove_file("tokenizer.json");
  server_.set_file("vocab.json", "{}");
  pull();
  EXPECT_EQ(names_on_disk(), (std::set<std::string>{"config.json", "model.safetensors"}));
}

// What repositories of encoder-decoders and encoders hold beside what heed reads.
constexpr const char* files_of_others[] = {"pytorch_model.bin", "tf_model.h5", "rust_model.ot",
                                           "README.md"};

// Published layouts, in small: config.json and weights of the goldens, and a tokenizer's files.
TEST_F(PullModel, TakesEveryFamilyWithItsTokenizersFiles) {
  using Files = std::map<std::string, std::string>;
  const std::string unigram = read_text_file(sentence_piece_goldens() / "unigram.model");
  struct Family {
    const char* name;
    Files tokenizer;
  };
  for (const auto& [name, tokenizer] :
       {Family{"t5", {{"spiece.model", unigram}, {"special_tokens_map.json", "{}"}}},
        Family{"t5_gated", {{"tokenizer.json", server_.files().at("tokenizer.json")}}},
        Family{"bart", {{"vocab.json", "{}"}, {"merges.txt", "a b"}}},
        Family{"bert", {{"vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nmole\n"}}}}) {
    SCOPED_TRACE(name);
    const std::filesystem::path golden = HEED_SOURCE_DIR "/tests/golden/pairs";
    server_.clear_files();
    for (const char* other : files_of_others) server_.set_file(other, "nothing for heed");
    std::set<std::string> expected{"config.json", "model.safetensors", "tokenizer_config.json"};
    for (const char* file : {"config.json", "model.safetensors"}) {
      server_.set_file(file, read_text_file(golden / name / file));
    }
    server_.set_file("tokenizer_config.json", "{}");
    for (const auto& [file, content] : tokenizer) {
      server_.set_file(file, content);
      expected.insert(file);
    }
    pull();
    EXPECT_EQ(names_on_disk(), expected);
    expect_right_or_absent();
    EXPECT_TRUE(find_architecture("org/small") == read_architecture(golden / name));
    EXPECT_EQ(is_translator("org/small"), find_architecture("org/small").is_encoder_decoder());
    std::filesystem::remove_all(pulled_path());
  }
}

// How its states are pooled is said in a folder below.
TEST_F(PullModel, TakesHowAnEncoderIsPooled) {
  const std::filesystem::path golden = HEED_SOURCE_DIR "/tests/golden/pairs/bert";
  server_.clear_files();
  for (const char* file : {"config.json", "model.safetensors"}) {
    server_.set_file(file, read_text_file(golden / file));
  }
  server_.set_file("modules.json", "[]");
  server_.set_file("sentence_bert_config.json", "{}");
  server_.set_file("1_Pooling/config.json", R"({"pooling_mode_cls_token": true})");
  server_.set_file("2_Dense/config.json", "nothing for heed");
  pull();
  EXPECT_EQ(names_on_disk(), (std::set<std::string>{"1_Pooling", "config.json", "model.safetensors",
                                                    "modules.json", "sentence_bert_config.json"}));
  EXPECT_EQ(read_text_file(pulled_path() / "config.json"), server_.files().at("config.json"));
  EXPECT_EQ(read_pooling(pulled_path()), TokenPooling::first);
  server_.forget_requests();
  pull();
  EXPECT_EQ(server_.requests().size(), 1U) << "the listing alone";
  // A commit without it.
  server_.remove_file("1_Pooling/config.json");
  pull();
  EXPECT_EQ(read_pooling(pulled_path()), TokenPooling::mean);
}

// A translator with Marian's files, which translates by its name.
TEST_F(PullModel, TakesTranslatorsByTheirName) {
  expect_error(
      ErrorCode::not_found, [] { load_translator("org/small", {}); }, "`heed pull org/small`");
  const TranslationTokenizers tokenizers = load_translation_tokenizers(marian_directory({}));
  const testing::ScratchDirectory published;
  std::vector<CompanionFile> files;
  for (const TokenizerFile& file : tokenizers.source->files()) {
    files.push_back({file.name, file.content});
  }
  save_transformer(testing::small_translator(tokenizers), published.path(), files);
  server_.clear_files();
  for (const char* other : files_of_others) server_.set_file(other, "nothing for heed");
  server_.set_files(published.path());
  pull();
  EXPECT_EQ(names_on_disk(), (std::set<std::string>{"config.json", "model.safetensors",
                                                    "source.spm", "target.spm", "vocab.json"}));
  const auto translate = [](const std::string& model) {
    const LoadedModel translator = load_translator(model, {});
    SourceTokens sources;
    sources.add(translator.encode_source("a dog", "the text"));
    return translator.translate(sources, {.max_length = 6}).front().front().tokens;
  };
  EXPECT_EQ(translate("org/small"), translate(published.path()));
  expect_error(
      ErrorCode::unsupported, [] { load_model("org/small"); }, "heed translate -m org/small");
}

TEST_F(PullModel, ReplacesAModelAsAWhole) {
  pull();
  const std::string old_weights = server_.files().at("model.safetensors");
  // The next commit has shards, and does not arrive: the old model stays.
  set_shards();
  server_.set_script([&](const HubRequest& request, int) -> std::optional<HubAnswer> {
    if (!request.is_for("model-00001-of-00001.safetensors")) return std::nullopt;
    return HubServer::cut(HubServer::file_answer(request, old_weights), 500);
  });
  EXPECT_THROW(pull(), Error);
  EXPECT_EQ(read_text_file(pulled_path() / "model.safetensors"), old_weights);
  EXPECT_EQ(load_model("org/small").name, "small");
  // It arrives: nothing of the old one is left, nor of the attempt.
  server_.set_script(nullptr);
  pull();
  EXPECT_EQ(names_on_disk(),
            (std::set<std::string>{"config.json", "model-00001-of-00001.safetensors",
                                   "model.safetensors.index.json", "tokenizer.json"}));
  expect_right_or_absent();
  EXPECT_EQ(load_model("org/small").name, "small");
}

TEST_F(PullModel, RepairsWhatIsDamaged) {
  pull();
  std::string damaged = server_.files().at("model.safetensors");
  damaged.back() ^= 1;
  write_text_file(pulled_path() / "model.safetensors", damaged);
  const PulledModel pulled = pull();
  for (const PulledFile& file : pulled.files) {
    EXPECT_EQ(file.is_new, file.file.name == "model.safetensors") << file.file.name;
  }
  expect_right_or_absent();
}

TEST_F(PullModel, IsRightOrAbsentWhateverTheServerDoes) {
  const std::string weights = server_.files().at("model.safetensors");
  std::string other = weights;
  other[other.size() / 2] ^= 1;
  const auto with = [](const std::string& status, const std::string& headers) {
    return HubAnswer{testing::http_reply(status, headers, "")};
  };
  const std::vector<std::pair<std::string, HubServer::Script>> scripts{
      {"drops", [&](const HubRequest& request,
                    int) { return HubServer::cut(HubServer::file_answer(request, weights), 100); }},
      {"truncates",
       [&](const HubRequest&, int) {
         return HubAnswer{testing::http_reply("200 OK", "", weights.substr(0, 100))};
       }},
      {"announces less",
       [&](const HubRequest&, int) {
         return HubAnswer{testing::http_reply("200 OK", testing::content_length(50), weights)};
       }},
      {"announces more",
       [&](const HubRequest&, int) {
         return HubAnswer{
             testing::http_reply("200 OK", testing::content_length(weights.size() + 9), weights)};
       }},
      {"sends more",
       [&](const HubRequest&, int) {
         return HubAnswer{testing::http_reply("200 OK", "", weights + "tail")};
       }},
      {"sends another file",
       [&](const HubRequest& request, int) { return HubServer::file_answer(request, other); }},
      {"changes the file",
       [&](const HubRequest& request, int number) {
         if (number > 0) return HubServer::file_answer(request, other);
         return HubServer::cut(HubServer::file_answer(request, weights), 1000);
       }},
      {"redirects endlessly",
       [&](const HubRequest& request, int) {
         return with("302 Found", "Location: " + request.path + "\r\n");
       }},
      {"is busy",
       [&](const HubRequest&, int) { return with("429 Too Many Requests", "Retry-After: 1\r\n"); }},
      {"is down", [&](const HubRequest&, int) { return with("503 Service Unavailable", ""); }},
      {"has none", [&](const HubRequest&, int) { return with("404 Not Found", ""); }},
      {"is gated", [&](const HubRequest&, int) { return with("401 Unauthorized", ""); }},
      {"says nothing", [&](const HubRequest&, int) { return HubAnswer{}; }},
      {"speaks another protocol", [&](const HubRequest&, int) { return HubAnswer{"hello\n"}; }}};
  for (const auto& [what, script] : scripts) {
    SCOPED_TRACE(what);
    server_.forget_requests();
    // By name: Clang 14 cannot capture a structured binding.
    const auto& misbehave = script;
    server_.set_script([&](const HubRequest& request, int number) -> std::optional<HubAnswer> {
      return request.is_for("model.safetensors") ? misbehave(request, number) : std::nullopt;
    });
    EXPECT_THROW(pull(), Error);
    expect_right_or_absent();
    EXPECT_EQ(find_pulled_model("org/small"), std::nullopt);
    EXPECT_FALSE(std::filesystem::exists(pulled_path() / "model.safetensors"));
    // An honest server mends it.
    server_.set_script(nullptr);
    pull();
    expect_right_or_absent();
    EXPECT_TRUE(find_pulled_model("org/small").has_value());
    std::filesystem::remove_all(pulled_path());
  }
}

TEST_F(PullModel, RefusesModelsThatHeedCannotReadBeforeTheirWeights) {
  server_.set_file("config.json", R"({"model_type": "mamba"})");
  expect_error(
      ErrorCode::unsupported, [&] { pull(); }, "org/small", "mamba");
  EXPECT_TRUE(server_.requests_for("model.safetensors").empty());
  server_.set_files(directory_->path());
  server_.remove_file("model.safetensors");
  server_.set_file("pytorch_model.bin", "pickle");
  expect_error(
      ErrorCode::unsupported, [&] { pull(); }, "model.safetensors");
  EXPECT_TRUE(server_.requests_for("pytorch_model.bin").empty());
}

TEST_F(PullModel, RefusesHostileNames) {
  for (const std::string& name : {std::string("../../evil"), std::string("/etc/evil"),
                                  std::string("a\nb"), std::string("a/../../b")}) {
    server_.set_script([&](const HubRequest& request, int) -> std::optional<HubAnswer> {
      if (request.path.find("/api/") != 0) return std::nullopt;
      OrderedJson listing = server_.listing();
      listing["siblings"].push_back(HubServer::sibling(name, "x"));
      return HubServer::json_answer(listing);
    });
    expect_error(
        ErrorCode::corrupt_data, [&] { pull(); }, "refused");
  }
  EXPECT_FALSE(std::filesystem::exists(default_model_cache()));
  server_.set_script(nullptr);
  server_.forget_requests();
  for (const char* name : {"starter", "..", "../x", "/etc/passwd", "a/b/c", "a\nb", "org/x@../y"}) {
    expect_error(ErrorCode::invalid_argument, [&] { pull(name); });
  }
  EXPECT_TRUE(server_.requests().empty());
  server_.remove_file("model.safetensors");
  for (const char* shard : {"config.json", "../model.safetensors", "/x.safetensors",
                            "absent.safetensors", "notes.txt"}) {
    server_.set_file("notes.txt", "x");
    server_.set_file("model.safetensors.index.json",
                     OrderedJson{{"weight_map", {{"wte.weight", shard}}}}.dump());
    expect_error(ErrorCode::corrupt_data, [&] { pull(); });
    expect_right_or_absent();
  }
}

TEST_F(PullModel, LeavesNothingBehindWhereThereIsNoModel) {
  expect_error(
      ErrorCode::not_found, [&] { pull("org/absent"); }, "org/absent", "check the name");
  EXPECT_FALSE(std::filesystem::exists(default_model_cache()));
}

TEST_F(PullModel, IsRefusedWhileAnotherProcessPullsTheModel) {
  make_directory(pulled_path());
  const DirectoryLock other(pulled_path());
  expect_error(
      ErrorCode::conflict, [&] { pull(); }, "org--small");
}

}  // namespace
}  // namespace heed
