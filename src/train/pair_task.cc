// Training on pairs: an encoder reads the source, and a decoder predicts the target.
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "base/error.h"
#include "base/memory.h"
#include "base/progress.h"
#include "formats/model_files.h"
#include "kernels/kernels.h"
#include "kernels/prepared_weight.h"
#include "model/parameter_count.h"
#include "model/transformer.h"
#include "scoring/bleu.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/train_byte_pair.h"
#include "train/evaluation.h"
#include "train/first_model.h"
#include "train/pair_data.h"
#include "train/run.h"
#include "train/settings.h"
#include "train/training_task.h"
#include "train/training_words.h"

namespace heed {
namespace {

struct PairEvaluationOptions {
  std::int64_t batch_tokens = 4096;
  std::int64_t batches = 0;  // evenly spread over those of similar lengths; 0: all of them
  StopFlag stop = nullptr;
  Group* group = nullptr;  // as in EvaluationOptions
};

std::vector<std::int64_t> by_length(const PairData& data) {
  std::vector<std::int64_t> pairs(static_cast<std::size_t>(data.size()));
  std::iota(pairs.begin(), pairs.end(), 0);
  std::ranges::stable_sort(pairs, {}, [&](std::int64_t pair) {
    return std::max(data.length(PairSide::source, pair), data.length(PairSide::target, pair));
  });
  return pairs;
}

// The mean loss of target tokens, their ends included, without label smoothing; its error is from
// the spread between sentences. Throws Error{interrupted} when stopped.
Evaluation evaluate_pairs(const Transformer& model, const PairData& data,
                          const PairEvaluationOptions& options) {
  const PairBatches batches = cut_batches(data, by_length(data), options.batch_tokens);
  const std::int64_t wanted =
      options.batches > 0 ? std::min(options.batches, batches.count()) : batches.count();
  PairBuffers buffers(model.architecture(), Keep::one_block, model.device());
  buffers.loss().set_stop(options.stop);
  StopProbe stop(options.stop);
  PairRows rows;
  return evaluate_in_turn(options.group, wanted, [&](std::int64_t i) {
    require(!stop_requested(options.stop), ErrorCode::interrupted, "stopped while evaluating");
    rows.read(data, batches.batch(i * batches.count() / wanted),
              static_cast<std::int32_t>(model.architecture().decoder_start));
    const PairBatch batch = rows.batch();
    model.loss(batch, buffers, options.stop != nullptr ? &stop : nullptr);
    const std::span<const float> losses = buffers.losses();
    std::vector<WindowLoss> result;
    for (std::size_t b = 0; b + 1 < batch.target.row_starts.size(); ++b) {
      const std::int64_t begin = batch.target.row_starts[b], end = batch.target.row_starts[b + 1];
      result.push_back(
          {std::accumulate(losses.begin() + begin, losses.begin() + end, 0.0), end - begin});
    }
    return result;
  });
}

// The model that a run begins with, as settings describe it, with the vocabulary and special tokens
// of the tokenizer. Throws Error{invalid_argument} for a tokenizer that has no token with which a
// decoder's text can begin.
Architecture translator_architecture(const TrainSettings& settings,
                                     const TranslationTokenizers& tokenizers) {
  const auto start =
      tokenizers.target->start() ? tokenizers.target->start() : tokenizers.target->padding();
  require(start.has_value(), ErrorCode::invalid_argument,
          "the tokenizer '{}' has neither <s> nor <pad>, one of which a decoder's text begins with",
          settings.tokenizer);
  require(tokenizers.source == tokenizers.target, ErrorCode::unsupported,
          "'{}' holds a tokenizer for each side: a translator that is trained from scratch has one "
          "for both",
          settings.tokenizer);
  Architecture architecture = pair_architecture(settings);
  architecture.padding = tokenizers.target->padding().value_or(-1);
  architecture.decoder_start = *start;
  return architecture;
}

// That of a directory, with the dropout of `settings`. Throws Error{unsupported} for quantised
// weights and Error{corrupt_data} for a tokenizer with more tokens than the model.
Transformer translator_to_fine_tune(const std::filesystem::path& from,
                                    const TrainSettings& settings,
                                    const TranslationTokenizers& tokenizers) {
  Transformer model = load_transformer(StacksWanted::two, from);
  if (model.parameters().are_in_blocks()) {
    model.parameters().prepare(kernels::WeightFormat::f32);
  }
  const kernels::WeightFormat stored = model.parameters().prepared_format();
  require(stored == kernels::WeightFormat::f32, ErrorCode::unsupported,
          "'{}' holds weights in {}, which cannot be trained: take the model that it was "
          "converted from",
          from.string(), kernels::weight_format_name(stored));
  const Architecture& architecture = model.architecture();
  for (const auto& [tokenizer, stack] :
       {std::pair(tokenizers.source.get(), &architecture.encoder()),
        std::pair(tokenizers.target.get(), &architecture.decoder())}) {
    require(tokenizer->vocabulary_size() <= stack->vocabulary_size, ErrorCode::corrupt_data,
            "'{}': its tokenizer has {} tokens, its model only {}", from.string(),
            tokenizer->vocabulary_size(), stack->vocabulary_size);
  }
  require(architecture.decoder_start >= 0, ErrorCode::unsupported,
          "'{}' does not say which token a decoder's text begins with", from.string());
  model.set_dropout(settings.model.embedding_dropout, settings.model.attention_dropout,
                    settings.model.residual_dropout);
  require_writable_dropout(architecture, from);
  return model;
}

std::vector<std::filesystem::path> validation_files(const TrainRequest& request) {
  std::vector<std::filesystem::path> files;
  for (const auto& file : {request.validation, request.validation_target}) {
    if (!file.empty()) files.push_back(file);
  }
  return files;
}

std::vector<std::filesystem::path> training_files(const TrainRequest& request) {
  require(!request.data.empty(), ErrorCode::invalid_argument,
          "the task 'pairs' needs pairs of texts (--pairs)");
  return request.data;
}

// Logits of so many rows, of 8,000 tokens, are 33 MB: small enough for a cache that holds the most
// of them, and enough rows to pack the unembedding for.
constexpr std::int64_t chunk_rows = 1024;

class PairTask final : public TrainingTask {
 public:
  explicit PairTask(const TaskContext& context);

