// Training and surveys of sparse dictionaries, of the public facade.
#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "base/files.h"
#include "engine/facade.h"
#include "heed/features.h"
#include "microscope/features/dictionary_run.h"
#include "microscope/features/feature_contexts.h"

namespace heed {
namespace {

DictionarySettings settings_of(const DictionaryTraining& training) {
  constexpr FeatureActivation known[] = {FeatureActivation::top_k, FeatureActivation::relu,
                                         FeatureActivation::jump_relu};
  const auto* const found = std::ranges::find_if(known, [&](FeatureActivation each) {
    return activation_name(each) == training.architecture;
  });
  require(found != std::end(known), ErrorCode::invalid_argument,
          "the architecture is '{}', expected topk, standard or jumprelu", training.architecture);
  return {.activation = *found,
          .features = training.features,
          .k = training.k,
          .l1 = training.l1,
          .l0 = training.l0,
          .learning_rate = training.learning_rate,
          .steps = training.steps,
          .warmup = training.warmup,
          .decay = training.decay,
          .dead_after = training.dead_after,
          .auxiliary_k = training.auxiliary_k,
          .auxiliary = training.auxiliary,
          .resample_every = training.resample_every,
          .resample_norm = training.resample_norm,
          .seed = training.seed};
}

DictionaryProgress progress_of(const DictionaryStep& done, std::int64_t step, std::int64_t steps) {
  return {.step = step,
          .steps = steps,
          .loss = done.loss,
          .penalty = done.penalty,
          .auxiliary = done.auxiliary,
          .active = done.active,
          .explained = done.explained,
          .dead = done.dead,
          .resampled = done.resampled};
}

DictionaryQuality quality_of(const DictionaryEvaluation& found) {
  return {.tokens = found.tokens,
          .loss = found.loss,
          .loss_with = found.loss_with,
          .loss_with_zeros = found.loss_with_zeros,
          .recovered = found.recovered(),
          .active = found.active,
          .explained = found.explained,
          .used = found.used};
}

View<const float> given_rows(const Array& rows, const char* name) {
  require(rows.shape().size() == 2 && !rows.empty(), ErrorCode::invalid_argument,
          "{} has shape ({}), expected rows (N, width)", name, fmt::join(rows.shape(), ", "));
  return {rows.data(), {rows.shape()[0], rows.shape()[1]}};
}

FeatureReport report_of(const NeuronMemory& memory) {
  FeatureReport report{.feature = memory.id.neuron,
                       .density = memory.active_share,
                       .mean = memory.mean_activation,
                       .largest = memory.largest};
  for (const NeuronContext& each : memory.contexts) {
    report.contexts.push_back({.position = each.position,
                               .activation = each.activation,
                               .tokens = each.tokens,
                               .activations = each.activations,
                               .peak = each.peak});
  }
  for (const ProjectedToken& each : memory.says.most) {
    report.raised.push_back({each.token, each.score});
  }
  for (const ProjectedToken& each : memory.says.least) {
    report.lowered.push_back({each.token, each.score});
  }
  return report;
}

}  // namespace

struct DictionaryTrainingSession::Parts {
  std::int64_t steps;
  DictionaryTrainer trainer;
};

DictionaryTrainingSession::DictionaryTrainingSession(const DictionaryTraining& training,
                                                     const Start& start) {
  const View<const float> first = given_rows(start.first, "first");
  const bool is_transcoder = !start.targets.empty();
  const View<const float> targets = is_transcoder ? given_rows(start.targets, "targets") : first;
  require(targets.extent(0) == first.extent(0), ErrorCode::invalid_argument,
          "{} rows have {} targets, expected as many", first.extent(0), targets.extent(0));
  const std::string input = start.input_point.empty() ? "rows" : start.input_point;
  const std::string output = !start.output_point.empty() ? start.output_point
                             : is_transcoder             ? "targets"
                                                         : input;
  DictionarySpecification specification{.inputs = first.extent(1),
                                        .outputs = targets.extent(1),
                                        .input_point = input,
                                        .output_points = {output},
                                        .model = start.model};
  require(is_transcoder == specification.is_transcoder(), ErrorCode::invalid_argument,
          "a transcoder has targets and another output point than '{}', an autoencoder neither",
          input);
  parts_ = std::shared_ptr<Parts>(new Parts{
      training.steps,
      DictionaryTrainer(std::move(specification), settings_of(training), first, targets)});
}

DictionaryProgress DictionaryTrainingSession::step(const Array& x, const Array& y) {
  const View<const float> rows = given_rows(x, "x");
  const DictionaryStep done = parts_->trainer.step(rows, y.empty() ? rows : given_rows(y, "y"));
  return progress_of(done, parts_->trainer.steps(), parts_->steps);
}

SparseDictionary DictionaryTrainingSession::dictionary() const {
  return SparseDictionary(std::make_shared<const Dictionary>(parts_->trainer.dictionary()));
}

DictionaryQuality evaluate_dictionary(const Model& model, const SparseDictionary& dictionary,
                                      std::string_view text, std::int64_t tokens,
                                      std::int64_t window) {
  const LoadedModel& own = ModelAccess::of_one_text(model);
  return quality_of(evaluate_dictionary(own.transformer, own.require_tokenizer(), text,
                                        dictionary.dictionary(),
                                        {.tokens = tokens, .window = window}));
}

DictionaryTrainingResult train_dictionary(const Model& model, const DictionaryTrainingRun& run) {
  const LoadedModel& own = ModelAccess::of_one_text(model);
  require(run.file.empty() != run.text.empty(), ErrorCode::invalid_argument,
          "a dictionary is trained on a file or on a text, expected one of both");
  const MappedFile file = run.file.empty() ? MappedFile() : MappedFile(run.file);
  const MappedFile validation = run.validation.empty() ? MappedFile() : MappedFile(run.validation);
  const DictionaryRun wanted{
      .input_point = run.input_point,
      .output_point = run.output_point,
      .head = run.head,
      .model = own.name,
      .settings = settings_of(run.training),
      .stream = {.window = run.window, .rows = run.buffer, .seed = run.training.seed},
      .batch = run.batch,
      .out = run.out,
      .progress =
          [&](std::int64_t step, const DictionaryStep& done) {
            if (run.progress) run.progress(progress_of(done, step, run.training.steps));
          },
      .stop = run.stop,
      .evaluated_tokens = run.evaluated};
  const DictionaryRunResult found =
      train_dictionary(own.transformer, own.require_tokenizer(),
                       {.training = run.file.empty() ? std::string_view(run.text) : file.text(),
                        .validation = validation.text()},
                       wanted);
  DictionaryTrainingResult result{.steps = found.steps,
                                  .tokens = found.tokens,
                                  .interrupted = found.interrupted,
                                  .last = progress_of(found.last, found.steps, run.training.steps)};
  if (found.evaluation) result.quality = quality_of(*found.evaluation);
  return result;
}

FeatureSurvey survey_features(const Model& model, const SparseDictionary& dictionary,
                              std::string_view text, const FeatureSearch& search) {
  const LoadedModel& own = ModelAccess::of_one_text(model);
  const FeatureStatistics found = find_feature_contexts(
      own.transformer, own.require_tokenizer(), text, dictionary.dictionary(),
      {.features = search.features,
       .count = search.count,
       .tokens = search.tokens,
       .windows = {.top = search.top, .window = search.window, .stop = search.stop}});
  FeatureSurvey survey{.tokens = found.tokens};
  Tensor<float> densities(Shape{std::ssize(found.active)});
  for (std::int64_t f = 0; f < densities.size(); ++f) {
    densities[f] =
        static_cast<float>(static_cast<double>(found.active[static_cast<std::size_t>(f)]) /
                           static_cast<double>(found.tokens));
  }
  survey.densities = make_array(std::move(densities));
  for (const NeuronMemory& memory : found.memories) survey.reports.push_back(report_of(memory));
  return survey;
}

}  // namespace heed
