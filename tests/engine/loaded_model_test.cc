#include "engine/loaded_model.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "support/small_model.h"

namespace heed {
namespace {

class RunOnDisk : public ::testing::Test {
 protected:
  RunOnDisk() {
    for (const char* name : {"last", "best", "checkpoints/00000250"}) {
      make_directory(run_ / name);
      testing::write_small_model(run_ / name);
    }
    write_text_file(run_ / "run.json", "{}");
  }

  testing::ScratchDirectory scratch_;
  std::filesystem::path run_ = scratch_.path() / "shakespeare";
};

TEST_F(RunOnDisk, ARunStandsForItsLastCheckpoint) {
  const LoadedModel model = load_model(run_.string());
  EXPECT_EQ(model.name, "shakespeare");
  EXPECT_NE(model.tokenizer, nullptr);
  EXPECT_NE(load_model_tokenizer(run_.string()), nullptr);
  EXPECT_EQ(find_stack_config(run_.string()).layers, 2);
  EXPECT_EQ(model_path(run_), run_ / "last");
  std::filesystem::remove_all(run_ / "last");
  EXPECT_THROW(load_model(run_.string()), Error);
}

TEST_F(RunOnDisk, CheckpointsAreCalledByTheirRun) {
  EXPECT_EQ(load_model((run_ / "last").string()).name, "shakespeare");
  EXPECT_EQ(model_name((run_ / "last" / "model.safetensors").string()), "shakespeare");
  EXPECT_EQ(model_name((run_ / "last" / "").string()), "shakespeare");
  EXPECT_EQ(model_name((run_ / "best").string()), "shakespeare@best");
  EXPECT_EQ(model_name((run_ / "checkpoints" / "00000250").string()), "shakespeare@00000250");
}

TEST_F(RunOnDisk, OtherDirectoriesAreCalledByTheirOwnName) {
  std::filesystem::remove(run_ / "run.json");
  EXPECT_EQ(load_model((run_ / "last").string()).name, "last");
  EXPECT_EQ(model_name("starter"), "starter");
}

}  // namespace
}  // namespace heed
