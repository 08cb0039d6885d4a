// The models that traces are of: the explored one, checkpoints of runs, and a translator.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/loaded_model.h"
#include "engine/pair_model.h"
#include "server/explorer/runs.h"

namespace heed::server {

// Of one text, or a translator.
struct ChosenModel {
  std::shared_ptr<const LoadedModel> model{};  // null: a translator
  std::string run{};                           // empty: the explored model, or a translator
  std::int64_t step = -1;                      // of the run
  std::shared_ptr<const PairModel> translator{};

  bool is_translator() const { return translator != nullptr; }
  const std::string& name() const { return is_translator() ? translator->name : model->name; }
  const Transformer& transformer() const {
    return is_translator() ? *translator->model : model->gpt;
  }
  const Architecture& architecture() const { return transformer().architecture(); }
  // The stack that reads a side; one text is a target.
  const StackSpecification& stack(PairSide side) const;

  std::string token_bytes(PairSide side, std::int32_t id) const;
  OrderedJson token_json(PairSide side, std::int32_t id) const;
  OrderedJson tokens_json(PairSide side, std::span<const std::int32_t> ids) const;
  // What the model has read, and the words of a text that it has not (engine/views/reading_json.h).
  const std::shared_ptr<const ReadingRecord>& reading() const {
    return is_translator() ? translator->reading : model->reading;
  }
  OrderedJson unread_json(PairSide side, std::span<const std::int32_t> ids) const;
  // A text's words and the tokens between them.
  std::vector<TextWord> units(PairSide side, std::span<const std::int32_t> ids) const;
};

class ModelPool {
 public:
  // Both are borrowed.
  ModelPool(const LoadedModel& explored, const Runs& runs);

  ChosenModel explored() const { return {.model = explored_}; }

  // Loads a model, unless it is one of the three most recently used. Throws Error{not_found} for a
  // run or checkpoint that does not exist.
  ChosenModel checkpoint(const std::string& run, std::int64_t step);

 private:
  const Runs& runs_;
  std::shared_ptr<const LoadedModel> explored_;
  std::list<ChosenModel> loaded_;  // most recently used first
};

}  // namespace heed::server
