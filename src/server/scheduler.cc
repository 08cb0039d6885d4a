#include "server/scheduler.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "base/error.h"
#include "base/threads.h"
#include "engine/special_tokens.h"
#include "server/exchange.h"

namespace heed::server {
namespace {

// Prompts are processed between steps, up to this many tokens or one longer prompt, so that many
// prompts do not delay the sequences in the batch.
constexpr std::int64_t prompt_tokens_per_turn = 256;

class Microseconds {
 public:
  explicit Microseconds(std::atomic<std::int64_t>& sum) : sum_(sum) {}
  ~Microseconds() {
    sum_ += std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() -
                                                                  start_)
                .count();
  }
  Microseconds(const Microseconds&) = delete;
  Microseconds& operator=(const Microseconds&) = delete;

 private:
  std::atomic<std::int64_t>& sum_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

std::exception_ptr interrupted() {
  return std::make_exception_ptr(Error(ErrorCode::interrupted, "the server is stopping"));
}

}  // namespace

Scheduler::Running::Running(std::shared_ptr<Sequence> begun)
    : sequence(std::move(begun)),
      sampler(sequence->options().sampling),
      text(sequence->options().stop_strings),
      history(sequence->options().prompt) {}

Scheduler::Scheduler(const LoadedModel& model, Compute& compute, Metrics& metrics,
                     const SchedulerOptions& options)
    : model_(model),
      compute_(compute),
      metrics_(metrics),
      options_(options),
      drawable_(model.transformer.specification().vocabulary_size),
      end_of_text_(model.end_tokens()),
      special_tokens_(special_tokens(model)),
      session_(model.transformer,
               options.context > 0 ? options.context : model.transformer.specification().context,
               options.cache_type) {
  if (model.tokenizer != nullptr) {
    drawable_ = std::min<std::int64_t>(drawable_, model.tokenizer->vocabulary_size());
  }
}

Scheduler::~Scheduler() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    if (!turning_) {
      turning_ = true;
      compute_.post([this] { turn(); });
    }
  }
  compute_.run(nullptr, [] {});  // after the turn that is posted
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [&] { return !turning_; });
}

std::vector<std::shared_ptr<Sequence>> Scheduler::submit(
    std::vector<SequenceOptions> sequences, const std::shared_ptr<Notifier>& notifier) {
  std::vector<std::shared_ptr<Sequence>> submitted;
  for (SequenceOptions& options : sequences) {
    options.sampling.validate();
    submitted.push_back(
        std::make_shared<Sequence>(std::move(options), notifier, [this] { wake(); }));
  }
  {
    const std::lock_guard lock(mutex_);
    const auto room = options_.waiting - static_cast<std::int64_t>(waiting_.size());
    if (std::ssize(submitted) > room) {
      throw HttpError(429, fmt::format("{} sequences are waiting, and {} more would exceed the "
                                       "limit of {}; retry later",
                                       waiting_.size(), submitted.size(), options_.waiting));
    }
    waiting_.insert(waiting_.end(), submitted.begin(), submitted.end());
    metrics_.sequences_waiting.store(static_cast<std::int64_t>(waiting_.size()));
  }
  wake();
  return submitted;
}

void Scheduler::wake() {
  const std::lock_guard lock(mutex_);
  again_ = true;
  if (turning_ || closing_) return;
  turning_ = true;
  compute_.post([this] { turn(); });
}

void Scheduler::turn() {
  {
    const std::lock_guard lock(mutex_);
    again_ = false;
    if (closing_) {
      for (const auto& sequence : waiting_) sequence->fail(interrupted());
      waiting_.clear();
      for (const auto& running : running_) running->sequence->fail(interrupted());
      running_.clear();
      turning_ = false;
      idle_.notify_all();
      return;
    }
  }
  admit();
  const bool stepped = step();
  const std::lock_guard lock(mutex_);
  // If every client is too slow, the first one that catches up posts the next step.
  const bool admits = !waiting_.empty() && std::ssize(running_) < options_.parallel;
  turning_ = stepped || admits || again_ || closing_;
  if (turning_) {
    compute_.post([this] { turn(); });
  } else {
    idle_.notify_all();
  }
}

std::shared_ptr<Sequence> Scheduler::next_waiting() {
  const std::lock_guard lock(mutex_);
  if (waiting_.empty() || std::ssize(running_) >= options_.parallel) return nullptr;
  std::shared_ptr<Sequence> sequence = std::move(waiting_.front());
  waiting_.pop_front();
  metrics_.sequences_waiting.store(static_cast<std::int64_t>(waiting_.size()));
  return sequence;
}

void Scheduler::admit() {
  for (std::int64_t read = 0; read < prompt_tokens_per_turn;) {
    const std::shared_ptr<Sequence> sequence = next_waiting();
    if (sequence == nullptr) break;
    try {
      if (sequence->wanted()) {
        read += std::ssize(sequence->options().prompt);
        begin(sequence);
      } else {
        sequence->fail(interrupted());
      }
    } catch (...) {
      sequence->fail(std::current_exception());
    }
  }
  remove_ended();
}

