#include "microscope/features/dictionary_training.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/random.h"
#include "base/threads.h"
#include "kernels/elements.h"
#include "kernels/kernels.h"
#include "kernels/sparse_rows.h"
#include "microscope/features/row_selection.h"
#include "microscope/features/sparse_loss.h"

namespace heed {
namespace {

constexpr std::int64_t columns_at_once = 2048;  // features of a piece of pre-activations
constexpr float adam_epsilon = 1e-8F;
// Of random numbers for resampling: one stream for each step, apart from those of the weights.
constexpr std::uint64_t resample_stream = std::uint64_t{1} << 60;

double mean_square(View<const float> x) {
  return kernels::squared_norm(x.span()) / static_cast<double>(x.size());
}

// Σ over rows, of each column.
std::vector<double> column_means(View<const float> x) {
  std::vector<double> means(static_cast<std::size_t>(x.extent(1)), 0.0);
  for (std::int64_t n = 0; n < x.extent(0); ++n) {
    for (std::int64_t c = 0; c < x.extent(1); ++c) {
      means[static_cast<std::size_t>(c)] += double{x(n, c)};
    }
  }
  for (double& mean : means) mean /= static_cast<double>(x.extent(0));
  return means;
}

// Row f of a matrix that is `width` wide.
std::span<float> row_of(Tensor<float>& matrix, std::int64_t f, std::int64_t width) {
  return {matrix.data() + f * width, static_cast<std::size_t>(width)};
}

void normalise_row(std::span<float> row) {
  const double norm = std::sqrt(kernels::squared_norm(row));
  if (norm == 0) return;
  for (float& value : row) value = static_cast<float>(value / norm);
}

}  // namespace

struct DictionaryTrainer::Parts {
  DictionarySettings settings;
  std::int64_t inputs, outputs, features;
  double input_scale = 1, output_scale = 1;
  std::unique_ptr<Dictionary> dictionary;  // in the scale of training
  // Moments of the weights, in the same shapes.
  Tensor<float> encoder_first, encoder_second, decoder_first, decoder_second;
  Tensor<float> bias_first, bias_second, decoder_bias_first, decoder_bias_second;
  // Of jump_relu: logarithms of the thresholds, which are learned, and their moments (F).
  Tensor<float> log_threshold, threshold_first, threshold_second;
  std::int64_t steps = 0;
  std::vector<std::int64_t> silent;  // (F): rows since a feature was active
  // Of a step.
  Tensor<float> x, y, pre;
  SparseLoss main, auxiliary;
  std::vector<std::int32_t> dead;  // features, ascending

  DictionaryWeights& weights() { return dictionary->weights(); }

