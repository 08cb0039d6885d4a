#include "server/explorer/model_pool.h"

#include <algorithm>

#include "engine/views/token_json.h"
#include "server/explorer/shown_files.h"

namespace heed::server {
namespace {

constexpr std::size_t max_loaded = 3;

}  // namespace

const StackSpecification& ChosenModel::stack(PairSide side) const {
  if (!is_translator()) return model->gpt.specification();
  return side == PairSide::source ? architecture().encoder() : architecture().decoder();
}

std::string ChosenModel::token_bytes(PairSide side, std::int32_t id) const {
  if (!is_translator()) return model->token_bytes(id);
  return translator->token_bytes(side, std::span(&id, 1)).front();
}

OrderedJson ChosenModel::token_json(PairSide side, std::int32_t id) const {
  return heed::token_json(id, token_bytes(side, id));
}

OrderedJson ChosenModel::tokens_json(PairSide side, std::span<const std::int32_t> ids) const {
  OrderedJson tokens = OrderedJson::array();
  for (const std::int32_t id : ids) tokens.push_back(token_json(side, id));
  return tokens;
}

std::vector<TextWord> ChosenModel::units(PairSide side, std::span<const std::int32_t> ids) const {
  return is_translator() ? translator->words(side, ids) : text_units(*model, ids);
}

ModelPool::ModelPool(const LoadedModel& explored, const Runs& runs)
    : runs_(runs), explored_(&explored, [](const LoadedModel*) {}) {}

ChosenModel ModelPool::checkpoint(const std::string& run, std::int64_t step) {
  const auto found = std::ranges::find_if(
      loaded_, [&](const ChosenModel& each) { return each.run == run && each.step == step; });
  if (found != loaded_.end()) {
    loaded_.splice(loaded_.begin(), loaded_, found);
    return loaded_.front();
  }
  const std::filesystem::path directory = runs_.checkpoint(run, step);
  // Relative to the run: checkpoints/00000250/model.safetensors.
  LoadedModel model = naming_files_from(directory.parent_path().parent_path(),
                                        [&] { return load_model(directory.string()); });
  model.name = run;  // instead of its path
  loaded_.push_front(
      {.model = std::make_shared<const LoadedModel>(std::move(model)), .run = run, .step = step});
  if (loaded_.size() > max_loaded) loaded_.pop_back();
  return loaded_.front();
}

}  // namespace heed::server
