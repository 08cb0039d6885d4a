#include "formats/gguf_families.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/error.h"
#include "model/parameters.h"

namespace heed {
namespace {

using Presence = GgufField::Presence;
using Projections = GgufFamily::Projections;
using Pairs = GgufFamily::Pairs;
using Gates = GgufFamily::Gates;

// What LLaMA and its descendants have in common.
std::vector<GgufField> llama_like(GgufField norm) {
  return {{"context_length", "max_position_embeddings"},
          {"embedding_length", "hidden_size"},
          {"block_count", "num_hidden_layers"},
          {"feed_forward_length", "intermediate_size"},
          {"attention.head_count", "num_attention_heads"},
          {"attention.head_count_kv", "num_key_value_heads", GgufKind::integer, Presence::optional},
          {"rope.freq_base", "rope_theta", GgufKind::number, Presence::optional},
          norm};
}

constexpr GgufField rms_epsilon{"attention.layer_norm_rms_epsilon", "rms_norm_eps",
                                GgufKind::number};

std::vector<GgufField> with(std::vector<GgufField> fields, GgufField another) {
  fields.push_back(another);
  return fields;
}

constexpr GgufField head_size_field{"attention.key_length", "head_dim", GgufKind::integer,
                                    Presence::optional};

constexpr GgufField window_field{"attention.sliding_window", "sliding_window", GgufKind::integer,
                                 Presence::optional};

// What both Gemmas have beside LLaMA's.
std::vector<GgufField> gemma_like() {
  std::vector<GgufField> fields = llama_like(rms_epsilon);
  fields.insert(fields.end(), {head_size_field, window_field,
                               GgufField{"attn_logit_softcapping", "attn_logit_softcapping",
                                         GgufKind::number, Presence::optional},
                               GgufField{"final_logit_softcapping", "final_logit_softcapping",
                                         GgufKind::number, Presence::optional}});
  return fields;
}

const std::vector<GgufFamily>& families() {
  static const std::vector<GgufFamily> all{
      {.architecture = "gpt2",
       .model_types = {"gpt2"},
       .fields = {{"context_length", "n_positions"},
                  {"embedding_length", "n_embd"},
                  {"block_count", "n_layer"},
                  {"feed_forward_length", "n_inner"},
                  {"attention.head_count", "n_head"},
                  {"attention.layer_norm_epsilon", "layer_norm_epsilon", GgufKind::number}},
       .projections = Projections::joined},
      {.architecture = "llama",
       .model_types = {"llama", "mistral"},
       .fields = with(llama_like(rms_epsilon), head_size_field),
       .pairs = Pairs::adjacent},
      {.architecture = "qwen2", .model_types = {"qwen2"}, .fields = llama_like(rms_epsilon)},
      {.architecture = "qwen3",
       .model_types = {"qwen3"},
       .fields = with(llama_like(rms_epsilon), head_size_field)},
      {.architecture = "starcoder2",
       .model_types = {"starcoder2"},
       .fields = llama_like({"attention.layer_norm_epsilon", "norm_epsilon", GgufKind::number})},
      {.architecture = "gptneox",
       .model_types = {"gpt_neox"},
       .fields = {{"context_length", "max_position_embeddings"},
                  {"embedding_length", "hidden_size"},
                  {"block_count", "num_hidden_layers"},
                  {"feed_forward_length", "intermediate_size"},
                  {"attention.head_count", "num_attention_heads"},
                  {"attention.layer_norm_epsilon", "layer_norm_eps", GgufKind::number},
                  {"rope.freq_base", "rotary_emb_base", GgufKind::number, Presence::optional},
                  {"use_parallel_residual", "use_parallel_residual", GgufKind::boolean}},
       .projections = Projections::joined},
      {.architecture = "olmo2", .model_types = {"olmo2"}, .fields = llama_like(rms_epsilon)},
      {.architecture = "phi3",
       .model_types = {"phi3"},
       .fields = llama_like(rms_epsilon),
       .projections = Projections::joined,
       .gates = Gates::joined},
      {.architecture = "gemma2", .model_types = {"gemma2"}, .fields = gemma_like()},
      {.architecture = "gemma3",
       .model_types = {"gemma3_text"},
       .fields = with(gemma_like(), {"rope.freq_base_swa", "rope_local_base_freq", GgufKind::number,
                                     Presence::optional})},
      {.architecture = "falcon",
       .model_types = {"falcon"},
       .fields = {{"context_length", "max_position_embeddings"},
                  {"embedding_length", "hidden_size"},
                  {"block_count", "num_hidden_layers"},
                  {"feed_forward_length", "ffn_hidden_size"},
                  {"attention.head_count", "num_attention_heads"},
                  {"attention.head_count_kv", "num_kv_heads", GgufKind::integer,
                   Presence::optional},
                  {"attention.layer_norm_epsilon", "layer_norm_epsilon", GgufKind::number},
                  {"rope.freq_base", "rope_theta", GgufKind::number, Presence::optional}},
       .projections = Projections::joined},
      {.architecture = "bert",
       .model_types = {"bert"},
       .fields = {{"context_length", "max_position_embeddings"},
                  {"embedding_length", "hidden_size"},
                  {"block_count", "num_hidden_layers"},
                  {"feed_forward_length", "intermediate_size"},
                  {"attention.head_count", "num_attention_heads"},
                  {"attention.layer_norm_epsilon", "layer_norm_eps", GgufKind::number}}},
      {.architecture = "t5",
       .model_types = {"t5"},
       .fields = {
           {"context_length", "n_positions"},
           {"embedding_length", "d_model"},
           {"block_count", "num_layers"},
           {"decoder_block_count", "num_decoder_layers", GgufKind::integer, Presence::optional},
           {"feed_forward_length", "d_ff"},
           {"attention.head_count", "num_heads"},
           {"attention.key_length", "d_kv"},
           {"attention.relative_buckets_count", "relative_attention_num_buckets"},
           {"attention.layer_norm_rms_epsilon", "layer_norm_epsilon", GgufKind::number},
           {"decoder_start_token_id", "decoder_start_token_id", GgufKind::integer,
            Presence::optional}}}};
  return all;
}

// "blk.3.attn_q" without its place: names are by role.
const char* gguf_name(Role role) {
  switch (role) {
    case Role::token_embedding: return "token_embd";
    case Role::position_embedding: return "position_embd";
    case Role::token_type_embedding: return "token_types";
    case Role::embedding_norm: return "token_embd_norm";
    case Role::position_bias: return "attn_rel_b";
    case Role::norm_1: return "attn_norm";
    case Role::query_key_value: return "attn_qkv";
    case Role::query_norm: return "attn_q_norm";
    case Role::key_norm: return "attn_k_norm";
    case Role::attention_output: return "attn_output";
    case Role::attention_out_norm: return "post_attention_norm";
    case Role::cross_norm: return "cross_attn_norm";
    case Role::cross_query: return "cross_attn_q";
    case Role::cross_output: return "cross_attn_o";
    case Role::norm_2: return "ffn_norm";
    case Role::gate: return "ffn_gate";
    case Role::up: return "ffn_up";
    case Role::down: return "ffn_down";
    case Role::feed_forward_out_norm: return "post_ffw_norm";
    case Role::final_norm: return "output_norm";
    case Role::unembedding: return "output";
    default: break;
  }
  fail(ErrorCode::internal, "GGUF has no tensor for {}", role_name(role));
}

// The same, where a family has another name.
const char* gguf_name_in(const GgufFamily& family, const BlockSpecification& block,
                         const ParameterId& id) {
  if (id.role == Role::attention_output && id.site != StackSite::only) return "attn_o";  // of T5
  if (id.role == Role::gate && family.gates == Gates::joined) return gguf_name(Role::up);
  if (block.norm.placement == NormPlacement::post) {
    if (id.role == Role::norm_1) return "attn_output_norm";
    if (id.role == Role::norm_2) return "layer_output_norm";
  }
  // Of the two norms of Falcon's branches, that of attention came later.
  if (family.architecture == "falcon" && block.residual == ResidualKind::parallel) {
    if (id.role == Role::norm_1) return "attn_norm_2";
    if (id.role == Role::norm_2) return "attn_norm";
  }
  return gguf_name(id.role);
}

// Before the name of a tensor in a layer, or of a stack.
std::string place_of(const ParameterId& id) {
  const std::string_view side = id.site == StackSite::encoder   ? "enc."
                                : id.site == StackSite::decoder ? "dec."
                                                                : "";
  // The bias of all layers is the first one's.
  const std::int64_t layer = id.role == Role::position_bias ? 0 : id.layer;
  if (layer >= 0) return fmt::format("{}blk.{}.", side, layer);
  // Two stacks share one embedding, and the second alone predicts.
  const bool is_shared = id.role == Role::token_embedding || id.role == Role::unembedding;
  return is_shared ? "" : std::string(side);
}

// Query, key and value by rows, or key and value alone.
void append_projections(const GgufFamily& family, const AttentionSpecification& attention,
                        const Parameter& parameter, std::vector<StoredTensor>& stored) {
  const std::int64_t a = attention.query_width(), k = attention.key_value_width();
  const bool is_cross = parameter.id.role == Role::cross_key_value;
  struct Rows {
    const char* name;
    std::int64_t first_row, rows;
    bool turns = false;  // by their position
  };
  const std::vector<Rows> parts =
      is_cross
          ? std::vector<Rows>{{"cross_attn_k", 0, k}, {"cross_attn_v", k, k}}
          : std::vector<Rows>{{"attn_q", 0, a, true}, {"attn_k", a, k, true}, {"attn_v", a + k, k}};
  for (const Rows& part : parts) {
    const bool is_weight = parameter.id.part == Part::weight;
    const bool turns = family.pairs == Pairs::adjacent && part.turns;
    stored.push_back({.name = fmt::format("{}{}.{}", place_of(parameter.id), part.name,
                                          is_weight ? "weight" : "bias"),
                      .parameter = parameter.id,
                      .shape = is_weight ? Shape{part.rows, parameter.shape[1]} : Shape{part.rows},
                      .first_row = part.first_row,
                      .storage = turns ? Storage::pairs_adjacent : Storage::straight});
  }
}

std::vector<StoredTensor> gguf_tensors(const GgufFamily& family, const Architecture& architecture) {
  Architecture in_file = gguf_architecture(architecture);
  // As in GPT-2's own files, biases are always there.
  if (family.architecture == "gpt2") set_biases(in_file.stacks.front(), Biases::all);
  std::vector<StoredTensor> stored;
  for (const Parameter& parameter : parameters_of(in_file)) {
    const auto& [role, part, layer, site] = parameter.id;
    const BlockSpecification& block = in_file.of(site).block;
    const bool is_apart = role == Role::query_key_value && family.projections == Projections::apart;
    if (is_apart || role == Role::cross_key_value) {
      append_projections(family, is_apart ? block.attention : *block.cross_attention, parameter,
                         stored);
      continue;
    }
    stored.push_back({.name = fmt::format("{}{}.{}", place_of(parameter.id),
                                          gguf_name_in(family, block, parameter.id),
                                          part == Part::weight ? "weight" : "bias"),
                      .parameter = parameter.id,
                      .shape = parameter.shape});
    if (family.gates != Gates::joined || (role != Role::gate && role != Role::up)) continue;
    stored.back().joined_rows = 2 * parameter.shape[0];
    stored.back().first_joined_row = role == Role::gate ? 0 : parameter.shape[0];
  }
  return stored;
}

// Frequencies of rotary positions are read with the metadata; nothing reads the second bias of T5,
// and the heads by which encoders rank and classify texts.
bool is_gguf_buffer(std::string_view name) {
  return name == gguf_rotary_factors || name == gguf_short_factors || name == gguf_long_factors ||
         name == "dec.blk.0.cross_attn_rel_b.weight" || name.starts_with("cls.");
}

}  // namespace

bool GgufFamily::has_field(std::string_view key) const {
  return std::ranges::count(fields, key, &GgufField::key) > 0;
}

const GgufFamily& gguf_family(std::string_view architecture, std::string_view source) {
  std::vector<std::string_view> known;
  for (const GgufFamily& family : families()) {
    if (family.architecture == architecture) return family;
    known.push_back(family.architecture);
  }
  fail(ErrorCode::unsupported, "{}: 'general.architecture' is '{}'; heed reads GGUF files of {}",
       source, architecture, fmt::join(known, ", "));
}

const GgufFamily* find_gguf_family_of(std::string_view model_type) {
  for (const GgufFamily& family : families()) {
    if (std::ranges::count(family.model_types, model_type) > 0) return &family;
  }
  return nullptr;
}

Architecture gguf_architecture(Architecture architecture) {
  StackSpecification& stack = architecture.stacks.back();
  if (stack.role != StackRole::encoder) return architecture;
  stack.has_unembedding = stack.prediction_head = stack.unembedding_bias = false;
  stack.tied_unembedding = true;
  return architecture;
}

Format gguf_format(const GgufFamily& family, const Format& format) {
  Format described = format;
  described.prefix = "";
  described.described_by = "its metadata";
  described.tensors = [&family](const Architecture& architecture) {
    return gguf_tensors(family, architecture);
  };
  described.is_buffer = &is_gguf_buffer;
  described.computed = {};
  return described;
}

}  // namespace heed
