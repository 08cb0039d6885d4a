// heed microworld check --pairs, and conversion of a translator, with random weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/json.h"
#include "base/temporary_directory.h"
#include "cli/run_heed.h"
#include "engine/loaded_model.h"
#include "support/small_translator_files.h"

namespace heed {
namespace {

using ::testing::HasSubstr;
using testing::json_of;
using testing::Outcome;
using testing::run_heed;

// The small translator with room for the microworld's sentences, letter by letter.
class PairCheckCommand : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = new testing::TemporaryDirectory;
    const TranslationTokenizers tokenizers = testing::small_joint_vocabulary();
    Architecture architecture = testing::small_translator(tokenizers).architecture();
    for (StackSpecification& stack : architecture.stacks) stack.context = 512;
    Transformer model(architecture);
    model.parameters().initialize(5);
    std::vector<CompanionFile> files;
    for (const TokenizerFile& file : tokenizers.source->files()) {
      files.push_back({file.name, file.content});
    }
    save_transformer(model, *directory_ / "small", files);
  }
  static void TearDownTestSuite() { delete directory_; }

  static std::string directory(const char* name = "small") { return (*directory_ / name).string(); }
  static testing::TemporaryDirectory* directory_;
};
testing::TemporaryDirectory* PairCheckCommand::directory_ = nullptr;

TEST_F(PairCheckCommand, ReportsWhatWasMeasured) {
  const std::string call =
      "microworld check --pairs -n 3 --cuts 1 -s 4 -t 1 -m " + directory() + " ";
  const Json document = json_of(call + "--json");
  EXPECT_EQ(document["pairs"].get<int>(), 3);
  EXPECT_NEAR(document["ratio"].get<double>(),
              document["loss_nats_per_pair"].get<double>() /
                  document["entropy_nats_per_pair"].get<double>(),
              1e-9);
  EXPECT_EQ(document["heads"].size(), 2U);
  EXPECT_EQ(document["cuts"]["pairs"].get<int>(), 1);
  EXPECT_GT(document["cuts"]["all_words"]["words"].get<int>(), 0);
  // The same pairs as --pairs of the parent command writes.
  const Json told = json_of("microworld --pairs -n 3 -s 4 --json");
  EXPECT_NEAR(document["entropy_nats_per_pair"].get<double>(),
              told["summary"]["german_given_english"]["nats_per_pair"].get<double>(), 1e-9);

  const Outcome shown = run_heed(call, "COLUMNS=80 NO_COLOR=1");
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("3 pairs"));
  EXPECT_THAT(shown.out, HasSubstr("cross.L0H"));
  EXPECT_THAT(shown.out, HasSubstr("true edges cut"));
}

TEST_F(PairCheckCommand, RefusesWithTheReason) {
  const auto refuses = [](const std::string& arguments, const std::string& part) {
    const Outcome outcome = run_heed("microworld check --pairs " + arguments);
    EXPECT_NE(outcome.status, 0) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(part)) << arguments;
    EXPECT_EQ(outcome.out, "") << arguments;
  };
  refuses("-m starter", "'starter' has no encoder");
  refuses("--causal -m " + directory(), "are of stories");
  refuses("-n 0 -m " + directory(), "--stories");
}

TEST_F(PairCheckCommand, ATranslatorIsConverted) {
  for (const char* dtype : {"bf16", "int8"}) {
    const Json converted = json_of("convert " + directory() + " --json --dtype " + dtype +
                                   " --out " + directory(dtype));
    EXPECT_GT(converted["bytes"].get<std::int64_t>(), 0);
    // To the bit what --dtype does while loading.
    const std::string call = "translate 'the dog sees' -n 6 --json -t 1 ";
    Json stored = json_of(call + "-m " + directory(dtype));
    Json rounded = json_of(call + "-m " + directory() + " --dtype " + dtype);
    EXPECT_TRUE(stored["translations"] == rounded["translations"]) << dtype;
  }
}

}  // namespace
}  // namespace heed
