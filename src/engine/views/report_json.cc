#include "engine/views/report_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "base/json.h"
#include "engine/views/reading_json.h"
#include "engine/views/token_json.h"
#include "formats/config_fields.h"
#include "formats/config_file.h"
#include "formats/format.h"
#include "microscope/traces/point_names.h"
#include "model/architecture.h"
#include "model/cache.h"
#include "model/parameter_count.h"

namespace heed {

namespace {

std::string family_of(const StackSpecification& stack) {
  const auto found = std::ranges::find_if(
      formats(), [&](const Format& format) { return format.expresses({.stacks = {stack}}); });
  return found == formats().end() ? "custom" : std::string(found->name);
}

}  // namespace

OrderedJson vector_json(std::span<const float> vector) {
  OrderedJson list = OrderedJson::array();
  for (const float value : vector) list.push_back(json_number(value));
  return list;
}

OrderedJson habit_json(const HeadHabitStrength& habit) {
  return {{"name", habit_name(habit.habit)}, {"strength", json_number(habit.strength)}};
}

OrderedJson head_statistics_json(const RankedHead& head) {
  OrderedJson row{{"site", site_name(head.site)}, {"layer", head.layer}, {"head", head.head}};
  for (const HeadStatistic& statistic : head_statistics_table()) {
    row[std::string(statistic.name)] = has_statistic(head.statistics.scope, statistic)
                                           ? json_number(head.statistics.*statistic.value)
                                           : OrderedJson(nullptr);
  }
  row["habit"] = habit_json(strongest_habit(head.statistics));
  return row;
}

OrderedJson pattern_json(View<const float> pattern) {
  OrderedJson rows = OrderedJson::array();
  for (std::int64_t t = 0; t < pattern.extent(0); ++t) {
    OrderedJson row = OrderedJson::array();
    for (std::int64_t s = 0; s < pattern.extent(1); ++s) row.push_back(json_number(pattern(t, s)));
    rows.push_back(std::move(row));
  }
  return rows;
}

OrderedJson word_walk_json(std::span<const std::string> bytes, const TextWord* word,
                           const WordWalk& walk) {
  OrderedJson answers = OrderedJson::array();
  for (const KeyAnswer& answer : walk.answers) {
    answers.push_back({{"position", answer.position},
                       {"token", named_bytes(bytes[answer.position])},
                       {"masked", answer.masked},
                       {"key", vector_json(answer.key)},
                       {"value", vector_json(answer.value)},
                       {"product", json_number(answer.product)},
                       {"scaled", json_number(answer.scaled)},
                       {"score", answer.masked ? OrderedJson(nullptr) : json_number(answer.scaled)},
                       {"share", json_number(answer.share)},
                       {"value_length", json_number(answer.value_length)},
                       {"contribution_length", json_number(answer.contribution_length)}});
  }
  OrderedJson document;
  if (word != nullptr) {
    document["word"] = word->text;
    document["word_positions"] = {word->begin, word->end};
  }
  document["position"] = walk.position;
  document["layer"] = walk.layer;
  document["head"] = walk.head;
  document["head_size"] = walk.head_size;
  document["query"] = vector_json(walk.query);
  document["answers"] = std::move(answers);
  document["output"] = vector_json(walk.output);
  document["concatenation"] = vector_json(walk.concatenation);
  document["head_projection"] = vector_json(walk.head_projection);
  document["attention_out"] = vector_json(walk.attention_out);
  document["residual_before"] = vector_json(walk.residual_before);
  document["residual_after"] = vector_json(walk.residual_after);
  return document;
}

OrderedJson candidate_json(const LoadedModel& model, const Candidate& candidate) {
  return candidate_json(model.token_bytes(candidate.token), candidate);
}

OrderedJson candidate_json(const std::string& token, const Candidate& candidate) {
  OrderedJson row{{"id", candidate.token},
                  {"token", token},
                  {"logit", json_number(static_cast<float>(candidate.logit))},
                  {"scaled", json_number(candidate.scaled_logit)},
                  {"probability", json_number(candidate.probability(SamplingStage::model))},
                  {"drawn", json_number(candidate.probability(SamplingStage::temperature))},
                  {"rank", candidate.rank},
                  {"after", OrderedJson::object()},
                  {"removed_by", nullptr}};
  // The stages between the model and the temperature, which are rows of their own.
  for (std::size_t i = 1; i + 1 < sampling_stage_count; ++i) {
    const auto stage = static_cast<SamplingStage>(i);
    row["after"][std::string(sampling_stage_name(stage))] =
        json_number(candidate.probability(stage));
  }
  if (!candidate.kept()) row["removed_by"] = sampling_stage_name(candidate.removed_by);
  return row;
}

namespace {

// As it would be saved; null where no checkpoint format can say it.
OrderedJson saved_config(const StackSpecification& config) {
  const bool is_known = std::ranges::any_of(
      formats(), [&](const Format& format) { return format.expresses({.stacks = {config}}); });
  return is_known ? stack_config_to_json(config) : OrderedJson(nullptr);
}

}  // namespace

OrderedJson parameter_count_json(const std::string& name, const StackSpecification& config) {
  const ParameterCount count = count_parameters(config);
  const ModelCost cost = model_cost(config);
  const ParameterCount::Head& head = count.per_head;
  return {{"name", name},
          {"total", count.total},
          {"embedding", count.embedding},
          {"position", count.position},
          {"per_head",
           {{"query", head.query},
            {"key", head.key},
            {"value_down", head.value_down},
            {"value_up", head.value_up},
            {"total", head.total}}},
          {"attention_block", count.attention_block},
          {"attention_total", count.attention_total},
          {"feed_forward_block", count.feed_forward_block},
          {"feed_forward_total", count.feed_forward_total},
          {"biases", count.biases},
          {"norms", count.norms},
          {"unembedding", count.unembedding},
          {"run_bytes", cost.run_bytes},
          {"train_bytes", cost.train_bytes},
          {"key_value_bytes_per_token", cost.key_value_bytes_per_token},
          {"key_value_bytes_per_token_bf16", cache_bytes(config, CacheType::bf16, 1)},
          {"key_value_bytes_per_token_int8", cache_bytes(config, CacheType::int8, 1)},
          {"flops_per_token", cost.flops_per_token},
          {"train_flops_per_token", cost.train_flops_per_token},
          {"architecture", architecture_json(config)},
          {"config", saved_config(config)}};
}

OrderedJson parameter_count_json(const std::string& name, const Architecture& architecture) {
  if (!architecture.is_encoder_decoder()) {
    return parameter_count_json(name, architecture.decoder());
  }
  const ParameterCount count = count_parameters(architecture);
  OrderedJson stacks = OrderedJson::array();
  for (const StackCount& own : count_stacks(architecture)) {
    const StackSpecification& stack = architecture.of(own.site);
    stacks.push_back({{"stack", own.site == StackSite::encoder ? "encoder" : "decoder"},
                      {"layers", stack.layers},
                      {"attention_total", own.attention},
                      {"cross_attention_total", own.cross_attention},
                      {"feed_forward_total", own.feed_forward},
                      {"architecture", architecture_json(stack)}});
  }
  return {{"name", name},
          {"total", count.total},
          {"embedding", count.embedding},
          {"position", count.position},
          {"attention_total", count.attention_total},
          {"feed_forward_total", count.feed_forward_total},
          {"biases", count.biases},
          {"norms", count.norms},
          {"unembedding", count.unembedding},
          {"stacks", stacks}};
}

OrderedJson architecture_json(const StackSpecification& stack) {
  const auto& [norm, attention, cross_attention, feed_forward, residual] = stack.block;
  OrderedJson json{{"family", family_of(stack)},
                   {"norm", norm_kind_name(norm.kind)},
                   {"positions", position_kind_name(attention.positions)},
                   {"key_value_heads", attention.key_value_heads},
                   {"windows", attention.mask.windows},
                   {"gated", feed_forward.gated},
                   {"activation", activation_name(feed_forward.activation)},
                   {"activation_label", kernels::description_of(feed_forward.activation).label},
                   {"query_key_norm", attention.query_key_norm},
                   {"residual", stack.is_parallel() ? "parallel" : "sequential"}};
  if (attention.positions == PositionKind::rotary) {
    OrderedJson written;
    write_rotary_scaling(attention.rotary, written);
    json["rotary"] = {{"base", attention.rotary.base}, {"channels", attention.rotary_channels()}};
    if (written.contains("rope_scaling")) json["rotary"]["scaling"] = written["rope_scaling"];
  }
  json["biases"] = {{"norm", norm.bias},
                    {"query", attention.query_bias},
                    {"output", attention.output_bias},
                    {"feed_forward", feed_forward.bias}};
  return json;
}

OrderedJson text_json(const LoadedModel& model, std::span<const std::int32_t> ids, PairSide side) {
  return {{"tokens", tokens_json(model, ids, side)},
          {"words", units_json(text_units(model, ids, side))},
          {"unread", unread_json(model, ids, side)}};
}

OrderedJson effects_json(const LoadedModel& model, std::span<const PredictionEffect> effects) {
  OrderedJson list = OrderedJson::array();
  for (std::size_t position = 0; position < effects.size(); ++position) {
    const PredictionEffect& effect = effects[position];
    OrderedJson actual = nullptr;
    if (effect.next) {
      actual = {{"token", token_json(model, *effect.next)},
                {"before", json_number(effect.before)},
                {"after", json_number(effect.after)}};
    }
    list.push_back({{"position", position},
                    {"moved", json_number(effect.moved)},
                    {"actual", std::move(actual)}});
  }
  return list;
}

namespace {

OrderedJson near_word_json(const LoadedModel& model, const NearWord& word) {
  return {{"token", token_json(model, word.token)}, {"cosine", json_number(word.cosine)}};
}

}  // namespace

OrderedJson nearest_words_json(const LoadedModel& model, const NearestWordsByDepth& found) {
  OrderedJson depths = OrderedJson::array();
  for (std::size_t depth = 0; depth < found.depths.size(); ++depth) {
    const NearestWords& here = found.depths[depth];
    OrderedJson words = OrderedJson::array();
    for (const NearWord& word : here.words) words.push_back(near_word_json(model, word));
    depths.push_back({{"point", point_name(found.points[depth])},
                      {"words", std::move(words)},
                      {"best", near_word_json(model, here.best)},
                      {"chance", json_number(here.chance)}});
  }
  return {{"position", found.position},
          {"shuffles", nearest_word_shuffles},
          {"depths", std::move(depths)}};
}

namespace {

OrderedJson token_change_json(const LoadedModel& model, const TokenChange& change) {
  return {{"token", token_json(model, change.token)},
          {"before", json_number(change.before)},
          {"after", json_number(change.after)}};
}

OrderedJson measured_json(const std::optional<double>& value) {
  return value ? OrderedJson(json_number(*value)) : OrderedJson(nullptr);
}

}  // namespace

OrderedJson shown_edge_json(const LoadedModel& model, std::span<const std::int32_t> tokens,
                            const ShownEdge& shown) {
  const AttentionEdge& edge = shown.effect.edge;
  std::string text;
  for (std::int64_t s = edge.key.begin; s < edge.key.end; ++s) {
    text += token_text(model, tokens[static_cast<std::size_t>(s)]);
  }
  OrderedJson gained = OrderedJson::array();
  for (const TokenChange& each : shown.gained) gained.push_back(token_change_json(model, each));
  return {{"layer", edge.head.layer},
          {"head", edge.head.head},
          {"query", shown.query},
          {"key", {{"begin", edge.key.begin}, {"end", edge.key.end}, {"text", text}}},
          {"weight", json_number(shown.effect.weight)},
          {"cut", json_number(shown.effect.cut)},
          {"direct", measured_json(shown.effect.direct)},
          {"replaced", measured_json(shown.effect.replaced)},
          {"others", {{"count", shown.others}, {"cut", measured_json(shown.others_cut)}}},
          {"threshold", json_number(shown.threshold)},
          {"decides", shown.decides()},
          {"word_cut", json_number(shown.word_cut)},
          {"likeliest", token_change_json(model, shown.likeliest)},
          {"likeliest_without", token_change_json(model, shown.likeliest_without)},
          {"gained", std::move(gained)},
          {"measured", shown.measured},
          {"positions_read", shown.positions_read}};
}

OrderedJson aligned_words_json(std::span<const AlignedWord> links) {
  OrderedJson list = OrderedJson::array();
  for (const AlignedWord& link : links) {
    list.push_back(
        {{"target", link.target}, {"source", link.source}, {"weight", json_number(link.weight)}});
  }
  return list;
}

OrderedJson head_alignments_json(std::vector<HeadAlignment> heads) {
  std::ranges::stable_sort(heads, {},
                           [](const HeadAlignment& head) { return head.counts.error_rate(); });
  OrderedJson list = OrderedJson::array();
  for (const HeadAlignment& head : heads) {
    list.push_back({{"layer", head.layer},
                    {"head", head.head},
                    {"error_rate", json_number(head.counts.error_rate())},
                    {"precision", json_number(head.counts.precision())},
                    {"recall", json_number(head.counts.recall())}});
  }
  return list;
}

OrderedJson greedy_translation_json(const LoadedModel& translator,
                                    const GreedyTranslation& translation) {
  return {{"text", translator.target_text(translation.tokens)},
          {"tokens", tokens_json(translator, translation.tokens)},
          {"finished", translation.is_finished()},
          {"log_probability", json_number(translation.log_probability)}};
}

OrderedJson hypothesis_json(const LoadedModel& translator, const TokenHypothesis& hypothesis) {
  const Tokenizer& target = translator.require_tokenizer();
  OrderedJson tokens = OrderedJson::array();
  for (const std::int32_t id : hypothesis.tokens) {
    const bool is_known = id < target.vocabulary_size();
    tokens.push_back(token_json(id, is_known ? target.token_bytes(id) : fmt::format("#{}", id)));
  }
  return {{"text", translator.target_text(hypothesis.tokens)},
          {"score", hypothesis.score},
          {"log_probability", hypothesis.log_probability},
          {"finished", hypothesis.finished},
          {"tokens", std::move(tokens)}};
}

}  // namespace heed
