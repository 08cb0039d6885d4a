#include "server/explorer/translator_routes.h"

#include "base/error.h"
#include "engine/views/report_json.h"
#include "server/explorer/examples.h"
#include "server/explorer/model_json.h"

namespace heed::server {

OrderedJson translator_json(const LoadedTranslator& translator) {
  const Architecture& architecture = translator.model.architecture();
  // Those of the microworld, which the built-in translator learned from.
  const OrderedJson languages =
      translator.is_embedded ? OrderedJson::array({"English", "German"}) : OrderedJson(nullptr);
  return {{"name", translator.name},
          {"embedded", translator.is_embedded},
          {"parameters", std::ssize(translator.model.parameters().all())},
          {"encoder", dimensions_json(architecture.encoder())},
          {"decoder", dimensions_json(architecture.decoder())},
          {"languages", languages},
          {"architecture",
           {{"encoder", architecture_json(architecture.encoder())},
            {"decoder", architecture_json(architecture.decoder())}}},
          {"examples", translator_examples_json(translator)}};
}

void add_translator_route(Router& router, Compute& compute,
                          std::function<const LoadedTranslator&()> translator) {
  router.add("GET", "/api/translator",
             [&compute, translator = std::move(translator)](const Request& request) {
               require(translator != nullptr, ErrorCode::not_found,
                       "this server has no translator: this build of heed carries none, and its "
                       "model is one decoder; heed explore -m DIR serves an encoder-decoder");
               return compute.run(request.stop,
                                  [&] { return json_reply(translator_json(translator())); });
             });
}

}  // namespace heed::server