  void prepare_text(SavedState saved) override;
  void prepare_model(SavedState saved) override;
  RunRecord record() const override;
  RunDescription description() const override;
  Parameters& parameters() override { return model_->parameters(); }
  void place() override { model_->place(request_.device); }
  Gradients& gradients() override { return *gradients_; }
  double flops_per_token() const override;
  StepLoss compute_gradients(std::int64_t step, DataPosition& position) override;
  bool has_validation() const override { return validation_.has_value(); }
  Evaluation evaluate(std::int64_t batches) const override;
  std::optional<OrderedJson> measure() const override;
  std::optional<std::string> sample() const override { return std::nullopt; }
  void save_model(const std::filesystem::path& directory,
                  const RunPosition& position) const override {
    save_transformer(*model_, directory, with_reading(files_, reading(position)));
  }
  void read_along() const override { read_weights(*model_, files_); }

 private:
  void split_validation();
  std::optional<ReadingRecord> reading(const RunPosition& position) const;
  std::string how_to_get_validation() const;
  TranslationTokenizers learn_vocabulary() const;
  void require_lengths(const PairData& data) const;
  void make_model(SavedState saved);

  const TrainRequest& request_;
  TrainSettings& settings_;
  TrainObserver& observer_;
  const RunDirectory& directory_;
  Group& group_;
  ShardedModel& shards_;
  PairText text_;
  std::optional<PairText> validation_text_;  // absent: of text_, or none
  PairRange training_range_;
  PairRange validation_range_;
  TranslationTokenizers tokenizers_;
  SourceFiles files_;  // of the models that are saved
  // Of each side, counted when the first model is saved.
  mutable std::optional<std::array<TrainingWords, 2>> words_;
  std::optional<PairData> training_;
  std::optional<PairData> validation_;
  std::optional<Transformer> model_;
  std::optional<Gradients> gradients_;
  std::optional<PairBuffers> buffers_;
  mutable std::optional<PairOrder> order_;  // remembers an epoch
  std::vector<PairShare> parts_;            // of a step
  PassHooks hooks_;
};

PairTask::PairTask(const TaskContext& context)
    : request_(context.request),
      settings_(context.settings),
      observer_(context.observer),
      directory_(context.directory),
      group_(context.group),
      shards_(context.shards),
      text_(training_files(context.request)) {
  training_range_ = {0, text_.size()};
  if (const auto files = validation_files(request_); !files.empty()) {
    validation_text_.emplace(files);
    validation_range_ = {0, validation_text_->size()};
  } else {
    split_validation();
  }
  require(settings_.measure != Measure::bleu || request_.translate, ErrorCode::unsupported,
          "this program cannot translate while it trains: set measure to none");
  require(settings_.measure != Measure::bleu || validation_range_.begin < validation_range_.end,
          ErrorCode::invalid_argument,
          "the setting 'measure' is bleu, but there are no pairs for validation: {}",
          how_to_get_validation());
}

// There are none.
std::string PairTask::how_to_get_validation() const {
  const double fraction = settings_.validation_fraction;
  if (fraction <= 0) return "give some (--valid-pairs), or set validation_fraction above 0";
  return fmt::format(
      "validation_fraction {} of {} pairs is less than one: give at least {} pairs, or pairs for "
      "validation (--valid-pairs), or set validation_fraction={:.3g} or more, or measure=none",
      fraction, text_.size(), static_cast<std::int64_t>(std::ceil(1 / fraction)),
      std::ceil(1e3 / static_cast<double>(text_.size())) / 1e3);
}

// The last pairs of the training text.
void PairTask::split_validation() {
  const auto held_out =
      static_cast<std::int64_t>(settings_.validation_fraction * static_cast<double>(text_.size()));
  training_range_.end = text_.size() - held_out;
  validation_range_ = {training_range_.end, text_.size()};
  require(training_range_.end > 0, ErrorCode::invalid_argument,
          "{} pairs are too few to split off {} of them for validation: give more, or pairs for "
          "validation",
          text_.size(), settings_.validation_fraction);
}

// Of both sides of the pairs that are trained on, not of those that are held out.
TranslationTokenizers PairTask::learn_vocabulary() const {
  const auto progress = [this](const Progress& done) { observer_.preparing(done); };
  const std::vector<std::string_view> lines =
      text_.both_sides(training_range_.begin, training_range_.end);
  const auto tokenizer = std::shared_ptr<const Tokenizer>(learn_joint_vocabulary(
      lines, {.vocabulary_size = static_cast<std::int32_t>(settings_.model.vocabulary_size)},
      progress, request_.stop));
  return {.source = tokenizer, .target = tokenizer};
}

void PairTask::prepare_text(SavedState saved) {
  if (request_.from.empty()) require_writable_shape(settings_);
  const bool learned = settings_.tokenizer == "bpe";
  if (saved == SavedState::present) {
    tokenizers_ = load_translation_tokenizers(directory_.last());
  } else if (!request_.from.empty()) {
    tokenizers_ = require_translation_tokenizers(request_.from);
  } else {
    tokenizers_ = learned ? learn_vocabulary() : load_translation_tokenizers(settings_.tokenizer);
  }
  const bool goes_on = saved == SavedState::present && !request_.from.empty();
  files_ = run_files(goes_on ? directory_.last() : request_.from, *tokenizers_.source);
  const TokenizeOptions options{
      .cache = request_.cache.empty() ? default_token_cache() : request_.cache,
      .progress = [this](const Progress& done) { observer_.preparing(done); },
      .stop = request_.stop,
      .notice = [this](const std::string& sentence) { observer_.noticed(sentence); }};
  training_.emplace(text_, training_range_, tokenizers_, options);
  if (validation_range_.begin < validation_range_.end) {
    validation_.emplace(validation_text_ ? *validation_text_ : text_, validation_range_,
                        tokenizers_, options);
  }
}

void PairTask::require_lengths(const PairData& data) const {
  const Architecture& architecture = model_->architecture();
  data.require_lengths(PairSide::source, architecture.encoder().context,
                       "the context of the encoder");
  data.require_lengths(PairSide::target, architecture.decoder().context,
                       "the context of the decoder");
  for (const PairSide side : {PairSide::source, PairSide::target}) {
    data.require_lengths(side, settings_.batch_tokens, "the setting 'batch_tokens'");
  }
}

void PairTask::make_model(SavedState saved) {
  std::optional<Transformer> given;
  if (request_.from.empty()) {
    settings_.model.vocabulary_size = tokenizers_.target->vocabulary_size();
    settings_.model.end_of_text = tokenizers_.target->end_of_text().value_or(-1);
  } else {
    given = translator_to_fine_tune(
        saved == SavedState::present ? directory_.last() : request_.from, settings_, tokenizers_);
  }
  const Architecture architecture =
      given ? given->architecture() : translator_architecture(settings_, tokenizers_);
  require_training_memory(settings_, architecture, available_memory(), group_.size());
  require_going_on(request_, saved);
  shards_.plan(architecture);
  model_.emplace(architecture, shards_.parameter_memory());
  shards_.hold(model_->parameters());
  if (given) {
    shards_.copy(std::as_bytes(given->parameters().all()));
  } else if (saved == SavedState::none) {
    shards_.initialize(settings_.seed);
  }
}

void PairTask::prepare_model(SavedState saved) {
  make_model(saved);
  require_going_on(request_, saved);
  require_lengths(*training_);
  if (validation_) require_lengths(*validation_);
  settle_precision(settings_, request_.device);
  model_->parameters().set_precision(*settings_.precision);
  gradients_.emplace(model_->architecture(), shards_.gradient_memory(),
                     group_.is_alone() ? request_.device : Device{});
  shards_.hold(*gradients_);
  hooks_ = make_hooks(request_, model_->architecture());
  buffers_.emplace(model_->architecture(),
                   settings_.recompute && !request_.hooks ? Keep::residuals : Keep::every_block,
                   request_.device);
  buffers_->loss() = VocabularyLoss(model_->architecture().decoder().vocabulary_size,
                                    settings_.label_smoothing, chunk_rows);
  buffers_->loss().set_stop(request_.stop);
  order_.emplace(*training_, settings_.batch_tokens, settings_.seed);
  parts_.resize(static_cast<std::size_t>(settings_.accumulation));
}

std::optional<ReadingRecord> PairTask::reading(const RunPosition& position) const {
  if (!words_) {
    const auto words_of = [&](PairSide side) {
      TextViews lines;
      for (std::int64_t pair = training_range_.begin; pair < training_range_.end; ++pair) {
        lines.push_back(text_.line(side, pair));
      }
      return TrainingWords(lines);
    };
    words_ = {words_of(PairSide::source), words_of(PairSide::target)};
  }
  const double batches = static_cast<double>(order_->batches(position.data.epoch));
  const double passes =
      static_cast<double>(position.data.epoch) + static_cast<double>(position.data.index) / batches;
  const auto tokens = static_cast<double>(training_->tokens(PairSide::source) +
                                          training_->tokens(PairSide::target));
  ReadingRecord own{.title = title_of_files(request_.data),
                    .tokens = static_cast<std::int64_t>(passes * tokens),
                    .words = (*words_)[0].read_words(passes),
                    .target_words = (*words_)[1].read_words(passes)};
  return request_.from.empty() ? std::optional(std::move(own))
                               : read_after(request_.from, std::move(own));
}

RunRecord PairTask::record() const {
  return {.validation = absolute_text(request_.validation),
          .validation_target = absolute_text(request_.validation_target),
          .tokenizer_key =
              tokenizers_.source == tokenizers_.target
                  ? tokenizers_.source->content_key()
                  : tokenizers_.source->content_key() + "-" + tokenizers_.target->content_key(),
          .data_key = training_->key(),
          .validation_key = validation_ ? validation_->key() : ""};
}

RunDescription PairTask::description() const {
  const auto tokens = [](const std::optional<PairData>& data) {
    return data ? data->tokens(PairSide::source) + data->tokens(PairSide::target) : 0;
  };
  return {.parameters = count_parameters(model_->architecture()).total,
          .training_tokens = tokens(training_),
          .validation_tokens = tokens(validation_),
          .training_pairs = training_->size(),
          .validation_pairs = validation_ ? validation_->size() : 0,
          .vocabulary_size = model_->architecture().decoder().vocabulary_size,
          .memory = training_memory(settings_, model_->architecture(), group_.size())};
}

// Forward and backward take six operations for each parameter that a token meets: a target token
// those of the decoder, and its share of the source's tokens those of the encoder. Attention is
// left out: between sentences it is little beside products.
double PairTask::flops_per_token() const {
  const Architecture& architecture = model_->architecture();
  std::int64_t encoder = 0, decoder = 0;
  for (const Parameter& parameter : model_->parameters().list()) {
    if (!is_linear(parameter.id.role)) continue;
    (parameter.id.site == StackSite::encoder ? encoder : decoder) += parameter.shape.size();
  }
  if (architecture.decoder().tied_unembedding) {
    decoder += architecture.decoder().vocabulary_size * architecture.decoder().channels;
  }
  const double sources_per_target = static_cast<double>(training_->tokens(PairSide::source)) /
                                    static_cast<double>(training_->tokens(PairSide::target));
  return 6 * (static_cast<double>(decoder) + sources_per_target * static_cast<double>(encoder));
}

StepLoss PairTask::compute_gradients(std::int64_t step, DataPosition& position) {
  StopProbe stop(request_.stop);
  Probe* const passing = request_.stop != nullptr ? &stop : shards_.probe();
  Probe* const probe = hooks_.probe != nullptr ? hooks_.probe : passing;
  StepLoss result;
  for (PairShare& part : parts_) {
    part.read(*training_, order_->next(position),
              {.decoder_start = static_cast<std::int32_t>(model_->architecture().decoder_start),
               .rank = group_.rank(),
               .processes = group_.size()});
    result.tokens += part.all_targets();
  }
  // The mean over all targets of the step, whichever batch they are in.
  const float scale = 1.0F / static_cast<float>(result.tokens);
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    const auto pass = static_cast<std::uint64_t>(step * settings_.accumulation) +
                      static_cast<std::uint64_t>(part);
    const PairShare& share = parts_[part];
    shards_.begin_pass(part + 1 == parts_.size() ? ShardedModel::Pass::last
                                                 : ShardedModel::Pass::not_last);
    result.loss +=
        model_->loss_and_gradients(share.batch(),
                                   {.scale = scale,
                                    .dropout = {.active = true,
                                                .seed = settings_.seed,
                                                .pass = pass,
                                                .first_sequence = share.place().sequence},
                                    .probe = probe,
                                    .editor = hooks_.editor,
                                    .first_source_row = share.place().source_row,
                                    .first_target_row = share.place().target_row},
                                   *buffers_, *gradients_);
  }
  return result;
}

Evaluation PairTask::evaluate(std::int64_t batches) const {
  return evaluate_pairs(*model_, *validation_,
                        {.batch_tokens = settings_.batch_tokens,
                         .batches = batches,
                         .stop = request_.stop,
                         .group = &group_});
}

std::optional<OrderedJson> PairTask::measure() const {
  if (settings_.measure != Measure::bleu) return std::nullopt;
  const PairText& text = validation_text_ ? *validation_text_ : text_;
  std::vector<std::string> sources;
  std::vector<std::vector<std::string>> references(1);
  for (std::int64_t pair = validation_range_.begin; pair < validation_range_.end; ++pair) {
    sources.emplace_back(text.line(PairSide::source, pair));
    references.front().emplace_back(text.line(PairSide::target, pair));
  }
  const std::vector<std::string> translations =
      request_.translate(*model_, tokenizers_, sources, settings_);
  OrderedJson measured;
  measured["bleu"] = scoring::corpus_bleu(translations, references).score;
  return measured;
}

}  // namespace

std::unique_ptr<TrainingTask> make_pair_task(const TaskContext& context) {
  return std::make_unique<PairTask>(context);
}

}  // namespace heed