  void read_batch(View<const float> x_given, View<const float> y_given) {
    const std::int64_t rows = x_given.extent(0);
    if (x.shape() != x_given.shape()) {
      x = Tensor<float>(x_given.shape());
      y = Tensor<float>(y_given.shape());
      pre = Tensor<float>(Shape{rows, std::min(columns_at_once, features)});
      main.d_recons = Tensor<float>(Shape{rows, outputs});
    }
    const float* const bias = dictionary->specification().subtracts_decoder_bias
                                  ? weights().decoder_bias.data()
                                  : nullptr;
    const auto scale_x = static_cast<float>(input_scale);
    const auto scale_y = static_cast<float>(output_scale);
    parallel_ranges(rows, 64, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t n = begin; n < end; ++n) {
        for (std::int64_t c = 0; c < inputs; ++c) {
          x[n * inputs + c] = x_given(n, c) * scale_x - (bias == nullptr ? 0.0F : bias[c]);
        }
        for (std::int64_t c = 0; c < outputs; ++c) y[n * outputs + c] = y_given(n, c) * scale_y;
      }
    });
  }

  std::int64_t auxiliary_count() const {
    const std::int64_t wanted = settings.auxiliary_k > 0 ? settings.auxiliary_k : outputs / 2;
    return std::clamp<std::int64_t>(wanted, 1, std::max<std::int64_t>(1, std::ssize(dead)));
  }

  void find_dead() {
    dead.clear();
    for (std::int64_t f = 0; f < features; ++f) {
      if (silent[static_cast<std::size_t>(f)] >= settings.dead_after) {
        dead.push_back(static_cast<std::int32_t>(f));
      }
    }
  }

  // Active features, and the largest of the dead ones, whose pre-activations may be below 0.
  void encode(StopFlag stop) {
    const std::int64_t rows = x.shape()[0];
    const bool takes_k = settings.activation == FeatureActivation::top_k;
    const float* const threshold = log_threshold.present() ? weights().threshold.data() : nullptr;
    const auto half = static_cast<float>(settings.bandwidth / 2);
    std::vector<RowSelection> active(static_cast<std::size_t>(rows),
                                     threshold == nullptr
                                         ? RowSelection(takes_k ? settings.k : 0)
                                         : RowSelection(0, std::numeric_limits<float>::lowest()));
    std::vector<RowSelection> dead_active;
    const bool has_auxiliary = settings.auxiliary > 0 && !dead.empty();
    if (has_auxiliary) {
      dead_active.assign(static_cast<std::size_t>(rows),
                         RowSelection(auxiliary_count(), std::numeric_limits<float>::lowest()));
    }
    for (std::int64_t first = 0; first < features; first += columns_at_once) {
      require(!stop_requested(stop), ErrorCode::interrupted, "interrupted after {} steps", steps);
      const std::int64_t end = std::min(features, first + columns_at_once), count = end - first;
      const View<float> part(pre.data(), {rows, count});
      kernels::linear_forward(x,
                              {.weight = weights().encoder.view().slice(0, first, end),
                               .bias = weights().encoder_bias.view().slice(0, first, end)},
                              part);
      const auto dead_begin = std::ranges::lower_bound(dead, first);
      const auto dead_end = std::ranges::lower_bound(dead, end);
      parallel_ranges(rows, 16, [&](std::int64_t begin, std::int64_t last) {
        for (std::int64_t n = begin; n < last; ++n) {
          const float* const row = part.data() + n * count;
          RowSelection& own = active[static_cast<std::size_t>(n)];
          if (threshold == nullptr) {
            own.take(row, static_cast<std::int32_t>(first), static_cast<std::int32_t>(count));
          } else {
            for (std::int64_t f = 0; f < count; ++f) {
              if (row[f] <= threshold[first + f] - half) continue;
              own.add(row[f], static_cast<std::int32_t>(first + f));
            }
          }
          for (auto at = dead_begin; has_auxiliary && at != dead_end; ++at) {
            dead_active[static_cast<std::size_t>(n)].add(row[*at - first], *at);
          }
        }
      });
    }
    main.acts = sorted_rows(active);
    main.d_thresholds.clear();
    if (threshold != nullptr) {
      // 1 within the bandwidth of the threshold, until thresholds_backward().
      main.d_thresholds.resize(main.acts.values.size());
      for (std::size_t e = 0; e < main.acts.values.size(); ++e) {
        const float own = threshold[main.acts.features[e]];
        main.d_thresholds[e] = std::abs(main.acts.values[e] - own) < half ? 1.0F : 0.0F;
        if (main.acts.values[e] <= own) main.acts.values[e] = 0;
      }
    }
    auxiliary.acts = dead_active.empty() ? FeatureRows{} : sorted_rows(dead_active);
  }

  // Sets d_recons to 2 · weight · (ŷ − y) / N; returns Σ (ŷ − y)² / N.
  double main_loss() {
    const std::int64_t rows = y.shape()[0];
    dictionary->reconstruct(main.acts, main.d_recons);
    kernels::subtract(main.d_recons, y, main.d_recons);
    const double loss = kernels::squared_norm(main.d_recons.span()) / static_cast<double>(rows);
    require(std::isfinite(loss), ErrorCode::diverged,
            "the loss is not finite after {} steps: lower the learning rate", steps);
    return loss;
  }

  // The dead features reconstruct what is missing, y − ŷ = −d_recons, without b_dec.
  double auxiliary_loss(double total) {
    const std::int64_t rows = y.shape()[0];
    if (auxiliary.acts.entries() == 0) return 0;
    if (auxiliary.d_recons.shape() != main.d_recons.shape()) {
      auxiliary.d_recons = Tensor<float>(main.d_recons.shape());
    }
    dictionary->reconstruct(auxiliary.acts, auxiliary.d_recons);
    const View<const float> bias = weights().decoder_bias;
    parallel_ranges(rows, 64, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t n = begin; n < end; ++n) {
        for (std::int64_t c = 0; c < outputs; ++c) {
          auxiliary.d_recons[n * outputs + c] += main.d_recons[n * outputs + c] - bias(c);
        }
      }
    });
    const double loss =
        kernels::squared_norm(auxiliary.d_recons.span()) / static_cast<double>(rows);
    const double wanted = settings.auxiliary_k > 0 ? settings.auxiliary_k : outputs / 2;
    const double share = std::min(1.0, static_cast<double>(dead.size()) / std::max(wanted, 1.0));
    // A reconstruction that is worse than none has no gradient: dead features begin at 0.
    if (!std::isfinite(loss) || total == 0) {
      auxiliary.acts = {};
      return 0;
    }
    scale_gradient(auxiliary, settings.auxiliary * share * 2 / static_cast<double>(rows));
    return loss;
  }

  void scale_gradient(SparseLoss& loss, double factor) const {
    kernels::scale(loss.d_recons.view(), static_cast<float>(factor));
    loss.d_acts.assign(loss.acts.features.size(), 0.0F);
    dictionary->reconstruct_backward(loss.acts, loss.d_recons, loss.d_acts);
  }

  // Active entries, whose number is what jump_relu's penalty counts.
  std::int64_t active_count() const {
    if (!log_threshold.present()) return main.acts.entries();
    return std::ssize(main.acts.values) - std::ranges::count(main.acts.values, 0.0F);
  }
  // By the thresholds θ: −θ / bandwidth · d_act, and −penalty / bandwidth of the number of active
  // features, within the bandwidth. What is not active has no gradient by its pre-activation.
  void thresholds_backward() {
    const auto bandwidth = static_cast<float>(settings.bandwidth);
    const auto penalty =
        static_cast<float>(settings.l0 * warm() / static_cast<double>(x.shape()[0]));
    for (std::size_t e = 0; e < main.d_thresholds.size(); ++e) {
      const float threshold = weights().threshold[main.acts.features[e]];
      main.d_thresholds[e] *= -(threshold * main.d_acts[e] + penalty) / bandwidth;
      if (main.acts.values[e] == 0) main.d_acts[e] = 0;
    }
  }

  double warm() const {
    const double rise = settings.warmup * static_cast<double>(settings.steps);
    return rise < 1 ? 1.0 : std::min(1.0, static_cast<double>(steps + 1) / rise);
  }
  double rate() const {
    const double fall = settings.decay * static_cast<double>(settings.steps);
    const double left = static_cast<double>(settings.steps - steps);
    return settings.learning_rate * warm() * (fall < 1 ? 1.0 : std::clamp(left / fall, 0.0, 1.0));
  }

  bool resamples() const {
    const double fall = settings.decay * static_cast<double>(settings.steps);
    return settings.resample_every > 0 && (steps + 1) % settings.resample_every == 0 &&
           static_cast<double>(settings.steps - steps - 1) > fall;
  }

  void update();
  std::int64_t resample();
  void set_anew(std::int64_t feature, std::int64_t row, double norm);
  double mean_living_norm();
};

