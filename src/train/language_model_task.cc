// Training on text: a causal model predicts every next token, a masked one the hidden tokens.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/utf8.h"
#include "formats/model_files.h"
#include "kernels/kernels.h"
#include "model/parameter_count.h"
#include "tokenizer/character_tokenizer.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/train_byte_pair.h"
#include "train/batch_order.h"
#include "train/evaluation.h"
#include "train/first_model.h"
#include "train/masking.h"
#include "train/process_grid.h"
#include "train/run.h"
#include "train/settings.h"
#include "train/token_data.h"
#include "train/trainer.h"
#include "train/training_task.h"
#include "train/training_words.h"

namespace heed {
namespace {

// The files of a request, mapped, and split into training and validation text.
class Corpus {
 public:
  // Throws Error{not_found} for a missing file, Error{invalid_argument} where there is no text
  // to train on, or none in a validation file that was named.
  explicit Corpus(const TrainRequest& request);

  const TextViews& training() const { return split_.training; }
  const TextViews& validation() const { return split_.validation; }  // empty: none

  // Leaves out of the validation text what has no token in a vocabulary that was learned from the
  // training text, and says so; empty where there is nothing of the kind.
  std::string drop_unknown(const CharacterTokenizer& learned);

 private:
  std::vector<MappedFile> files_;
  SplitTexts split_;
  std::deque<std::string> known_;  // does not move what views point to
};

Corpus::Corpus(const TrainRequest& request) {
  require(!request.data.empty(), ErrorCode::invalid_argument,
          "training needs at least one text file (--data)");
  TextViews training;
  for (const auto& path : request.data) {
    files_.emplace_back(path);
    training.push_back(without_byte_order_mark(files_.back().text()));
  }
  if (request.validation.empty()) {
    split_ = split_texts(training, request.settings.validation_fraction);
  } else {
    files_.emplace_back(request.validation);
    const std::string_view held_out = without_byte_order_mark(files_.back().text());
    require(!held_out.empty(), ErrorCode::invalid_argument, "the validation text '{}' is empty",
            request.validation.string());
    split_ = {.training = training, .validation = {held_out}};
  }
  const auto has_text = [](const TextViews& texts) {
    return std::ranges::any_of(texts, [](std::string_view text) { return !text.empty(); });
  };
  const std::string first = request.data.front().string();
  require(has_text(training), ErrorCode::invalid_argument, "the training data is empty ('{}')",
          first);
  require(has_text(split_.training), ErrorCode::invalid_argument,
          "'{}' is too short to split off {} of it for validation: give more text, or "
          "--validation FILE",
          first, request.settings.validation_fraction);
}

std::string Corpus::drop_unknown(const CharacterTokenizer& learned) {
  std::int64_t dropped = 0;
  std::set<std::string> characters;
  for (std::string_view& text : split_.validation) {
    std::string known;
    std::size_t copied = 0;  // bytes of the text
    for (std::size_t i = 0; i < text.size();) {
      const Utf8Character character = read_utf8(text, i);
      const std::size_t begin = i;
      i += character.length;
      // What is not UTF-8 is refused where it is encoded.
      if (!character.valid || learned.knows(character.code_point)) continue;
      known.append(text, copied, begin - copied);
      copied = i;
      ++dropped;
      characters.emplace(text.substr(begin, character.length));
    }
    if (copied > 0) text = known_.emplace_back(known.append(text, copied));
  }
  if (dropped == 0) return "";
  constexpr std::size_t max_shown = 8;
  std::string shown;
  std::size_t named = 0;
  for (const std::string& character : characters) {
    if (named++ == max_shown) break;
    shown += " " + in_quotes(character);
  }
  if (characters.size() > max_shown) shown += " …";
  return fmt::format(
      "{} characters of the validation text are left out of it: the training text, from which the "
      "vocabulary was learned, does not have{}",
      dropped, shown);
}

// The tokenizer of settings.tokenizer: learned from the training text ("char", "bpe") or loaded.
std::unique_ptr<Tokenizer> choose_tokenizer(const TrainSettings& settings, const Corpus& corpus,
                                            const ProgressCallback& progress, StopFlag stop) {
  const TextViews& texts = corpus.training();
  if (settings.tokenizer == "char") return train_character_tokenizer(texts);
  if (settings.tokenizer != "bpe") return load_tokenizer(settings.tokenizer);
  BytePairTrainingOptions options;
  options.vocabulary_size = static_cast<std::int32_t>(settings.model.vocabulary_size);
  if (settings.task == Task::masked) options.special_tokens.emplace_back("<mask>");
  return train_byte_pair_tokenizer(texts, options, progress, stop);
}

// A sentence of a run's own text.
constexpr std::size_t searched_bytes = std::size_t{64} << 10;  // at the beginning of each text

constexpr std::size_t min_bytes = 20;  // shorter lines only if all are short

constexpr std::size_t max_bytes = 160;

constexpr std::string_view space = " \t\r";

// The text without its last word; empty where it has one word.
std::string_view without_last_word(std::string_view text) {
  const std::size_t end = text.find_last_of(space);
  return end == std::string_view::npos ? std::string_view() : trimmed(text.substr(0, end), space);
}

std::string_view shortened(std::string_view line, const Tokenizer& tokenizer,
                           std::int64_t max_tokens) {
  while (line.size() > max_bytes) line = without_last_word(line);
  while (!line.empty() && std::ssize(tokenizer.encode(line)) > max_tokens) {
    line = without_last_word(line);
  }
  return line;
}

// A line of the texts, cut between words to at most `max_tokens` tokens: what every model of the
// run can be tried on, because the run's tokenizer encodes it. Empty if there is none.
std::string sample_sentence(const TextViews& texts, const Tokenizer& tokenizer,
                            std::int64_t max_tokens) {
  std::string_view longest;
  for (std::string_view text : texts) {
    text = text.substr(0, searched_bytes);
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      line = trimmed(line.substr(0, line.find("<|endoftext|>")), space);
      if (!is_valid_utf8(line)) continue;
      line = shortened(line, tokenizer, max_tokens);
      if (line.size() > longest.size()) longest = line;
      if (longest.size() >= min_bytes) return std::string(longest);
    }
  }
  return std::string(longest);
}

constexpr std::int64_t sentence_tokens = 48;

class LanguageModelTask final : public TrainingTask {
 public:
  explicit LanguageModelTask(const TaskContext& context)
      : request_(context.request),
        settings_(context.settings),
        observer_(context.observer),
        directory_(context.directory),
        group_(context.group),
        shards_(context.shards),
        corpus_(context.request) {}

