#include "engine/searched_beams.h"

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "engine/views/token_json.h"

namespace heed {
namespace {

const char* state_name(BeamFate fate) {
  switch (fate) {
    case BeamFate::kept: return "kept";
    case BeamFate::dropped: return "dropped";
    case BeamFate::finished: return "finished";
  }
  return "";
}

OrderedJson nodes_json(const LoadedModel& model, const BeamTree& tree) {
  OrderedJson nodes = OrderedJson::array();
  for (std::size_t id = 0; id < tree.nodes.size(); ++id) {
    const BeamNode& node = tree.nodes[id];
    const bool is_start = node.parent < 0;
    nodes.push_back({{"id", id},
                     {"parent", is_start ? OrderedJson(nullptr) : OrderedJson(node.parent)},
                     {"step", node.step},
                     {"token", is_start ? OrderedJson(nullptr) : token_json(model, node.token)},
                     {"log_probability", json_number(node.log_probability)},
                     {"sum", json_number(node.sum)},
                     {"state", state_name(node.fate)}});
  }
  return nodes;
}

}  // namespace

SearchedBeams search_beams(const LoadedModel& model, std::span<const std::int32_t> source,
                           BeamOptions options) {
  const std::int64_t vocabulary = model.architecture().decoder().vocabulary_size;
  if (model.tokenizer != nullptr) {
    options.drawable = std::min<std::int64_t>(model.tokenizer->vocabulary_size(), vocabulary);
  }
  options.n_best = options.beams;
  const std::vector<std::int64_t> row_starts{0, std::ssize(source)};
  std::vector<BeamTree> trees;
  options.trees = &trees;
  auto found = beam_search(model.transformer, {source, row_starts}, options);
  options.trees = nullptr;
  return {.options = std::move(options),
          .tree = std::move(trees.front()),
          .hypotheses = std::move(found.front())};
}

OrderedJson searched_beams_json(const LoadedModel& model, const SearchedBeams& searched) {
  OrderedJson hypotheses = OrderedJson::array();
  for (std::size_t rank = 0; rank < searched.hypotheses.size(); ++rank) {
    const TokenHypothesis& hypothesis = searched.hypotheses[rank];
    hypotheses.push_back({{"node", searched.tree.hypotheses[rank]},
                          {"score", json_number(hypothesis.score)},
                          {"log_probability", json_number(hypothesis.log_probability)},
                          {"finished", hypothesis.finished},
                          {"text", model.target_text(hypothesis.tokens)},
                          {"tokens", tokens_json(model, hypothesis.tokens)}});
  }
  return {{"beams", searched.options.beams},
          {"length_penalty", json_number(searched.options.length_penalty)},
          {"max_length", searched.options.max_length},
          {"nodes", nodes_json(model, searched.tree)},
          {"hypotheses", std::move(hypotheses)}};
}

}  // namespace heed
