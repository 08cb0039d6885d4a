// Hooks at the points of a pass, and passes whose every activation can be read afterwards, without
// copies.
//
//   heed::Activations found = heed::record(model, {tokens});
//   found.at("blocks.3.hook_resid_pre");          // (B, T, C), where the pass wrote it
//   found.attention("blocks.3.attn.hook_pattern",
//                   {.heads = {2}, .query_end = 100, .key_end = 100});
//
//   heed::run(model, {tokens}, {.hooks = {{"blocks.3.attn.hook_z", [](const heed::HookedPoint&,
//     heed::Array& z) { std::ranges::fill(z, 0.0F); }}}});
//
// Names of points as in heed/trace.h, shapes as in docs/notation.md.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/heed.h"

namespace heed {

// Sequences of one length, (B, T), row by row, or of `lengths`, one after the other. Of an
// encoder-decoder, what its decoder reads, with its start in front: position t has read tokens 0 to
// t and predicts token t + 1, the last one the end.
struct TokenBatch {
  std::span<const std::int32_t> tokens;
  std::int64_t sequences = 1;  // B
  // As the tokens: which of the texts that a sequence joins each token is of, for encoders that
  // tell them apart; empty: all of the first.
  std::span<const std::int32_t> token_types{};
  std::span<const std::int64_t> lengths{};  // (B), of each sequence; empty: all have T
  // What the encoder of an encoder-decoder reads, (B, M), or of lengths of their own.
  std::span<const std::int32_t> sources{};
  std::span<const std::int64_t> source_lengths{};
};

// Numbers in heed's memory, with a shape and strides (in elements), kept alive by their owner.
struct SharedView {
  float* data = nullptr;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  std::shared_ptr<const void> owner;
};

// Where a hook is called.
struct HookedPoint {
  std::string name;                 // "blocks.3.attn.hook_z"
  std::int64_t first_position = 0;  // of the values: in a generation, steps follow the prompt
  std::int64_t text = 0;            // of texts of different lengths, whose values they are
};

// A function at the points that a name selects (as in TraceRequest::points). It may change the
// values in place, or assign an array of their shape: what it leaves is what the pass goes on with.
// The array is its own: kept, it stays as it was left. Values that are left as they were change no
// bit. Scores and patterns come whole, (B, H, T, S). Of texts of different lengths, it is called
// for each, with the (1, T, …) of that one: what it does to a text is what it would do to it alone.
// On the thread that called; an exception ends the pass and is rethrown.
struct Hook {
  std::string where;
  std::function<void(const HookedPoint& point, Array& values)> call;
};

// What backward takes for a constant: attention patterns, or the deviations that norms divide by.
// With both, gradients are linear attributions, but for the neurons (Ameisen et al. 2025).
enum class FrozenPart { pattern, scale };

// The gradient (B, T, V) of a function of logits (B, T, V), which follow texts of different lengths
// with zeros after their ends.
using MetricGradient = std::function<Array(const Array& logits)>;

struct RunOptions {
  std::vector<Hook> hooks{};  // at one point, in their order
  // Called with the gradient at their points: of `target`, or of the mean next-token loss. What
  // they leave is what backward goes on with; gradients of embeddings, norms, scores, patterns,
  // results of heads and logits can only be read. Of a batch, each sequence has the
  // gradient of its own target, which no other sequence changes. heed does not know
  // the derivative of what `hooks` do: gradients before a point whose values they change are
  // refused, unless a gradient hook stands at the same point, which turns the gradient of what was
  // left there into that of what was given.
  std::vector<Hook> gradient_hooks{};
  GradientTarget target{};
  // Instead of target.logits and target.logit_weights: called once, with the logits of the pass.
  MetricGradient metric{};
  std::vector<FrozenPart> freeze{};
  // Of a model of one stack: the blocks [layer_begin, layer_end) that are computed; −1 is the last
  // one's end. A pass that ends earlier has no logits: run() gives its stream (B, T, C), the input
  // of block layer_end, instead.
  std::int64_t layer_begin = 0;
  std::int64_t layer_end = -1;
  // (B, T, C): what the first of them reads, in place of the embedding of the tokens, of which only
  // the number is then read. A pass that begins later needs it.
  Array stream{};
  // Called at points of the pass, some each layer, on the thread that called; an exception ends the
  // pass and is rethrown.
  std::function<void()> poll{};
};

// What they give of sequences of different lengths has the shape of the longest, with zeros after
// the ends of others: no sequence sees what stands beside it. Their numbers are those that each
// sequence has alone but for the order in which products are summed, a relative 2e-6.
//
// All of these throw Error{invalid_argument} for tokens that are not sequences of these lengths,
// hooks at unknown points (with the nearest names) and hooks that leave another shape;
// Error{unsupported} for hooks at points that cannot be edited, for sources and a model of one
// stack, and for an encoder-decoder without sources.

// Logits (B, T, V) of the token after every position; see RunOptions::layer_end.
Array run(const Model& model, const TokenBatch& batch, const RunOptions& options = {});
// (B, T − 1): of every token but the first, in nats; of an encoder-decoder (B, T), of what follows
// each token that its decoder reads, the end too. Throws Error{unsupported} for a stream and for a
// part of the layers.
Array next_token_losses(const Model& model, const TokenBatch& batch,
                        const RunOptions& options = {});
// What follows each token of a text, or of what a decoder reads: of the latter the end, where the
// model has one; −1: nothing.
std::vector<std::int32_t> tokens_after(const Model& model, std::span<const std::int32_t> tokens);
// Losses (B, T) from logits (B, T, V) and the tokens (B, T) that follow, 0 where none does.
Array losses_from_logits(const Array& logits, std::span<const std::int32_t> next);

struct RecordRequest {
  // Names as in TraceRequest::points; empty: all points. Those of "_grad" are gradients of the
  // target, of each sequence by itself.
  std::vector<std::string> points{};
  bool logits = true;
};

// A rectangle of the scores or pattern of some heads, ends excluded.
struct AttentionTiles {
  std::vector<std::int64_t> sequences{};  // empty: all
  std::vector<std::int64_t> heads{};      // empty: all
  std::int64_t query_begin = 0;
  std::int64_t query_end = 0;
  std::int64_t key_begin = 0;
  std::int64_t key_end = 0;
};

// What a pass computed. Values that the pass had in memory are views of that memory; the others
// (scores and patterns, norms, neurons after the activation, the stream head by head) are computed
// from them when they are asked for, in the arithmetic of the pass. Borrows the model for that.
// Several threads may call const functions at once.
class Activations {
 public:
  Activations(Activations&&) noexcept;
  Activations& operator=(Activations&&) noexcept;
  ~Activations();

