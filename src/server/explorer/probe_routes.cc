// What a linear probe reads from one vector, by depth: who did it, at the end of a mystery. The one
// place that says so comes long before; what a bag of words knows is the control.
#include <memory>
#include <utility>

#include "base/error.h"
#include "microworld/checks/story_probe.h"
#include "server/explorer/state.h"

namespace heed::server {
namespace {

constexpr std::size_t max_mystery_bytes = 4000;
constexpr std::string_view last_words = "the murderer was the";

OrderedJson reading_json(const LoadedModel& model, const StoryProbe& probe, std::string_view text) {
  while (text.ends_with(' ')) text.remove_suffix(1);
  if (!text.ends_with(last_words)) return nullptr;
  return probe.read(model.transformer, model.encode(text));
}

Reply culprit(State& state, const Request& request) {
  const ChosenModel chosen = state.model_of(request);
  const LoadedModel& model = *chosen.model;
  require(model.is_starter(), ErrorCode::conflict,
          "the probe is trained on mysteries of the microworld, which only the starter has read");
  if (state.culprit_probe == nullptr) {
    state.culprit_probe = std::make_shared<const StoryProbe>(
        probe_stories(model.transformer, [&](std::string_view text) { return model.encode(text); },
                      StoryProperty::culprit, {.stop = request.stop}));
  }
  const StoryProbe& probe = *state.culprit_probe;
  OrderedJson read = nullptr;
  if (const auto text = request.parameter("text")) {
    require(text->size() <= max_mystery_bytes, ErrorCode::invalid_argument,
            "the text has {} bytes, at most {} are read", text->size(), max_mystery_bytes);
    read = reading_json(model, probe, *text);
  }
  return json_reply({{"roles", probe.classes},
                     {"training", probe.training},
                     {"held_out", probe.held_out},
                     {"most_frequent", json_number(probe.most_frequent)},
                     {"words", json_number(probe.words.accuracy)},
                     {"last_words", last_words},
                     {"depths", depths_json(probe)},
                     {"reading", std::move(read)}});
}

}  // namespace

void add_probe_routes(StateRoutes& routes) { routes.add("GET", "/api/probes/culprit", culprit); }

}  // namespace heed::server
