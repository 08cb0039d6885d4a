// GGUF files of a hub: the one of the wanted weights, or all of its parts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/environment_variable.h"
#include "base/expect_error.h"
#include "base/files.h"
#include "checkpoint/gguf_writer.h"
#include "engine/known_models.h"
#include "engine/loaded_model.h"
#include "engine/pull.h"
#include "formats/gguf_save.h"
#include "support/hub_server.h"
#include "support/small_model.h"

namespace heed {
namespace {

using testing::expect_error;
using testing::HubServer;

class PullGguf : public testing::SmallModelTest {
 protected:
  PullGguf() {
    const auto tokenizer = testing::microworld_tokenizer();
    const std::filesystem::path file = cache_.path() / "written.gguf";
    save_gguf(testing::small_gpt(tokenizer->vocabulary_size(), 128), file, {},
              {.name = "small", .tokenizer = tokenizer.get()}, GgufWeights::q8_0);
    written_ = read_text_file(file);
  }

  PulledModel pull(const std::string& name) {
    return pull_model(name, {.cache = default_model_cache(),
                             .hub = {.settings = {.endpoint = server_.endpoint()},
                                     .retry = {.pause = [](std::chrono::milliseconds) {}}}});
  }

  const testing::EnvironmentVariable no_proxy_{"no_proxy", "127.0.0.1,localhost"};
  testing::ScratchDirectory cache_;
  const testing::EnvironmentVariable cache_variable_{"HEED_CACHE", cache_.path().c_str()};
  HubServer server_;
  std::string written_;
};

TEST_F(PullGguf, TakesTheFileOfItsWeights) {
  for (const char* name : {"small-Q4_0.gguf", "small-IQ8_0.gguf", "README.md", "config.json"}) {
    server_.set_file(name, "{}");
  }
  server_.set_file("files/small-q8_0.gguf", written_);
  const PulledModel pulled = pull("org/small:q8_0");
  EXPECT_EQ(pulled.directory, default_model_cache() / "org--small:Q8_0/small-q8_0.gguf");
  EXPECT_EQ(read_text_file(pulled.directory), written_);
  EXPECT_EQ(pulled.files.size(), 1U);
  EXPECT_EQ(find_pulled_model("org/small:Q8_0"), pulled.directory);
  EXPECT_EQ(find_pulled_model("org/small"), std::nullopt);
  const LoadedModel model = load_model("org/small:Q8_0");
  EXPECT_EQ(model.name, "small-q8_0");
  EXPECT_EQ(model.encode("the cat"), testing::microworld_tokenizer()->encode("the cat"));
  const std::vector<KnownModel> known = known_models();
  const auto found = std::ranges::find(known, "org/small:Q8_0", &KnownModel::name);
  ASSERT_NE(found, known.end());
  EXPECT_EQ(found->damage, "");
  EXPECT_EQ(found->bytes, std::ssize(written_));

  // Again: all is there.
  server_.forget_requests();
  EXPECT_FALSE(pull("org/small:q8_0").files.front().is_new);
  EXPECT_EQ(server_.requests().size(), 1U) << "the listing alone";
}

TEST_F(PullGguf, NamesWhatThereIsInstead) {
  server_.set_file("small-Q4_0.gguf", written_);
  expect_error(
      ErrorCode::not_found, [&] { pull("org/small:Q8_0"); },
      "'org/small' has no GGUF file of Q8_0; it has small-Q4_0.gguf");
  server_.set_file("large-Q4_0.gguf", written_);
  expect_error(
      ErrorCode::unsupported, [&] { pull("org/small:Q4_0"); }, "large-Q4_0, small-Q4_0");
  expect_error(
      ErrorCode::invalid_argument, [&] { pull("org/small:../x"); }, "is not the name");
}

TEST_F(PullGguf, LeavesNoModelOfAnotherArchitecture) {
  GgufMetadata metadata;
  metadata.add("general.architecture", std::string_view("mamba"));
  server_.set_file("small-Q8_0.gguf", gguf_header(metadata, {}));
  expect_error(
      ErrorCode::unsupported, [&] { pull("org/small:Q8_0"); }, "is 'mamba'");
  EXPECT_EQ(find_pulled_model("org/small:Q8_0"), std::nullopt);
}

}  // namespace
}  // namespace heed