void Scheduler::begin(const std::shared_ptr<Sequence>& sequence) {
  const SequenceOptions& options = sequence->options();
  const Microseconds timed(metrics_.prompt_microseconds);
  metrics_.prompt_tokens += std::ssize(options.prompt);
  auto running = std::make_unique<Running>(sequence);
  std::vector<float> logits(
      static_cast<std::size_t>(model_.transformer.specification().vocabulary_size));
  if (options.scores_prompt && options.top) {
    ScoredText scored = score_text(model_.transformer, options.prompt, *options.top);
    sequence->give_prompt_scores(std::move(scored.scores));
    logits = std::move(scored.next_logits);
  }
  if (options.max_tokens == 0) return sequence->finish(SequenceEnd::length);
  // Scoring requests often request one more token, whose logits are already computed.
  if (options.max_tokens > 1 || !options.scores_prompt || !options.top) {
    running->number =
        session_.begin(options.prompt, logits, std::ssize(options.prompt) + options.max_tokens);
  }
  running_.push_back(std::move(running));
  draw(*running_.back(), logits);
}

bool Scheduler::step() {
  std::vector<BatchSession::Step> steps;
  std::vector<Running*> stepping;
  for (const auto& running : running_) {
    if (!running->sequence->wanted()) {
      running->sequence->fail(interrupted());
      running->ended = true;
    } else if (running->sequence->has_room()) {
      steps.push_back({running->number, running->history.back()});
      stepping.push_back(running.get());
    }
  }
  if (!steps.empty()) {
    const Microseconds timed(metrics_.predicted_microseconds);
    try {
      const View<const float> logits = session_.step(steps);
      parallel_items(std::ssize(steps), [&](std::int64_t row) {
        draw(*stepping[static_cast<std::size_t>(row)], logits[row].span());
      });
    } catch (...) {
      for (Running* running : stepping) {
        running->sequence->fail(std::current_exception());
        running->ended = true;
      }
    }
    ++metrics_.steps;
    metrics_.stepped_sequences += std::ssize(steps);
  }
  remove_ended();
  return !steps.empty();
}

// Samples the next token of one sequence and decides whether it is the last.
void Scheduler::draw(Running& running, std::span<const float> logits) const {
  const SequenceOptions& options = running.sequence->options();
  try {
    // 1: sample
    const std::int32_t token = running.sampler.sample(allowed(running, logits), running.history);
    running.history.push_back(token);
    ++metrics_.predicted_tokens;
    // 2: publish
    const bool ends_text = (!options.ignore_end_of_text && is_end_of_text(token)) ||
                           std::ranges::count(options.stop_tokens, token) > 0;
    const bool hides = !ends_text && options.hides_special_tokens &&
                       std::ranges::binary_search(special_tokens_, token);
    Sequence::Piece piece{.token = token, .is_end_of_text = ends_text, .is_hidden = hides};
    if (hides) {
      piece.text = running.text.push_hidden(model_.token_bytes(token));
    } else if (!ends_text) {
      piece.text = running.text.push(model_.token_bytes(token));
    }
    if (options.top) piece.score = score_token(logits, token, *options.top);
    running.sequence->give(std::move(piece));
    // 3: end
    const auto drawn = std::ssize(running.history) - std::ssize(options.prompt);
    const bool stops = ends_text || running.text.stopped();
    const bool full = std::ssize(running.history) > session_.capacity();
    if (!stops && drawn < options.max_tokens && !full) return;
    if (!running.text.stopped()) {
      if (std::string held = running.text.finish(); !held.empty()) {
        running.sequence->give({.text = std::move(held)});
      }
    }
    running.sequence->finish(stops ? SequenceEnd::stop : SequenceEnd::length);
  } catch (...) {
    running.sequence->fail(std::current_exception());
  }
  running.ended = true;
}

// The logits of tokens that may be sampled, with biases.
std::span<const float> Scheduler::allowed(Running& running, std::span<const float> logits) const {
  const SequenceOptions& options = running.sequence->options();
  logits = logits.first(static_cast<std::size_t>(drawable_));
  const auto drawn = std::ssize(running.history) - std::ssize(options.prompt);
  const bool goes_on = drawn < options.min_tokens;
  if (options.logit_bias.empty() && !options.ignore_end_of_text && !goes_on) return logits;
  running.biased.assign(logits.begin(), logits.end());
  for (const auto& [token, bias] : options.logit_bias) {
    if (token < drawable_) running.biased[static_cast<std::size_t>(token)] += bias;
  }
  const auto forbid = [&](const std::vector<std::int32_t>& tokens) {
    for (const std::int32_t token : tokens) {
      if (token >= drawable_) continue;
      running.biased[static_cast<std::size_t>(token)] = -std::numeric_limits<float>::infinity();
    }
  };
  if (goes_on) forbid(options.stop_tokens);
  if (goes_on || options.ignore_end_of_text) forbid(end_of_text_);
  return running.biased;
}

bool Scheduler::is_end_of_text(std::int32_t token) const {
  return std::ranges::find(end_of_text_, token) != end_of_text_.end();
}

void Scheduler::remove_ended() {
  for (const auto& running : running_) {
    if (running->ended && running->number >= 0) session_.end(running->number);
  }
  std::erase_if(running_, [](const auto& running) { return running->ended; });
  metrics_.sequences.store(std::ssize(running_));
}

}  // namespace heed::server
