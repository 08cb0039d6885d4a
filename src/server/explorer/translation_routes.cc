// What only traces of a source and a target have: the alignment of their words, what another word
// moves in both stacks, translations, and the tree of a beam search.
#include <algorithm>

#include "base/error.h"
#include "engine/searched_beams.h"
#include "engine/views/report_json.h"
#include "engine/views/token_json.h"
#include "server/explorer/state.h"
#include "server/fields.h"

namespace heed::server {
namespace {

Reply alignment(TraceState& state, const Request& request) {
  StoredTrace& trace = two_texts_of(state, request, "the alignment of words is");
  const StackSpecification& decoder = trace.pass->architecture().decoder();
  CrossHead head{.layer = checked_layer(request.integer("layer", decoder.layers - 1), decoder),
                 .head = std::nullopt};
  if (request.parameter("head")) {
    head.head = bounded(request, "head", 0, 0, decoder.block.cross_attention->query_heads - 1);
  }
  const std::string row = one_of(request, "row", {"written", "read"});
  const Tensor<float> words = cross_by_words(*trace.pass, *trace.attention, head, trace.words(),
                                             row == "written" ? WordRow::written : WordRow::read);
  return json_reply({{"layer", head.layer},
                     {"head", head.head ? OrderedJson(*head.head) : OrderedJson(nullptr)},
                     {"row", row},
                     {"links", aligned_words_json(aligned_words(words))}});
}

Reply compare_alignment(TraceState& state, const Request& request) {
  StoredTrace& trace = two_texts_of(state, request, "the alignment of words is");
  const Json body = request.json();
  const Fields fields(body);
  fields.expect_only({"links", "row"});
  const std::string row = fields.string("row").value_or("written");
  require(row == "written" || row == "read", ErrorCode::invalid_argument,
          "\"row\" must be written or read, not \"{}\"", row.substr(0, 40));
  scoring::TrueAlignment truth;
  for (const Json& link : fields.required_list("links")) {
    const bool is_pair = link.is_array() && link.size() == 2 && link[0].is_number_integer() &&
                         link[1].is_number_integer();
    require(is_pair, ErrorCode::invalid_argument,
            "\"links\" must be a list of [source word, target word], not {}",
            link.dump().substr(0, 40));
    const auto source = link[0].get<std::int64_t>(), target = link[1].get<std::int64_t>();
    require(source >= 0 && source < std::ssize(trace.source_units) && target >= 0 &&
                target < std::ssize(trace.units),
            ErrorCode::invalid_argument, "the link [{}, {}] lies outside texts of {} and {} words",
            source, target, trace.source_units.size(), trace.units.size());
    truth.sure.push_back({static_cast<std::int32_t>(source), static_cast<std::int32_t>(target)});
  }
  require(!truth.sure.empty(), ErrorCode::invalid_argument, "\"links\" is empty");
  return json_reply(
      {{"heads", head_alignments_json(head_alignments(
                     *trace.pass, *trace.attention, trace.words(), truth,
                     row == "written" ? WordRow::written : WordRow::read, request.stop))}});
}

OrderedJson changes_json(const std::vector<double>& changes) {
  OrderedJson list = OrderedJson::array();
  for (const double change : changes) list.push_back(json_number(change));
  return list;
}

// The token that stands for another word where none is named: the vocabulary's unknown one, or the
// next id.
std::int32_t other_token(const LoadedModel& model, PairSide side, std::int32_t token) {
  if (const Tokenizer* const tokenizer = model.tokenizer_of(side)) {
    if (tokenizer->unknown() && *tokenizer->unknown() != token) return *tokenizer->unknown();
  }
  return static_cast<std::int32_t>((token + 1) % model.stack(side).vocabulary_size);
}

Reply influence(TraceState& state, const Request& request) {
  const StoredTrace& trace = two_texts_of(state, request, "the influence of a token is");
  const std::string name = one_of(request, "side", {"source", "target"});
  const PairSide side = name == "source" ? PairSide::source : PairSide::target;
  const std::span<const std::int32_t> text = trace.tokens(side);
  const std::int64_t position = bounded(request, "position", 0, 0, std::ssize(text) - 1);
  const std::int64_t vocabulary = trace.model().stack(side).vocabulary_size;
  const std::int32_t now = text[static_cast<std::size_t>(position)];
  const auto token = static_cast<std::int32_t>(
      bounded(request, "token", other_token(trace.model(), side, now), 0, vocabulary - 1));
  const TokenInfluence influence = token_influence(*trace.pass, side, position, token);
  return json_reply({{"side", name},
                     {"position", position},
                     {"token", token_json(trace.model(), token, side)},
                     {"encoder", changes_json(influence.encoder)},
                     {"decoder", changes_json(influence.decoder)}});
}

Reply translation(TraceState& state, const Request& request) {
  const StoredTrace& trace = two_texts_of(state, request, "a translation is");
  const LoadedModel& model = trace.model();
  const Json body = request.json();
  const Fields fields(body);
  fields.expect_only({"max_length"});
  const std::int64_t context = model.architecture().decoder().context;
  GreedyOptions options{.max_length = fields.integer("max_length", 1, context).value_or(context),
                        .stop = request.stop};
  const auto translate = [&] {
    return greedy_translation_json(
        model, translate_greedily(model.transformer, trace.tokens(PairSide::source), options));
  };
  OrderedJson without = translate();
  options.editor = trace.pass->editor().get();
  OrderedJson reply = translate();
  reply["without"] = std::move(without);
  return json_reply(reply);
}

// Limits of the tree of one request: at most 2·16·128 candidates.
constexpr std::int64_t max_beams = 16;
constexpr std::int64_t max_beam_steps = 128;

Reply beams(TraceState& state, const Request& request) {
  const StoredTrace& trace = two_texts_of(state, request, "a beam search is");
  const LoadedModel& model = trace.model();
  const Json body = request.json();
  const Fields fields(body);
  fields.expect_only({"beams", "length_penalty", "max_length"});
  const std::int64_t max_steps = std::min(max_beam_steps, model.architecture().decoder().context);
  constexpr double highest_penalty = 100;
  BeamOptions options{.editor = trace.pass->editor().get(), .stop = request.stop};
  options.beams = fields.integer("beams", 1, max_beams).value_or(options.beams);
  options.length_penalty =
      fields.number("length_penalty", -highest_penalty, highest_penalty).value_or(1.0);
  options.max_length =
      fields.integer("max_length", 1, max_steps).value_or(std::min<std::int64_t>(64, max_steps));
  return json_reply(
      searched_beams_json(model, search_beams(model, trace.pass->texts().source, options)));
}

}  // namespace

void add_translation_routes(TraceRoutes& routes) {
  const std::string trace = "/api/traces/{id}";
  routes.add("GET", trace + "/alignment", alignment);
  routes.add("POST", trace + "/alignment", compare_alignment);
  routes.add("GET", trace + "/influence", influence);
  routes.add("POST", trace + "/translation", translation);
  routes.add("POST", trace + "/beams", beams);
}

}  // namespace heed::server
