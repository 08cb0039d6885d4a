// A run that was interrupted and resumed leaves the files of one that was not, whatever it trains.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <set>

#include "base/expect_error.h"
#include "base/files.h"
#include "base/temporary_directory.h"
#include "base/threads.h"
#include "formats/model_files.h"
#include "model/presets.h"
#include "tokenizer/train_byte_pair.h"
#include "train/run_directory.h"
#include "train/run_files.h"
#include "train/settings.h"
#include "train/stop_after.h"
#include "train/trainer.h"

namespace heed {
namespace {

using testing::expect_error;
using testing::expect_same_files;
using testing::files_of;
using testing::StopAfter;
using testing::TemporaryDirectory;

class Notices : public TrainObserver {
 public:
  void noticed(const std::string& sentence) override { sentences.push_back(sentence); }
  std::vector<std::string> sentences;
};

class Resume : public ::testing::Test {
 protected:
  Resume() {
    std::string text;
    for (int i = 0; i < 40; ++i) {
      text += "The quick brown fox number " + std::to_string(i * 7 % 11) + " jumps.<|endoftext|>";
    }
    write_text_file(directory_ / "text.txt", text);
    const std::string_view learned = text;
    train_byte_pair_tokenizer(std::span(&learned, 1), {.vocabulary_size = 280})
        ->save(directory_ / "tokenizer");
  }

  // A preset's run in small: its switches, schedule and windows with few steps of a tiny shape.
  TrainSettings shrunk(const std::string& preset) const {
    TrainSettings settings = train_preset(preset);
    StackSpecification& model = settings.model;
    model.layers = 1;
    model.block.attention.query_heads = model.block.attention.key_value_heads = 2;
    model.channels = 16;
    model.block.attention.head_size = model.channels / model.heads();
    model.block.feed_forward.width = 32;
    if (!model.block.attention.mask.windows.empty()) model.block.attention.mask.windows = {5};
    model.context = 12;
    model.vocabulary_size = 270;
    settings.sequence_length = settings.sequence_length > 0 ? 10 : 0;
    settings.steps = 5;
    settings.batch_size = 2;
    settings.accumulation = std::min<std::int64_t>(settings.accumulation, 2);
    settings.warmup_steps = 2;
    settings.learning_rate = 1e-2;
    settings.validation_fraction = 0.2;
    settings.evaluate_every = 2;
    settings.evaluation_batches = 1;
    settings.checkpoint_every = 2;
    settings.keep_every = 4;
    settings.sample_every = 3;
    settings.precision = kernels::Precision::f32;  // not the machine's choice: runs are compared
    return settings;
  }

  TrainRequest request(const TrainSettings& settings, const std::string& out) const {
    return {.settings = settings,
            .data = {directory_ / "text.txt"},
            .out = directory_ / out,
            .cache = directory_ / "cache",
            .measure =
                [](const Transformer& transformer, const Tokenizer& tokenizer) {
                  return OrderedJson{{"first", transformer.parameters().all().front()},
                                     {"end_of_text", transformer.specification().end_of_text},
                                     {"vocabulary", tokenizer.vocabulary_size()}};
                },
            .sample =
                [](const Transformer& transformer, const Tokenizer&) {
                  return std::to_string(transformer.parameters().all().back());
                }};
  }

  // As the command line resumes: with nothing but what the run recorded.
  TrainRequest resumed(TrainRequest request) const {
    const RunRecord record = RunDirectory(request.out).read_record();
    request.start = RunStart::resume;
    request.settings = record.settings;
    request.from = record.from;
    request.validation = record.validation;
    request.observer = nullptr;
    request.stop = nullptr;
    return request;
  }

  void stop_after(TrainRequest request, std::int64_t step) const {
    StopAfter observer(step);
    request.observer = &observer;
    request.stop = &observer.flag;
    ASSERT_TRUE(train(request).interrupted);
  }

  void expect_resumed_as_whole(const TrainRequest& whole, std::int64_t step) {
    train(whole);
    TrainRequest stopped = whole;
    stopped.out = whole.out.string() + "-stopped";
    stop_after(stopped, step);
    train(resumed(stopped));
    expect_same_files(whole.out, stopped.out);
    std::filesystem::remove_all(stopped.out);
  }

