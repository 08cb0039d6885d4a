#include "server/explorer/model_pool.h"

#include <algorithm>

#include "base/error.h"
#include "engine/known_models.h"
#include "engine/pull.h"
#include "formats/model_files.h"
#include "model/parameter_count.h"
#include "server/explorer/shown_files.h"
#include "server/explorer/trace_store.h"

namespace heed::server {
namespace {

constexpr std::int64_t max_checkpoints = 3;

// Of a parameter, and at most of its rounded form, which products of a rounded model read.
constexpr std::int64_t parameter_bytes = sizeof(float);
constexpr std::int64_t rounded_bytes = 2;

}  // namespace

ModelPool::ModelPool(PoolOf of)
    : of_(std::move(of)),
      explored_(&of_.explored, [](const LoadedModel*) {}),
      budget_(of_.budget, {.held = "models beside the explored one",
                           .holders = "models that requests in progress use",
                           .option = "--model-budget"}) {}

bool ModelPool::is_explored(std::string_view name) const {
  return name.empty() || name == of_.name ||
         std::ranges::find(of_.aliases, name) != of_.aliases.end();
}

const ChosenModel* ModelPool::find(const Wanted& wanted) {
  const auto found = std::ranges::find_if(loaded_, wanted);
  if (found == loaded_.end()) return nullptr;
  const std::lock_guard lock(mutex_);
  loaded_.splice(loaded_.begin(), loaded_, found);
  return &loaded_.front();
}

const ChosenModel& ModelPool::add(ChosenModel chosen, std::int64_t parameters, const Load& load) {
  // Taken as long as anything uses the model.
  struct Held {
    MemoryBudget::Share memory;
    LoadedModel model;
  };
  const auto make_room = [&] { return evict(); };
  MemoryBudget::Share memory;
  budget_.take(memory, parameters * parameter_bytes, make_room);
  LoadedModel model = load();
  if (model.transformer.parameters().prepared_format() != kernels::WeightFormat::f32) {
    budget_.take(memory, parameters * rounded_bytes, make_room);
  }
  const auto held = std::make_shared<const Held>(Held{std::move(memory), std::move(model)});
  chosen.model = {held, &held->model};
  const std::lock_guard lock(mutex_);
  return loaded_.emplace_front(std::move(chosen));
}

void ModelPool::drop(std::list<ChosenModel>::iterator dropped) {
  const std::lock_guard lock(mutex_);
  loaded_.erase(dropped);
}

bool ModelPool::evict() {
  for (auto last = loaded_.end(); last != loaded_.begin();) {
    --last;
    const LoadedModel& model = *last->model;
    // The list itself and the traces; a request holds one more.
    if (last->model.use_count() > 1 + of_.traces.count_of(model)) continue;
    of_.traces.remove_of(model);
    drop(last);
    return true;
  }
  return false;
}

ChosenModel ModelPool::named(const std::string& name) {
  if (is_explored(name)) return explored();
  if (const ChosenModel* const found = find(
          [&](const ChosenModel& each) { return each.run.empty() && each.model->name == name; })) {
    return *found;
  }
  const std::vector<KnownModel> known = known_models();
  const auto wanted = std::ranges::find(known, name, &KnownModel::name);
  if (wanted == known.end() || !wanted->is_here) {
    std::string here = of_.name;
    for (const KnownModel& each : known) {
      if (each.is_here && !is_explored(each.name)) here += ", " + each.name;
    }
    fail(ErrorCode::not_found, "there is no model '{}' here{}; there are: {}", name.substr(0, 100),
         wanted == known.end() ? "" : ", but it can be downloaded", here);
  }
  // A directory of that name may be beside the server.
  const std::string place = wanted->origin == ModelOrigin::pulled
                                ? find_pulled_model(name).value_or(name).string()
                                : name;
  return naming_files_from(default_model_cache(), [&]() -> const ChosenModel& {
    require(wanted->damage.empty(), ErrorCode::corrupt_data, "{}", wanted->damage);
    return add({}, wanted->parameters, [&] {
      LoadedModel model = load_model(place);
      model.name = name;
      return model;
    });
  });
}

ChosenModel ModelPool::checkpoint(const std::string& run, std::int64_t step) {
  if (const ChosenModel* const found =
          find([&](const ChosenModel& each) { return each.run == run && each.step == step; })) {
    return *found;
  }
  const std::filesystem::path directory = of_.runs.checkpoint(run, step);
  const auto is_checkpoint = [](const ChosenModel& each) { return !each.run.empty(); };
  while (std::ranges::count_if(loaded_, is_checkpoint) >= max_checkpoints) {
    drop(std::prev(std::find_if(loaded_.rbegin(), loaded_.rend(), is_checkpoint).base()));
  }
  // Relative to the run: checkpoints/00000250/model.safetensors.
  return naming_files_from(directory.parent_path().parent_path(), [&]() -> const ChosenModel& {
    const std::int64_t parameters = count_parameters(read_architecture(directory).decoder()).total;
    return add({.run = run, .step = step}, parameters, [&] {
      LoadedModel model = load_model(directory.string());
      model.name = run;  // instead of its path
      return model;
    });
  });
}

std::vector<std::string> ModelPool::loaded() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const ChosenModel& each : loaded_) {
    if (each.run.empty()) names.push_back(each.model->name);
  }
  return names;
}

}  // namespace heed::server