  void prepare_text(SavedState saved) override;
  void prepare_model(SavedState saved) override;
  RunRecord record() const override;
  RunDescription description() const override;
  Parameters& parameters() override { return transformer_->parameters(); }
  void place() override { transformer_->place(request_.device); }
  Gradients& gradients() override { return *gradients_; }
  double flops_per_token() const override;
  StepLoss compute_gradients(std::int64_t step, DataPosition& position) override;
  bool has_validation() const override { return validation_.has_value(); }
  Evaluation evaluate(std::int64_t batches) const override;
  std::optional<OrderedJson> measure() const override;
  std::optional<std::string> sample() const override;
  void save_model(const std::filesystem::path& directory,
                  const RunPosition& position) const override {
    save_transformer(*transformer_, directory, with_reading(files_, reading(position)));
  }
  void read_along() const override { read_weights(*transformer_, files_); }

 private:
  std::optional<double> entropy_per_token() const;
  std::optional<ReadingRecord> reading(const RunPosition& position) const;
  // What the model reads and predicts of the batch that was read last.
  struct Rows {
    View<const std::int32_t> tokens;
    View<const std::int32_t> targets;
  };
  Rows rows(std::uint64_t pass);
  void make_model(SavedState saved);
  BatchShare share() const { return grid_->share(); }
  TrainSettings own_settings() const;