  TemporaryDirectory directory_;
};

TEST_F(Resume, EveryPresetTokenizerAndWindowKindEndsInTheSameFiles) {
  std::int64_t step = 0;
  std::set<std::string> seen;
  for (const ModelPreset& preset : model_presets()) {
    // In small, those that differ in shape alone are the same.
    if (!seen.insert(settings_to_json(shrunk(preset.name)).dump()).second) continue;
    for (const std::string& tokenizer :
         {std::string("char"), std::string("bpe"), (directory_ / "tokenizer").string()}) {
      for (const Windows windows : {Windows::stream, Windows::documents}) {
        const std::string out = fmt::format("run-{}", step);
        SCOPED_TRACE(fmt::format("{} {} {} in {}", preset.name, tokenizer,
                                 windows == Windows::stream ? "stream" : "documents", out));
        TrainSettings settings = shrunk(preset.name);
        settings.tokenizer = tokenizer;
        settings.windows = windows;
        settings.recompute = step % 2 == 1;
        if (step % 3 == 2) settings.precision = kernels::Precision::bf16;
        expect_resumed_as_whole(request(settings, out), 1 + step++ % 4);
        std::filesystem::remove_all(directory_ / out);
      }
    }
  }
}

TEST_F(Resume, KeepsTheEndOfTextToken) {
  TrainSettings settings = shrunk("starter");
  settings.tokenizer = (directory_ / "tokenizer").string();
  const TrainRequest run = request(settings, "run");
  stop_after(run, 2);
  const std::int64_t before =
      load_transformer(StacksWanted::one, run.out / "last").specification().end_of_text;
  EXPECT_GE(before, 0);
  train(resumed(run));
  EXPECT_EQ(load_transformer(StacksWanted::one, run.out / "last").specification().end_of_text,
            before);
}

// Fine-tuning, of models with and without an unembedding bias, and with an end-of-text token.
TEST_F(Resume, OfFineTuningEndsInTheSameFiles) {
  for (const bool head_bias : {false, true}) {
    for (const Windows windows : {Windows::stream, Windows::documents}) {
      const std::string base = fmt::format("base-{}-{}", head_bias, static_cast<int>(windows));
      TrainSettings settings = shrunk("starter");
      settings.tokenizer = "bpe";
      settings.model.unembedding_bias = head_bias;
      train(request(settings, base));
      TrainRequest tuned = request(settings, "tuned-" + base);
      tuned.from = directory_ / base / "last";
      tuned.settings.model = read_stack_config(tuned.from / config_file_name);
      tuned.settings.model.residual_dropout = 0.1F;
      tuned.settings.windows = windows;
      expect_resumed_as_whole(tuned, 3);
    }
  }
}

TEST_F(Resume, WithAValidationFileEndsInTheSameFiles) {
  write_text_file(directory_ / "validation.txt", "The quick brown fox sat. The fox jumps again.");
  TrainRequest run = request(shrunk("shakespeare-char"), "run");
  run.validation = directory_ / "validation.txt";
  expect_resumed_as_whole(run, 3);

  write_text_file(directory_ / "validation.txt", "The quick brown fox jumps. The fox sat again.");
  expect_error(
      ErrorCode::conflict, [&] { train(resumed(run)); }, "other validation text", "validation.txt");
}

// A finished run goes on, and ends in the weights of one that had as many steps from the beginning
// where the schedule does not depend on them.
TEST_F(Resume, WithMoreStepsGoesOnWhereItEnded) {
  TrainSettings settings = shrunk("shakespeare-char");
  settings.schedule = Schedule::inverse_sqrt;
  settings.steps = 4;
  const TrainRequest run = request(settings, "run");
  train(run);
  TrainRequest longer = resumed(run);
  longer.settings.steps = 9;
  StopAfter observer(6);
  longer.observer = &observer;
  longer.stop = &observer.flag;
  EXPECT_TRUE(train(longer).interrupted);
  // From here on the run has as many.
  EXPECT_EQ(RunDirectory(run.out).read_record().settings.steps, 9);
  EXPECT_FALSE(RunDirectory(run.out).is_finished());
  EXPECT_EQ(train(resumed(run)).steps, 9);
  settings.steps = 9;
  const TrainRequest whole = request(settings, "whole");
  train(whole);
  for (const char* name : {"last/model.safetensors", "metrics.jsonl"}) {
    EXPECT_EQ(files_of(run.out).at(name), files_of(whole.out).at(name)) << name;
  }
}

// The schedule is that of the new number of steps, also where it had come to its end.
TEST_F(Resume, WithOtherStepsFollowsTheirSchedule) {
  class Rates : public TrainObserver {
   public:
    void stepped(const StepReport& report) override { last = report.learning_rate; }
    double last = 0;
  };
  TrainSettings settings = shrunk("shakespeare-char");
  settings.schedule = Schedule::linear;
  settings.decay_steps = 0;
  settings.min_learning_rate = 0;
  const TrainRequest run = request(settings, "run");
  train(run);
  TrainRequest longer = resumed(run);
  longer.settings.steps = 8;
  Rates rates;
  longer.observer = &rates;
  train(longer);
  EXPECT_DOUBLE_EQ(rates.last, 1e-2 * (1 - 5.0 / 6));  // after step 7 of 8, two of them warm-up
  TrainRequest shorter = resumed(run);
  shorter.settings.steps = 3;
  expect_error(
      ErrorCode::conflict, [&] { train(shorter); }, "has done 8 steps", "steps=3");
  EXPECT_EQ(RunDirectory(run.out).read_record().settings.steps, 8);
}

// Whatever is wrong with it, a text that changed is said to have changed.
TEST_F(Resume, NamesATextThatChanged) {
  const TrainRequest run = request(shrunk("shakespeare-char"), "run");
  train(run);
  const std::string text = read_text_file(directory_ / "text.txt");
  for (const std::string& changed :
       {"~" + text, text + text, text.substr(0, 1), std::string(), text + "\xFF"}) {
    SCOPED_TRACE(changed.size());
    write_text_file(directory_ / "text.txt", changed);
    expect_error(
        ErrorCode::conflict, [&] { train(resumed(run)); }, "was started on other text", "text.txt");
  }
  write_text_file(directory_ / "text.txt", text);
  EXPECT_EQ(train(resumed(run)).steps, 5);
}

// Its text was read when the run began: what is appended is not a part of it.
TEST_F(Resume, AFileThatGrowsMeanwhileChangesNothing) {
  class Writer : public TrainObserver {
   public:
    explicit Writer(std::filesystem::path file) : file_(std::move(file)) {}
    void stepped(const StepReport&) override {
      std::ofstream(file_, std::ios::app) << "And the fox goes on.<|endoftext|>";
    }

   private:
    std::filesystem::path file_;
  };
  const TrainRequest whole = request(shrunk("starter"), "whole");
  train(whole);
  Writer writer(directory_ / "text.txt");
  TrainRequest run = request(shrunk("starter"), "run");
  run.observer = &writer;
  train(run);
  expect_same_files(whole.out, run.out);
  expect_error(
      ErrorCode::conflict, [&] { train(resumed(run)); }, "was started on other text");
}

// Held-out text adds nothing to a vocabulary that is learned.
TEST_F(Resume, TheVocabularyIsThatOfTheTrainingText) {
  for (const char* tokenizer : {"char", "bpe"}) {
    SCOPED_TRACE(tokenizer);
    TrainRequest run = request(shrunk("starter"), std::string("run-") + tokenizer);
    run.settings.tokenizer = tokenizer;
    write_text_file(directory_ / "validation.txt", "The quick zzzz fox zzzz jumps {zzzz}\xC3\xA9.");
    run.validation = directory_ / "validation.txt";
    Notices notices;
    run.observer = &notices;
    train(run);
    TrainRequest other = request(run.settings, std::string("other-") + tokenizer);
    write_text_file(directory_ / "other.txt", "The quick brown fox jumps.");
    other.validation = directory_ / "other.txt";
    train(other);
    EXPECT_EQ(read_text_file(run.out / "last/tokenizer.json"),
              read_text_file(other.out / "last/tokenizer.json"));
    const bool is_char = tokenizer == std::string("char");
    ASSERT_EQ(notices.sentences.size(), is_char ? 1U : 0U);
    if (!is_char) continue;
    EXPECT_THAT(notices.sentences.front(), ::testing::HasSubstr("15 characters of the validation"));
    EXPECT_EQ(train(resumed(run)).steps, 5);  // the same text again
  }
}

// A kill before the first checkpoint: the run starts again, with the tokenizer that it began with.
TEST_F(Resume, BeforeTheFirstCheckpointFindsATokenizerFromAnywhere) {
  TrainSettings settings = shrunk("shakespeare-char");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(directory_.path());
  settings.tokenizer = "tokenizer";
  const TrainRequest run = request(settings, "run");
  train(run);
  const auto files = files_of(run.out);
  std::filesystem::current_path(before);
  std::filesystem::remove_all(run.out / "last");
  std::filesystem::remove_all(run.out / "best");
  std::filesystem::remove_all(run.out / "checkpoints");
  std::filesystem::remove(run.out / "metrics.jsonl");
  train(resumed(run));
  EXPECT_TRUE(files_of(run.out) == files);
}

TEST_F(Resume, WithOtherThreadsIsNoted) {
  const TrainRequest run = request(shrunk("shakespeare-char"), "run");
  const int threads = thread_count();
  set_thread_count(1);
  stop_after(run, 2);
  Notices same;
  Notices other;
  TrainRequest again = resumed(run);
  again.observer = &same;
  std::atomic<bool> stop{true};
  again.stop = &stop;
  train(again);
  set_thread_count(2);
  again.observer = &other;
  train(again);
  set_thread_count(threads);
  EXPECT_TRUE(same.sentences.empty());
  ASSERT_EQ(other.sentences.size(), 1U);
  EXPECT_THAT(other.sentences.front(),
              ::testing::HasSubstr("began with 1 thread and is resumed with 2"));
}

TEST_F(Resume, RemovesWhatKilledProcessesLeft) {
  TrainRequest run = request(shrunk("shakespeare-char"), "run");
  run.settings.keep_every = 1;
  stop_after(run, 3);
  for (const char* path : {"metrics.jsonl.partial-1-0", "run.json.partial-999999-3",
                           "last/model.safetensors.partial-1-1", "best/config.json.partial-1-2",
                           "checkpoints/00000001/tokenizer.json.partial-1-3"}) {
    std::ofstream(run.out / path) << "half";
  }
  make_directory(run.out / "checkpoints" / "00000009.partial-checkpoint");
  train(resumed(run));
  for (const auto& entry : std::filesystem::recursive_directory_iterator(run.out)) {
    EXPECT_EQ(entry.path().string().find(".partial-"), std::string::npos) << entry.path();
  }
}

TEST_F(Resume, RecordsASentenceOfTheRunsOwnText) {
  const TrainRequest run = request(shrunk("shakespeare-char"), "run");
  train(run);
  const std::string sentence = RunDirectory(run.out).read_record().sentence;
  EXPECT_FALSE(sentence.empty());
  const auto tokenizer = load_tokenizer(run.out / "last");
  EXPECT_LE(std::ssize(tokenizer->encode(sentence)), 12);  // fits the context
  EXPECT_NE(read_text_file(run.data.front()).find(sentence), std::string::npos);
}

// Every field of a description is recorded: one that is added to its structs must be added here.
TEST(RunRecord, HoldsEveryFieldOfTheModel) {
  TrainSettings settings;
  auto& [role, vocabulary_size, context, channels, layers, block, embedding_scale, embedding_norm,
         token_types, final_norm, has_unembedding, tied_unembedding, unembedding_bias, logit_scale,
         logit_cap, prediction_head, initial_deviation, embedding_dropout, attention_dropout,
         residual_dropout, end_of_text] = settings.model;
  embedding_scale = 3.5F, embedding_norm = true, token_types = 2, final_norm = false;
  logit_scale = 0.25F, logit_cap = 7, prediction_head = true;
  vocabulary_size = 11, context = 12, channels = 15, layers = 3;
  initial_deviation = 0.03F, tied_unembedding = false, unembedding_bias = true;
  embedding_dropout = 0.1F, attention_dropout = 0.2F, residual_dropout = 0.3F, end_of_text = 4;
  auto& [norm, attention, cross_attention, feed_forward, residual] = block;
  norm = {.kind = NormKind::rms, .placement = NormPlacement::post, .epsilon = 1e-4F, .bias = false};
  feed_forward = {.width = 17, .activation = Activation::silu, .gated = true, .bias = false};
  residual = ResidualKind::parallel;
  auto& [query_heads, key_value_heads, head_size, mask, positions, rotary, relative, sinusoids,
         query_bias, output_bias, scale, query_key_norm, head_norms, soft_cap] = attention;
  head_norms = HeadNormExtent::all_heads;
  relative = {.buckets = 16, .max_distance = 64}, sinusoids = SinusoidOrder::halves;
  query_heads = 6, key_value_heads = 3, head_size = 8, query_bias = true, output_bias = false;
  mask = {.kind = MaskKind::banded, .windows = {0, 5, 7}};
  positions = PositionKind::rotary, query_key_norm = true;
  rotary = {.base = 500,
            .fraction = 0.5,
            .scaling = {.kind = RotaryScalingKind::llama3,
                        .factor = 4,
                        .original_context = 6,
                        .low_frequency_factor = 1.5,
                        .high_frequency_factor = 3},
            .local_base = 50};
  const TemporaryDirectory directory;
  RunDirectory(directory.path()).create({.settings = settings});
  const TrainSettings read = RunDirectory(directory.path()).read_record().settings;
  EXPECT_TRUE(read.model == settings.model);
}

}  // namespace
}  // namespace heed
