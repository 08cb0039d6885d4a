// A translator's training steps and greedy decoding, timed on request: heed's side of
// translator_beside_pytorch.py.
//
//   translator_beside_pytorch MODEL TRAIN_SOURCE TRAIN_TARGET TEST_SOURCE
//                             BATCHES SENTENCES THREADS
//
// First prints what is measured as one line of JSON: the token ids of BATCHES batches of the
// training pairs, as `heed train` cuts them, and of the first SENTENCES test sources. Then answers
// each line of standard input with one of JSON:
//
//   losses           the mean loss of each batch, without dropout
//   train f32|bf16   a step on every batch: the seconds of all
//   greedy           the seconds of decoding the test sources
//   translations     what that gives
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/threads.h"
#include "engine/loaded_model.h"
#include "formats/model_files.h"
#include "scoring/metric.h"
#include "train/optimizer.h"
#include "train/pair_data.h"

namespace heed {
namespace {

// As `heed train --config multi30k-en-de` has them.
constexpr std::int64_t batch_tokens = 4096;
constexpr float dropout = 0.3F;
constexpr float smoothing = 0.1F;
constexpr std::int64_t loss_rows = 1024;

struct Files {
  std::filesystem::path model;
  std::vector<std::filesystem::path> pairs;
  std::filesystem::path test;
};

// Small steps: only their time matters.
TrainSettings settings_of(const StackSpecification& decoder) {
  TrainSettings settings{.model = decoder};
  settings.schedule = Schedule::constant;
  settings.learning_rate = settings.min_learning_rate = 1e-6;
  settings.warmup_steps = 0;
  settings.weight_decay = 0;
  return settings;
}

class TrainedTranslator {
 public:
  TrainedTranslator(const std::filesystem::path& path, kernels::Precision precision)
      : model_(load_transformer(StacksWanted::two, path)),
        optimizer_(parameter_layout(model_.architecture()),
                   settings_of(model_.architecture().decoder())),
        gradients_(model_.architecture()),
        buffers_(model_.architecture(), Keep::every_block) {
    model_.parameters().set_precision(precision);
    model_.set_dropout(dropout, 0, dropout);
    buffers_.loss() =
        VocabularyLoss(model_.architecture().decoder().vocabulary_size, smoothing, loss_rows);
  }

  const Architecture& architecture() const { return model_.architecture(); }

  double mean_loss(const PairBatch& batch) { return model_.loss(batch, buffers_).mean(); }

  void step(const PairRows& rows) {
    gradients_.clear();
    model_.loss_and_gradients(
        rows.batch(),
        {.scale = 1.0F / static_cast<float>(rows.targets()),
         .dropout = {.active = true, .seed = 1, .pass = static_cast<std::uint64_t>(steps_)}},
        buffers_, gradients_);
    optimizer_.update(steps_++, gradients_, model_.parameters());
  }

 private:
  Transformer model_;
  Optimizer optimizer_;
  Gradients gradients_;
  PairBuffers buffers_;
  std::int64_t steps_ = 0;
};

OrderedJson sequences_json(const TokenRows& rows) {
  OrderedJson list = OrderedJson::array();
  for (std::size_t b = 0; b + 1 < rows.row_starts.size(); ++b) {
    const auto begin = static_cast<std::size_t>(rows.row_starts[b]);
    const auto end = static_cast<std::size_t>(rows.row_starts[b + 1]);
    const auto own = rows.tokens.subspan(begin, end - begin);
    list.push_back(std::vector<std::int32_t>(own.begin(), own.end()));
  }
  return list;
}

class HeedsSide {
 public:
  HeedsSide(const Files& files, std::int64_t batches, std::int64_t sentences)
      : f32_(files.model, kernels::Precision::f32),
        bf16_(files.model, kernels::Precision::bf16),
        translator_(load_translator(files.model.string())) {
    const PairText text(files.pairs);
    const PairData data(text, {0, text.size()}, translator_.tokenizers(), {});
    PairOrder order(data, batch_tokens, 1);
    DataPosition position;
    const auto start = static_cast<std::int32_t>(f32_.architecture().decoder_start);
    for (std::int64_t batch = 0; batch < batches; ++batch) {
      batches_.emplace_back().read(data, order.next(position), start);
    }
    const std::string name = files.test.string();
    const std::string content =
        files.test.extension() == ".gz" ? read_gzip_file(files.test) : read_text_file(files.test);
    for (const std::string& line : scoring::read_sentences(content, name)) {
      if (std::ssize(sources_.row_starts) <= sentences) {
        sources_.add(translator_.encode_source(line, "a line of '" + name + "'"));
      }
    }
  }

  OrderedJson description() const {
    OrderedJson batches = OrderedJson::array();
    for (const PairRows& rows : batches_) {
      const PairBatch batch = rows.batch();
      batches.push_back({{"source", sequences_json(batch.source)},
                         {"target", sequences_json(batch.target)},
                         {"next", sequences_json({batch.next, batch.target.row_starts})}});
    }
    return {{"dropout", dropout},
            {"label_smoothing", smoothing},
            {"batches", std::move(batches)},
            {"test", sequences_json(sources_.rows())}};
  }

  OrderedJson answer(const std::string& command) {
    if (command == "losses") {
      OrderedJson losses = OrderedJson::array();
      for (const PairRows& rows : batches_) losses.push_back(f32_.mean_loss(rows.batch()));
      return losses;
    }
    if (command == "train f32") return seconds_of([&] { train(f32_); });
    if (command == "train bf16") return seconds_of([&] { train(bf16_); });
    if (command == "greedy") return seconds_of([&] { translate(); });
    require(command == "translations", ErrorCode::invalid_argument, "there is no command '{}'",
            command);
    OrderedJson translations = OrderedJson::array();
    for (const auto& found : translate()) translations.push_back(found.front().tokens);
    return translations;
  }

 private:
  template <class Work>
  static double seconds_of(Work&& work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  void train(TrainedTranslator& model) {
    for (const PairRows& rows : batches_) model.step(rows);
  }
  std::vector<std::vector<TokenHypothesis>> translate() const {
    return translator_.translate(sources_, {.beams = 1});
  }

  TrainedTranslator f32_;
  TrainedTranslator bf16_;
  LoadedModel translator_;
  std::deque<PairRows> batches_;
  SourceTokens sources_;
};

void serve(int count, char** arguments) {
  require(count == 8, ErrorCode::invalid_argument,
          "expected MODEL TRAIN_SOURCE TRAIN_TARGET TEST_SOURCE BATCHES SENTENCES THREADS");
  set_thread_count(std::atoi(arguments[7]));
  HeedsSide side({.model = model_path(arguments[1]),
                  .pairs = {arguments[2], arguments[3]},
                  .test = arguments[4]},
                 std::atoll(arguments[5]), std::atoll(arguments[6]));
  std::cout << side.description().dump() << std::endl;
  for (std::string command; std::getline(std::cin, command);) {
    std::cout << side.answer(command).dump() << std::endl;
  }
}

}  // namespace
}  // namespace heed

int main(int count, char** arguments) {
  try {
    heed::serve(count, arguments);
  } catch (const std::exception& error) {
    fmt::print(stderr, "translator_beside_pytorch: {}\n", error.what());
    return 1;
  }
}
