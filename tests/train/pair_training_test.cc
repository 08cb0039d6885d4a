// Runs on pairs: they learn, and one that was interrupted ends in the files of one that was not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <fstream>
#include <map>
#include <memory>
#include <set>

#include "base/expect_error.h"
#include "base/temporary_directory.h"
#include "checkpoint/safetensors.h"
#include "formats/model_files.h"
#include "train/first_model.h"
#include "train/run_directory.h"
#include "train/run_files.h"
#include "train/settings.h"
#include "train/stop_after.h"
#include "train/trainer.h"

namespace heed {
namespace {

using testing::expect_error;
using testing::expect_same_files;
using testing::StopAfter;
using testing::TemporaryDirectory;

// Sentences of one to five of eight words; the target says them in another language.
class PairTraining : public ::testing::Test {
 protected:
  PairTraining() {
    static constexpr const char* english[] = {"one",  "two", "three", "four",
                                              "five", "six", "seven", "eight"};
    static constexpr const char* german[] = {"eins",  "zwei",  "drei",   "vier",
                                             "fuenf", "sechs", "sieben", "acht"};
    std::string source, target;
    for (unsigned i = 0; i < 240; ++i) {
      std::string said;
      for (unsigned word = 0; word <= i % 5; ++word) {
        const unsigned which = (i * 2654435761U >> (7 + 3 * word)) % 8;
        source += std::string(word > 0 ? " " : "") + english[which];
        said += std::string(word > 0 ? " " : "") + german[which];
      }
      source += "\n";
      target += said + "\n";
    }
    write_text_file(directory_ / "text.en", source);
    write_text_file(directory_ / "text.de", target);
  }

  TrainSettings small() const {
    TrainSettings settings = train_preset("translator-tiny");
    set_setting(settings, "channels", "16");
    settings.model.vocabulary_size = 300;
    settings.model.residual_dropout = settings.model.attention_dropout = 0.1F;
    settings.batch_tokens = 100;
    settings.steps = 6;
    settings.warmup_steps = 2;
    settings.evaluate_every = 2;
    settings.checkpoint_every = 3;
    settings.keep_every = 4;
    settings.measure = Measure::none;
    settings.precision = kernels::Precision::f32;  // not the machine's choice: runs are compared
    return settings;
  }

  TrainRequest request(const TrainSettings& settings, const std::string& out) const {
    return {.settings = settings,
            .data = {directory_ / "text.en", directory_ / "text.de"},
            .out = directory_ / out,
            .cache = directory_ / "cache"};
  }

  TrainRequest resumed(TrainRequest request) const {
    const RunRecord record = RunDirectory(request.out).read_record();
    request.start = RunStart::resume;
    request.settings = record.settings;
    request.data.assign(record.data.begin(), record.data.end());
    request.validation = record.validation;
    request.validation_target = record.validation_target;
    request.observer = nullptr;
    request.stop = nullptr;
    return request;
  }

  // Stopped after `step`, and resumed.
  void expect_resumed_as_whole(const TrainRequest& whole, std::int64_t step) {
    SCOPED_TRACE(step);
    TrainRequest stopped = whole;
    stopped.out = whole.out.string() + "-stopped";
    StopAfter observer(step);
    stopped.observer = &observer;
    stopped.stop = &observer.flag;
    ASSERT_TRUE(train(stopped).interrupted);
    EXPECT_FALSE(RunDirectory(stopped.out).is_finished());
    train(resumed(stopped));
    expect_same_files(whole.out, stopped.out);
    std::filesystem::remove_all(stopped.out);
  }