// A feature after the other: its rows' gradients are summed in the cache, and its weights and
// moments read and written once.
void DictionaryTrainer::Parts::update() {
  main.by_feature.sort(main.acts, features);
  if (auxiliary.acts.entries() > 0) auxiliary.by_feature.sort(auxiliary.acts, features);
  const auto beta1 = static_cast<float>(settings.beta1), beta2 = static_cast<float>(settings.beta2);
  const kernels::AdamWStep<float> adam{.learning_rate = static_cast<float>(rate()),
                                       .beta1 = beta1,
                                       .beta2 = beta2,
                                       .epsilon = adam_epsilon,
                                       .step = steps + 1};
  DictionaryWeights& own = weights();
  const std::int64_t batch = x.shape()[0];
  Tensor<float> d_bias(Shape{features}), d_log_threshold;
  if (log_threshold.present()) d_log_threshold = Tensor<float>(Shape{features});
  // Of b_dec: Σ d_ŷ and, where it is subtracted from what is read, −Σ_f d_b_enc(f) · W_enc(f).
  std::vector<double> d_decoder_bias = column_means(main.d_recons);
  for (double& value : d_decoder_bias) value *= static_cast<double>(batch);
  const bool subtracts = dictionary->specification().subtracts_decoder_bias;
  constexpr std::int64_t features_of_part = 64;
  const std::int64_t parts = (features + features_of_part - 1) / features_of_part;
  std::vector<std::vector<float>> subtracted(static_cast<std::size_t>(subtracts ? parts : 0));
  parallel_items(parts, [&](std::int64_t part) {
    std::vector<float> d_encoder(static_cast<std::size_t>(inputs));
    std::vector<float> d_decoder(static_cast<std::size_t>(outputs));
    std::vector<float> values, d_pre;  // of a feature's entries
    if (subtracts) {
      subtracted[static_cast<std::size_t>(part)].assign(static_cast<std::size_t>(inputs), 0.0F);
    }
    const std::int64_t last = std::min(features, (part + 1) * features_of_part);
    for (std::int64_t f = part * features_of_part; f < last; ++f) {
      std::ranges::fill(d_encoder, 0.0F);
      std::ranges::fill(d_decoder, 0.0F);
      float d_b = 0;
      for (const SparseLoss* loss : {&main, &auxiliary}) {
        if (loss->acts.entries() == 0) continue;
        const auto feature = static_cast<std::size_t>(f);
        const auto begin = static_cast<std::size_t>(loss->by_feature.begins[feature]);
        const std::size_t count =
            static_cast<std::size_t>(loss->by_feature.begins[feature + 1]) - begin;
        if (count == 0) continue;
        values.resize(count);
        d_pre.resize(count);
        for (std::size_t at = 0; at < count; ++at) {
          const auto entry = static_cast<std::size_t>(loss->by_feature.entries[begin + at]);
          values[at] = loss->acts.values[entry];
          d_pre[at] = loss->d_acts[entry];
          d_b += d_pre[at];
          if (!loss->d_thresholds.empty()) {
            d_log_threshold[f] += loss->d_thresholds[entry] * own.threshold[f];
          }
        }
        const std::span<const std::int32_t> rows =
            std::span(loss->by_feature.rows).subspan(begin, count);
        kernels::add_sparse_rows({loss->d_recons, rows, values}, d_decoder);
        kernels::add_sparse_rows({x, rows, d_pre}, d_encoder);
      }
      const auto feature = static_cast<std::int32_t>(f);
      const kernels::SparseRows encoder{own.encoder, {&feature, 1}, {&d_b, 1}};
      if (subtracts && d_b != 0) {
        kernels::add_sparse_rows(encoder, subtracted[static_cast<std::size_t>(part)]);
      }
      d_bias[f] = d_b;
      // Rows of the decoder keep length 1: what would change it is taken off the gradient.
      const View<const float> rows = own.decoder.view().reshape({features, outputs});
      float along = 0;
      kernels::multiply_sparse_rows({rows, {&feature, 1}}, d_decoder, {&along, 1});
      along = -along;
      kernels::add_sparse_rows({rows, {&feature, 1}, {&along, 1}}, d_decoder);
      kernels::adamw_step({.parameters = row_of(own.encoder, f, inputs),
                           .gradients = d_encoder,
                           .first_moment = row_of(encoder_first, f, inputs),
                           .second_moment = row_of(encoder_second, f, inputs)},
                          adam);
      kernels::adamw_step({.parameters = row_of(own.decoder, f, outputs),
                           .gradients = d_decoder,
                           .first_moment = row_of(decoder_first, f, outputs),
                           .second_moment = row_of(decoder_second, f, outputs)},
                          adam);
      normalise_row(row_of(own.decoder, f, outputs));
    }
  });
  for (const std::vector<float>& each : subtracted) {
    for (std::size_t c = 0; c < each.size(); ++c) d_decoder_bias[c] -= double{each[c]};
  }
  kernels::adamw_step({.parameters = own.encoder_bias.span(),
                       .gradients = d_bias.span(),
                       .first_moment = bias_first.span(),
                       .second_moment = bias_second.span()},
                      adam);
  if (log_threshold.present()) {
    kernels::adamw_step({.parameters = log_threshold.span(),
                         .gradients = d_log_threshold.span(),
                         .first_moment = threshold_first.span(),
                         .second_moment = threshold_second.span()},
                        adam);
    for (std::int64_t f = 0; f < features; ++f) own.threshold[f] = std::exp(log_threshold[f]);
  }
  const std::vector<float> d_b_dec(d_decoder_bias.begin(), d_decoder_bias.end());
  kernels::adamw_step({.parameters = own.decoder_bias.span(),
                       .gradients = d_b_dec,
                       .first_moment = decoder_bias_first.span(),
                       .second_moment = decoder_bias_second.span()},
                      adam);
  for (std::int64_t& rows : silent) rows += batch;
  for (std::size_t e = 0; e < main.acts.features.size(); ++e) {
    if (main.acts.values[e] != 0) silent[static_cast<std::size_t>(main.acts.features[e])] = 0;
  }
}

