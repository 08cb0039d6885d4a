#include "server/explorer/model_pool.h"

#include <algorithm>

#include "server/explorer/shown_files.h"

namespace heed::server {
namespace {

constexpr std::size_t most_loaded = 3;

}  // namespace

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
  loaded_.push_front({std::make_shared<const LoadedModel>(std::move(model)), run, step});
  if (loaded_.size() > most_loaded) loaded_.pop_back();
  return loaded_.front();
}

}  // namespace heed::server
