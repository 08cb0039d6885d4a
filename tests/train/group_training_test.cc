// Runs of several processes, as threads: in every stage of sharding they are the run of one, to
// rounding, and repeat to the bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "base/json.h"
#include "comm/local_group.h"
#include "train/run_directory.h"
#include "train/settings.h"
#include "train/stop_after.h"
#include "train/training.h"
#include "train/training_state.h"

namespace heed {
namespace {

using testing::as_members;
using testing::small_settings;
using testing::StopAfter;
using testing::Training;

class GroupTraining : public Training {
 protected:
  static TrainSettings settings() {
    TrainSettings settings = small_settings();
    settings.model = make_gpt_config(3, 2, 64, 8, 300);
    settings.model.embedding_dropout = settings.model.attention_dropout =
        settings.model.residual_dropout = 0.1F;
    settings.steps = 8;
    settings.batch_size = 5;
    settings.evaluate_every = 3;
    settings.checkpoint_every = 4;
    settings.average_checkpoints = 2;
    settings.keep_every = 4;
    settings.sample_every = 4;
    return settings;
  }

  void run(int processes, TrainRequest request) const {
    const auto work = [&](Group* group, int rank) {
      TrainRequest own = request;
      own.group = group;
      own.cache = directory_ / ("cache-" + std::to_string(rank));
      own.sample = [](const Transformer& transformer, const Tokenizer&) {
        return greedy_tokens(transformer);
      };
      try {
        train(own);
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
    };
    if (processes == 1) return work(nullptr, 0);
    as_members(processes, [&](Group& group) { work(&group, group.rank()); });
  }

  static std::string greedy_tokens(const Transformer& transformer) {
    const std::int32_t tokens[] = {1, 2, 3};
    EvaluationBuffers buffers(transformer.specification(), 1, 3);
    transformer.forward({tokens, {1, 3}}, {.sequences = {1, 3}}, buffers.activations);
    Tensor<float> logits(Shape{3, transformer.specification().vocabulary_size});
    transformer.project(buffers.activations.final_norm(), logits);
    const auto best = std::ranges::max_element(
        logits.span().last(static_cast<std::size_t>(transformer.specification().vocabulary_size)));
    return std::to_string(best - logits.span().begin());
  }

  std::vector<Json> metrics(const std::string& out) const {
    std::ifstream file(directory_ / out / "metrics.jsonl");
    std::vector<Json> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(Json::parse(line));
    return lines;
  }

  // All numbers that a run reports: losses to 1e-5, norms and spreads to 1e-4, but whole norms to
  // 1e-3: AdamW divides gradients by their own size, so that rounding moves parameters.
  void expect_same_run(const std::string& one, const std::string& other) const {
    const auto first = metrics(one), second = metrics(other);
    ASSERT_EQ(first.size(), second.size());
    int losses = 0, norms = 0;
    for (std::size_t i = 0; i < first.size(); ++i) {
      losses += first[i].contains("loss");
      norms += first[i].contains("gradient_norms");
      for (const char* name : {"loss", "val_loss", "val_standard_error", "gradient_norm"}) {
        ASSERT_EQ(first[i].contains(name), second[i].contains(name));
        if (!first[i].contains(name)) continue;
        const double expected = first[i][name];
        const double tolerance = std::string_view(name).ends_with("loss")    ? 1e-5
                                 : std::string_view(name) == "gradient_norm" ? 1e-3
                                                                             : 1e-4;
        EXPECT_NEAR(second[i][name].get<double>(), expected, tolerance * expected)
            << name << " of line " << i << " of " << other;
      }
      EXPECT_EQ(first[i].value("sample", ""), second[i].value("sample", ""));
      if (!first[i].contains("gradient_norms")) continue;
      for (const auto& [part, norm] : first[i]["gradient_norms"].items()) {
        const double expected = norm;
        EXPECT_NEAR(second[i]["gradient_norms"][part].get<double>(), expected, 1e-4 * expected)
            << part;
      }
    }
    EXPECT_GT(losses, 0);
    EXPECT_GT(norms, 0);
  }

  std::string file(const std::string& out, const char* name) const {
    return read_text_file(directory_ / out / name);
  }
  // Of all parameters and moments.
  std::string state(const std::string& out) const {
    const std::filesystem::path last = directory_ / out / "last";
    const StateManifest manifest = read_state_manifest(last / "training_state.json");
    const auto size = static_cast<std::size_t>(manifest.numbers) * sizeof(float);
    std::string text(3 * size, '\0');
    for (const ShardFile& file : manifest.shards) {
      const StateShard shard(last / "training_state" / file.name,
                             {manifest.run, manifest.position.step}, manifest.numbers);
      for (std::size_t r = 0; r < shard.ranges().size(); ++r) {
        const StateShard::Numbers numbers = shard.numbers(r);
        char* to = text.data() + shard.ranges()[r].begin * sizeof(float);
        for (const auto& bytes :
             {numbers.parameters, numbers.first_moment, numbers.second_moment}) {
          std::memcpy(to, bytes.data(), bytes.size());
          to += size;
        }
      }
    }
    return text;
  }
};

TEST_F(GroupTraining, EveryStageTrainsWhatOneProcessTrains) {
  TrainRequest request = this->request("one");
  request.settings = settings();
  run(1, request);
  for (const int stage : {1, 2, 3}) {
    for (const int processes : {2, 3}) {
      const std::string out = std::to_string(processes) + "-" + std::to_string(stage);
      request.out = directory_ / out;
      request.settings.shard = stage;
      run(processes, request);
      expect_same_run("one", out);
      EXPECT_TRUE(std::filesystem::exists(directory_ / out / "average" / "model.safetensors"));
      EXPECT_TRUE(std::filesystem::exists(directory_ / out / "checkpoints" / "00000004"));
    }
  }
}

TEST_F(GroupTraining, EveryStageRepeatsToTheBit) {
  TrainRequest request = this->request("first");
  request.settings = settings();
  for (const int stage : {1, 2, 3}) {
    request.settings.shard = stage;
    for (const char* out : {"first", "second"}) {
      request.out = directory_ / (out + std::to_string(stage));
      run(3, request);
    }
    const std::string first = "first" + std::to_string(stage);
    const std::string second = "second" + std::to_string(stage);
    EXPECT_EQ(state(first), state(second));
    for (const char* name :
         {"last/model.safetensors", "best/model.safetensors", "average/model.safetensors"}) {
      EXPECT_EQ(file(first, name), file(second, name)) << name;
    }
  }
}

// Blocks that are recomputed, an unembedding of its own, norms after the branches.
TEST_F(GroupTraining, OtherShapesAreShardedToo) {
  TrainRequest request = this->request("one");
  request.settings = settings();
  request.settings.recompute = true;
  request.settings.model.tied_unembedding = false;
  run(1, request);
  request.out = directory_ / "three";
  request.settings.shard = 3;
  run(3, request);
  expect_same_run("one", "three");
}

// What sums lose by rounding their terms to 8 bits: more than f32, and little.
TEST_F(GroupTraining, GradientsTravelInBf16) {
  TrainRequest request = this->request("f32");
  request.settings = settings();
  run(2, request);
  request.out = directory_ / "bf16";
  request.settings.wire = Wire::bf16;
  run(2, request);
  const auto exact = metrics("f32"), rounded = metrics("bf16");
  ASSERT_EQ(exact.size(), rounded.size());
  bool differs = false;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    ASSERT_EQ(exact[i].contains("loss"), rounded[i].contains("loss"));
    if (!exact[i].contains("loss")) continue;
    const double expected = exact[i]["loss"], value = rounded[i]["loss"];
    EXPECT_NEAR(value, expected, 0x1p-8 * expected);
    differs = differs || value != expected;
  }
  EXPECT_TRUE(differs);
}

TEST_F(GroupTraining, AnotherNumberOfProcessesAndStageGoesOn) {
  TrainRequest request = this->request("one");
  request.settings = settings();
  run(1, request);
  request.out = directory_ / "parts";
  request.settings.shard = 3;
  StopAfter stop(4);
  request.observer = &stop;
  request.stop = &stop.flag;
  run(3, request);
  EXPECT_LT(metrics("parts").size(), metrics("one").size());
  request.observer = nullptr;
  request.stop = nullptr;
  request.start = RunStart::resume;
  request.settings = RunDirectory(request.out).read_record().settings;
  request.settings.shard = 2;
  run(2, request);
  expect_same_run("one", "parts");
}

class PairGroupTraining : public GroupTraining {
 protected:
  PairGroupTraining() {
    static constexpr const char* words[] = {"one", "two", "three", "four"};
    std::string source, target;
    for (unsigned i = 0; i < 120; ++i) {
      for (unsigned word = 0; word <= i % 5; ++word) {
        const unsigned which = (i * 2654435761U >> (7 + 3 * word)) % 4;
        source += std::string(word > 0 ? " " : "") + words[which];
        target += std::string(word > 0 ? " " : "") + words[3 - which];
      }
      source += "\n";
      target += "\n";
    }
    write_text_file(directory_ / "text.en", source);
    write_text_file(directory_ / "text.de", target);
  }
};

// Batches of a few pairs, which processes share unequally, or not at all.
TEST_F(PairGroupTraining, TranslatorsAreTrainedTogether) {
  TrainRequest request = this->request("one");
  request.data = {directory_ / "text.en", directory_ / "text.de"};
  request.settings = train_preset("translator-tiny");
  set_setting(request.settings, "channels", "16");
  request.settings.model.vocabulary_size = 300;
  request.settings.model.residual_dropout = request.settings.model.attention_dropout =
      request.settings.model.embedding_dropout = 0.1F;
  request.settings.batch_tokens = 12;
  request.settings.accumulation = 2;
  request.settings.steps = 8;
  request.settings.warmup_steps = 2;
  request.settings.evaluate_every = 4;
  request.settings.measure = Measure::none;
  request.settings.precision = kernels::Precision::f32;
  run(1, request);
  for (const int stage : {1, 2, 3}) {
    const std::string out = "three-" + std::to_string(stage);
    request.out = directory_ / out;
    request.settings.shard = stage;
    run(3, request);
    expect_same_run("one", out);
  }
}

}  // namespace
}  // namespace heed