double DictionaryTrainer::Parts::mean_living_norm() {
  double sum = 0;
  std::int64_t living = 0;
  for (std::int64_t f = 0; f < features; ++f) {
    if (silent[static_cast<std::size_t>(f)] >= settings.dead_after) continue;
    sum += std::sqrt(kernels::squared_norm(row_of(weights().encoder, f, inputs)));
    ++living;
  }
  return living > 0 ? sum / static_cast<double>(living) : 1.0;
}

// A feature that reads a row of the batch and writes the direction of its target.
void DictionaryTrainer::Parts::set_anew(std::int64_t feature, std::int64_t row, double norm) {
  DictionaryWeights& own = weights();
  const std::span<float> encoder = row_of(own.encoder, feature, inputs);
  const std::span<float> decoder = row_of(own.decoder, feature, outputs);
  std::copy_n(x.data() + row * inputs, inputs, encoder.begin());
  normalise_row(encoder);
  for (float& value : encoder) value *= static_cast<float>(norm);
  for (std::int64_t c = 0; c < outputs; ++c) {
    decoder[static_cast<std::size_t>(c)] = y[row * outputs + c] - own.decoder_bias[c];
  }
  normalise_row(decoder);
  own.encoder_bias[feature] = bias_first[feature] = bias_second[feature] = 0;
  for (Tensor<float>* moments : {&encoder_first, &encoder_second}) {
    std::ranges::fill(row_of(*moments, feature, inputs), 0.0F);
  }
  for (Tensor<float>* moments : {&decoder_first, &decoder_second}) {
    std::ranges::fill(row_of(*moments, feature, outputs), 0.0F);
  }
  if (log_threshold.present()) {
    log_threshold[feature] = static_cast<float>(std::log(settings.first_threshold));
    own.threshold[feature] = static_cast<float>(settings.first_threshold);
    threshold_first[feature] = threshold_second[feature] = 0;
  }
  silent[static_cast<std::size_t>(feature)] = 0;
}

