// The heed library: load a model, predict the next token, generate text, translate, inspect
// attention.
//
//   heed::Model model = heed::Model::load("starter");
//   std::vector<std::int32_t> tokens = model.encode("Once upon a time");
//   for (const auto& next : model.predict(tokens, {}, 5)) { ... }
//
//   heed::Model translator = heed::Model::load("translator");
//   for (const auto& found : translator.translate("A dog runs.", {.n_best = 3})) { ... }
//
// A model has one stack and reads one text; or it is a translator of two, an encoder and a decoder
// (Marian, BART, T5, heed's own), and reads a source and a target. Functions of the one throw
// Error{unsupported} for the other.
//
// Errors are thrown as heed::Error, and failed allocations as std::bad_alloc. Functions that take
// tokens throw Error{invalid_argument} for no tokens, a token outside the vocabulary, and more
// tokens than the model's context, unless documented otherwise.
//
// Several threads may call const functions of a Model at once; each call uses all allowed cores
// (set_threads). Functions borrow their arguments until they return; results belong to the caller.
// A moved-from Model may only be destroyed or assigned to.
//
// Notation: T tokens, V vocabulary. Layers, heads and positions count from 0; probabilities and
// attention weights are between 0 and 1; logits and losses are natural (in nats).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/array.h"
#include "heed/attention.h"
#include "heed/error.h"
#include "heed/f32_products.h"
#include "heed/sampling.h"
#include "heed/trace.h"
#include "heed/version.h"

namespace heed {

// How the matrices of linear layers are stored in memory. Integers have one scale for each group
// of 32 inputs; embeddings, norms and biases stay f32.
enum class WeightType { as_stored, f32, bf16, int8, int4 };

// How keys and values of past positions are stored while a model runs.
enum class KeyValueType { f32, bf16, int8 };

struct LoadOptions {
  // f32 of a quantised model stands for the values that its matrices encode. Quantising a model
  // that is stored quantised to another type throws Error{unsupported}.
  WeightType weights = WeightType::as_stored;
  KeyValueType cache = KeyValueType::f32;
  // Pack f32 weights once, for faster passes over many prompts, if that takes at most a quarter of
  // the free memory.
  bool pack = false;
  // Where it is computed: "cpu", "cuda", "cuda:1", or "auto", a device of CUDA where there is one.
  // Empty: where HEED_DEVICE says, or the processor. Throws Error{unsupported} where there is none,
  // or another one is in use. set_f32_products() says how it multiplies matrices of f32.
  std::string device{};
};

// The architecture of a model, of any family.
struct ModelArchitecture {
  std::int64_t vocabulary = 0;
  std::int64_t context = 0;  // longest sequence
  std::int64_t channels = 0;
  std::int64_t layers = 0;
  std::int64_t query_heads = 0;      // in each layer
  std::int64_t key_value_heads = 0;  // each is shared by query_heads / key_value_heads query heads
  std::int64_t head_size = 0;        // channels of one head
  std::int64_t parameters = 0;       // in all

  std::string positions;              // "none", "learned", "sinusoidal" or "rotary"
  double rotary_base = 0;             // 0 unless positions are rotary
  std::int64_t rotary_channels = 0;   // of a head that rotate
  std::vector<std::int64_t> windows;  // of each layer: positions a query attends to; 0: all before
  bool query_key_norm = false;        // of each query and key, before they rotate

  std::string norm;            // "layer" or "rms"
  std::string norm_placement;  // "pre", "post", "output" (of what branches give) or "around"
  double norm_epsilon = 0;
  bool parallel = false;  // attention and feed-forward layer read the same stream

  std::int64_t feed_forward = 0;  // neurons of one layer
  std::string activation;         // "gelu_new", "gelu", "silu", …
  bool gated = false;             // the feed-forward layer multiplies by a gate

  bool biases = false;            // any linear layer or norm has one
  bool tied_unembedding = false;  // the unembedding is the token embedding
  std::string device;             // where it is computed: "cpu", "cuda:0"
  std::string weights;            // type of the matrices in memory: "f32", "bf16", "int8", "int4"
};

// Beam search; scores and lengths as Hugging Face's generate() counts them: the end of a
// translation is one of its tokens, the token that decoding starts from is not.
struct TranslateOptions {
  std::int64_t beams = 5;       // hypotheses that go on at each step; 1: greedy
  double length_penalty = 1.0;  // score = log p / tokens^length_penalty; higher: longer ones
  std::int64_t n_best = 1;      // hypotheses returned for each text, at most `beams`
  // Tokens of a translation. 0: three for each of the source and 16 more. Never more than the
  // decoder's context.
  std::int64_t max_length = 0;
  // Also the cross-attention of the best hypothesis of each text.
  bool alignment = false;
  std::function<void(std::int64_t done, std::int64_t texts)> progress{};
  const std::atomic<bool>* stop = nullptr;  // set to true to stop: throws Error{interrupted}
};

// Whether a name that Model::load() takes is that of a translator.
bool is_translator(const std::string& name_or_directory);

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

