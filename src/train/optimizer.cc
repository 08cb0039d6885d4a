#include "train/optimizer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "base/error.h"
#include "kernels/kernels.h"

namespace heed {
namespace {

std::vector<ArenaRange> whole_arena(const ArenaLayout& layout) {
  return {{0, static_cast<std::size_t>(layout.size())}};
}

std::string part_name(const PartRange& range, const Architecture& architecture) {
  const auto& [site, layer, piece] = range.part;
  const std::string prefix(site_prefix(site));
  if (layer < 0) return prefix + "embedding";
  return prefix + (layer < architecture.of(site).layers ? std::to_string(layer) : "final");
}

}  // namespace

Optimizer::Optimizer(const ArenaLayout& layout, const TrainSettings& settings)
    : Optimizer(layout, settings, whole_arena(layout)) {}

Optimizer::Optimizer(const ArenaLayout& layout, const TrainSettings& settings,
                     const std::vector<ArenaRange>& own)
    : settings_(settings) {
  // Neighbours that decay alike become one run. The padding between tensors is zero in parameters
  // and gradients and stays so.
  const auto& entries = layout.entries();
  const auto decays = [&](std::size_t i) { return entries[i].shape.rank() >= 2; };
  for (std::size_t i = 0; i < entries.size();) {
    std::size_t next = i + 1;
    while (next < entries.size() && decays(next) == decays(i)) ++next;
    const auto begin = static_cast<std::size_t>(entries[i].offset);
    const auto end =
        static_cast<std::size_t>(next < entries.size() ? entries[next].offset : layout.size());
    add_pieces({.range = {begin, end}, .decays = decays(i)}, own);
    i = next;
  }
  std::size_t count = 0;
  for (const ArenaRange& range : own) count += range.size();
  first_moment_ = Tensor<float>(Shape{static_cast<std::int64_t>(count)});
  second_moment_ = Tensor<float>(Shape{static_cast<std::int64_t>(count)});
}

void Optimizer::add_pieces(const Piece& run, const std::vector<ArenaRange>& own) {
  std::size_t moment = 0;
  for (const ArenaRange& each : own) {
    const ArenaRange common{std::max(each.begin, run.range.begin),
                            std::min(each.end, run.range.end)};
    if (common.begin < common.end) {
      pieces_.push_back({common, moment + (common.begin - each.begin), run.decays});
    }
    moment += each.size();
  }
}

double Optimizer::squared_norm(const Gradients& gradients) const {
  // Pieces side by side are one run of gradients.
  double sum = 0;
  for (std::size_t i = 0; i < pieces_.size();) {
    ArenaRange run = pieces_[i].range;
    for (++i; i < pieces_.size() && pieces_[i].range.begin == run.end; ++i) {
      run.end = pieces_[i].range.end;
    }
    sum += kernels::squared_norm(gradients.all().subspan(run.begin, run.size()));
  }
  return sum;
}

double Optimizer::update(std::int64_t step, const Gradients& gradients, Parameters& parameters) {
  const double norm = std::sqrt(squared_norm(gradients));
  update(step, gradients, parameters, {.gradient_norm = norm});
  return norm;
}

void Optimizer::update(std::int64_t step, const Gradients& gradients, Parameters& parameters,
                       const UpdateScale& scale) {
  const bool too_long = settings_.clip > 0 && scale.gradient_norm > settings_.clip;
  kernels::AdamWStep<float> update{
      .learning_rate = static_cast<float>(learning_rate_at(settings_, step) * scale.rate_factor),
      .beta1 = static_cast<float>(settings_.beta1),
      .beta2 = static_cast<float>(settings_.beta2),
      .epsilon = static_cast<float>(settings_.epsilon),
      .gradient_scale = too_long ? static_cast<float>(settings_.clip / scale.gradient_norm) : 1.0F,
      .step = step + 1};
  for (const Piece& piece : pieces_) {
    const auto [begin, size] = std::pair(piece.range.begin, piece.range.size());
    update.weight_decay = piece.decays ? static_cast<float>(settings_.weight_decay) : 0.0F;
    kernels::adamw_step({.parameters = parameters.all().subspan(begin, size),
                         .gradients = gradients.all().subspan(begin, size),
                         .first_moment = first_moment_.span().subspan(piece.moment, size),
                         .second_moment = second_moment_.span().subspan(piece.moment, size)},
                        update);
  }
}

void Optimizer::set_moments(const ArenaRange& range, std::span<const std::byte> first,
                            std::span<const std::byte> second) {
  check(first.size() == range.size() * sizeof(float) && second.size() == first.size(),
        "moments are of their range");
  const auto ends_before = [&](const Piece& piece) { return piece.range.end <= range.begin; };
  for (auto piece = std::ranges::partition_point(pieces_, ends_before);
       piece != pieces_.end() && piece->range.begin < range.end; ++piece) {
    const ArenaRange common{std::max(piece->range.begin, range.begin),
                            std::min(piece->range.end, range.end)};
    const std::size_t to = piece->moment + (common.begin - piece->range.begin);
    const std::size_t from = (common.begin - range.begin) * sizeof(float);
    std::memcpy(first_moment_.data() + to, first.data() + from, common.size() * sizeof(float));
    std::memcpy(second_moment_.data() + to, second.data() + from, common.size() * sizeof(float));
  }
}

double learning_rate_at(const TrainSettings& settings, std::int64_t step) {
  const double highest = settings.learning_rate;
  if (step < settings.warmup_steps) {
    return highest * static_cast<double>(step + 1) / static_cast<double>(settings.warmup_steps + 1);
  }
  if (settings.schedule == Schedule::constant) return highest;
  if (settings.schedule == Schedule::inverse_sqrt) {
    return highest * std::sqrt(static_cast<double>(settings.warmup_steps + 1) /
                               static_cast<double>(step + 1));
  }
  const std::int64_t last = settings.decay_steps > 0 ? settings.decay_steps : settings.steps;
  const std::int64_t falling = std::max<std::int64_t>(last - settings.warmup_steps, 1);
  const double progress = std::min(
      1.0, static_cast<double>(step - settings.warmup_steps) / static_cast<double>(falling));
  const double remaining = settings.schedule == Schedule::linear
                               ? 1.0 - progress
                               : 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
  return settings.min_learning_rate + remaining * (highest - settings.min_learning_rate);
}

std::vector<PartNorm> gradient_norms(const Architecture& architecture, const Gradients& gradients,
                                     const std::vector<ArenaRange>& own, Group& group) {
  std::vector<PartNorm> norms;
  std::vector<double> squares;
  for (const PartRange& range : part_ranges(architecture)) {
    double square = 0;
    for (const ArenaRange& each : own) {
      const std::size_t begin = std::max(each.begin, range.begin);
      const std::size_t end = std::min(each.end, range.end);
      if (begin < end) square += kernels::squared_norm(gradients.all().subspan(begin, end - begin));
    }
    norms.push_back({.part = part_name(range, architecture)});
    squares.push_back(square);
  }
  squares = sum(group, squares);
  for (std::size_t i = 0; i < norms.size(); ++i) norms[i].norm = std::sqrt(squares[i]);
  return norms;
}

}  // namespace heed