// Of the features that are dead after this step; returns how many.
std::int64_t DictionaryTrainer::Parts::resample() {
  find_dead();
  const std::int64_t rows = x.shape()[0];
  std::vector<double> reached;  // sums of the squares of rows' losses, d_recons being 2/N (ŷ − y)
  double sum = 0;
  for (std::int64_t n = 0; n < rows; ++n) {
    const double loss = kernels::squared_norm(row_of(main.d_recons, n, outputs));
    reached.push_back(sum += loss * loss);
  }
  if (dead.empty() || !(sum > 0)) return 0;
  const double norm = settings.resample_norm * mean_living_norm();
  RandomStream random(settings.seed, resample_stream + static_cast<std::uint64_t>(steps));
  for (const std::int32_t feature : dead) {
    const auto found = std::ranges::upper_bound(reached, random.uniform() * sum);
    set_anew(feature, std::min<std::int64_t>(found - reached.begin(), rows - 1), norm);
  }
  return std::ssize(dead);
}

std::int64_t dictionary_training_bytes(const DictionarySpecification& specification,
                                       const DictionarySettings& settings, std::int64_t rows) {
  const std::int64_t widths = specification.inputs + specification.outputs;
  const std::int64_t weights = settings.features * (widths + 1);
  const std::int64_t active = settings.activation == FeatureActivation::top_k
                                  ? settings.k
                                  : settings.features / 8;  // as it begins
  const std::int64_t dead = settings.auxiliary > 0 ? specification.outputs / 2 : 0;
  constexpr std::int64_t bytes_of_entry = 40;  // in the rows' order, and the features'
  return 4 * (3 * weights + rows * (2 * widths + std::min(columns_at_once, settings.features))) +
         rows * (active + dead) * bytes_of_entry;
}