  const TrainRequest& request_;
  TrainSettings& settings_;
  TrainObserver& observer_;
  const RunDirectory& directory_;
  Group& group_;
  ShardedModel& shards_;
  Corpus corpus_;
  std::optional<ProcessGrid> grid_;
  std::unique_ptr<KeyValueRing> ring_;  // where processes share sequences
  std::unique_ptr<Tokenizer> tokenizer_;
  SourceFiles files_;                           // of the models that are saved
  mutable std::optional<TrainingWords> words_;  // counted when the first model is saved
  std::optional<TokenData> training_;
  std::optional<TokenData> validation_;
  std::optional<Transformer> transformer_;
  std::optional<Gradients> gradients_;
  std::optional<TrainingBuffers> buffers_;
  std::optional<BatchReader> batches_;
  std::optional<MaskedBatch> masked_;  // of a masked language model
  PassHooks hooks_;
};

void LanguageModelTask::prepare_text(SavedState saved) {
  grid_.emplace(group_, settings_);
  ring_ = make_ring(group_, *grid_);
  if (request_.from.empty()) require_writable_shape(settings_);
  const auto progress = [this](const Progress& done) { observer_.preparing(done); };
  if (saved == SavedState::present) {
    tokenizer_ = load_tokenizer(directory_.last());
  } else if (!request_.from.empty()) {
    tokenizer_ = require_tokenizer(request_.from);
  } else {
    tokenizer_ = choose_tokenizer(settings_, corpus_, progress, request_.stop);
  }
  const bool goes_on = saved == SavedState::present && !request_.from.empty();
  files_ = run_files(goes_on ? directory_.last() : request_.from, *tokenizer_);
  if (settings_.tokenizer == "char" && request_.from.empty()) {
    const auto* const learned = dynamic_cast<const CharacterTokenizer*>(tokenizer_.get());
    const std::string notice = learned != nullptr ? corpus_.drop_unknown(*learned) : "";
    if (!notice.empty()) observer_.noticed(notice);
  }
  if (settings_.task == Task::masked) require_mask_token(*tokenizer_, settings_.tokenizer);
  const TokenizeOptions options{
      .cache = request_.cache.empty() ? default_token_cache() : request_.cache,
      .progress = progress,
      .stop = request_.stop,
      .notice = [this](const std::string& sentence) { observer_.noticed(sentence); }};
  training_ = tokenize_texts(*tokenizer_, corpus_.training(), options);
  if (!corpus_.validation().empty()) {
    validation_ = tokenize_texts(*tokenizer_, corpus_.validation(), options);
    require(request_.validation.empty() || validation_->size() >= 2, ErrorCode::invalid_argument,
            "the validation text '{}' holds {} tokens; predicting takes at least 2",
            request_.validation.string(), validation_->size());
    if (validation_->size() < 2) validation_.reset();
  }
}

void LanguageModelTask::prepare_model(SavedState saved) {
  if (request_.from.empty()) {
    settings_.model.vocabulary_size = tokenizer_->vocabulary_size();
    settings_.model.end_of_text = tokenizer_->end_of_text().value_or(-1);
  }
  require_training_memory(own_settings(), available_memory(), group_.size());
  // Between stages that take a second each with a large model.
  require_going_on(request_, saved);
  settle_precision(settings_, request_.device);
  make_model(saved);
  require_going_on(request_, saved);
  transformer_->parameters().set_precision(*settings_.precision);
  batches_.emplace(*training_, settings_, share());
  if (settings_.task == Task::masked) masked_.emplace(*tokenizer_, settings_, share());
  // Processes exchange gradients through their own memory.
  gradients_.emplace(transformer_->parameters().architecture(), shards_.gradient_memory(),
                     group_.is_alone() ? request_.device : Device{});
  shards_.hold(*gradients_);
  hooks_ = make_hooks(request_, transformer_->parameters().architecture());
  const PassShape pass(share().size(), settings_.sequence(), ring_.get());
  buffers_.emplace(settings_.model, pass.batch, pass.positions,
                   settings_.recompute && !request_.hooks ? Keep::residuals : Keep::every_block,
                   request_.device);
  buffers_->loss = VocabularyLoss(settings_.model.vocabulary_size, settings_.label_smoothing);
  require_going_on(request_, saved);
  buffers_->loss.set_stop(request_.stop);
}

// That of request.from or, without one, weights drawn from settings.seed; with a checkpoint, which
// has the weights, only its shape.
void LanguageModelTask::make_model(SavedState saved) {
  std::optional<Transformer> given;
  if (saved == SavedState::none && !request_.from.empty()) {
    given = model_to_fine_tune(request_, settings_, *tokenizer_);
  }
  shards_.plan({.stacks = {settings_.model}});
  transformer_.emplace(Architecture{.stacks = {settings_.model}}, shards_.parameter_memory());
  shards_.hold(transformer_->parameters());
  if (given) {
    shards_.copy(std::as_bytes(given->parameters().all()));
  } else if (saved == SavedState::none) {
    shards_.initialize(settings_.seed);
  }
}

// With as many sequences a batch as this process computes, or has chunks of.
TrainSettings LanguageModelTask::own_settings() const {
  TrainSettings own = settings_;
  own.batch_size = share().size();
  return own;
}

std::optional<double> LanguageModelTask::entropy_per_token() const {
  if (!request_.entropy) return std::nullopt;
  const std::int64_t tokens = training_->size() + (validation_ ? validation_->size() : 0);
  return *request_.entropy / static_cast<double>(tokens);
}

// Characters and hidden tokens are not read as words are: nothing is said about words then.
std::optional<ReadingRecord> LanguageModelTask::reading(const RunPosition& position) const {
  ReadingRecord own{.title = title_of_files(request_.data),
                    .tokens = position.step * settings_.tokens_per_step(),
                    .words = std::nullopt};
  if (!masked_ && tokenizer_->kind() != TokenizerKind::character) {
    if (!words_) words_.emplace(corpus_.training());
    own.words = words_->read_words(static_cast<double>(own.tokens) /
                                   static_cast<double>(training_->size()));
  }
  return request_.from.empty() ? std::optional(std::move(own))
                               : read_after(request_.from, std::move(own));
}

RunRecord LanguageModelTask::record() const {
  return {
      .validation = absolute_text(request_.validation),
      .tokenizer_key = tokenizer_->content_key(),
      .data_key = training_->key(),
      .validation_key = validation_ ? validation_->key() : "",
      .entropy_per_token = entropy_per_token(),
      .sentence = sample_sentence(validation_ ? corpus_.validation() : corpus_.training(),
                                  *tokenizer_, std::min(sentence_tokens, settings_.model.context))};
}

RunDescription LanguageModelTask::description() const {
  return {.parameters = count_parameters(settings_.model).total,
          .training_tokens = training_->size(),
          .validation_tokens = validation_ ? validation_->size() : 0,
          .vocabulary_size = settings_.model.vocabulary_size,
          .memory = training_memory(own_settings(), group_.size())};
}

double LanguageModelTask::flops_per_token() const {
  StackSpecification shape = settings_.model;
  shape.context = settings_.sequence();
  return model_cost(shape).train_flops_per_token;
}

LanguageModelTask::Rows LanguageModelTask::rows(std::uint64_t pass) {
  if (!masked_) return {batches_->tokens(), batches_->targets()};
  masked_->hide(batches_->tokens(), batches_->targets(), pass);
  return {masked_->tokens(), masked_->targets()};
}

StepLoss LanguageModelTask::compute_gradients(std::int64_t step, DataPosition& position) {
  StopProbe stop(request_.stop);
  Probe* const passing = request_.stop != nullptr ? &stop : shards_.probe();
  Probe* const probe = hooks_.probe != nullptr ? hooks_.probe : passing;
  StepLoss result{.tokens = settings_.tokens_per_step()};
  // A masked model predicts a share of the tokens.
  const double predicted = static_cast<double>(settings_.tokens_per_step()) *
                           (masked_ ? settings_.masked_fraction : 1.0);
  const auto scale = static_cast<float>(1.0F / predicted);
  for (std::int64_t part = 0; part < settings_.accumulation; ++part) {
    batches_->read(position);
    const auto pass = static_cast<std::uint64_t>(step * settings_.accumulation + part);
    const Rows batch = rows(pass);
    shards_.begin_pass(part + 1 == settings_.accumulation ? ShardedModel::Pass::last
                                                          : ShardedModel::Pass::not_last);
    result.loss += transformer_->loss_and_gradients(batch.tokens, batch.targets,
                                                    {.scale = scale,
                                                     .dropout = {.active = true,
                                                                 .seed = settings_.seed,
                                                                 .pass = pass,
                                                                 .first_sequence = share().begin},
                                                     .probe = probe,
                                                     .editor = hooks_.editor,
                                                     .ring = ring_.get()},
                                                    *buffers_, *gradients_);
  }
  return result;
}

Evaluation LanguageModelTask::evaluate(std::int64_t batches) const {
  EvaluationOptions options{.batch_size = settings_.batch_size,
                            .sequence_length = settings_.sequence(),
                            .windows = settings_.windows,
                            .batches = batches,
                            .stop = request_.stop,
                            .group = &group_,
                            .ring = ring_.get()};
  if (ring_ != nullptr) {  // the same windows, in the memory of one
    options.batches *= options.batch_size;
    options.batch_size = 1;
  }
  if (masked_) return evaluate_masked(*transformer_, *validation_, *tokenizer_, settings_, options);
  return Evaluator(settings_.model, options).evaluate(*transformer_, *validation_);
}

std::optional<OrderedJson> LanguageModelTask::measure() const {
  if (!request_.measure) return std::nullopt;
  return request_.measure(*transformer_, *tokenizer_);
}

std::optional<std::string> LanguageModelTask::sample() const {
  if (!request_.sample || masked_) return std::nullopt;
  return request_.sample(*transformer_, *tokenizer_);
}

}  // namespace

std::unique_ptr<TrainingTask> make_language_model_task(const TaskContext& context) {
  return std::make_unique<LanguageModelTask>(context);
}

}  // namespace heed
