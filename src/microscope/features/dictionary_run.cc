#include "microscope/features/dictionary_run.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"
#include "kernels/elements.h"
#include "kernels/kernels.h"
#include "microscope/features/dictionary_files.h"
#include "microscope/traces/point_names.h"
#include "model/input_checks.h"

namespace heed {
namespace {

using enum ErrorCode;

constexpr double validation_share = 0.05;  // of a text that has no other

// Puts the reconstruction, or zeros, in place of what stands at a point.
class ReplacingEditor final : public Editor {
 public:
  enum class By { reconstruction, zeros };
  ReplacingEditor(const Dictionary& dictionary, const DictionaryPoints& points, By by)
      : dictionary_(dictionary), points_(points), by_(by) {}

  bool edits(const Point& point) const override {
    return point == points_.output || (point == points_.input && by_ == By::reconstruction);
  }
  void edit(const EditedPoint& edited, View<float> values) override {
    const DictionarySpecification& own = dictionary_.specification();
    const std::int64_t rows = values.extent(0) * values.extent(1);
    if (edited.point == points_.input && by_ == By::reconstruction) {
      x_ = Tensor<float>(Shape{rows, own.inputs});
      copy_point_rows(values, points_.input_head, x_);
    }
    if (edited.point != points_.output) return;
    Tensor<float> out(Shape{rows, own.outputs});
    if (by_ == By::reconstruction) {
      y_ = Tensor<float>(out.shape());
      copy_point_rows(values, points_.output_head, y_);
      acts_ = dictionary_.encode(x_);
      dictionary_.decode(acts_, x_, out);
      measured(out);
    }
    write(out, values);
  }

  // Of all passes.
  std::int64_t read = 0, entries = 0;  // rows, and their active features
  double squared_error = 0, squares = 0;
  std::vector<double> sums;
  std::vector<bool> used;

  std::int64_t used_count() const { return std::ranges::count(used, true); }
  double explained() const {
    double spread = squares;
    for (const double sum : sums) spread -= sum * sum / static_cast<double>(read);
    return spread > 0 ? 1 - squared_error / spread : 0;
  }

 private:
  void measured(View<const float> out) {
    read += out.extent(0);
    entries += acts_.entries();
    used.resize(static_cast<std::size_t>(dictionary_.specification().features));
    for (const std::int32_t feature : acts_.features) {
      used[static_cast<std::size_t>(feature)] = true;
    }
    sums.resize(static_cast<std::size_t>(out.extent(1)));
    for (std::int64_t n = 0; n < out.extent(0); ++n) {
      for (std::int64_t c = 0; c < out.extent(1); ++c) {
        const double wanted = y_.view()(n, c), error = wanted - double{out(n, c)};
        squared_error += error * error;
        squares += wanted * wanted;
        sums[static_cast<std::size_t>(c)] += wanted;
      }
    }
  }
  void write(View<const float> out, View<float> values) const {
    const std::int64_t positions = values.extent(1), head = points_.output_head;
    for (std::int64_t b = 0; b < values.extent(0); ++b) {
      for (std::int64_t t = 0; t < positions; ++t) {
        const View<float> to = values[b][t];
        const View<const float> row = out[b * positions + t];
        if (to.rank() == 1) {
          kernels::copy(row, to);
        } else if (head >= 0) {
          kernels::copy(row, to[head]);
        } else {
          kernels::copy(row.split_last(to.extent(0), to.extent(1)), to);
        }
      }
    }
  }