DictionaryTrainer::DictionaryTrainer(DictionarySpecification specification,
                                     const DictionarySettings& settings, View<const float> first,
                                     View<const float> first_targets)
    : parts_(std::make_unique<Parts>()) {
  using enum ErrorCode;
  Parts& own = *parts_;
  own.settings = settings;
  specification.activation = settings.activation;
  specification.features = settings.features;
  specification.k = settings.activation == FeatureActivation::top_k ? settings.k : 0;
  specification.subtracts_decoder_bias = !specification.is_transcoder();
  require(settings.activation == FeatureActivation::top_k ||
              settings.activation == FeatureActivation::relu ||
              settings.activation == FeatureActivation::jump_relu,
          unsupported,
          "dictionaries of the architecture {} cannot be trained, expected topk, standard or "
          "jumprelu",
          activation_name(settings.activation));
  require(settings.bandwidth > 0 && settings.first_threshold > 0, invalid_argument,
          "a bandwidth of {} and a first threshold of {}, expected both above 0",
          settings.bandwidth, settings.first_threshold);
  require(settings.features >= 1 && settings.features <= (std::int64_t{1} << 26), invalid_argument,
          "a dictionary of {} features, expected 1 to {}", settings.features,
          std::int64_t{1} << 26);
  require(settings.activation != FeatureActivation::top_k ||
              (settings.k >= 1 && settings.k <= settings.features),
          invalid_argument, "k is {}, expected 1 to {}, the number of features", settings.k,
          settings.features);
  require(settings.steps >= 1 && settings.learning_rate > 0, invalid_argument,
          "{} steps at a learning rate of {}, expected both above 0", settings.steps,
          settings.learning_rate);
  require(
      settings.resample_every >= 0 && settings.resample_norm > 0, invalid_argument,
      "dead features are set anew every {} steps with a norm of {}, expected at least 0 and more "
      "than 0",
      settings.resample_every, settings.resample_norm);
  own.inputs = specification.inputs;
  own.outputs = specification.outputs;
  own.features = settings.features;
  const auto scale_of = [](View<const float> rows) {
    const double square = mean_square(rows);
    require(std::isfinite(square) && square > 0, invalid_argument,
            "the activations that a dictionary is trained on have a mean square of {}, expected a "
            "number above 0",
            square);
    return 1 / std::sqrt(square);
  };
  own.input_scale = scale_of(first);
  own.output_scale = specification.is_transcoder() ? scale_of(first_targets) : own.input_scale;

  const std::int64_t features = own.features, inputs = own.inputs, outputs = own.outputs;
  DictionaryWeights weights;
  weights.encoder = Tensor<float>(Shape{features, inputs});
  weights.encoder_bias = Tensor<float>(Shape{features});
  weights.decoder = Tensor<float>(Shape{features, 1, outputs});
  weights.decoder_bias = Tensor<float>(Shape{outputs});
  const kernels::NormalDeviates deviates{
      .seed = settings.seed, .first_stream = 1, .begin = 0, .end = features * outputs};
  kernels::fill_normal({weights.decoder.data(), {features, outputs}}, deviates);
  for (std::int64_t f = 0; f < features; ++f) {
    normalise_row(row_of(weights.decoder, f, outputs));
  }
  if (inputs == outputs) {  // the encoder begins as the decoder's transpose
    std::ranges::copy(weights.decoder.span(), weights.encoder.data());
  } else {
    kernels::fill_normal(weights.encoder, {.seed = settings.seed,
                                           .first_stream = 1 + static_cast<std::uint64_t>(features),
                                           .begin = 0,
                                           .end = features * inputs});
    for (std::int64_t f = 0; f < features; ++f) {
      normalise_row(row_of(weights.encoder, f, inputs));
    }
  }
  const std::vector<double> means = column_means(first_targets);
  for (std::int64_t c = 0; c < outputs; ++c) {
    weights.decoder_bias[c] =
        static_cast<float>(means[static_cast<std::size_t>(c)] * own.output_scale);
  }
  own.encoder_first = Tensor<float>(weights.encoder.shape());
  own.encoder_second = Tensor<float>(weights.encoder.shape());
  own.decoder_first = Tensor<float>(weights.decoder.shape());
  own.decoder_second = Tensor<float>(weights.decoder.shape());
  own.bias_first = Tensor<float>(weights.encoder_bias.shape());
  own.bias_second = Tensor<float>(weights.encoder_bias.shape());
  own.decoder_bias_first = Tensor<float>(weights.decoder_bias.shape());
  own.decoder_bias_second = Tensor<float>(weights.decoder_bias.shape());
  if (settings.activation == FeatureActivation::jump_relu) {
    weights.threshold = Tensor<float>(Shape{features});
    weights.threshold.fill(static_cast<float>(settings.first_threshold));
    own.log_threshold = Tensor<float>(Shape{features});
    own.log_threshold.fill(static_cast<float>(std::log(settings.first_threshold)));
    own.threshold_first = Tensor<float>(Shape{features});
    own.threshold_second = Tensor<float>(Shape{features});
  }
  own.silent.assign(static_cast<std::size_t>(features), 0);
  own.dictionary = std::make_unique<Dictionary>(std::move(specification), std::move(weights),
                                                "the dictionary in training");
}