  TemporaryDirectory directory_;
};

TEST_F(PairTraining, ResumesToTheBit) {
  std::vector<TrainSettings> variants(6, small());
  variants[1].accumulation = 3;
  variants[1].recompute = true;
  variants[1].average_checkpoints = 2;
  variants[2].precision = kernels::Precision::bf16;
  variants[2].encoder_layers = 2;
  variants[2].model.block.norm.placement = NormPlacement::post;
  variants[2].model.final_norm = false;
  variants[3].validation_fraction = 0;
  variants[3].average_checkpoints = 3;
  set_setting(variants[4], "positions", "relative");
  set_setting(variants[4], "relative_buckets", "8");
  set_setting(variants[5], "positions", "learned");
  for (std::size_t i = 0; i < variants.size(); ++i) {
    const TrainRequest whole = request(variants[i], "run-" + std::to_string(i));
    const TrainSummary summary = train(whole);
    EXPECT_EQ(summary.steps, 6);
    EXPECT_EQ(summary.validation.has_value(), variants[i].validation_fraction > 0);
    EXPECT_EQ(summary.averaged, variants[i].average_checkpoints);
    EXPECT_TRUE(RunDirectory(whole.out).is_finished());
    for (const std::int64_t step : {1, 2, 3, 4, 5}) expect_resumed_as_whole(whole, step);
  }
}

// A run that is killed leaves the state of its last checkpoint and newer files beside it.
TEST_F(PairTraining, ResumesFromAnOlderCheckpoint) {
  TrainSettings settings = small();
  settings.average_checkpoints = 2;
  const TrainRequest whole = request(settings, "run");
  train(whole);
  TrainRequest killed = request(settings, "killed");
  StopAfter observer(3);
  killed.observer = &observer;
  killed.stop = &observer.flag;
  train(killed);
  for (const char* newer : {"metrics.jsonl", "evaluations", "best", "checkpoints"}) {
    std::filesystem::copy(whole.out / newer, killed.out / newer,
                          std::filesystem::copy_options::recursive |
                              std::filesystem::copy_options::overwrite_existing);
  }
  train(resumed(killed));
  expect_same_files(whole.out, killed.out);
}

TEST_F(PairTraining, ResumesAMeasurementThatWasStopped) {
  TrainSettings settings = small();
  settings.measure = Measure::bleu;
  TrainRequest whole = request(settings, "run");
  std::atomic<bool> stop = false;
  std::int64_t calls = 0;
  std::int64_t stop_at = 0;  // none
  whole.translate = [&](const Transformer& model, const TranslationTokenizers&,
                        std::span<const std::string> sources, const TrainSettings&) {
    if (++calls == stop_at) {
      stop = true;
      fail(ErrorCode::interrupted, "stopped while translating");
    }
    // Another score for other parameters.
    return std::vector<std::string>(sources.size(),
                                    std::to_string(model.parameters().all().front()));
  };
  train(whole);
  EXPECT_EQ(calls, 3);
  for (const std::int64_t at : {1, 2, 3}) {
    TrainRequest stopped = whole;
    stopped.out = directory_ / "stopped";
    stopped.stop = &stop;
    calls = 0;
    stop_at = at;
    stop = false;
    EXPECT_TRUE(train(stopped).interrupted);
    stop = false;
    stop_at = 0;
    EXPECT_FALSE(train(resumed(stopped)).interrupted);
    expect_same_files(whole.out, stopped.out);
    std::filesystem::remove_all(stopped.out);
  }
}

// Neither the ends of lines nor a mark before the text change what is learned.
TEST_F(PairTraining, OfFilesFromOtherSystemsEndsInTheSameBytes) {
  const TrainRequest whole = request(small(), "run");
  train(whole);
  const auto converted = [&](const char* name) {
    std::string text = "\xEF\xBB\xBF";
    for (const char letter : read_text_file(directory_ / name)) {
      text += letter == '\n' ? "\r\n" : std::string(1, letter);
    }
    const std::filesystem::path file = directory_ / (std::string("other-") + name);
    write_text_file(file, text);
    return file;
  };
  TrainRequest other = request(small(), "other");
  other.data = {converted("text.en"), converted("text.de")};
  train(other);
  for (const char* name : {"last/model.safetensors", "last/tokenizer.json"}) {
    EXPECT_EQ(read_text_file(whole.out / name), read_text_file(other.out / name)) << name;
  }
}

// Pairs that are held out, whatever they say, change no token of the vocabulary.
TEST_F(PairTraining, LearnsTheVocabularyFromTrainingPairsAlone) {
  TrainSettings settings = small();
  settings.validation_fraction = 0.25;
  settings.steps = 1;
  train(request(settings, "run"));
  const auto replaced = [&](const char* name, const char* word) {
    const std::string text = read_text_file(directory_ / name);
    std::string changed;
    std::int64_t line = 0;
    for (std::size_t begin = 0; begin < text.size(); ++line) {
      const std::size_t end = text.find('\n', begin) + 1;
      changed += line < 180 ? text.substr(begin, end - begin) : std::string(word) + "\n";
      begin = end;
    }
    write_text_file(directory_ / name, changed);
  };
  replaced("text.en", "xylophone xylophone xylophone");
  replaced("text.de", "quarkquark quarkquark");
  train(request(settings, "other"));
  const char* const name = "last/tokenizer.json";
  EXPECT_EQ(read_text_file(directory_ / "run" / name), read_text_file(directory_ / "other" / name));
}

TEST_F(PairTraining, SaysHowManyPairsValidationNeeds) {
  std::string source, target;
  for (int i = 0; i < 10; ++i) {
    source += "one two\n";
    target += "eins zwei\n";
  }
  write_text_file(directory_ / "text.en", source);
  write_text_file(directory_ / "text.de", target);
  TrainSettings settings = small();
  settings.validation_fraction = 0.05;
  settings.measure = Measure::bleu;
  TrainRequest run = request(settings, "run");
  run.translate = [](const Transformer&, const TranslationTokenizers&,
                     std::span<const std::string> sources,
                     const TrainSettings&) { return std::vector<std::string>(sources.size()); };
  expect_error(
      ErrorCode::invalid_argument, [&] { train(run); }, "0.05 of 10 pairs", "at least 20 pairs",
      "validation_fraction=0.1 or more");
  run.settings.validation_fraction = 0;
  expect_error(
      ErrorCode::invalid_argument, [&] { train(run); }, "--valid-pairs",
      "validation_fraction above 0");
}

// What is learned is a function of the pairs, not of chance: a target word costs less than the
// ln 8 that guessing among the eight words costs.
TEST_F(PairTraining, LearnsToTranslate) {
  TrainSettings settings = train_preset("translator-tiny");
  settings.measure = Measure::none;
  settings.precision = kernels::Precision::f32;  // not the machine's choice
  settings.steps = 200;
  settings.average_checkpoints = 3;
  settings.evaluate_every = 20;
  const TrainRequest run = request(settings, "run");
  const TrainSummary summary = train(run);
  ASSERT_TRUE(summary.validation.has_value());
  EXPECT_EQ(summary.averaged, 3);
  EXPECT_EQ(summary.checkpoint, run.out / "average");
  EXPECT_LT(summary.validation->nats_per_token, 0.25 * std::log(8.0));
}

TEST_F(PairTraining, AveragesTheLastEvaluations) {
  TrainSettings settings = small();
  settings.average_checkpoints = 2;
  settings.evaluate_every = 1;
  const TrainRequest run = request(settings, "run");
  train(run);
  const RunDirectory directory(run.out);
  const auto read = [&](const char* name) {
    const SafetensorsFile file = SafetensorsFile::open(directory.evaluations() / name);
    const TensorEntry* entry = file.find("parameters");
    const auto* values = reinterpret_cast<const float*>(entry->bytes.data());
    return std::vector<float>(values, values + entry->bytes.size() / sizeof(float));
  };
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory.evaluations())) {
    files.insert(entry.path().filename().string());
  }
  EXPECT_THAT(files, ::testing::ElementsAre("00000005.safetensors", "00000006.safetensors"));
  const Transformer mean = load_transformer(StacksWanted::two, directory.average());
  const std::vector<float> a = read("00000005.safetensors"), b = read("00000006.safetensors");
  const std::span<const float> averaged = mean.parameters().all();
  ASSERT_EQ(averaged.size(), a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(averaged[i], static_cast<float>((static_cast<double>(a[i]) + b[i]) / 2));
  }
}

