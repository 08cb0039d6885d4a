// Continuous batching: sequences join and leave the batch between its steps, and each gets the
// tokens that it would get alone.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/loaded_model.h"
#include "generate/session.h"
#include "server/compute.h"
#include "server/metrics.h"
#include "server/sequence.h"

namespace heed::server {

struct SchedulerOptions {
  std::int64_t parallel = 64;  // sequences in the batch
  std::int64_t waiting = 512;  // sequences that may wait for it
  std::int64_t context = 0;    // positions of a sequence; 0: the model's
  CacheType cache_type = CacheType::f32;
};

class Scheduler {
 public:
  // Borrows all but the options. Steps are jobs of `compute`, so that other jobs run between them.
  Scheduler(const LoadedModel& model, Compute& compute, Metrics& metrics,
            const SchedulerOptions& options);
  ~Scheduler();  // ends all sequences
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Takes all or none; `notifier` is notified whenever one of them goes on. Throws HttpError 429
  // where too many would wait, Error{invalid_argument} for invalid sampling options.
  std::vector<std::shared_ptr<Sequence>> submit(std::vector<SequenceOptions> sequences,
                                                const std::shared_ptr<Notifier>& notifier);

  std::int64_t context() const { return session_.capacity(); }

 private:
  struct Running {
    explicit Running(std::shared_ptr<Sequence> begun);
    std::shared_ptr<Sequence> sequence;
    Sampler sampler;
    TextStream text;
    std::int64_t number = -1;           // in session_; -1: it needs no further step
    std::vector<std::int32_t> history;  // prompt and all drawn tokens
    std::vector<float> biased;          // logits with their biases
    bool ended = false;
  };

  void wake();
  void turn();  // one job: processes prompts, takes a step, posts the next turn
  void admit();
  bool step();
  std::shared_ptr<Sequence> next_waiting();
  void begin(const std::shared_ptr<Sequence>& sequence);
  void draw(Running& running, std::span<const float> logits) const;
  std::span<const float> allowed(Running& running, std::span<const float> logits) const;
  bool is_end_of_text(std::int32_t token) const;
  void remove_ended();

  const LoadedModel& model_;
  Compute& compute_;
  Metrics& metrics_;
  const SchedulerOptions options_;
  std::int64_t drawable_ = 0;                       // ids from this one on are never sampled
  std::vector<std::int32_t> end_of_text_;           // of the model and of the tokenizer
  const std::vector<std::int32_t> special_tokens_;  // in ascending order

  std::mutex mutex_;
  std::condition_variable idle_;
  std::deque<std::shared_ptr<Sequence>> waiting_;
  bool turning_ = false;  // a turn is running or posted
  bool again_ = false;    // another turn is needed after it
  bool closing_ = false;

  // Used by the computing thread only.
  BatchSession session_;
  std::vector<std::unique_ptr<Running>> running_;
};

}  // namespace heed::server