DictionaryTrainer::~DictionaryTrainer() = default;

std::int64_t DictionaryTrainer::steps() const { return parts_->steps; }

DictionaryStep DictionaryTrainer::step(View<const float> x, View<const float> y, StopFlag stop) {
  Parts& own = *parts_;
  require_shape(x, Shape{x.extent(0), own.inputs}, "x");
  require_shape(y, Shape{x.extent(0), own.outputs}, "y");
  const auto rows = static_cast<double>(x.extent(0));
  own.read_batch(x, y);
  own.find_dead();
  own.encode(stop);
  DictionaryStep report{.dead = std::ssize(own.dead)};
  report.loss = own.main_loss();
  report.active = static_cast<double>(own.active_count()) / rows;
  const std::vector<double> means = column_means(own.y);
  double spread = kernels::squared_norm(own.y.span()) / rows;
  for (const double mean : means) spread -= mean * mean;
  report.explained = spread > 0 ? 1 - report.loss / spread : 0;
  report.auxiliary = own.auxiliary_loss(report.loss);
  own.scale_gradient(own.main, 2 / rows);
  if (own.settings.activation == FeatureActivation::relu && own.settings.l1 > 0) {
    const double weight = own.settings.l1 * own.warm();
    double sum = 0;
    for (const float value : own.main.acts.values) sum += double{value};
    report.penalty = weight * sum / rows;
    for (float& gradient : own.main.d_acts) gradient += static_cast<float>(weight / rows);
  }
  if (own.log_threshold.present()) {
    report.penalty = own.settings.l0 * own.warm() * report.active;
    own.thresholds_backward();
  }
  own.update();
  if (own.resamples()) report.resampled = own.resample();
  ++own.steps;
  return report;
}

Dictionary DictionaryTrainer::dictionary() const {
  const Parts& own = *parts_;
  const DictionaryWeights& from = own.dictionary->weights();
  DictionaryWeights to;
  const auto copied = [](const Tensor<float>& values, double factor) {
    Tensor<float> copy(values.shape());
    for (std::int64_t i = 0; i < values.size(); ++i) {
      copy[i] = static_cast<float>(values[i] * factor);
    }
    return copy;
  };
  to.encoder = copied(from.encoder, own.input_scale);
  to.encoder_bias = copied(from.encoder_bias, 1);
  to.decoder = copied(from.decoder, 1 / own.output_scale);
  to.decoder_bias = copied(from.decoder_bias, 1 / own.output_scale);
  if (from.threshold.present()) to.threshold = copied(from.threshold, 1);
  return {own.dictionary->specification(), std::move(to), "the trained dictionary"};
}

}  // namespace heed
