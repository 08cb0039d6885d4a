#include "download/hub.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"

namespace heed {
namespace {

TEST(HubName, HasARepositoryAndARevision) {
  EXPECT_EQ(parse_hub_name("gpt2").repository, "gpt2");
  EXPECT_EQ(parse_hub_name("gpt2").revision, "main");
  EXPECT_EQ(parse_hub_name("org/some_model.v1-x").repository, "org/some_model.v1-x");
  EXPECT_EQ(parse_hub_name("org/small@refs/pr/3").revision, "refs/pr/3");
}

TEST(HubName, HasADirectoryOfItsOwn) {
  EXPECT_EQ(parse_hub_name("gpt2").directory_name(), "gpt2");
  EXPECT_EQ(parse_hub_name("org/small").directory_name(), "org--small");
  EXPECT_EQ(parse_hub_name("org/small@main").directory_name(), "org--small");
  EXPECT_EQ(parse_hub_name("org/small@refs/pr/3").directory_name(), "org--small@refs%2Fpr%2F3");
}

TEST(HubName, RefusesWhatIsNone) {
  for (const std::string& text :
       {std::string(""),        std::string("."),           std::string(".."),
        std::string("../x"),    std::string("/etc"),        std::string("a/b/c"),
        std::string("org/"),    std::string("/small"),      std::string("org/.."),
        std::string("a--b"),    std::string("a..b"),        std::string("-a"),
        std::string("a."),      std::string("a b"),         std::string("a\nb"),
        std::string("a\0b", 3), std::string("caf\xC3\xA9"), std::string("a@"),
        std::string("a@../x"),  std::string("a@/x"),        std::string("a@x y"),
        std::string("a@b@c"),   std::string("a?b"),         std::string("a%2Fb"),
        std::string("a\\b"),    std::string(97, 'a'),       "a@" + std::string(65, 'b')}) {
    EXPECT_FALSE(find_hub_name(text)) << text;
    testing::expect_error(
        ErrorCode::invalid_argument, [&] { parse_hub_name(text); }, "gpt2");
  }
}

TEST(RepositoryPath, StaysInTheRepository) {
  for (const char* path :
       {"config.json", "onnx/model.onnx", ".gitattributes", "a..b", "caf\xC3\xA9"}) {
    EXPECT_TRUE(is_safe_repository_path(path)) << path;
  }
  for (const std::string& path :
       {std::string(""), std::string("/etc/passwd"), std::string("../x"), std::string("a/../b"),
        std::string("a/.."), std::string("./a"), std::string("a//b"), std::string("a/"),
        std::string("a\\..\\b"), std::string("a\nb"), std::string("a\0b", 3),
        std::string("a\x7F")}) {
    EXPECT_FALSE(is_safe_repository_path(path)) << path;
  }
}

}  // namespace
}  // namespace heed
