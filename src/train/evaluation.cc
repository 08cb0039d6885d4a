#include "train/evaluation.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "train/token_data.h"

namespace heed {
namespace {

EvaluationOptions completed(EvaluationOptions options, const StackSpecification& config) {
  if (options.sequence_length == 0) options.sequence_length = config.context;
  if (options.stride == 0) options.stride = options.sequence_length;
  require(options.sequence_length >= 1 && options.sequence_length <= config.context,
          ErrorCode::invalid_argument,
          "windows of {} tokens: expected 1 to {}, the model's context", options.sequence_length,
          config.context);
  require(options.stride >= 1 && options.stride <= options.sequence_length,
          ErrorCode::invalid_argument, "a stride of {} for windows of {} tokens", options.stride,
          options.sequence_length);
  require(options.batch_size >= 1 && options.batches >= 0, ErrorCode::invalid_argument,
          "{} batches of {} windows", options.batches, options.batch_size);
  check(options.ring == nullptr || (options.stop == nullptr && !options.scored),
        "a ring evaluates to the end, and gives means alone");
  return options;
}

EvaluationBuffers buffers_for(const StackSpecification& config, const EvaluationOptions& options,
                              Device device) {
  const PassShape pass(options.batch_size, options.sequence_length, options.ring);
  return {config, pass.batch, pass.positions, options.cache_type, device};
}

}  // namespace

Evaluator::Evaluator(const StackSpecification& config, const EvaluationOptions& options)
    : options_(completed(options, config)),
      end_of_text_(static_cast<std::int32_t>(config.end_of_text)),
      buffers_(buffers_for(config, options_, Device{})),
      tokens_(Shape{options_.batch_size, options_.sequence_length}),
      targets_(Shape{options_.batch_size, options_.sequence_length}) {}

std::vector<Evaluator::Window> Evaluator::plan_documents(const TokenSequence& data) const {
  const auto starts = document_starts(data, end_of_text_, options_.sequence_length);
  std::vector<Window> windows;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::int64_t end = i + 1 < starts.size() ? starts[i + 1] : data.size() - 1;
    const std::int64_t last = std::min(options_.sequence_length, end - starts[i]);
    windows.push_back({.begin = starts[i], .first = 0, .last = last});
  }
  return windows;
}

std::vector<Evaluator::Window> Evaluator::plan(const TokenSequence& data) const {
  if (options_.windows != Windows::stream) return plan_documents(data);
  const std::int64_t targets = data.size() - 1;
  const std::int64_t overlap = options_.sequence_length - options_.stride;
  std::vector<Window> windows;
  for (std::int64_t begin = 0; windows.empty() || begin + overlap < targets;
       begin += options_.stride) {
    windows.push_back({.begin = begin,
                       .first = windows.empty() ? 0 : overlap,
                       .last = std::min(options_.sequence_length, targets - begin)});
  }
  return windows;
}

// Positions that are not scored, and rows past the last window, have ignored targets.
void Evaluator::fill_row(std::int64_t row, const Window& window, const TokenSequence& data) {
  const View<std::int32_t> tokens = tokens_.view()[row];
  const View<std::int32_t> targets = targets_.view()[row];
  std::ranges::fill(tokens.span(), 0);
  std::ranges::fill(targets.span(), kernels::ignored_target);
  if (window.last == 0) return;
  const auto count = static_cast<std::size_t>(window.last);
  data.read(window.begin, tokens.span().first(count));
  data.read(window.begin + 1 + window.first,
            targets.span().subspan(static_cast<std::size_t>(window.first),
                                   static_cast<std::size_t>(window.last - window.first)));
}

std::span<const float> Evaluator::scored_losses(std::int64_t row, const Window& window) const {
  return buffers_.losses.span().subspan(
      static_cast<std::size_t>(row * options_.sequence_length + window.first),
      static_cast<std::size_t>(window.last - window.first));
}

double Evaluator::window_loss(std::int64_t row, const Window& window) const {
  const auto sum = [](std::span<const float> losses) {
    return std::accumulate(losses.begin(), losses.end(), 0.0);
  };
  if (options_.ring == nullptr) return sum(scored_losses(row, window));
  // Chunks of this process, whose positions that are not scored have a loss of 0.
  const std::int64_t length = options_.ring->place().chunk_length();
  double own = 0;
  for (std::int64_t chunk = 0; chunk < RingPlace::chunks; ++chunk) {
    own += sum(buffers_.losses.span().subspan(
        static_cast<std::size_t>((chunk * options_.batch_size + row) * length),
        static_cast<std::size_t>(length)));
  }
  return options_.ring->sum(own);
}

Evaluation Evaluator::evaluate(const Transformer& model, const TokenSequence& data) {
  require(data.size() >= 2, ErrorCode::invalid_argument,
          "the text holds {} tokens; predicting takes at least 2", data.size());
  if (buffers_.activations.device() != model.device()) {
    buffers_ = buffers_for(model.specification(), options_, model.device());
  }
  const std::vector<Window> planned = plan(data);
  const std::int64_t windows = std::ssize(planned);
  const std::int64_t wanted =
      options_.batches > 0 ? std::min(options_.batches * options_.batch_size, windows) : windows;

  StopProbe stop(options_.stop);
  buffers_.loss.set_stop(options_.stop);
  Progress progress{.what = "evaluating", .total = wanted == windows ? data.size() - 1 : 0};
  std::vector<Window> batch(static_cast<std::size_t>(options_.batch_size));
  const std::int64_t batches = (wanted + options_.batch_size - 1) / options_.batch_size;
  // Those of a ring evaluate each batch together.
  Group* const sharing = options_.ring != nullptr ? nullptr : options_.group;
  return evaluate_in_turn(sharing, batches, [&](std::int64_t number) {
    require(!stop_requested(options_.stop), ErrorCode::interrupted, "stopped while evaluating");
    const std::int64_t first = number * options_.batch_size;
    for (std::int64_t row = 0; row < options_.batch_size; ++row) {
      const std::int64_t index = (first + row) * windows / wanted;  // evenly spread
      Window& current = batch[static_cast<std::size_t>(row)];
      current = first + row < wanted ? planned[static_cast<std::size_t>(index)] : Window{};
      fill_row(row, current, data);
    }
    model.loss(tokens_, targets_, buffers_, &stop, options_.ring);
    std::vector<WindowLoss> result;
    for (std::int64_t row = 0; row < options_.batch_size; ++row) {
      const Window& current = batch[static_cast<std::size_t>(row)];
      const std::int64_t count = current.last - current.first;
      if (count <= 0) continue;
      result.push_back({window_loss(row, current), count});
      if (options_.scored) {
        options_.scored(current.begin + current.first + 1, scored_losses(row, current));
      }
      progress.done += count;
    }
    if (options_.progress) options_.progress(progress);
    return result;
  });
}

std::vector<std::vector<WindowLoss>> gather_losses(Group& group,
                                                   const std::vector<WindowLoss>& own) {
  std::string bytes(own.size() * sizeof(WindowLoss), '\0');
  std::memcpy(bytes.data(), own.data(), bytes.size());
  std::vector<std::vector<WindowLoss>> all;
  for (const std::string& each : gather(group, bytes)) {
    std::vector<WindowLoss>& losses = all.emplace_back(each.size() / sizeof(WindowLoss));
    std::memcpy(losses.data(), each.data(), each.size());
  }
  return all;
}

}  // namespace heed