  const Dictionary& dictionary_;
  DictionaryPoints points_;
  By by_;
  Tensor<float> x_, y_;
  FeatureRows acts_;
};

// The mean loss of predicting each token of windows (B, T) but the first.
double mean_loss(const Transformer& model, std::span<const std::int32_t> tokens,
                 const StackActivations& activations, Editor* editor) {
  const std::int64_t batch = activations.batch(), positions = activations.positions();
  const Pass pass{.sequences = {batch, positions}, .editor = editor};
  model.forward({tokens.data(), {batch, positions}}, pass, activations);
  std::vector<std::int32_t> next(tokens.begin() + 1, tokens.end());
  next.push_back(kernels::ignored_target);
  for (std::int64_t b = 1; b <= batch; ++b) {
    next[static_cast<std::size_t>(b * positions - 1)] = kernels::ignored_target;
  }
  Tensor<float> losses(Shape{std::ssize(next)});
  VocabularyLoss loss(model.specification().vocabulary_size);
  return loss
      .forward(activations.unembedding_in(), model.stack().parameters.unembedding,
               {next.data(), losses.shape()}, losses, positions)
      .mean();
}

struct SplitTexts {
  std::string_view training, validation;
};

SplitTexts split_texts(const DictionaryTexts& texts, const Tokenizer& tokenizer, bool evaluates) {
  if (!texts.validation.empty() || !evaluates) return {texts.training, texts.validation};
  auto cut =
      static_cast<std::size_t>((1 - validation_share) * static_cast<double>(texts.training.size()));
  while (cut < texts.training.size() && !tokenizer.may_cut(texts.training, cut)) ++cut;
  return {texts.training.substr(0, cut), texts.training.substr(cut)};
}

DictionarySpecification specification_of(const Transformer& model, const DictionaryRun& run) {
  DictionarySpecification own{
      .features = run.settings.features,
      .input_point = run.input_point,
      .output_points = {run.output_point.empty() ? run.input_point : run.output_point},
      .input_head = run.head,
      .output_head = run.head,
      .model = run.model};
  const Architecture& architecture = model.architecture();
  const DictionaryPoints points(own, architecture);
  own.input_point = point_name(points.input);
  own.output_points = {point_name(points.output)};
  const std::vector<Point> order = all_points(architecture);
  require(std::ranges::find(order, points.input) <= std::ranges::find(order, points.output),
          invalid_argument, "'{}' comes before '{}' in a pass, and cannot be made of it",
          own.output_points.front(), own.input_point);
  own.inputs = point_width(points.input, run.head, architecture);
  own.outputs = point_width(points.output, run.head, architecture);
  return own;
}

void require_memory(const Transformer& model, const DictionarySpecification& specification,
                    const DictionaryRun& run) {
  const std::int64_t needed = dictionary_training_bytes(specification, run.settings, run.batch) +
                              ActivationStream::bytes_needed(model, specification, run.stream) +
                              8 * run.batch * (specification.inputs + specification.outputs);
  const std::optional<std::int64_t> available = available_memory();
  constexpr double mib = 1 << 20;
  require(!available || needed <= *available, out_of_memory,
          "training {} features on {} inputs takes about {:.0f} MiB, of which {:.0f} are "
          "available: take fewer features, or smaller batches and buffers",
          run.settings.features, specification.inputs, static_cast<double>(needed) / mib,
          static_cast<double>(available.value_or(0)) / mib);
}

OrderedJson metadata_of(const DictionaryRun& run, const DictionaryRunResult& result) {
  OrderedJson about{{"trained_by", "heed"},
                    {"context_size", run.stream.window},
                    {"training_tokens", result.steps * run.batch},
                    {"learning_rate", run.settings.learning_rate},
                    {"seed", run.settings.seed}};
  if (run.settings.activation == FeatureActivation::relu) {
    about["l1_coefficient"] = run.settings.l1;
  }
  if (run.settings.activation == FeatureActivation::jump_relu) {
    about["l0_coefficient"] = run.settings.l0;
  }
  if (result.evaluation) {
    about["explained_variance"] = result.evaluation->explained;
    about["l0"] = result.evaluation->active;
    about["loss_recovered"] = result.evaluation->recovered();
  }
  return about;
}

}  // namespace

DictionaryEvaluation evaluate_dictionary(const Transformer& model, const Tokenizer& tokenizer,
                                         std::string_view text, const Dictionary& dictionary,
                                         const DictionaryMeasuring& measuring) {
  require_predicts_next(model.specification(), "the loss that a dictionary recovers");
  require_fits(dictionary, model.architecture());
  require(dictionary.specification().points() == 1, unsupported,
          "a cross-layer transcoder cannot be evaluated alone");
  require(measuring.window >= 2, invalid_argument, "windows of {} tokens, expected at least 2",
          measuring.window);
  const DictionaryPoints points(dictionary.specification(), model.architecture());
  TokenWindows windows(tokenizer, text, measuring.window);
  using By = ReplacingEditor::By;
  ReplacingEditor replaced(dictionary, points, By::reconstruction);
  ReplacingEditor removed(dictionary, points, By::zeros);
  DictionaryEvaluation found;
  std::int64_t passes = 0;
  while (found.tokens < measuring.tokens) {
    require(!stop_requested(measuring.stop), interrupted, "interrupted after {} tokens",
            found.tokens);
    const std::int64_t left = (measuring.tokens - found.tokens) / measuring.window;
    const std::int64_t batch = std::clamp<std::int64_t>(left, 1, measuring.batch);
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(batch * measuring.window));
    windows.next(tokens);
    if (windows.passes() > 0 && passes > 0) break;  // the text has ended
    const StackActivations activations(model.specification(), batch, measuring.window,
                                       Keep::one_block, 0, model.device());
    const auto weight = static_cast<double>(tokens.size());
    found.loss += weight * mean_loss(model, tokens, activations, nullptr);
    found.loss_with += weight * mean_loss(model, tokens, activations, &replaced);
    found.loss_with_zeros += weight * mean_loss(model, tokens, activations, &removed);
    found.tokens += std::ssize(tokens);
    ++passes;
  }
  const auto total = static_cast<double>(found.tokens);
  for (double* loss : {&found.loss, &found.loss_with, &found.loss_with_zeros}) *loss /= total;
  found.active = static_cast<double>(replaced.entries) / static_cast<double>(replaced.read);
  found.explained = replaced.explained();
  found.used = replaced.used_count();
  return found;
}

