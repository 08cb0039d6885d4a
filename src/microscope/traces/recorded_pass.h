// A pass over one text, a source and a target, or a batch of either, of any lengths, of which any
// point can be read later. What the pass computed stays where the pass wrote it, and is borrowed;
// the rest (norms, scores, pattern, the stream head by head) follows from it, in the arithmetic of
// the pass.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/progress.h"
#include "heed/trace.h"
#include "model/attention_site.h"
#include "model/derived_points.h"
#include "model/editor.h"
#include "model/transformer.h"
#include "tensor/tensor.h"

namespace heed {

// As many texts as the model has stacks, each of at least one token and of no more than its
// context holds. Throws Error{invalid_argument}.
void require_texts_fit(const Architecture& architecture, const Texts& texts);

// `position`, or the last one for −1. Throws Error{invalid_argument} for one outside the text.
std::int64_t position_in_text(std::int64_t position, std::int64_t positions);

// Memory of an earlier pass, reused for one of the same size: allocating and touching new memory
// takes a good part of the time of a pass.
struct RecordedBuffers {
  struct OfStack {
    std::unique_ptr<StackActivations> activations;
    std::unique_ptr<StackActivations> here;  // the processor's copy, where they are not its own
    Tensor<float> added;  // (L, branches, N, C): what each branch of a block added to the stream
  };
  std::vector<OfStack> stacks;
};

struct RecordOptions {
  // With every_block or points, every point can be read; otherwise only the ends of the stacks,
  // besides what `observer` sees. backward() needs every_block or residuals.
  Keep keep = Keep::every_block;
  std::vector<std::int32_t> token_types{};  // as Pass::token_types
  Probe* observer = nullptr;                // of the pass while it runs
  StopFlag stop = nullptr;
  RecordedBuffers reused{};
  FrozenParts frozen{};  // in backward()
  // Of the only stack, and not with Keep::points. `stream` (N, C), of all texts, is borrowed.
  LayerRange layers{};
  View<const float> stream{};
};

class RecordedPass {
 public:
  // Runs the model, edited by `editor` (or null). Borrows the model. Throws what require_texts_fit
  // throws, and Error{interrupted} when stopped.
  RecordedPass(const Transformer& model, Texts texts, std::shared_ptr<Editor> editor = {},
               RecordOptions options = {});
  // The same of a batch. Every text is edited at its own positions, and its numbers are those that
  // it has alone: to the bit in a batch of one length, otherwise but for the order in which
  // products are summed (`ragged_positions`).
  RecordedPass(const Transformer& model, std::span<const Texts> batch,
               std::shared_ptr<Editor> editor = {}, RecordOptions options = {});
  RecordedPass(const RecordedPass&) = delete;
  RecordedPass& operator=(const RecordedPass&) = delete;

  // Bytes of a pass that keeps every block, over texts of these lengths.
  static std::int64_t bytes_needed(const Architecture& architecture, std::int64_t positions,
                                   std::int64_t sources = 0);
  std::int64_t bytes() const;  // that it holds, on the processor and elsewhere

  const Transformer& model() const { return model_; }
  const Architecture& architecture() const { return model_.architecture(); }
  // One text below the other.
  const Texts& texts() const { return texts_; }
  std::span<const std::int32_t> tokens() const { return texts_.target; }  // (N)
  // Which rows are whose: of the target, or of what the stack at `site` reads. Texts of one length
  // are (B, T); values of others are (1, N, …), and of pairs those of the source too.
  const Sequences& sequences() const { return target_rows_; }
  const Sequences& sequences(StackSite site) const {
    return site == StackSite::encoder ? source_rows_ : target_rows_;
  }
  // T of the longest text, and M of the longest source.
  std::int64_t positions() const { return target_rows_.positions_end(); }
  std::int64_t sources() const { return texts_.source.empty() ? 0 : source_rows_.positions_end(); }
  std::int64_t positions(StackSite site) const {
    return site == StackSite::encoder ? sources() : positions();
  }
  std::int64_t queries(AttentionSite site) const { return positions(site.stack); }
  std::int64_t keys(AttentionSite site) const {
    return site.kind == AttentionKind::cross ? sources() : positions(site.stack);
  }
  // Where values are read: on the processor, to which all of a stack come when any of them is first
  // asked for; or where the pass was computed, which then stay there.
  enum class Place { processor, of_pass };
  const StackActivations& activations(StackSite site = StackSite::only,
                                      Place place = Place::processor) const {
    const StackActivations& computed = *of(site).activations;
    const bool is_there = place == Place::of_pass || computed.device().is_cpu();
    return is_there ? computed : brought_here(site);
  }

  // (N, C): the end of a stack: what the unembedding reads or, of an encoder, the decoder.
  View<const float> final_rows(StackSite site = StackSite::only) const {
    return activations(site).unembedding_in();
  }
  // (N, C): where a pass of RecordOptions::layers ended.
  View<const float> stream() const {
    return stack_stream(pass(nullptr, stacks_.back().site), activations(stacks_.back().site));
  }
  // Logits (end − begin, V) of rows [begin, end): of one text, its positions.
  Tensor<float> logits(std::int64_t begin, std::int64_t end) const;
  // (B, T, V), of shorter texts 0 after their ends, on a device.
  Tensor<float> logits(Device device = {}) const;
  // The length by which the arithmetic of the rows of a stack is chosen: see Transformer::project.
  std::int64_t arithmetic_length() const;
  // Of every token after position t of the target, (V). Throws Error{invalid_argument}.
  std::vector<double> next_probabilities(std::int64_t position) const;

