// What a transformer is, as data: one or two stacks of blocks. Parameters, memory, stages, masks,
// observation points and file formats derive from this description, and from nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/operands.h"
#include "model/roles.h"

namespace heed {

using kernels::Activation;
using kernels::RotaryPairing;

// Bounds above any real model, low enough that products of extents fit in 63 bits.
inline constexpr std::int64_t max_extent = std::int64_t{1} << 24;
inline constexpr std::int64_t max_layers = 4096;
inline constexpr std::int64_t max_heads = 65536;

enum class NormKind {
  layer,  // (x − mean) / deviation · gain + bias (Ba, Kiros, Hinton 2016)
  rms,    // x / √mean(x²) · gain (Zhang, Sennrich 2019)
};
enum class NormPlacement {
  pre,     // x + branch(norm(x))
  post,    // norm(x + branch(x)), the original Transformer
  output,  // x + norm(branch(x)): OLMo 2
  around,  // x + norm(branch(norm(x))): Gemma 2
};
struct NormSpecification {
  NormKind kind = NormKind::layer;
  NormPlacement placement = NormPlacement::pre;
  float epsilon = 1e-5F;
  bool bias = true;  // of layer norms

  bool operator==(const NormSpecification&) const = default;
};

enum class PositionKind {
  none,
  learned,     // a table, added to the token embedding
  sinusoidal,  // fixed sines and cosines, added to the token embedding (Vaswani et al. 2017, 3.5)
  rotary,      // queries and keys rotate by their position (Su et al. 2021)
  relative,    // scores get a learned bias by the distance of key and query (Raffel et al. 2020)
};

// How a sinusoidal table orders its channels.
enum class SinusoidOrder {
  interleaved,  // sine and cosine of a wavelength side by side: the paper
  halves,       // all sines, then all cosines: Marian
};

// Distances fall into buckets: one each up to half of the buckets (a quarter in each direction),
// and logarithmic from there to the largest. A bias is learned for each bucket and head.
struct RelativePositions {
  std::int64_t buckets = 32;
  std::int64_t max_distance = 128;  // and beyond: the last bucket
  bool both_directions = false;     // encoders: half of the buckets for keys after the query

  // Of a key `distance` positions after the query (negative: before it).
  std::int64_t bucket(std::int64_t distance) const;

  bool operator==(const RelativePositions&) const = default;
};

enum class RotaryScalingKind { none, linear, dynamic, llama3, yarn, longrope };

// How rotary frequencies are changed for contexts longer than those of pretraining.
struct RotaryScaling {
  RotaryScalingKind kind = RotaryScalingKind::none;
  double factor = 1;                  // by which the context grows
  std::int64_t original_context = 0;  // of pretraining: dynamic, llama3, yarn, longrope
  double low_frequency_factor = 1;    // llama3
  double high_frequency_factor = 4;   // llama3
  double fast_rotations = 32;         // yarn's beta_fast
  double slow_rotations = 1;          // yarn's beta_slow
  // yarn's; 0: m(1), or m(magnitude) / m(magnitude_all). longrope's; 0: √(1 + ln f / ln O) for the
  // factor f and the original context O
  double attention_factor = 0;
  // yarn's mscale and mscale_all_dim: m(s) = 0.1·s·ln(factor) + 1; 0: none
  double magnitude = 0;
  double magnitude_all = 0;
  bool whole_channels = true;  // yarn's truncate: the ramp begins and ends at whole channels
  // longrope: what the frequencies (R/2) are divided by, in texts of up to the original context and
  // in longer ones
  std::vector<double> short_factors{};
  std::vector<double> long_factors{};

  bool operator==(const RotaryScaling&) const = default;
};

struct RotarySpecification {
  double base = 10000;  // wavelengths are 2π·base^(2i/R)
  double fraction = 1;  // of a head that rotates: R = fraction·D, its first channels
  RotaryPairing pairing = RotaryPairing::halves;
  RotaryScaling scaling;
  // The base of layers with a window, which no scaling changes; 0: as in the others.
  double local_base = 0;

  bool operator==(const RotarySpecification&) const = default;
};

enum class MaskKind {
  causal,  // a position attends to itself and those before it
  full,    // every position attends to every other
  banded,  // causal, and in some layers only over a window
};
struct MaskSpecification {
  MaskKind kind = MaskKind::causal;
  // Of each layer (L), for a banded mask: positions that a query attends to, its own included;
  // 0: all before it.
  std::vector<std::int64_t> windows;

