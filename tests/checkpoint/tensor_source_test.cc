// A model's tensors, in one file or in shards.
#include "checkpoint/tensor_source.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/expect_error.h"
#include "base/files.h"
#include "base/temporary_directory.h"
#include "checkpoint/safetensors.h"

namespace heed {
namespace {

using enum ErrorCode;
using testing::expect_error;
using testing::TemporaryDirectory;

// Writes a file with one-element tensors of these names.
void write_file(const std::filesystem::path& path, const std::vector<std::string>& names) {
  const float value = static_cast<float>(names.size());
  std::vector<OutgoingTensor> tensors;
  for (const std::string& name : names) {
    tensors.push_back(outgoing(name, View<const float>(&value, Shape{1})));
  }
  write_safetensors(path, tensors);
}

void write_index(const TemporaryDirectory& directory, const std::string& weight_map) {
  write_text_file(directory / "model.safetensors.index.json",
                  R"({"metadata":{"total_size":12},"weight_map":)" + weight_map + "}");
}

TEST(TensorSource, OpensAFileOrItsDirectory) {
  const TemporaryDirectory directory;
  write_file(directory / "model.safetensors", {"a", "b"});
  for (const auto& path : {directory.path(), directory / "model.safetensors"}) {
    const TensorSource source = open_tensor_source(path);
    EXPECT_EQ(source.tensors().size(), 2U);
    EXPECT_NE(source.find("a"), nullptr);
    EXPECT_EQ(source.find("c"), nullptr);
    EXPECT_EQ(source.get("b").name, "b");
    expect_error(
        corrupt_data, [&] { source.get("c"); }, "model.safetensors", "'c'");
  }
}

TEST(TensorSource, OpensShards) {
  const TemporaryDirectory directory;
  write_file(directory / "model-00001-of-00002.safetensors", {"a", "b"});
  write_file(directory / "model-00002-of-00002.safetensors", {"c"});
  write_index(directory, R"({"a":"model-00001-of-00002.safetensors",)"
                         R"("b":"model-00001-of-00002.safetensors",)"
                         R"("c":"model-00002-of-00002.safetensors"})");
  for (const auto& path : {directory.path(), directory / "model.safetensors.index.json"}) {
    TensorSource opened = open_tensor_source(path);
    const TensorSource source = std::move(opened);  // entries stay where they are
    EXPECT_EQ(source.tensors().size(), 3U);
    float value = 0;
    read_as_f32(source.get("a"), View<float>(&value, Shape{1}));
    EXPECT_EQ(value, 2);
    read_as_f32(source.get("c"), View<float>(&value, Shape{1}));
    EXPECT_EQ(value, 1);
  }
}

TEST(TensorSource, NeedsSomethingToOpen) {
  const TemporaryDirectory directory;
  expect_error(
      not_found, [&] { open_tensor_source(directory.path()); }, directory.path().string(),
      "model.safetensors.index.json");
  expect_error(
      not_found, [&] { open_tensor_source(directory / "absent"); }, "absent");
}

TEST(TensorSource, IndexMustAgreeWithItsShards) {
  const TemporaryDirectory directory;
  write_file(directory / "one", {"a", "b"});
  write_file(directory / "two", {"b", "c"});
  const auto open = [&] { open_tensor_source(directory.path()); };
  write_index(directory, R"({"a":"one","b":"one","d":"three"})");
  expect_error(not_found, open, "index.json", "'d'", "three", "missing");
  write_index(directory, R"({"a":"one","b":"one","d":"one"})");
  expect_error(corrupt_data, open, "'d'", "one", "does not contain it");
  write_index(directory, R"({"a":"one","c":"two"})");
  expect_error(corrupt_data, open, "'b' is in two files");
  write_index(directory, R"({"a":"one","b":"one","c":"two"})");
  expect_error(corrupt_data, open, "'two' contains tensor 'b'");
}

TEST(TensorSource, KnowsWhatAnIndexDoesNotList) {
  const TemporaryDirectory directory;
  write_file(directory / "one", {"a", "mask"});
  write_index(directory, R"({"a":"one"})");
  const TensorSource source = open_tensor_source(directory.path());
  EXPECT_NE(source.find("mask"), nullptr);
  EXPECT_TRUE(source.is_unlisted("mask"));
  EXPECT_FALSE(source.is_unlisted("a"));
}

TEST(TensorSource, IndexCannotLeadOutOfItsDirectory) {
  for (const char* name : {"\"../x\"", "\"/etc/passwd\"", "\"sub/x\"", "\"..\"", "\".\"", "\"\"",
                           "\"a\\\\b\"", "\"a\\u0000b\"", "7", "null", "[\"x\"]"}) {
    SCOPED_TRACE(name);
    const std::string text = R"({"weight_map":{"w":)" + std::string(name) + "}}";
    expect_error(
        corrupt_data, [&] { parse_shard_index(text, "index"); }, "index", "'w'",
        "in the directory of the index");
  }
}

TEST(TensorSource, IndexMustHoldAWeightMap) {
  for (const char* text : {"[]", "{}", R"({"weight_map":[]})", R"({"weight_map":{}})"}) {
    expect_error(
        corrupt_data, [&] { parse_shard_index(text, "index"); }, "index", "weight_map");
  }
  expect_error(
      corrupt_data, [&] { parse_shard_index(R"({"weight_map":{"a":"x","a":"y"}})", "index"); },
      "'a' appears twice");
  expect_error(
      corrupt_data, [&] { parse_shard_index("{", "index"); }, "not valid JSON");
}

}  // namespace
}  // namespace heed
