#include "server/explorer.h"

#include "engine/load_pair_model.h"
#include "server/documented_queries.h"
#include "server/explorer/model_json.h"
#include "server/explorer/page.h"
#include "server/explorer/pair_routes.h"
#include "server/explorer/state.h"
#include "server/explorer/translator_routes.h"
#include "server/openapi.h"

namespace heed::server {

namespace {

// Traces have the budget; pairs of texts, whose model is small, a part of it beside them.
constexpr std::int64_t pair_share_of_budget = 8;

void register_held_translator(Router& router, const Context& context) {
  const std::int64_t budget = context.options.explorer.trace_budget / pair_share_of_budget;
  HeldTranslator* const held = context.translator;
  if (held == nullptr) {
    register_pairs(router, context.compute, std::nullopt, budget);
    return add_translator_route(router, context.compute, nullptr);
  }
  const auto translator = [held]() -> const LoadedTranslator& { return held->get(); };
  register_pairs(
      router, context.compute, [held] { return pair_model_of(held->get()); }, budget);
  add_translator_route(router, context.compute, translator);
}

}  // namespace

void register_explorer(Router& router, Context& context) {
  StateRoutes routes(router, std::make_shared<State>(context, context.options.explorer));
  add_model_routes(routes);
  add_plan_routes(routes);
  add_trace_routes(routes);
  add_attention_routes(routes);
  add_prediction_routes(routes);
  add_explanation_routes(routes);
  add_effect_routes(routes);
  add_weight_routes(routes);
  add_neuron_routes(routes);
  add_vector_routes(routes);
  add_derivation_routes(routes);
  add_figure_routes(routes);
  add_generation_routes(routes);
  add_run_routes(routes);
  add_training_routes(routes);
  register_held_translator(router, context);
  refuse_undocumented_queries(router);
  add_page_routes(router, page_files());
}

void register_translator_explorer(Router& router, Compute& compute,
                                  const LoadedTranslator& translator, std::int64_t budget) {
  const PairModel model = pair_model_of(translator);
  router.add("GET", "/api/model", [model](const Request&) {
    const Architecture& architecture = model.architecture();
    return json_reply({{"name", model.name},
                       {"is_translator", true},
                       {"encoder", dimensions_json(architecture.encoder())},
                       {"decoder", dimensions_json(architecture.decoder())},
                       {"parameters", std::ssize(model.model->parameters().all())}});
  });
  router.add("GET", "/api/openapi.json", [](const Request&) {
    return text_reply(std::string(openapi_document()), "application/json");
  });
  register_pairs(router, compute, model, budget);
  add_translator_route(router, compute,
                       [&translator]() -> const LoadedTranslator& { return translator; });
  refuse_undocumented_queries(router);
  add_page_routes(router, page_files());
}

}  // namespace heed::server
