#include "server/explorer.h"

#include "server/explorer/page.h"
#include "server/explorer/state.h"

namespace heed::server {

void register_explorer(Router& router, Context& context) {
  StateRoutes routes(router, std::make_shared<State>(context, context.options.explorer));
  add_model_routes(routes);
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
  add_page_routes(router, page_files());
}

}  // namespace heed::server
