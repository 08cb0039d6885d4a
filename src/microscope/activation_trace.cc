#include "microscope/activation_trace.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "microscope/point_names.h"
#include "model/vocabulary.h"

namespace heed {
namespace {

// "1.25 GiB", "980.0 MiB", "1344 bytes".
std::string size_text(std::int64_t bytes) {
  constexpr double mebibyte = 1024.0 * 1024.0;
  const auto size = static_cast<double>(bytes);
  if (size >= 1024 * mebibyte) return fmt::format("{:.2f} GiB", size / mebibyte / 1024);
  return size >= mebibyte ? fmt::format("{:.1f} MiB", size / mebibyte)
                          : fmt::format("{} bytes", bytes);
}

// Wanted indices of `count`, ascending and each once; none means all.
std::vector<std::int64_t> chosen(const std::vector<std::int64_t>& wanted, std::int64_t count,
                                 std::string_view what) {
  std::vector<std::int64_t> indices = wanted;
  if (indices.empty()) {
    indices.resize(static_cast<std::size_t>(count));
    std::iota(indices.begin(), indices.end(), 0);
    return indices;
  }
  const bool from_the_end = what == "position";
  for (std::int64_t& index : indices) {
    require(index < count && index >= (from_the_end ? -count : 0), ErrorCode::invalid_argument,
            "{} {} does not exist: there are {}s 0 to {}{}", what, index, what, count - 1,
            from_the_end ? ", or from the end from -1 on" : "");
    if (index < 0) index += count;
  }
  std::ranges::sort(indices);
  indices.erase(std::ranges::unique(indices).begin(), indices.end());
  return indices;
}

// (B, T, width) for points that are rows, (B, T, H, D) for those that are heads.
std::int64_t width_of(const GptConfig& config, Point point) {
  switch (point) {
    case Point::norm_1_scale:
    case Point::norm_2_scale:
    case Point::final_scale: return 1;
    case Point::query:
    case Point::key:
    case Point::value:
    case Point::mixed_values: return config.head_size;
    case Point::neurons_pre:
    case Point::neurons_post: return config.feed_forward;
    default: return config.channels;
  }
}

bool is_of_heads(Point point) {
  return point == Point::query || point == Point::key || point == Point::value ||
         point == Point::mixed_values;
}

bool is_of_planes(Point point) { return point == Point::scores || point == Point::pattern; }

bool is_gradient(std::string_view name) { return name.ends_with(gradient_suffix); }

// The sites that a request names, in the order of a pass: of its gradients, or of the rest.
std::vector<Site> requested_sites(const TraceRequest& request, const GptConfig& config,
                                  bool gradients) {
  const std::vector<std::int64_t> layers = chosen(request.layers, config.layers, "layer");
  std::vector<Site> wanted;
  for (const std::string& point : request.points) {
    if (is_gradient(point) != gradients) continue;
    std::string_view name = point;
    if (gradients) name.remove_suffix(gradient_suffix.size());
    for (const Site& site : sites_named(name, config.layers)) {
      const bool in_layers = site.layer < 0 || std::ranges::binary_search(layers, site.layer);
      if (in_layers) wanted.push_back(site);
    }
  }
  std::vector<Site> ordered;
  for (const Site& site : all_sites(config.layers)) {
    if (std::ranges::find(wanted, site) != wanted.end()) ordered.push_back(site);
  }
  return ordered;
}

}  // namespace

ActivationTrace::ActivationTrace(const GptConfig& config, const TraceRequest& request,
                                 std::int64_t batch, std::int64_t positions,
                                 std::int64_t more_bytes)
    : heads_(chosen(request.heads, config.heads, "head")),
      positions_(chosen(request.positions, positions, "position")),
      batch_(batch),
      all_positions_(positions),
      config_(config) {
  for (const Site& site : requested_sites(request, config, false)) {
    activations_.push_back(make(site, false));
  }
  for (const Site& site : requested_sites(request, config, true)) {
    gradients_.push_back(make(site, true));
  }
  require(!activations_.empty() || !gradients_.empty(), ErrorCode::invalid_argument,
          "the request names no point in the layers that it names");

  // Planes that the fast path does not have are made whole, one layer at a time, before the wanted
  // part is copied.
  std::int64_t needed = more_bytes;
  std::int64_t largest_plane = 0;
  for (const std::vector<Kept>* all : {&activations_, &gradients_}) {
    for (const Kept& kept : *all) {
      needed += elements(kept) * static_cast<std::int64_t>(sizeof(float));
      if (kept.of_planes) {
        largest_plane =
            batch * config.heads * positions * positions * static_cast<std::int64_t>(sizeof(float));
      }
    }
  }
  needed += largest_plane;
  require(needed <= request.budget, ErrorCode::invalid_argument,
          "this trace needs {}, more than its budget of {}: ask for fewer points, layers, heads or "
          "positions, or allow more",
          size_text(needed), size_text(request.budget));
  for (std::vector<Kept>* all : {&activations_, &gradients_}) {
    for (Kept& kept : *all) {
      const bool masked = kept.site.point == Point::scores && all == &activations_;
      kept.array.values.assign(static_cast<std::size_t>(elements(kept)),
                               masked ? -std::numeric_limits<float>::infinity() : 0.0F);
    }
  }
}

ActivationTrace::Kept ActivationTrace::make(const Site& site, bool gradient) const {
  Kept kept{.site = site,
            .of_heads = is_of_heads(site.point),
            .of_planes = is_of_planes(site.point),
            .array = {.name = site_name(site)}};
  if (gradient) kept.array.name += gradient_suffix;
  const std::int64_t heads = std::ssize(heads_), positions = std::ssize(positions_);
  if (kept.of_planes) {
    kept.array.shape = {batch_, heads, positions, all_positions_};
  } else if (kept.of_heads) {
    kept.array.shape = {batch_, positions, heads, width_of(config_, site.point)};
  } else {
    kept.array.shape = {batch_, positions, width_of(config_, site.point)};
  }
  return kept;
}

std::int64_t ActivationTrace::elements(const Kept& kept) const {
  return std::accumulate(kept.array.shape.begin(), kept.array.shape.end(), std::int64_t{1},
                         std::multiplies{});
}

ActivationTrace::Kept* ActivationTrace::find(std::vector<Kept>& kept, const Site& site) {
  const auto found = std::ranges::find(kept, site, &Kept::site);
  return found == kept.end() ? nullptr : &*found;
}

bool ActivationTrace::wants(const Site& site) const {
  return std::ranges::find(activations_, site, &Kept::site) != activations_.end();
}

bool ActivationTrace::wants_gradient(const Site& site) const {
  return std::ranges::find(gradients_, site, &Kept::site) != gradients_.end();
}

void ActivationTrace::observe(const Site& site, View<const float> values) {
  if (Kept* kept = find(activations_, site)) keep(*kept, values);
}

void ActivationTrace::observe_gradient(const Site& site, View<const float> values) {
  if (Kept* kept = find(gradients_, site)) keep(*kept, values);
}

void ActivationTrace::keep(Kept& kept, View<const float> values) const {
  const std::int64_t added = values.extent(kept.of_planes ? 2 : 1);
  require(values.extent(0) == batch_ && kept.seen + added <= all_positions_,
          ErrorCode::invalid_argument,
          "{} positions of {} sequences after {} are more than the {} of {} that the trace is for",
          added, values.extent(0), kept.seen, all_positions_, batch_);
  if (kept.of_planes) {
    keep_planes(kept, values);
  } else {
    const std::int64_t width = kept.array.shape.back();
    for (std::int64_t b = 0; b < batch_; ++b) {
      for (std::int64_t row = 0; row < std::ssize(positions_); ++row) {
        const std::int64_t t = positions_[static_cast<std::size_t>(row)] - kept.seen;
        if (t < 0 || t >= added) continue;
        const std::int64_t heads = kept.of_heads ? std::ssize(heads_) : 1;
        float* to = kept.array.values.data() + (b * std::ssize(positions_) + row) * heads * width;
        for (std::int64_t head = 0; head < heads; ++head, to += width) {
          const float* from = kept.of_heads
                                  ? &values(b, t, heads_[static_cast<std::size_t>(head)], 0)
                                  : &values(b, t, 0);
          std::copy_n(from, width, to);
        }
      }
    }
  }
  kept.seen += added;
}

// Rows of (B, H, T, S), whose S may still be less than it will be.
void ActivationTrace::keep_planes(Kept& kept, View<const float> values) const {
  const std::int64_t added = values.extent(2);
  float* to = kept.array.values.data();
  for (std::int64_t b = 0; b < batch_; ++b) {
    for (const std::int64_t head : heads_) {
      for (const std::int64_t position : positions_) {
        const std::int64_t t = position - kept.seen;
        if (t >= 0 && t < added) std::copy_n(&values(b, head, t, 0), values.extent(3), to);
        to += all_positions_;
      }
    }
  }
}

Trace ActivationTrace::take() {
  Trace trace;
  for (std::vector<Kept>* all : {&activations_, &gradients_}) {
    for (Kept& kept : *all) {
      const auto rows = std::ranges::lower_bound(positions_, kept.seen) - positions_.begin();
      if (kept.seen < all_positions_) {
        // What is cut stands at the end of each sequence's, or each plane's, rows.
        std::vector<std::int64_t>& shape = kept.array.shape;
        const std::size_t dimension = kept.of_planes ? 2 : 1;
        std::int64_t outer = 1, inner = 1;
        for (std::size_t i = 0; i < dimension; ++i) outer *= shape[i];
        for (std::size_t i = dimension + 1; i < shape.size(); ++i) inner *= shape[i];
        const std::int64_t memory = kept.of_planes ? kept.seen : inner;
        std::vector<float> cut;
        for (std::int64_t o = 0; o < outer; ++o) {
          for (std::int64_t row = 0; row < rows; ++row) {
            const float* from = kept.array.values.data() + (o * shape[dimension] + row) * inner;
            cut.insert(cut.end(), from, from + memory);
          }
        }
        shape[dimension] = rows;
        if (kept.of_planes) shape.back() = memory;
        kept.array.values = std::move(cut);
      }
      trace.arrays.push_back(std::move(kept.array));
    }
  }
  activations_.clear();
  gradients_.clear();
  return trace;
}

bool asks_for_gradients(const TraceRequest& request) {
  return std::ranges::any_of(request.points, is_gradient);
}

namespace {

// d_final_norm (T, C) of the target.
void start_gradient(const Gpt& gpt, std::span<const std::int32_t> tokens,
                    const GradientTarget& target, View<const float> final_norm,
                    View<float> d_final_norm) {
  const auto positions = std::ssize(tokens);
  if (target.logits.empty()) {
    require(positions >= 2, ErrorCode::invalid_argument,
            "one token predicts nothing that its loss could be measured by");
    std::vector<std::int32_t> next(tokens.begin() + 1, tokens.end());
    next.push_back(kernels::ignored_target);
    Tensor<float> losses(Shape{positions});
    VocabularyLoss loss(gpt.config().vocabulary_size);
    loss.forward_backward(
        final_norm, gpt.parameters().head(), {next.data(), {positions}}, losses,
        {.scale = 1.0F / static_cast<float>(positions - 1), .d_x = d_final_norm, .d_head = {}});
    return;
  }
  // A logit is a row of the head times the final norm.
  std::ranges::fill(d_final_norm.span(), 0.0F);
  const View<const float> head = gpt.parameters().head().weight;
  for (const GradientTarget::Logit& logit : target.logits) {
    require(logit.token >= 0 && logit.token < gpt.config().vocabulary_size,
            ErrorCode::invalid_argument, "token {} is outside the vocabulary of {}", logit.token,
            gpt.config().vocabulary_size);
    const std::int64_t row = chosen({logit.position}, positions, "position").front();
    for (std::int64_t channel = 0; channel < head.extent(1); ++channel) {
      d_final_norm(row, channel) +=
          static_cast<float>(logit.weight * static_cast<double>(head(logit.token, channel)));
    }
  }
}

}  // namespace

Trace trace_prompt(const Gpt& gpt, std::span<const std::int32_t> tokens,
                   const TraceRequest& request, const GradientTarget& target) {
  require(!tokens.empty(), ErrorCode::invalid_argument, "there are no tokens to read");
  const auto positions = std::ssize(tokens);
  const GptConfig& config = gpt.config();
  require(positions <= config.context, ErrorCode::invalid_argument,
          "the text has {} tokens, more than the model's context of {}", positions, config.context);
  const bool gradients = asks_for_gradients(request);
  const std::int64_t more =
      gradients ? GptActivations::bytes_needed(config, 1, positions, Keep::residuals) +
                      GptActivationGradients::bytes_needed(config, positions)
                : 0;
  ActivationTrace trace(config, request, 1, positions, more);
  const View<const std::int32_t> read(tokens.data(), {1, positions});
  const Pass pass{.positions = positions, .probe = &trace};
  const GptActivations activations(config, 1, positions,
                                   gradients ? Keep::residuals : Keep::one_block);
  gpt.forward(read, pass, activations);
  if (gradients) {
    const GptActivationGradients buffers(config, positions);
    start_gradient(gpt, tokens, target, activations.final_norm(), buffers.norm);
    gpt.backward(read, pass, activations, buffers, nullptr);
  }
  Trace taken = trace.take();
  taken.tokens.assign(tokens.begin(), tokens.end());
  return taken;
}

Trace trace_step(const Gpt& gpt, View<const std::int32_t> tokens, View<const std::int32_t> targets,
                 const TraceRequest& request) {
  require(tokens.rank() == 2 && tokens.size() > 0, ErrorCode::invalid_argument,
          "a step reads tokens (B, T), not {}", tokens.shape().text());
  const std::int64_t batch = tokens.extent(0), positions = tokens.extent(1);
  ActivationTrace trace(gpt.config(), request, batch, positions);
  TrainingBuffers buffers(gpt.config(), batch, positions);
  GptGradients gradients(gpt.config());
  const std::int64_t ignored = std::ranges::count(targets.span(), kernels::ignored_target);
  const float scale = 1.0F / static_cast<float>(std::max<std::int64_t>(tokens.size() - ignored, 1));
  gpt.loss_and_gradients(tokens, targets, {.scale = scale, .probe = &trace}, buffers, gradients);
  Trace taken = trace.take();
  taken.tokens.assign(tokens.span().begin(), tokens.span().end());
  return taken;
}

const TracedArray* Trace::find(std::string_view name) const {
  const auto found = std::ranges::find(arrays, name, &TracedArray::name);
  return found == arrays.end() ? nullptr : &*found;
}

const TracedArray& Trace::at(std::string_view name) const {
  const TracedArray* found = find(name);
  require(found != nullptr, ErrorCode::not_found, "'{}' was not traced", name);
  return *found;
}

}  // namespace heed