  using Sampling = SamplingOptions;

  // A candidate for the next token.
  struct Next {
    std::int32_t token = 0;
    std::string text;           // its bytes, possibly part of a character; "#17" without
                                // a tokenizer
    double logit = 0;           // of the model
    double probability = 0;     // softmax of the logits
    double drawn = 0;           // probability of being sampled; 0 if filtered out
    std::string_view filtered;  // name of the stage that removed it, or empty; static memory
    std::int64_t rank = 0;      // 1: the most likely after penalties
    double scaled_logit = 0;    // after penalties and division by the temperature

    // The probability after each stage; 0 from the one that filtered it out on.
    std::array<double, sampling_stage_count> probability_after{};
  };

  struct GenerateOptions {
    std::int64_t max_new_tokens = 128;  // 0: process the prompt only
    Sampling sampling{};
    std::vector<std::string> stop{};  // strings that end the generation, excluded from the text
    // If the context is full, continue with its last half; of a longer prompt, use the end.
    bool shift_context = false;
    bool ignore_end_of_text = false;  // never sample the token that ends a text
  };

  struct Generation {
    std::vector<std::int32_t> tokens;  // the generated tokens
    std::string text;                  // their text, without the prompt; empty without a tokenizer
    std::string finish_reason;         // "stop_token", "stop_string", "length", "interrupted" or
                                       // "context_full"
  };

  // Called with each piece of text once it is final (whole characters, not the start of a stop
  // string), on the thread that called generate(). Return false to stop; an exception ends the
  // generation and is rethrown by generate().
  using TextCallback = std::function<bool(std::string_view text)>;

  // The attention patterns of one pass, all in memory: 4 · layers · heads · T² bytes. For long
  // texts use read_attention().
  struct Attention {
    std::int64_t layers = 0;
    std::int64_t heads = 0;
    std::int64_t tokens = 0;
    Array weights;  // (layers, heads, tokens, tokens)

    // The attention weight from position `query` to position `key`: 0 if `key` is later; the
    // weights of a query sum to one. Arguments are not checked.
    float weight(std::int64_t layer, std::int64_t head, std::int64_t query,
                 std::int64_t key) const {
      return weights[static_cast<std::size_t>(((layer * heads + head) * tokens + query) * tokens +
                                              key)];
    }
  };

  struct Hypothesis {
    std::string text;
    std::vector<std::int32_t> tokens;  // of the target; the last is its end, if it is finished
    double log_probability = 0;        // of the tokens, given the source
    double score = 0;
    bool finished = false;  // false: cut off at the longest length
  };

  struct Translation {
    std::vector<std::int32_t> source;    // tokens that the encoder reads
    std::vector<Hypothesis> hypotheses;  // the best first
    // (L, H, T, S) of the best one, with TranslateOptions::alignment: what each head of each layer
    // of the decoder attends to in the source when it writes token t.
    Array cross_attention;
  };

  // Loads a directory in Hugging Face's layout or of a run of `heed train` (config.json,
  // model.safetensors, and tokenizer.json or vocab.json and merges.txt), a .safetensors file in
  // one, a .gguf file, a model by the name with which `heed pull` downloaded it, or a built-in one:
  // "starter", "english" or "translator". Weights are copied into memory; the files are not used
  // afterwards. F32 weights of a translator are packed if memory allows, whatever LoadOptions::pack
  // says. Throws Error{not_found} if there is no model, Error{corrupt_data} for damaged or
  // inconsistent files, Error{unsupported} for a model of another architecture.
  static Model load(const std::string& name_or_directory, const LoadOptions& options = {});

  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  bool is_translator() const;

  Dimensions dimensions() const;
  // Of a translator, of its "encoder" or its "decoder", with the parameters of both together.
  // Throws Error{invalid_argument} for another stack, and of one for "encoder".
  ModelArchitecture architecture(std::string_view stack = "decoder") const;

  // The name of its directory, run or published model, as results and replies call it.
  const std::string& name() const;

