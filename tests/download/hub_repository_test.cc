#include "download/hub.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "base/json.h"

namespace heed {
namespace {

using testing::expect_error;

const std::string some_commit(40, 'c');
const std::string some_sha256(64, 'a');

Json small_listing() {
  return {{"id", "org/small"},
          {"sha", some_commit},
          {"siblings",
           {{{"rfilename", "config.json"}, {"size", 12}, {"blobId", std::string(40, 'b')}},
            {{"rfilename", "model.safetensors"},
             {"size", 99},
             {"blobId", std::string(40, 'd')},
             {"lfs", {{"sha256", some_sha256}, {"size", 99}, {"pointerSize", 130}}}},
            {{"rfilename", "onnx/model.onnx"}}}}};
}

TEST(HubRepository, ListsFilesWithTheirHashes) {
  const HubRepository repository = parse_hub_repository(small_listing().dump(), "reply");
  EXPECT_EQ(repository.commit, some_commit);
  ASSERT_EQ(repository.files.size(), 3U);
  const HubFile* const config = repository.find("config.json");
  ASSERT_NE(config, nullptr);
  EXPECT_EQ(config->size, 12);
  EXPECT_EQ(config->hash, (ContentHash{HashKind::git_blob, std::string(40, 'b')}));
  const HubFile* const weights = repository.find("model.safetensors");
  ASSERT_NE(weights, nullptr);
  EXPECT_EQ(weights->hash, (ContentHash{HashKind::sha256, some_sha256}));
  EXPECT_TRUE(weights->is_verifiable());
  EXPECT_FALSE(repository.find("onnx/model.onnx")->is_verifiable());
  EXPECT_EQ(repository.find("vocab.json"), nullptr);
}

TEST(HubRepository, RefusesNamesThatLeaveIt) {
  for (const std::string& name :
       {std::string("../config.json"), std::string("/etc/passwd"), std::string("a/../../b"),
        std::string("con\nfig.json"), std::string("config.json\0.txt", 16), std::string("")}) {
    Json listing = small_listing();
    listing["siblings"][2]["rfilename"] = name;
    expect_error(
        ErrorCode::corrupt_data, [&] { parse_hub_repository(listing.dump(), "reply"); }, "refused");
  }
}

TEST(HubRepository, RefusesWhatIsNoListing) {
  const auto refused = [](const std::string& text, const std::string& part) {
    expect_error(
        ErrorCode::corrupt_data, [&] { parse_hub_repository(text, "reply"); }, "reply", part);
  };
  refused("<html>", "");
  refused("[]", "sha");
  refused(R"({"sha": "main", "siblings": []})", "main");
  refused(R"({"sha": ")" + some_commit + R"("})", "siblings");
  const auto changed = [](const char* pointer, const Json& value) {
    Json listing = small_listing();
    listing[Json::json_pointer(pointer)] = value;
    return listing.dump();
  };
  refused(changed("/siblings", "none"), "an array");
  refused(changed("/siblings/0", 5), "rfilename");
  refused(changed("/siblings/0/size", -1), "-1");
  refused(changed("/siblings/0/size", 1ULL << 60), "size");
  refused(changed("/siblings/0/blobId", "../x"), "../x");
  refused(changed("/siblings/1/lfs/sha256", "abc"), "abc");
  refused(changed("/siblings/1/lfs/size", 98), "98");
  refused(changed("/siblings/2/rfilename", "config.json"), "twice");
}

}  // namespace
}  // namespace heed
