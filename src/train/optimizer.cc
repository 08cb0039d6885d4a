#include "train/optimizer.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <numbers>

#include "base/error.h"
#include "base/files.h"
#include "checkpoint/safetensors.h"
#include "kernels/elements.h"
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

constexpr const char* recent_name = "parameters";
constexpr const char* recent_extension = ".safetensors";

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

void Optimizer::place(Device device) {
  for (Tensor<float>* moment : {&first_moment_, &second_moment_}) {
    if (moment->device() == device) continue;
    Tensor<float> there(moment->shape(), device);
    kernels::copy(*moment, there);
    *moment = std::move(there);
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
  // Those of a process that is not alone are the processor's, whatever passes read.
  const bool is_here = first_moment_.device().is_cpu();
  const std::span<float> values = is_here ? parameters.all() : parameters.placed_all();
  for (const Piece& piece : pieces_) {
    const auto [begin, size] = std::pair(piece.range.begin, piece.range.size());
    update.weight_decay = piece.decays ? static_cast<float>(settings_.weight_decay) : 0.0F;
    kernels::adamw_step({.parameters = values.subspan(begin, size),
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
    copy_bytes(first_moment_.data() + to, first.data() + from, common.size() * sizeof(float));
    copy_bytes(second_moment_.data() + to, second.data() + from, common.size() * sizeof(float));
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

RecentParameters::RecentParameters(std::filesystem::path directory, std::int64_t max_count)
    : directory_(std::move(directory)), max_count_(max_count) {}

std::filesystem::path RecentParameters::file(std::int64_t step) const {
  return directory_ / fmt::format("{:08}{}", step, recent_extension);
}

std::vector<std::int64_t> RecentParameters::steps() const {
  std::vector<std::int64_t> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory_, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::filesystem::path path = entry->path();
    const std::string stem = path.stem().string();
    std::int64_t step = 0;
    const auto read = std::from_chars(stem.data(), stem.data() + stem.size(), step);
    const bool is_number = read.ec == std::errc() && read.ptr == stem.data() + stem.size();
    if (is_number && path.extension() == recent_extension) found.push_back(step);
  }
  std::ranges::sort(found);
  return found;
}

void RecentParameters::forget_after(std::int64_t step) {
  if (max_count_ == 0) return;
  for (const std::int64_t each : steps()) {
    if (each > step) remove_file(file(each));
  }
}

void RecentParameters::add(std::int64_t step, const Parameters& parameters) {
  if (max_count_ == 0) return;
  make_directory(directory_);
  const OutgoingTensor tensor{
      .name = recent_name,
      .dtype = DType::f32,
      .shape = Shape{parameters.size},
      .produce = [&](const ByteSink& sink) {
        parameters.numbers([&](std::span<const float> piece) { sink(std::as_bytes(piece)); });
      }};
  write_safetensors(file(step), std::span(&tensor, 1));
  const std::vector<std::int64_t> kept = steps();
  for (std::int64_t i = 0; i < std::ssize(kept) - max_count_; ++i) {
    remove_file(file(kept[static_cast<std::size_t>(i)]));
  }
}

std::int64_t RecentParameters::count() const { return max_count_ == 0 ? 0 : std::ssize(steps()); }

std::int64_t RecentParameters::average(std::span<float> parameters,
                                       const std::vector<ArenaRange>& ranges) const {
  std::vector<SafetensorsFile> files;
  std::vector<const std::byte*> values;
  for (const std::int64_t step : steps()) {
    const SafetensorsFile& opened = files.emplace_back(SafetensorsFile::open(file(step)));
    const TensorEntry* entry = opened.find(recent_name);
    require(entry != nullptr && entry->dtype == DType::f32 &&
                entry->shape == Shape{std::ssize(parameters)},
            ErrorCode::corrupt_data, "{}: expected the {} parameters of this run's model",
            opened.source(), parameters.size());
    values.push_back(entry->bytes.data());
  }
  check(!values.empty(), "parameters to average");
  for (const ArenaRange& range : ranges) {
    for (std::size_t i = range.begin; i < range.end; ++i) {
      double sum = 0;
      for (const std::byte* const each : values) {
        float value = 0;
        std::memcpy(&value, each + i * sizeof(float), sizeof(float));
        sum += value;
      }
      parameters[i] = static_cast<float>(sum / static_cast<double>(values.size()));
    }
  }
  return std::ssize(values);
}

}  // namespace heed