TEST_F(PairTraining, FineTunesATranslator) {
  const TrainRequest first = request(small(), "first");
  train(first);
  TrainRequest tuned = request(small(), "tuned");
  tuned.from = first.out / "last";
  tuned.settings.learning_rate = 1e-12;
  tuned.settings.schedule = Schedule::constant;
  train(tuned);
  const Transformer before = load_transformer(StacksWanted::two, first.out / "last");
  const Transformer after = load_transformer(StacksWanted::two, tuned.out / "last");
  EXPECT_TRUE(before.architecture() == after.architecture());
  const auto was = before.parameters().all(), is = after.parameters().all();
  for (std::size_t i = 0; i < was.size(); ++i) ASSERT_NEAR(was[i], is[i], 1e-6);
  train(tuned = resumed(tuned));
}

// A model of T5's shape and format goes on in both.
TEST_F(PairTraining, FineTunesAModelOfT5sShapeToTheBit) {
  const TrainRequest first = request(small(), "first");
  train(first);
  const Transformer other = load_transformer(StacksWanted::two, first.out / "last");
  Architecture shape = other.architecture();
  for (StackSpecification& stack : shape.stacks) {
    stack.block.norm.kind = NormKind::rms;
    set_biases(stack, Biases::none);
    AttentionSpecification& attention = stack.block.attention;
    attention.scale = 1;
    attention.positions = PositionKind::relative;
    attention.relative = {
        .buckets = 8, .max_distance = 12, .both_directions = stack.role == StackRole::encoder};
    stack.embedding_scale = 1;
    stack.unembedding_bias = false;
    stack.embedding_dropout = stack.attention_dropout = stack.residual_dropout = 0;
  }
  StackSpecification& decoder = shape.stacks.back();
  decoder.logit_scale = 1.0F / std::sqrt(static_cast<float>(decoder.channels));
  AttentionSpecification& cross = *decoder.block.cross_attention;
  cross.query_bias = cross.output_bias = false;
  cross.scale = 1;
  Transformer model(shape);
  model.parameters().initialize(3);
  const std::filesystem::path from = directory_ / "t5";
  save_transformer(model, from, tokenizer_companions(*load_tokenizer(first.out / "last")));

  TrainRequest tuned = request(small(), "tuned");
  tuned.from = from;
  set_fine_tuned_model(from, tuned.settings);
  train(tuned);
  EXPECT_TRUE(read_config_document(tuned.out / "last/config.json")["model_type"] == "t5");
  const Transformer after = load_transformer(StacksWanted::two, tuned.out / "last");
  for (const StackSite site : {StackSite::encoder, StackSite::decoder}) {
    const ParameterId table{.role = Role::position_bias, .site = site};
    const auto was = model.parameters().tensor(table).span();
    const auto is = after.parameters().tensor(table).span();
    EXPECT_FALSE(std::ranges::equal(was, is)) << "not trained";
  }
  for (const std::int64_t step : {1, 3, 4}) expect_resumed_as_whole(tuned, step);

  // T5's config.json has one rate of dropout.
  tuned.out = directory_ / "other";
  tuned.settings.model.residual_dropout = 0.1F;
  expect_error(
      ErrorCode::unsupported, [&] { train(tuned); }, "t5' cannot hold", "residual 0.1");
  EXPECT_FALSE(RunDirectory(tuned.out).holds_a_run());
  tuned.settings.model.attention_dropout = tuned.settings.model.embedding_dropout = 0.1F;
  train(tuned);
}

