// The models that a page can choose from, and downloads of published ones. These handlers read
// small files and what other threads report, so they do not wait for the computing thread.
#include <algorithm>
#include <filesystem>

#include "engine/known_models.h"
#include "engine/pull.h"
#include "model/parameter_count.h"
#include "server/explorer/shown_files.h"
#include "server/explorer/state.h"
#include "server/fields.h"

namespace heed::server {
namespace {

const char* origin_name(ModelOrigin origin) {
  switch (origin) {
    case ModelOrigin::embedded: return "embedded";
    case ModelOrigin::pulled: return "pulled";
    case ModelOrigin::published: break;
  }
  return "published";
}

OrderedJson text_or_null(const std::string& text) {
  return text.empty() ? OrderedJson(nullptr) : OrderedJson(text);
}

// The explored model is one of the known ones, or one of the user's own.
const KnownModel* explored_of(const std::vector<KnownModel>& known, const LoadedModel& explored) {
  for (const KnownModel& each : known) {
    if (each.origin == ModelOrigin::embedded && explored.directory.empty() &&
        explored.embedded_name == each.name) {
      return &each;
    }
    if (each.origin != ModelOrigin::pulled || explored.directory.empty()) continue;
    const auto directory = find_pulled_model(each.name);
    std::error_code error;
    if (directory && std::filesystem::equivalent(*directory, explored.directory, error)) {
      return &each;
    }
  }
  return nullptr;
}

OrderedJson model_json(const KnownModel& model, bool is_loaded, const std::string& downloading) {
  const char* const state = !model.damage.empty()       ? "damaged"
                            : model.name == downloading ? "downloading"
                            : model.is_here             ? "ready"
                                                        : "absent";
  OrderedJson json{
      {"name", model.name},
      {"title", model.title},
      {"about", text_or_null(model.about)},
      {"kind", origin_name(model.origin)},
      {"parameters", model.parameters < 0 ? OrderedJson(nullptr) : OrderedJson(model.parameters)},
      {"bytes", model.bytes},
      {"partial_bytes", model.partial},
      {"state", state},
      {"loaded", is_loaded}};
  if (const PublishedModel* const published = find_published_model(model.name)) {
    json["revision"] = published->revision;
  }
  if (!model.damage.empty()) {
    json["message"] = without_directory(model.damage, default_model_cache());
  }
  return json;
}

OrderedJson explored_json(const State& state, const KnownModel* known) {
  const LoadedModel& model = state.context.model;
  KnownModel shown;
  if (known != nullptr) {
    shown = *known;
  } else {
    shown.parameters = count_parameters(model.transformer.specification()).total;
    if (model.reading != nullptr) shown.about = model.reading->title;
    shown.bytes = shown.parameters * std::int64_t{sizeof(float)};
  }
  shown.name = state.context.name;
  if (shown.title.empty()) shown.title = shown.name;
  OrderedJson json = model_json(shown, true, "");
  json["kind"] = "served";
  return json;
}

OrderedJson models_json(const State& state) {
  const std::vector<KnownModel> known = known_models();
  const std::vector<std::string> loaded = state.pool.loaded();
  const std::string downloading = state.downloads->running();
  const KnownModel* const explored = explored_of(known, state.context.model);
  OrderedJson models = OrderedJson::array({explored_json(state, explored)});
  for (const KnownModel& each : known) {
    if (&each == explored || state.pool.is_explored(each.name)) continue;
    models.push_back(
        model_json(each, std::ranges::find(loaded, each.name) != loaded.end(), downloading));
  }
  const std::string& why = state.options.why_no_downloads;
  return {{"models", std::move(models)},
          {"downloads", {{"allowed", why.empty()}, {"why_not", text_or_null(why)}}},
          {"download", state.downloads->describe()}};
}

Reply start(State& state, const Request& request) {
  const Json body = request.json();
  Fields(body).expect_only({});
  state.downloads->start(request.in_path("name"));
  return json_reply(models_json(state));
}

Reply cancel(State& state, const Request& request) {
  state.downloads->cancel(request.in_path("name"));
  return json_reply(models_json(state));
}

}  // namespace

void add_choice_routes(StateRoutes& routes) {
  const auto state = routes.state();
  Router& router = routes.router();
  router.add("GET", "/api/models",
             [state](const Request&) { return json_reply(models_json(*state)); });
  router.add("POST", "/api/downloads/{name...}",
             [state](const Request& request) { return start(*state, request); });
  router.add("DELETE", "/api/downloads/{name...}",
             [state](const Request& request) { return cancel(*state, request); });
}

}  // namespace heed::server