  std::int64_t sequences() const;  // B
  std::int64_t positions() const;  // T, of the longest
  // (B): which of the T positions of a sequence are its own. Values after them are 0, scores −∞.
  std::vector<std::int64_t> lengths() const;
  std::vector<std::int64_t> source_lengths() const;  // (B), of what the encoder read, or none
  // (B, T), of the decoder if there are two stacks; −1 after the end of a sequence.
  const std::vector<std::int32_t>& tokens() const;
  const std::vector<std::int32_t>& source_tokens() const;  // (B, M), of the encoder, or none
  const std::vector<std::string>& names() const;           // in the order of a forward pass
  // Of a point by any of its names ("pattern3"). Throws Error{invalid_argument} for an unknown one,
  // with the nearest, and for one of several points.
  std::string full_name(std::string_view name) const;
  bool has(std::string_view name) const;

  // By full names. Throw Error{not_found} for a point that was not recorded.
  std::vector<std::int64_t> shape(std::string_view name) const;
  SharedView at(std::string_view name) const;
  // Whether a point is scores or a pattern that tiles are computed of.
  bool is_lazy_attention(std::string_view name) const;
  // (sequences, heads, queries, keys)
  Array attention(std::string_view name, const AttentionTiles& tiles) const;

  const Array& logits() const;  // (B, T, V); empty where they were not asked for
  std::int64_t bytes() const;   // of memory, without logits

 private:
  friend Activations record(const Model&, const TokenBatch&, const RecordRequest&,
                            const RunOptions&);
  friend struct ActivationsAccess;
  struct Parts;
  explicit Activations(std::shared_ptr<const Parts> parts);
  std::shared_ptr<const Parts> parts_;
};

// Runs the model and keeps its activations: all of them where it was, or copies of the points that
// are asked for. Values of sequences of different lengths are copied when they are read. With
// hooks, what they left.
Activations record(const Model& model, const TokenBatch& batch, const RecordRequest& request = {},
                   const RunOptions& options = {});

// Arrays of the caller's, by full names of points, each of the shape that record() gives it.
struct GivenActivations {
  enum class Kind {
    of_pass,  // that was recorded, stored and read again: head results follow from mixed values
    others,   // that hooks collected: values, or gradients under the names of their points
  };
  std::map<std::string, Array, std::less<>> arrays;
  std::vector<std::int64_t> lengths;  // (B), of each sequence; T is the longest
  Kind kind = Kind::of_pass;
};

// The arrays as a recorded pass of a model of one stack, without tokens and logits. Shares their
// memory. Throws Error{invalid_argument} for lengths that are none; the functions that read a point
// throw it for an array of another shape.
Activations activations_from(const Model& model, GivenActivations given);

// The same model, sharing its weights, all of whose passes call `hooks`: whatever is asked of it
// obeys them. For one thread at a time. Throws what run() throws.
Model with_hooks(const Model& model, const std::vector<Hook>& hooks);

// The points of a model in the order of a forward pass, and those that a name selects. The second
// throws Error{invalid_argument} for an unknown name (with the nearest) and Error{unsupported} for
// points that only other models have.
std::vector<std::string> point_names(const Model& model);
std::vector<std::string> points_named(const Model& model, std::string_view name);

}  // namespace heed