  bool operator==(const MaskSpecification&) const = default;
};

// What an RMS norm of queries or keys takes together.
enum class HeadNormExtent {
  each_head,  // gains (D), the same for all heads: Qwen 3
  all_heads,  // gains of all channels, and one size of them all: OLMo 2
};

struct AttentionSpecification {
  std::int64_t query_heads = 12;      // H
  std::int64_t key_value_heads = 12;  // G, a divisor of H: H/G query heads share a key head
  std::int64_t head_size = 64;        // D; usually C / H
  MaskSpecification mask;
  PositionKind positions = PositionKind::learned;
  RotarySpecification rotary;                            // where positions are rotary
  RelativePositions relative;                            // where positions are relative
  SinusoidOrder sinusoids = SinusoidOrder::interleaved;  // where positions are sinusoidal
  bool query_bias = true;       // of the projections to query, key and value
  bool output_bias = true;      // of the projection back to the stream
  float scale = 0.0F;           // of scores; 0: 1/√D
  bool query_key_norm = false;  // RMS norms of queries and keys, before they rotate
  HeadNormExtent head_norms = HeadNormExtent::each_head;
  float soft_cap = 0.0F;  // scores become cap·tanh(scores/cap); 0: no cap

  std::int64_t query_width() const { return query_heads * head_size; }          // A = H·D
  std::int64_t key_value_width() const { return key_value_heads * head_size; }  // K = G·D
  // Rows of the three projections, one below the other: A + 2K.
  std::int64_t projected_width() const { return query_width() + 2 * key_value_width(); }
  std::int64_t group_size() const { return query_heads / key_value_heads; }  // H / G
  std::int64_t rotary_channels() const;                                      // R, even
  float score_scale() const;
  kernels::Mask mask_kind() const {
    return mask.kind == MaskKind::full ? kernels::Mask::full : kernels::Mask::causal;
  }
  std::int64_t window(std::int64_t layer) const {
    return mask.windows.empty() ? 0 : mask.windows[static_cast<std::size_t>(layer)];
  }

  // Of a layer: `rotary`, or what layers with a window have instead.
  RotarySpecification rotary_of(std::int64_t layer) const;
  bool has_local_rotary() const {
    return positions == PositionKind::rotary && rotary.local_base > 0;
  }
  // The heads that a norm of queries or keys takes together, of so many.
  std::int64_t heads_of_norm(std::int64_t heads) const {
    return head_norms == HeadNormExtent::all_heads ? heads : 1;
  }

  // Whether queries and keys change between their projection and attention: by norms of their own,
  // by rotation.
  bool changes_query_and_key() const { return query_key_norm || positions == PositionKind::rotary; }

  bool operator==(const AttentionSpecification&) const = default;
};

struct FeedForwardSpecification {
  std::int64_t width = 3072;  // F; usually 4·C
  Activation activation = Activation::gelu_tanh;
  bool gated = false;  // down(activation(gate(x)) · up(x)) (Shazeer 2020)
  bool bias = true;

  bool operator==(const FeedForwardSpecification&) const = default;
};

enum class ResidualKind {
  sequential,       // feed-forward reads the stream after attention
  parallel,         // both read the stream before the block
  parallel_shared,  // and one norm of it: Falcon 7B
};

struct BlockSpecification {
  NormSpecification norm;
  AttentionSpecification attention;
  std::optional<AttentionSpecification> cross_attention;  // to the other stack's output
  FeedForwardSpecification feed_forward;
  ResidualKind residual = ResidualKind::sequential;

  bool operator==(const BlockSpecification&) const = default;
};

enum class StackRole { decoder, encoder };

struct StackSpecification {
  StackRole role = StackRole::decoder;
  std::int64_t vocabulary_size = 50257;  // V
  std::int64_t context = 1024;           // longest sequence; rows of a learned position table
  std::int64_t channels = 768;           // C, width of the residual stream
  std::int64_t layers = 12;              // L
  BlockSpecification block;
  // The token embedding is multiplied by it before positions are added; √C in the original.
  float embedding_scale = 1.0F;
  bool embedding_norm = false;   // a norm of the sum of the embeddings
  std::int64_t token_types = 0;  // embeddings of the texts that a sequence joins; 0: none
  bool final_norm = true;
  bool has_unembedding = true;    // logits; an encoder that only feeds a decoder has none
  bool tied_unembedding = true;   // the unembedding is the token embedding
  bool unembedding_bias = false;  // added to the logits
  float logit_scale = 1.0F;       // of the final norm's output before the unembedding
  float logit_cap = 0.0F;         // logits become cap·tanh(logits/cap); 0: no cap
  // A linear layer, feed-forward's activation and a norm before the unembedding: the head of
  // BERT's masked language model.
  bool prediction_head = false;
  float initial_deviation = 0.02F;  // of the weights before training
  float embedding_dropout = 0.0F;   // after token + position embedding
  float attention_dropout = 0.0F;   // on the attention pattern
  float residual_dropout = 0.0F;    // on the outputs of attention and feed-forward
  std::int64_t end_of_text = -1;    // token that separates documents; -1: none

