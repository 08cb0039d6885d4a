// When parameters are read and their gradients are complete, for a schedule that keeps them
// elsewhere meanwhile: other processes, for example. The model knows nothing else of that.
#pragma once

#include <algorithm>
#include <vector>

#include "model/architecture.h"
#include "model/roles.h"

namespace heed {

// Parameters of a stack that are used together: a block; what comes before the blocks (layer −1:
// the embeddings); what follows them (layer L: final norm, prediction head, unembedding).
// Where the tables (V, C) of the token embedding and the unembedding are divided, their rows come
// in pieces, which are parts of their own.
struct ParameterPart {
  StackSite site = StackSite::only;
  std::int64_t layer = -1;
  std::int64_t piece = -1;  // −1: not one of a table

  bool operator==(const ParameterPart&) const = default;
};

// Numbers [begin, end) of the arena that belong to a part, padding included. A part may have
// several such ranges.
struct PartRange {
  ParameterPart part;
  std::size_t begin = 0;
  std::size_t end = 0;
};

// Rows of a piece of a table that make it no larger than a block, or 4 MiB; 0: no table is larger
// than that, and none has to be divided.
std::int64_t table_piece_rows(const Architecture& architecture);

// Whether the parameter is a table that can be divided.
bool is_table(const ParameterId& id);

// The part of a parameter; the first piece of a table that is divided.
ParameterPart part_of(const ParameterId& id, const Architecture& architecture,
                      std::int64_t piece_rows = 0);

// Those of all parameters, in the order of the arena, with pieces of so many rows (0: none).
std::vector<PartRange> part_ranges(const Architecture& architecture, std::int64_t piece_rows = 0);

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

// Rows [begin, end) of a table.
struct RowRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// Which parts a stack uses, and who is told; nobody where there is no schedule.
struct StackSchedule {
  ParameterSchedule* schedule = nullptr;
  StackSite site = StackSite::only;
  std::int64_t layers = 0;
  std::int64_t vocabulary = 0;
  StackSite embedding_site = StackSite::only;  // whose token embedding it reads
  bool tied_unembedding = false;
  std::int64_t piece_rows = 0;  // of tables; 0: they are not divided

  bool is_divided() const { return piece_rows > 0; }
  std::int64_t pieces() const {
    return is_divided() ? (vocabulary + piece_rows - 1) / piece_rows : 0;
  }
  RowRange rows(std::int64_t piece) const {
    return {piece * piece_rows, std::min((piece + 1) * piece_rows, vocabulary)};
  }

  ParameterPart before() const { return {site, -1}; }
  ParameterPart block(std::int64_t layer) const { return {site, layer}; }
  ParameterPart after() const { return {site, layers}; }
  // All of the table where it is not divided (piece −1).
  ParameterPart token_embedding(std::int64_t piece = -1) const {
    return {embedding_site, -1, piece};
  }
  ParameterPart unembedding(std::int64_t piece = -1) const {
    return tied_unembedding ? token_embedding(piece) : ParameterPart{site, layers, piece};
  }

  void will_add(const ParameterPart& part) const {
    if (schedule != nullptr) schedule->will_add(part);
  }
  void has_added(const ParameterPart& part, GradientState state) const {
    if (schedule != nullptr) schedule->has_added(part, state);
  }
};

// While it lives, a part's parameters may be read.
class Reading {
 public:
  Reading(const StackSchedule& stack, const ParameterPart& part)
      : schedule_(stack.schedule), part_(part) {
    if (schedule_ != nullptr) schedule_->will_read(part_);
  }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
  ~Reading() {
    if (schedule_ != nullptr) schedule_->has_read(part_);
  }

 private:
  ParameterSchedule* schedule_;
  ParameterPart part_;
};

// While it lives, all of the unembedding may be read, and what else follows the blocks.
class UnembeddingReading {
 public:
  explicit UnembeddingReading(const StackSchedule& stack) : stack_(stack) {
    if (stack_.schedule != nullptr)
      for_each_part([&](const ParameterPart& part) { stack_.schedule->will_read(part); });
  }
  UnembeddingReading(const UnembeddingReading&) = delete;
  UnembeddingReading& operator=(const UnembeddingReading&) = delete;
  ~UnembeddingReading() {
    if (stack_.schedule != nullptr)
      for_each_part([&](const ParameterPart& part) { stack_.schedule->has_read(part); });
  }

 private:
  template <class Body>
  void for_each_part(Body&& body) const {
    body(stack_.after());
    if (!stack_.is_divided() && stack_.tied_unembedding) body(stack_.unembedding());
    for (std::int64_t piece = 0; piece < stack_.pieces(); ++piece) body(stack_.unembedding(piece));
  }

  const StackSchedule& stack_;
};

}  // namespace heed