DictionaryRunResult train_dictionary(const Transformer& model, const Tokenizer& tokenizer,
                                     const DictionaryTexts& texts, const DictionaryRun& run) {
  const DictionarySpecification specification = specification_of(model, run);
  require(run.batch >= 1 && run.stream.batch >= 1 && run.stream.rows >= run.batch, invalid_argument,
          "steps of {} rows from a buffer of {}, expected a buffer that holds at least a step",
          run.batch, run.stream.rows);
  require_positions_fit(model.specification(), run.stream.window);
  require(run.out.empty() || !std::filesystem::exists(run.out / "cfg.json"), conflict,
          "'{}' holds a dictionary already: name another directory, or remove it",
          run.out.string());
  require_memory(model, specification, run);
  const bool evaluates = run.evaluated_tokens > 0;
  if (evaluates) {
    require_predicts_next(model.specification(), "the loss that a dictionary recovers");
  }
  const SplitTexts split = split_texts(texts, tokenizer, evaluates);
  if (evaluates) TokenWindows(tokenizer, split.validation, run.stream.window);

  ActivationStream stream(model, tokenizer, split.training, specification, run.stream);
  Tensor<float> x(Shape{run.batch, specification.inputs}), y_memory;
  if (!stream.is_autoencoder()) y_memory = Tensor<float>(Shape{run.batch, specification.outputs});
  const View<float> y = y_memory.present() ? y_memory.view() : View<float>{};
  DictionaryRunResult result;
  std::unique_ptr<DictionaryTrainer> trainer;
  try {
    stream.next(x, y, run.stop);
    trainer = std::make_unique<DictionaryTrainer>(specification, run.settings, x,
                                                  y.present() ? y : x.view());
    while (trainer->steps() < run.settings.steps) {
      result.last = trainer->step(x, y.present() ? y : x.view(), run.stop);
      if (run.progress) run.progress(trainer->steps(), result.last);
      if (trainer->steps() < run.settings.steps) stream.next(x, y, run.stop);
    }
  } catch (const Error& error) {
    if (error.code() != interrupted) throw;
    result.interrupted = true;
  }
  result.tokens = stream.windows().read();
  if (trainer == nullptr || trainer->steps() == 0) return result;
  result.steps = trainer->steps();
  const Dictionary dictionary = trainer->dictionary();
  trainer.reset();
  if (evaluates && !result.interrupted) {
    try {
      result.evaluation = evaluate_dictionary(
          model, tokenizer, split.validation, dictionary,
          {.tokens = run.evaluated_tokens, .window = run.stream.window, .stop = run.stop});
    } catch (const Error& error) {
      if (error.code() != interrupted) throw;
    }
  }
  if (!run.out.empty()) save_dictionary(dictionary, run.out, metadata_of(run, result));
  return result;
}

}  // namespace heed