  std::int64_t heads() const { return block.attention.query_heads; }                // H
  std::int64_t key_value_heads() const { return block.attention.key_value_heads; }  // G
  std::int64_t head_size() const { return block.attention.head_size; }              // D
  std::int64_t attention_width() const { return block.attention.query_width(); }    // A = H·D
  std::int64_t feed_forward() const { return block.feed_forward.width; }            // F
  bool has_position_table() const { return block.attention.positions == PositionKind::learned; }
  // Whether position vectors are added to the embedding: learned ones, or sinusoids.
  bool has_position_vectors() const {
    return has_position_table() || block.attention.positions == PositionKind::sinusoidal;
  }
  // Norms of the sums of the stream and a branch.
  bool is_post_norm() const { return block.norm.placement == NormPlacement::post; }
  // Norms of what branches read, and of what they give.
  bool has_input_norms() const {
    return block.norm.placement == NormPlacement::pre ||
           block.norm.placement == NormPlacement::around;
  }
  bool has_output_norms() const {
    return block.norm.placement == NormPlacement::output ||
           block.norm.placement == NormPlacement::around;
  }
  bool is_causal() const { return block.attention.mask.kind != MaskKind::full; }
  bool is_parallel() const { return block.residual != ResidualKind::sequential; }
  // Whether both branches read the first norm.
  bool shares_norm() const { return block.residual == ResidualKind::parallel_shared; }

  // Throws Error{invalid_argument} naming the first impossible value.
  void validate() const;

  bool operator==(const StackSpecification&) const = default;
};

// One stack, or an encoder and the decoder that attends to it.
struct Architecture {
  std::vector<StackSpecification> stacks;
  bool shared_embedding = true;     // of two stacks: one token embedding for both
  std::int64_t padding = -1;        // token that fills batches elsewhere; −1: none
  std::int64_t decoder_start = -1;  // token before the first of a decoder's text; −1: none
  std::int64_t forced_first = -1;  // token with which every text that is generated begins; −1: none
  std::int64_t forced_last = -1;  // and with which one that reaches its limit ends; −1: none
  // Tokens beside the decoder's end_of_text that end a text that is generated.
  std::vector<std::int64_t> other_ends{};

  bool is_encoder_decoder() const { return stacks.size() == 2; }
  const StackSpecification& encoder() const { return stacks.front(); }
  const StackSpecification& decoder() const { return stacks.back(); }
  StackSite site(std::size_t stack) const {
    if (!is_encoder_decoder()) return StackSite::only;
    return stack == 0 ? StackSite::encoder : StackSite::decoder;
  }
  const StackSpecification& of(StackSite site) const {
    return site == StackSite::encoder ? encoder() : decoder();
  }

  // The decoder's end_of_text, if it has one, and the others.
  std::vector<std::int32_t> end_tokens() const;
  bool ends_text(std::int64_t token) const;

  // Throws Error{invalid_argument} naming what contradicts itself.
  void validate() const;

  bool operator==(const Architecture&) const = default;
};

// GPT-2's block with the usual proportions: head_size = channels / heads, feed_forward =
// 4·channels. Throws Error{invalid_argument} unless channels is a multiple of heads.
StackSpecification make_gpt_config(std::int64_t layers, std::int64_t heads, std::int64_t channels,
                                   std::int64_t context, std::int64_t vocabulary_size);

// Of linear layers and layer norms.
enum class Biases { none, all };
void set_biases(StackSpecification& stack, Biases biases);
bool has_biases(const StackSpecification& stack);  // any of them

const char* position_kind_name(PositionKind kind);  // "learned", "rotary", "sinusoidal", "none"
const char* norm_kind_name(NormKind kind);          // "layer", "rms"
const char* norm_placement_name(NormPlacement placement);  // "pre", "post", "output", "around"
const char* activation_name(Activation activation);  // Hugging Face's: "gelu_new", "gelu", "relu"

// Whether heed can run and train the model. Throws Error{unsupported} naming what it cannot.
void require_runnable(const StackSpecification& stack);
void require_runnable(const Architecture& architecture);

}  // namespace heed