  // Without a tokenizer (of a translator: both), functions of texts throw Error{not_found}.
  // encode() recognises special tokens such as <|endoftext|>; of a translator it gives the tokens
  // of a source, with those that the tokenizer puts around it. decode() returns the bytes of the
  // tokens, which may start or end within a character; of a translator the text of a target,
  // without special tokens.
  bool has_tokenizer() const;
  std::vector<std::int32_t> encode(std::string_view text) const;
  std::string decode(std::span<const std::int32_t> tokens) const;

  // The logits (V) of the next token, and those (T, V) of the token after every position.
  Array logits(std::span<const std::int32_t> tokens) const;
  Array all_logits(std::span<const std::int32_t> tokens) const;

  // The output (T, C) of the final norm, from which the logits are computed.
  Array embeddings(std::span<const std::int32_t> tokens) const;

  // The `most` most likely next tokens in descending order; 0: the whole vocabulary. Ignores the
  // seed. Throws Error{invalid_argument} for sampling options out of range.
  std::vector<Next> predict(std::span<const std::int32_t> tokens, const Sampling& sampling,
                            std::size_t most = 10) const;

  // The same from logits (V) of the token after `tokens`, such as a row of all_logits(); the
  // repeat penalty considers the tokens. Throws Error{invalid_argument} for another number of
  // logits, Error{diverged} for logits that are not finite.
  std::vector<Next> rank(std::span<const float> logits, std::span<const std::int32_t> tokens,
                         const Sampling& sampling, std::size_t most = 10) const;

  // Continues a prompt. The same seed gives the same text. Throws Error{invalid_argument} for an
  // empty prompt, one longer than the context (unless shift_context is set) and options out of
  // range, Error{diverged} if a logit is not a number.
  Generation generate(std::string_view prompt, const GenerateOptions& options,
                      const TextCallback& callback = {}) const;
  Generation generate(std::span<const std::int32_t> prompt, const GenerateOptions& options,
                      const TextCallback& callback = {}) const;

  Attention attention(std::span<const std::int32_t> tokens) const;

  // The same without (T, T) buffers, for texts up to the context, of the given layers (empty: all).
  // Keeps 8 · channels · T bytes per layer, and is independent of the model afterwards. Throws
  // Error{invalid_argument} for a layer that does not exist.
  AttentionReader read_attention(std::span<const std::int32_t> tokens,
                                 const std::vector<std::int64_t>& layers = {}) const;

  // Traces the requested part of a forward pass; requested gradients are those of `target`. Throws
  // Error{invalid_argument}, before running the model, for an unknown point (with the nearest
  // names), layer, head or position, and for a trace larger than the budget (with its size).
  Trace trace(std::span<const std::int32_t> tokens, const TraceRequest& request,
              const GradientTarget& target = {}) const;

  // The same during a greedy generation with a key-value cache, at all positions of the prompt and
  // the new tokens. Gradients are not supported.
  Trace trace_generation(std::span<const std::int32_t> prompt, std::int64_t new_tokens,
                         const TraceRequest& request) const;

  // The text of each token of a translator, for people.
  std::vector<std::string> source_pieces(std::span<const std::int32_t> tokens) const;
  std::vector<std::string> target_pieces(std::span<const std::int32_t> tokens) const;

  // Translates texts, short and long ones together, in their order. A result does not depend on
  // the other texts. Throws Error{invalid_argument}, naming the text by its number from 1, for one
  // that is empty, not UTF-8 or longer than the encoder reads.
  std::vector<Translation> translate(std::span<const std::string> texts,
                                     const TranslateOptions& options = {}) const;
  std::vector<Hypothesis> translate(std::string_view text,
                                    const TranslateOptions& options = {}) const;

  // Cross-attention (L, H, T, S) of any pair of tokens; `target` has its end if it is to be seen.
  Array cross_attention(std::span<const std::int32_t> source,
                        std::span<const std::int32_t> target) const;

 private:
  friend struct ModelAccess;
  struct Parts;
  explicit Model(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

using Translator = Model;  // one that translates

// Sets the number of threads of heed in this process; the default is HEED_THREADS or one a core.
// Must not be called while another thread computes. Throws Error{invalid_argument} outside 1 to
// 4096.
void set_threads(int count);
int threads();  // the number that is set

// Whether prompts quantise what they multiply by int8 and int4 weights to int8, in groups of 32
// numbers, where they are short or the processor computes such products faster than those of f32;
// decoding always does. Where they may not, prompts are multiplied in f32, whatever their length.
// At first they may. Must not be called while another thread computes.
void allow_integer_prompts();
void refuse_integer_prompts();

}  // namespace heed
