// The explorer's endpoints of a loaded encoder-decoder: passes over pairs of texts.
#pragma once

#include <functional>
#include <optional>

#include "server/compute.h"
#include "server/explorer/pair_store.h"
#include "server/router.h"

namespace heed::server {

using PairModelLoader = std::function<PairModel()>;

struct PairState {
  Compute& compute;
  PairModelLoader load;              // none: the server has no encoder-decoder
  PairStore pairs;                   // used on the computing thread only, as the model
  std::optional<PairModel> model{};  // handlers have it: it is loaded before the first one runs
};

// Adds /api/pairs and what is below it; without a model, endpoints that say why they cannot answer.
// `budget`: bytes that all pairs may take together.
void register_pairs(Router& router, Compute& compute, std::optional<PairModel> model,
                    std::int64_t budget);
// The same of a model that is loaded at the first request.
void register_pairs(Router& router, Compute& compute, PairModelLoader load, std::int64_t budget);

// One for each group of endpoints.
using PairHandler = Reply (*)(PairState&, const Request&);
class PairRoutes {
 public:
  PairRoutes(Router& router, std::shared_ptr<PairState> state)
      : router_(router), state_(std::move(state)) {}
  void add(const std::string& method, const std::string& pattern, PairHandler handler);

 private:
  Router& router_;
  std::shared_ptr<PairState> state_;
};
void add_pair_attention_routes(PairRoutes& routes);
void add_pair_effect_routes(PairRoutes& routes);

// The pair with the id in the path.
StoredPair& pair_of(PairState& state, const Request& request);

}  // namespace heed::server
