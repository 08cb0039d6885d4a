// heed as a library: load a GPT, ask it for the next token, let it write, watch its attention.
//
//   heed::Model model = heed::Model::load("starter");
//   std::vector<std::int32_t> tokens = model.encode("Once upon a time");
//   for (const auto& next : model.predict(tokens, {}, 5)) { ... }
//
// What goes wrong is thrown as heed::Error, and memory that the system refuses as std::bad_alloc.
// All functions that read tokens throw Error{invalid_argument} where there are none, where one is
// outside the vocabulary, and where there are more than the model's context holds, unless they say
// otherwise.
//
// A Model is not changed by its const functions, which several threads may call at once; each call
// computes with all the cores it is allowed (set_threads). What a function is given it borrows
// until it returns; what it returns is the caller's own. A Model that was moved from may only be
// destroyed or assigned to.
//
// Letters: T tokens, V vocabulary. Layers, heads and positions count from 0; probabilities and
// weights are shares of one, logits and losses natural (in nats).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/attention.h"
#include "heed/error.h"
#include "heed/trace.h"
#include "heed/version.h"

namespace heed {

class Model {
 public:
  // The sizes of a model.
  struct Dimensions {
    std::int64_t vocabulary = 0;
    std::int64_t context = 0;  // longest sequence
    std::int64_t channels = 0;
    std::int64_t layers = 0;
    std::int64_t heads = 0;         // in each layer
    std::int64_t head_size = 0;     // channels of one head
    std::int64_t feed_forward = 0;  // neurons of one layer
    std::int64_t parameters = 0;    // in all
  };

  // How a next token is drawn. Filters come in this order: repeat penalty, top-k, top-p, min-p,
  // temperature.
  struct Sampling {
    double temperature = 0.8;         // divides the logits; 0 always takes the likeliest
    std::int64_t top_k = 40;          // keep the k likeliest; 0 keeps all
    double top_p = 0.95;              // keep the fewest that reach p together; 1 keeps all
    double min_p = 0.05;              // keep those at least this fraction of the likeliest; 0: all
    double repeat_penalty = 1.0;      // above 1, recent tokens become less likely
    std::int64_t repeat_last_n = 64;  // recent tokens that the penalty looks at; -1: all
    std::uint64_t seed = 0;
  };

  // A token that may come next.
  struct Next {
    std::int32_t token = 0;
    std::string text;        // its bytes, which need not be a whole character; "#17" without
                             // a tokenizer
    double logit = 0;        // the model's
    double probability = 0;  // softmax of the logits
    double drawn = 0;        // probability of being drawn; 0 when filtered out
    std::string_view
        filtered;  // "top-k", "top-p", "min-p", "temperature", or empty; for ever valid
  };

  struct GenerateOptions {
    std::int64_t max_new_tokens = 128;  // 0 only reads the prompt
    Sampling sampling{};
    std::vector<std::string> stop{};  // strings that end the text, and are no part of it
    // When the context is full, go on with its last half; a longer prompt is read from its end.
    bool shift_context = false;
  };

  struct Generation {
    std::vector<std::int32_t> tokens;  // the new ones
    std::string text;                  // theirs, without the prompt; empty without a tokenizer
    std::string finish_reason;         // "stop_token", "stop_string", "length", "interrupted" or
                                       // "context_full"
  };

  // Called with every piece of text as it is certain (whole characters, no beginning of a stop
  // string), on the thread that called generate(). Return false to stop; what it throws ends the
  // generation and comes out of generate().
  using TextCallback = std::function<bool(std::string_view text)>;

  // Attention patterns of one pass, all in memory: 4 · layers · heads · T² bytes. read_attention()
  // is for longer texts.
  struct Attention {
    std::int64_t layers = 0;
    std::int64_t heads = 0;
    std::int64_t tokens = 0;
    std::vector<float> weights;  // (layers, heads, tokens, tokens)

    // How much the token at position `query` heeds the one at `key`: 0 for a later one; a query's
    // weights sum to one. Arguments are not checked.
    float weight(std::int64_t layer, std::int64_t head, std::int64_t query,
                 std::int64_t key) const {
      return weights[((layer * heads + head) * tokens + query) * tokens + key];
    }
  };

  // A directory with config.json, model.safetensors and tokenizer.json (or vocab.json and
  // merges.txt), a .safetensors file in one, or the built-in name "starter". The weights are read
  // into memory; the files may go afterwards. Throws Error{not_found} where there is no model,
  // Error{corrupt_data} for files that are damaged or contradict each other, Error{unsupported} for
  // a model that is not of this kind.
  static Model load(const std::string& name_or_directory);

  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  Dimensions dimensions() const;

  // Text needs a tokenizer; without one, encode, decode and generate from a text throw
  // Error{not_found}. Special tokens such as <|endoftext|> are recognised in a text. Decoding gives
  // back the bytes that were encoded, which need not be whole characters where tokens are cut off.
  bool has_tokenizer() const;
  std::vector<std::int32_t> encode(std::string_view text) const;
  std::string decode(std::span<const std::int32_t> tokens) const;

  // The logits (V) of what follows the tokens.
  std::vector<float> logits(std::span<const std::int32_t> tokens) const;

  // What may follow the tokens, the likeliest first; `most` 0 gives the whole vocabulary. The seed
  // plays no part. Throws Error{invalid_argument} for sampling options out of their range.
  std::vector<Next> predict(std::span<const std::int32_t> tokens, const Sampling& sampling,
                            std::size_t most = 10) const;

  // Continues a prompt. The same seed gives the same text. Throws Error{invalid_argument} for an
  // empty prompt, one longer than the context (unless it may shift) and options out of range,
  // Error{diverged} where weights are so damaged that a logit is no number.
  Generation generate(std::string_view prompt, const GenerateOptions& options,
                      const TextCallback& callback = {}) const;
  Generation generate(std::span<const std::int32_t> prompt, const GenerateOptions& options,
                      const TextCallback& callback = {}) const;

  Attention attention(std::span<const std::int32_t> tokens) const;

  // The same without the (T, T) buffers, for texts as long as the context: of these layers, none
  // meaning all. It keeps 8 · channels · T bytes a layer, and no longer needs the model. Throws
  // Error{invalid_argument} for a layer that does not exist.
  AttentionReader read_attention(std::span<const std::int32_t> tokens,
                                 const std::vector<std::int64_t>& layers = {}) const;

  // What every head does with a text, layer by layer; a text of any length, read in windows where
  // it is longer than the context.
  std::vector<HeadSummary> heads(std::span<const std::int32_t> tokens) const;

  // The part of a pass that a request names; gradients, where it names some, of `target`. Throws
  // Error{invalid_argument} for an unknown point (with the nearest names), layer, head or position,
  // and, with the size needed, for more than the budget: before anything is read.
  Trace trace(std::span<const std::int32_t> tokens, const TraceRequest& request,
              const GradientTarget& target = {}) const;

  // The same while the likeliest tokens continue a prompt, step by step with a cache: the values of
  // all positions, those of the new tokens too. Without gradients.
  Trace trace_generation(std::span<const std::int32_t> prompt, std::int64_t new_tokens,
                         const TraceRequest& request) const;

 private:
  friend struct ModelAccess;
  struct Parts;
  explicit Model(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

// Threads that heed computes with, in the whole process; all cores unless HEED_THREADS says less.
// Not while another thread computes. Throws Error{invalid_argument} outside 1 to 4096.
void set_threads(int count);

}  // namespace heed
