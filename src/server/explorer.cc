#include "server/explorer.h"

#include "engine/loaded_model.h"
#include "server/explorer/model_json.h"
#include "server/explorer/page.h"
#include "server/explorer/state.h"
#include "server/openapi.h"

namespace heed::server {
namespace {

using Translator = std::function<const LoadedModel&()>;

// GET /api/translator. `translator` is called on the computing thread; none: the answer is 404.
void add_translator_route(Router& router, Compute& compute, Translator translator) {
  router.add("GET", "/api/translator",
             [&compute, translator = std::move(translator)](const Request& request) {
               require(translator != nullptr, ErrorCode::not_found,
                       "this server has no translator: this build of heed carries none, and its "
                       "model is one decoder; heed explore -m DIR serves an encoder-decoder");
               return compute.run(request.stop,
                                  [&] { return json_reply(translator_json(translator())); });
             });
}

void add_routes_of_traces(Router& router, std::shared_ptr<TraceState> state) {
  TraceRoutes routes(router, std::move(state));
  add_trace_routes(routes);
  add_attention_routes(routes);
  add_prediction_routes(routes);
  add_explanation_routes(routes);
  add_vector_routes(routes);
  add_neuron_routes(routes);
  add_cause_routes(routes);
  add_figure_routes(routes);
  add_translation_routes(routes);
  router.add_moved("/api/pairs",
                   "a pair of texts is a trace; POST /api/traces with a \"source\" and a "
                   "\"target\", and ask below /api/traces/{id}");
}

// One that outlives the routes.
std::shared_ptr<const LoadedModel> borrowed(const LoadedModel& translator) {
  return {std::shared_ptr<void>(), &translator};
}

void add_page(Router& router) {
  router.add("GET", "/api/openapi.json", [](const Request&) {
    return text_reply(std::string(openapi_document()), "application/json");
  });
  refuse_undocumented_queries(router);
  add_page_routes(router, page_files());
}

}  // namespace

void register_explorer(Router& router, Context& context) {
  const auto state = std::make_shared<State>(context, context.options.explorer);
  Translator translator;
  if (HeldTranslator* const held = context.translator; held != nullptr) {
    translator = [held]() -> const LoadedModel& { return held->get(); };
    state->load_translator = [held] { return borrowed(held->get()); };
  }
  add_routes_of_traces(router, state);
  StateRoutes routes(router, state);
  add_model_routes(routes);
  add_choice_routes(routes);
  add_shape_routes(routes);
  add_weight_routes(routes);
  add_neuron_routes(routes);
  add_feature_routes(routes);
  add_sense_routes(routes);
  add_probe_routes(routes);
  add_generation_routes(routes);
  add_run_routes(routes);
  add_training_routes(routes);
  add_translator_route(router, context.compute, std::move(translator));
  add_page(router);
}

void register_translator_explorer(Router& router, Compute& compute, const LoadedModel& translator,
                                  std::int64_t budget) {
  router.add("GET", "/api/model", [&translator](const Request&) {
    const Architecture& architecture = translator.architecture();
    return json_reply({{"name", translator.name},
                       {"is_translator", true},
                       {"encoder", dimensions_json(architecture.encoder())},
                       {"decoder", dimensions_json(architecture.decoder())},
                       {"parameters", translator.transformer.parameters().size()}});
  });
  add_routes_of_traces(
      router,
      std::make_shared<TraceState>(TraceState{
          .compute = compute, .traces = TraceStore(budget), .load_translator = [&translator] {
            return borrowed(translator);
          }}));
  add_translator_route(router, compute,
                       [&translator]() -> const LoadedModel& { return translator; });
  add_page(router);
}

}  // namespace heed::server