TEST_F(PairTraining, StopsEarlyWhereNothingImproves) {
  TrainSettings settings = small();
  settings.learning_rate = 1e-30;  // nothing changes
  settings.warmup_steps = 0;
  settings.steps = 1000;
  settings.early_stop = 3;
  const TrainRequest run = request(settings, "run");
  const TrainSummary summary = train(run);
  // The first evaluation, after step 2, is the best; three more are none better.
  EXPECT_EQ(summary.steps, 8);
  EXPECT_FALSE(summary.interrupted);
  EXPECT_TRUE(RunDirectory(run.out).is_finished());
  expect_resumed_as_whole(run, 5);
  EXPECT_EQ(train(resumed(run)).steps, 8);  // nothing is left to do
}

// Translations of which so many eighths are right, as the script says: at the first evaluation
// eighths[0], and so on. An evaluation is known again by its parameters.
class ScriptedTranslations {
 public:
  ScriptedTranslations(const std::filesystem::path& source, const std::filesystem::path& target,
                       std::vector<std::size_t> eighths)
      : eighths_(std::move(eighths)) {
    std::ifstream sources(source), targets(target);
    for (std::string from, to; std::getline(sources, from) && std::getline(targets, to);) {
      translation_[from] = to;
    }
  }

  std::vector<std::string> operator()(const Transformer& model, const TranslationTokenizers&,
                                      std::span<const std::string> sources, const TrainSettings&) {
    const float key = model.parameters().all().front();
    if (!seen_.contains(key)) seen_.emplace(key, eighths_.at(seen_.size()));
    const std::size_t eighths = seen_.at(key);
    std::vector<std::string> translations;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      translations.push_back(i % 8 < eighths ? translation_.at(sources[i]) : "falsch");
    }
    return translations;
  }

 private:
  std::vector<std::size_t> eighths_;
  std::map<float, std::size_t> seen_;
  std::map<std::string, std::string> translation_;
};

