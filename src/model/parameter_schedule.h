// When a model's parameters are read and their gradients are complete, for whoever keeps them
// elsewhere meanwhile: other processes, for example. The model knows nothing else of that.
#pragma once

#include <vector>

#include "model/architecture.h"
#include "model/roles.h"

namespace heed {

// Parameters of a stack that are used together: a block; what comes before the blocks (layer −1:
// the embeddings); what comes behind them (layer L: final norm, prediction head, unembedding).
struct ParameterPart {
  StackSite site = StackSite::only;
  std::int64_t layer = -1;

  bool operator==(const ParameterPart&) const = default;
};

// A part's numbers [begin, end) of the arena, padding included.
struct PartRange {
  ParameterPart part;
  std::size_t begin = 0;
  std::size_t end = 0;
};

ParameterPart part_of(const ParameterId& id, const Architecture& architecture);

// Those of all parameters, in the order of the arena.
std::vector<PartRange> part_ranges(const Architecture& architecture);

enum class GradientState {
  partial,   // more is added later in the pass
  complete,  // of this pass
};

// Parts of which a model has no parameters are announced too.
class ParameterSchedule {
 public:
  virtual ~ParameterSchedule() = default;

  // Around each use of a part's parameters.
  virtual void will_read(const ParameterPart& part) = 0;
  virtual void has_read(const ParameterPart& part) = 0;

  // Around what backward adds to a part's gradients; they may move away between the two.
  virtual void will_add(const ParameterPart& part) = 0;
  virtual void has_added(const ParameterPart& part, GradientState state) = 0;
};

// Which parts a stack uses, and who is told; nobody where there is no schedule.
struct StackSchedule {
  ParameterSchedule* schedule = nullptr;
  StackSite site = StackSite::only;
  std::int64_t layers = 0;
  StackSite embedding_site = StackSite::only;  // whose token embedding it reads
  bool tied_unembedding = false;

  ParameterPart before() const { return {site, -1}; }
  ParameterPart token_embedding() const { return {embedding_site, -1}; }
  ParameterPart block(std::int64_t layer) const { return {site, layer}; }
  ParameterPart behind() const { return {site, layers}; }

  void will_add(const ParameterPart& part) const {
    if (schedule != nullptr) schedule->will_add(part);
  }
  void has_added(const ParameterPart& part, GradientState state) const {
    if (schedule != nullptr) schedule->has_added(part, state);
  }
};

// While it lives, parameters of up to two parts may be read.
class Reading {
 public:
  Reading(const StackSchedule& stack, const ParameterPart& part)
      : Reading(stack.schedule, part, part) {}
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
  ~Reading() {
    if (schedule_ == nullptr) return;
    if (second_ != first_) schedule_->has_read(second_);
    schedule_->has_read(first_);
  }

  // What the embedding reads, and what the unembedding does.
  static Reading of_embedding(const StackSchedule& stack) {
    return {stack.schedule, stack.before(), stack.token_embedding()};
  }
  static Reading of_unembedding(const StackSchedule& stack) {
    return {stack.schedule, stack.behind(),
            stack.tied_unembedding ? stack.token_embedding() : stack.behind()};
  }

 private:
  Reading(ParameterSchedule* schedule, const ParameterPart& first, const ParameterPart& second)
      : schedule_(schedule), first_(first), second_(second) {
    if (schedule_ == nullptr) return;
    schedule_->will_read(first_);
    if (second_ != first_) schedule_->will_read(second_);
  }

  ParameterSchedule* schedule_;
  ParameterPart first_;
  ParameterPart second_;
};

}  // namespace heed