  // The values of a point, shaped as listed at PointKind, where they are in memory; else absent.
  // What branches add to the stream is the processor's at any place, since blocks share the memory
  // that it was in.
  View<float> stored(const Point& point, Place place = Place::processor) const;
  // Its rows (N, C). Throws for a point that is not stored, or has heads.
  View<const float> rows(const Point& point) const;
  // The values of any point that the model has.
  Tensor<float> computed(const Point& point) const;

  // Shows a probe the points that it wants, in the order of the pass.
  void replay(Probe& probe) const;
  // The same for one layer of a stack.
  void replay_layer(std::int64_t layer, Probe& probe, StackSite site = StackSite::only) const;

  // The operands of attention, and its log-sum-exp (B, H, T), of all texts of one length, or of one
  // of others.
  const kernels::AttentionInput<float>& attention_input(AttentionSite site, std::int64_t layer,
                                                        std::int64_t text = 0) const {
    return attended(site, layer, text).input;
  }
  View<const float> log_sum_exp(AttentionSite site, std::int64_t layer,
                                std::int64_t text = 0) const {
    return attended(site, layer, text).log_sum_exp;
  }
  // A rectangle of one head's scores or pattern, (queries, keys), as if no editor changed them, of
  // the text that the tile names as its sequence. Computed where `out` is.
  void attention_tile(const Point& point, const kernels::AttentionTile& tile,
                      View<float> out) const;
  // One head's scores or pattern, (queries, keys), as the pass used them.
  Tensor<float> plane(const Point& point, std::int64_t head, std::int64_t text = 0) const;

  // Whether an editor changed scores or pattern of a head, which then do not follow from query,
  // key and log-sum-exp.
  bool edits_pattern(AttentionSite site, std::int64_t layer, std::int64_t head) const;
  // Whether an editor changed this point, or this head of it.
  bool edits(const Point& point) const {
    return editor_.get() != nullptr && editor_.get()->edits(point);
  }
  bool edits_head(const Point& point, std::int64_t head) const {
    return edits(point) && editor_.get()->edits_head(point, head);
  }
  const std::shared_ptr<Editor>& editor() const { return given_; }  // beside the model's own
  Editor* edited_by() const { return editor_.get(); }               // with the model's own, or null

  // Shows the probe the gradients, at the points that it wants, of logits of the target or of the
  // mean loss of its next tokens: of a batch, of those of each text, which no other text changes.
  // Throws Error{invalid_argument} for positions and tokens that do not exist; Error{unsupported}
  // for a gradient before a point where the editor does more than add, and for a loss of a model
  // that does not predict the next token.
  void backward(const GradientTarget& target, Probe& probe) const;

  // Moves the memory out; no other function may be called afterwards.
  RecordedBuffers take_buffers() { return std::move(buffers_); }

 private:
  // Beside the buffers, what one stack needs to be read.
  struct OfStack {
    StackSite site = StackSite::only;
    std::vector<Attended> self;   // by layer, of texts of different lengths text by text
    std::vector<Attended> cross;  // likewise; empty without cross-attention
    std::vector<Attended> self_here, cross_here;  // of brought_here()
    Tensor<float> bias;                           // of positions, which `self` borrows
    // By layer, (N, C): the stream after it, where an edit changed it before the next block read
    // it from the same memory.
    std::map<std::int64_t, Tensor<float>> streams;
  };
  class Recorder;

  bool keeps_points() const {
    return options_.keep == Keep::every_block || options_.keep == Keep::points;
  }
  std::size_t index(StackSite site) const {
    return site == StackSite::encoder ? 0 : buffers_.stacks.size() - 1;
  }
  const RecordedBuffers::OfStack& of(StackSite site) const { return buffers_.stacks[index(site)]; }
  // Of all texts of one length, or one by one.
  std::span<const Attended> attended(AttentionSite site, std::int64_t layer,
                                     Place place = Place::processor) const;
  const Attended& attended(AttentionSite site, std::int64_t layer, std::int64_t text,
                           Place place = Place::processor) const;
  const StackActivations& brought_here(StackSite site) const;
  void make_buffers();
  void run();
  View<const std::int32_t> token_view(StackSite site) const;
  Pass pass(Probe* probe, StackSite site) const;
  View<float> shaped(View<float> rows, StackSite site) const;
  View<float> stored_in_block(const Point& point, Place place) const;
  void replay_embedding(Probe& probe, StackSite site) const;
  void replay_end(Probe& probe, StackSite site) const;
  void compute_neurons_post(const Point& point, Probe& probe) const;

  const Transformer& model_;
  Texts texts_;
  Sequences source_rows_, target_rows_;
  std::shared_ptr<Editor> given_;
  EditorOfPass editor_;  // of the model and the one that was given
  RecordOptions options_;
  mutable RecordedBuffers buffers_;
  mutable std::vector<OfStack> stacks_;
  mutable std::mutex bringing_;
};

// An editor that outlives the pass, or null.
inline std::shared_ptr<Editor> borrowed_editor(Editor* editor) {
  return {std::shared_ptr<void>(), editor};
}

// Shows a probe the points that it wants of a pass over one text or two, and keeps nothing; blocks
// after the last of these points are not computed. Throws as RecordedPass.
void observe_pass(const Transformer& model, const Texts& texts, Probe& probe);
void observe_pass(const Transformer& model, std::span<const std::int32_t> tokens, Probe& probe);
// The same for many texts, several in a pass.
void observe_passes(const Transformer& model, std::span<const Texts> texts, Probe& probe);

// (B, T, …) of the rows (1, N, …) of texts of different lengths, zeros after their ends, where the
// rows are.
Tensor<float> padded(const Sequences& sequences, View<const float> rows);

// softmax of a row of logits, in double.
std::vector<double> probabilities_of(std::span<const float> logits);

}  // namespace heed