TEST_F(PairTraining, TheBestIsTheOneOfTheHighestBleu) {
  TrainSettings settings = small();
  settings.measure = Measure::bleu;
  settings.evaluate_every = settings.keep_every = 1;
  TrainRequest run = request(settings, "run");
  const auto follow_script = [&run] {
    const auto script = std::make_shared<ScriptedTranslations>(
        run.data[0], run.data[1], std::vector<std::size_t>{1, 5, 2, 5, 0, 4});
    run.translate = [script](const auto&... arguments) { return (*script)(arguments...); };
  };
  follow_script();
  train(run);
  const auto weights = [&](const std::filesystem::path& directory) {
    return read_text_file(directory / "model.safetensors");
  };
  const RunDirectory directory(run.out);
  // Of equals the first; the loss would have chosen another.
  EXPECT_TRUE(weights(directory.best()) == weights(directory.checkpoint(2)));
  std::map<double, std::int64_t> step_of_loss;
  std::ifstream metrics(run.out / "metrics.jsonl");
  for (std::string line; std::getline(metrics, line);) {
    const Json row = Json::parse(line);
    if (row.contains("val_loss")) step_of_loss[row["val_loss"]] = row["step"];
  }
  ASSERT_EQ(step_of_loss.size(), 6U);
  ASSERT_NE(step_of_loss.begin()->second, 2);
  for (const std::int64_t step : {1, 2, 3, 5}) expect_resumed_as_whole(run, step);

  // Without BLEU, that other one.
  TrainRequest by_loss = request(settings, "by-loss");
  by_loss.settings.measure = Measure::none;
  train(by_loss);
  EXPECT_TRUE(weights(by_loss.out / "best") ==
              weights(directory.checkpoint(step_of_loss.begin()->second)));

  follow_script();  // a run of other steps has other parameters
  run.settings.early_stop = 2;
  run.settings.steps = 1000;
  run.out = directory_ / "early";
  EXPECT_EQ(train(run).steps, 4);
  expect_resumed_as_whole(run, 3);
}

TEST_F(PairTraining, RefusesWhatItCannotTrain) {
  const auto refused = [&](ErrorCode code, const TrainRequest& request, const auto&... parts) {
    expect_error(
        code, [&] { train(request); }, parts...);
    EXPECT_FALSE(RunDirectory(request.out).holds_a_run());
  };
  // What no file format can hold is known before the texts are read, and named.
  TrainRequest run = request(small(), "run");
  set_setting(run.settings, "positions", "rotary");
  set_setting(run.settings, "gated", "true");
  set_setting(run.settings, "label_smoothing", "0.2");
  refused(ErrorCode::unsupported, run, "no file format", "change gated=true, positions=rotary");
  EXPECT_FALSE(std::filesystem::exists(directory_ / "cache"));
  run = request(small(), "run");
  run.settings.model.context = 4;
  refused(ErrorCode::invalid_argument, run, "text.en', line ", "context of the encoder allows 4");
  run = request(small(), "run");
  run.settings.batch_tokens = 5;
  refused(ErrorCode::invalid_argument, run, "line ", "'batch_tokens' allows 5");
  run = request(small(), "run");
  run.settings.measure = Measure::bleu;
  refused(ErrorCode::unsupported, run, "measure");
  run = request(small(), "run");
  run.settings.tokenizer = "char";
  refused(ErrorCode::invalid_argument, run, "tokenizer", "char");
  run = request(small(), "run");
  run.settings.measure = Measure::induction;
  refused(ErrorCode::invalid_argument, run, "induction", "language_model");
  run = request(small(), "run");
  run.settings.batch_tokens = 1 << 24;
  run.settings.model.layers = 32;
  refused(ErrorCode::out_of_memory, run, "GiB of memory", "recompute=true", "batch_tokens=");
  run = request(small(), "run");
  set_setting(run.settings, "embedding_scale", "3");
  refused(ErrorCode::unsupported, run, "change embedding_scale=3.0");
  run = request(small(), "run");
  run.data.pop_back();
  refused(ErrorCode::invalid_argument, run, "line 1", "0 tabs");
}

TEST_F(PairTraining, RefusesOtherPairsOnResume) {
  const TrainRequest run = request(small(), "run");
  StopAfter observer(2);
  TrainRequest stopped = run;
  stopped.observer = &observer;
  stopped.stop = &observer.flag;
  train(stopped);
  std::string text = read_text_file(directory_ / "text.de");
  write_text_file(directory_ / "text.de", "neu" + text);
  expect_error(
      ErrorCode::conflict, [&] { train(resumed(run)); }, "other text", "text.en");
}

}  // namespace
}  // namespace heed
