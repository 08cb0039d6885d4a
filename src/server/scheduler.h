// Continues many sequences together: they join and leave between the steps of one batch, and each
// gets the tokens that it would get alone.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/loaded_model.h"
#include "generate/batch_session.h"
#include "server/compute.h"
#include "server/metrics.h"
#include "server/sequence.h"

namespace heed::server {

struct SchedulerOptions {
  std::int64_t parallel = 64;  // sequences in a step
  std::int64_t waiting = 512;  // for a place in it
  std::int64_t context = 0;    // positions of a sequence; 0: the model's
  CacheType cache_type = CacheType::f32;
};

class Scheduler {
 public:
  // Borrows all but the options. Steps are jobs of `compute`, so that other work gets its turns.
  Scheduler(const LoadedModel& model, Compute& compute, Metrics& metrics,
            const SchedulerOptions& options);
  ~Scheduler();  // ends all sequences
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Takes all or none; `news` is told whenever one of them goes on. Throws HttpError 429 where more
  // would wait than may, Error{invalid_argument} for sampling options that cannot be.
  std::vector<std::shared_ptr<Sequence>> submit(std::vector<SequenceOptions> sequences,
                                                const std::shared_ptr<News>& news);

  std::int64_t context() const { return session_.capacity(); }

 private:
  struct Running {
    explicit Running(std::shared_ptr<Sequence> begun);
    std::shared_ptr<Sequence> sequence;
    Sampler sampler;
    TextStream text;
    std::int64_t number = -1;           // in session_; none for one that is never continued
    std::vector<std::int32_t> history;  // prompt and all drawn tokens
    std::vector<float> biased;          // logits, where something is added to them
    bool ended = false;
  };

  void wake();
  void turn();  // one job: reads prompts, takes a step, asks for the next turn
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
  std::int64_t drawable_ = 0;              // tokens from this id on are never drawn
  std::vector<std::int32_t> end_of_text_;  // of the model and of the tokenizer

  std::mutex mutex_;
  std::condition_variable idle_;
  std::deque<std::shared_ptr<Sequence>> waiting_;
  bool turning_ = false;  // a turn is under way or asked for
  bool again_ = false;    // something came while it was
  bool closing_ = false;

  // The computing thread's own.
  BatchSession session_;
  std::vector<std::unique_ptr<Running>> running_;
};

}  // namespace heed::server
