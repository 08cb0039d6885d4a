// What a pair's decoder predicts, layer by layer, and what interventions or other words change.
#include <algorithm>

#include "base/error.h"
#include "engine/pair_json.h"
#include "engine/searched_beams.h"
#include "server/explorer/pair_routes.h"
#include "server/explorer/state.h"
#include "server/fields.h"

namespace heed::server {
namespace {

// ?position= of the target, −1 being the last.
std::int64_t target_position(const Request& request, const StoredPair& pair) {
  const std::int64_t positions = pair.pass->positions();
  const std::int64_t position = request.integer("position", -1);
  require(position >= -positions && position < positions, ErrorCode::invalid_argument,
          "position {} does not exist: the target has positions 0 to {}, or from the end from -1 "
          "on",
          position, positions - 1);
  return position < 0 ? position + positions : position;
}

Reply pair_predictions(PairState& state, const Request& request) {
  const StoredPair& pair = pair_of(state, request);
  const std::int64_t position = target_position(request, pair);
  const std::int64_t top = bounded(request, "top", 10, 1, 1 << 20);
  const std::vector<double> probabilities = pair.pass->next_probabilities(position);
  OrderedJson actual = nullptr;
  if (position + 1 < pair.pass->positions()) {
    const std::int32_t next = pair.pass->texts().target[static_cast<std::size_t>(position) + 1];
    actual = {{"token", pair_token_json(*state.model, PairSide::target, next)},
              {"probability", json_number(probabilities[static_cast<std::size_t>(next)])}};
  }
  return json_reply({{"position", position},
                     {"predictions", likeliest_tokens_json(*state.model, probabilities, top)},
                     {"actual", std::move(actual)}});
}

Reply pair_lens(PairState& state, const Request& request) {
  const StoredPair& pair = pair_of(state, request);
  const std::int64_t position = target_position(request, pair);
  const LogitLens lens = look_through_layers(
      *pair.pass, {.top = bounded(request, "top", 5, 1, 1000), .positions = {position}});
  return json_reply({{"position", position}, {"rows", pair_lens_json(*state.model, lens)}});
}

Reply pair_effect(PairState& state, const Request& request) {
  const StoredPair& pair = pair_of(state, request);
  const RecordedPass unedited(*state.model->model, pair.pass->texts());
  return json_reply(
      {{"positions", pair_effects_json(*state.model, pair_effects(unedited, *pair.pass))}});
}

OrderedJson changes_json(const std::vector<double>& changes) {
  OrderedJson list = OrderedJson::array();
  for (const double change : changes) list.push_back(json_number(change));
  return list;
}

// The token that stands for another word where none is named: the vocabulary's unknown one, or the
// next id.
std::int32_t other_token(const PairModel& model, PairSide side, std::int32_t token) {
  if (const Tokenizer* const tokenizer = model.tokenizer(side)) {
    if (tokenizer->unknown() && *tokenizer->unknown() != token) return *tokenizer->unknown();
  }
  const StackSpecification& stack =
      side == PairSide::source ? model.architecture().encoder() : model.architecture().decoder();
  return static_cast<std::int32_t>((token + 1) % stack.vocabulary_size);
}

Reply pair_influence(PairState& state, const Request& request) {
  const StoredPair& pair = pair_of(state, request);
  const std::string name = one_of(request, "side", {"source", "target"});
  const PairSide side = name == "source" ? PairSide::source : PairSide::target;
  const Texts& tokens = pair.pass->texts();
  const std::vector<std::int32_t>& text = side == PairSide::source ? tokens.source : tokens.target;
  const std::int64_t position = bounded(request, "position", 0, 0, std::ssize(text) - 1);
  const std::int64_t vocabulary = (side == PairSide::source ? state.model->architecture().encoder()
                                                            : state.model->architecture().decoder())
                                      .vocabulary_size;
  const std::int32_t now = text[static_cast<std::size_t>(position)];
  const auto token = static_cast<std::int32_t>(
      bounded(request, "token", other_token(*state.model, side, now), 0, vocabulary - 1));
  const TokenInfluence influence = token_influence(*pair.pass, side, position, token);
  return json_reply({{"side", name},
                     {"position", position},
                     {"token", pair_token_json(*state.model, side, token)},
                     {"encoder", changes_json(influence.encoder)},
                     {"decoder", changes_json(influence.decoder)}});
}

Reply pair_translation(PairState& state, const Request& request) {
  const StoredPair& pair = pair_of(state, request);
  const Json body = request.json();
  const Fields fields(body);
  fields.expect_only({"longest"});
  const std::int64_t context = state.model->architecture().decoder().context;
  GreedyOptions options{.longest = fields.integer("longest", 1, context).value_or(context),
                        .stop = request.stop};
  const std::vector<std::int32_t>& source = pair.pass->texts().source;
  const Transformer& model = *state.model->model;
  OrderedJson without =
      greedy_translation_json(*state.model, translate_greedily(model, source, options));
  options.editor = pair.pass->editor().get();
  OrderedJson reply =
      greedy_translation_json(*state.model, translate_greedily(model, source, options));
  reply["without"] = std::move(without);
  return json_reply(reply);
}

// Limits of the tree of one request: at most 2·16·128 candidates.
constexpr std::int64_t most_beams = 16;
constexpr std::int64_t most_beam_steps = 128;

Reply pair_beams(PairState& state, const Request& request) {
  const StoredPair& pair = pair_of(state, request);
  const Json body = request.json();
  const Fields fields(body);
  fields.expect_only({"beams", "length_penalty", "longest"});
  const std::int64_t most_steps =
      std::min(most_beam_steps, state.model->architecture().decoder().context);
  constexpr double highest_penalty = 100;
  BeamOptions options{.editor = pair.pass->editor().get(), .stop = request.stop};
  options.beams = fields.integer("beams", 1, most_beams).value_or(4);
  options.length_penalty =
      fields.number("length_penalty", -highest_penalty, highest_penalty).value_or(1.0);
  options.max_length =
      fields.integer("longest", 1, most_steps).value_or(std::min<std::int64_t>(64, most_steps));
  return json_reply(searched_beams_json(
      *state.model, search_beams(*state.model, pair.pass->texts().source, options)));
}

}  // namespace

void add_pair_effect_routes(PairRoutes& routes) {
  routes.add("GET", "/api/pairs/{id}/predictions", pair_predictions);
  routes.add("GET", "/api/pairs/{id}/lens", pair_lens);
  routes.add("GET", "/api/pairs/{id}/effect", pair_effect);
  routes.add("GET", "/api/pairs/{id}/influence", pair_influence);
  routes.add("POST", "/api/pairs/{id}/translation", pair_translation);
  routes.add("POST", "/api/pairs/{id}/beams", pair_beams);
}

}  // namespace heed::server
