#include "generate/beam_search.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "base/threads.h"
#include "generate/beam_source.h"
#include "kernels/elements.h"
#include "model/editor.h"

namespace heed {

std::vector<std::int32_t> BeamTree::tokens_to(std::int32_t node) const {
  std::vector<std::int32_t> tokens;
  const auto at = [&](std::int32_t index) { return nodes[static_cast<std::size_t>(index)]; };
  for (; at(node).parent >= 0; node = at(node).parent) tokens.push_back(at(node).token);
  std::ranges::reverse(tokens);
  return tokens;
}

namespace {

// One source, encoded and decoded as an editor changes both stacks.
//
// What cross-attention reads is projected anew at every step, so that edits of its keys and values
// apply as in a pass over both texts.
class EditedDecoding {
 public:
  EditedDecoding(const Transformer& model, std::span<const std::int32_t> source, Editor& editor);

  // One step of R hypotheses of the source, as Transformer::decode: their last tokens (R), a
  // cache of as many sequences, logits (R, V) of the next tokens.
  void decode(std::span<const std::int32_t> tokens, KeyValueCache& cache,
              StackActivations& activations, View<float> logits) const;

 private:
  const Transformer& model_;
  Editor& editor_;
  Tensor<float> rows_;  // (S, C), the encoder's end
};

EditedDecoding::EditedDecoding(const Transformer& model, std::span<const std::int32_t> source,
                               Editor& editor)
    : model_(model), editor_(editor) {
  const std::int64_t positions = std::ssize(source);
  StackActivations activations(model.architecture().encoder(), 1, positions, Keep::one_block, 0,
                               model.device());
  stack_forward(model.stack(StackSite::encoder), {source.data(), Shape{1, positions}},
                {.sequences = {1, positions}, .site = StackSite::encoder, .editor = &editor},
                activations);
  rows_ = Tensor<float>(activations.final_norm().shape(), model.device());
  kernels::copy(activations.final_norm(), rows_);
}

void EditedDecoding::decode(std::span<const std::int32_t> tokens, KeyValueCache& cache,
                            StackActivations& activations, View<float> logits) const {
  const std::int64_t hypotheses = std::ssize(tokens);
  activations.resize(hypotheses, 1, rows_.shape()[0]);
  const std::vector<std::int64_t> sources(tokens.size(), 0);
  const CrossMemory memory{.rows = rows_, .texts = {1, rows_.shape()[0]}, .sources = sources};
  const Pass pass{.sequences = Sequences::next_of(cache),
                  .length = kernels::decoding_step,
                  .memory = &memory,
                  .site = StackSite::decoder,
                  .editor = &editor_};
  stack_forward(model_.stack(StackSite::decoder), {tokens.data(), Shape{hypotheses, 1}}, pass,
                activations);
  unembed(model_.stack(StackSite::decoder), activations.unembedding_in(), logits,
          pass.arithmetic_length());
}

// Logits of a step stay in the cache of the processor, or near it: 16 MiB.
constexpr std::int64_t max_logits = std::int64_t{1} << 22;

// Positions that a cache has room for at first, and by which it grows.
constexpr std::int64_t cache_step = 32;

std::int64_t length_of(const TokenRows& sources, std::int64_t source) {
  const auto at = static_cast<std::size_t>(source);
  return sources.row_starts[at + 1] - sources.row_starts[at];
}

void require_sources(const Architecture& architecture, const TokenRows& sources) {
  const StackSpecification& encoder = architecture.encoder();
  check(sources.row_starts.back() == sources.rows(), "the last source ends with the rows");
  for (std::int64_t source = 0; source < sources.count(); ++source) {
    const std::int64_t length = length_of(sources, source);
    require(length >= 1, ErrorCode::invalid_argument, "source {} has no tokens", source + 1);
    require(length <= encoder.context, ErrorCode::invalid_argument,
            "source {} has {} tokens: the encoder reads at most {}", source + 1, length,
            encoder.context);
    const std::int64_t first = sources.row_starts[static_cast<std::size_t>(source)];
    for (const std::int32_t token : sources.tokens.subspan(static_cast<std::size_t>(first),
                                                           static_cast<std::size_t>(length))) {
      require(token >= 0 && token < encoder.vocabulary_size, ErrorCode::invalid_argument,
              "source {} has the token {}: expected 0 to {}", source + 1, token,
              encoder.vocabulary_size - 1);
    }
  }
}

BeamRules rules_of(const Architecture& architecture, const BeamOptions& options) {
  require(architecture.decoder_start >= 0, ErrorCode::unsupported,
          "the model does not say which token its decoder starts from (decoder_start_token_id)");
  return {.beams = options.beams,
          .length_penalty = options.length_penalty,
          .start = static_cast<std::int32_t>(architecture.decoder_start),
          .first = static_cast<std::int32_t>(architecture.forced_first),
          .last = static_cast<std::int32_t>(architecture.forced_last),
          .ends = architecture.end_tokens(),
          .allowed = {.count = options.drawable > 0 ? options.drawable
                                                    : architecture.decoder().vocabulary_size,
                      .forbidden = static_cast<std::int32_t>(architecture.padding)}};
}

// The longest output of a source of `length` tokens.
std::int64_t max_output_length(const BeamOptions& options, const StackSpecification& decoder,
                               std::int64_t length) {
  const std::int64_t wanted = options.max_length > 0 ? options.max_length : 3 * length + 16;
  return std::min(wanted, decoder.context);
}

// Sources of similar length together, the longest first: [begin, end) of `order` are a batch.
class SourceBatches {
 public:
  SourceBatches(const TokenRows& sources, std::int64_t beams, std::int64_t batch_tokens,
                std::int64_t max_rows)
      : order_(static_cast<std::size_t>(sources.count())) {
    std::iota(order_.begin(), order_.end(), std::int64_t{0});
    std::ranges::stable_sort(order_, [&](std::int64_t a, std::int64_t b) {
      return length_of(sources, a) > length_of(sources, b);
    });
    std::int64_t tokens = 0;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const std::int64_t length = length_of(sources, order_[i]);
      const std::int64_t rows = (static_cast<std::int64_t>(i) - begins_.back() + 1) * beams;
      const bool is_first = static_cast<std::int64_t>(i) == begins_.back();
      if (!is_first && ((tokens + length) * beams > batch_tokens || rows > max_rows)) {
        begins_.push_back(static_cast<std::int64_t>(i));
        tokens = 0;
      }
      tokens += length;
    }
    begins_.push_back(sources.count());
  }

  std::int64_t count() const { return std::ssize(begins_) - 1; }
  std::span<const std::int64_t> batch(std::int64_t b) const {
    const auto begin = static_cast<std::size_t>(begins_[static_cast<std::size_t>(b)]);
    const auto end = static_cast<std::size_t>(begins_[static_cast<std::size_t>(b) + 1]);
    return std::span(order_).subspan(begin, end - begin);
  }
  std::int64_t max_sources() const {
    std::int64_t most = 0;
    for (std::int64_t b = 0; b < count(); ++b)
      most = std::max<std::int64_t>(most, std::ssize(batch(b)));
    return most;
  }

 private:
  std::vector<std::int64_t> order_;
  std::vector<std::int64_t> begins_{0};
};

// The tokens of some sources, one below the other.
struct GatheredSources {
  std::vector<std::int32_t> tokens;
  std::vector<std::int64_t> row_starts{0};

  GatheredSources(const TokenRows& sources, std::span<const std::int64_t> chosen) {
    for (const std::int64_t source : chosen) {
      const auto at = static_cast<std::size_t>(source);
      const auto rows = sources.tokens.begin();
      tokens.insert(tokens.end(), rows + sources.row_starts[at], rows + sources.row_starts[at + 1]);
      row_starts.push_back(std::ssize(tokens));
    }
  }
};

// Batches one after another, in memory that they share.
class BeamSearch {
 public:
  BeamSearch(const Transformer& model, const TokenRows& sources, const BeamOptions& options)
      : model_(model),
        sources_(sources),
        options_(options),
        editor_(model.editor(), options.editor),
        rules_(rules_of(model.architecture(), options)),
        decoder_(model.architecture().decoder()),
        batches_(sources, options.beams, options.batch_tokens,
                 std::max<std::int64_t>(max_logits / decoder_.vocabulary_size, options.beams)),
        cache_(model.make_cache(batches_.max_sources() * options.beams,
                                std::min(cache_step, decoder_.context), options.cache_type)),
        activations_(decoder_, 1, 1, Keep::one_block),
        logits_(Shape{batches_.max_sources() * options.beams, decoder_.vocabulary_size}),
        results_(static_cast<std::size_t>(sources.count())) {
    if (options.trees != nullptr) options.trees->assign(results_.size(), {});
  }

  std::vector<std::vector<TokenHypothesis>> run() {
    report();
    for (std::int64_t b = 0; b < batches_.count(); ++b) search(batches_.batch(b));
    return std::move(results_);
  }

 private:
  void encode(std::span<const std::int64_t> chosen);
  void decode(View<float> logits);
  void search(std::span<const std::int64_t> chosen);
  void step();
  void advance_all();
  void remove_done();
  void report() {
    if (options_.progress) options_.progress({"translating", done_, sources_.count()});
  }

  // A source of the batch and where its hypotheses are.
  struct Member {
    BeamSource search;
    std::int64_t source;     // of the encoded ones
    std::int64_t first_row;  // before the last step
  };

  const Transformer& model_;
  const TokenRows& sources_;
  const BeamOptions& options_;
  EditorOfPass editor_;
  BeamRules rules_;
  const StackSpecification& decoder_;
  SourceBatches batches_;
  KeyValueCache cache_;
  StackActivations activations_;
  Tensor<float> logits_;  // (R, V)
  EncodedSources encoded_;
  std::optional<EditedDecoding> edited_;  // of an edited search, instead
  std::vector<Member> members_;
  std::vector<std::int32_t> tokens_;         // (R): the last of each hypothesis
  std::vector<std::int64_t> token_sources_;  // (R): the encoded source of each
  std::vector<std::int64_t> parents_;        // (R)
  std::vector<std::vector<TokenHypothesis>> results_;
  std::int64_t done_ = 0;
};

void BeamSearch::encode(std::span<const std::int64_t> chosen) {
  const GatheredSources gathered(sources_, chosen);
  if (editor_.get() != nullptr) {
    edited_.emplace(model_, gathered.tokens, *editor_.get());
  } else {
    encoded_ = model_.encode({gathered.tokens, gathered.row_starts}, options_.cache_type);
  }
}

void BeamSearch::decode(View<float> logits) {
  if (edited_) return edited_->decode(tokens_, cache_, activations_, logits);
  model_.decode(
      {.tokens = tokens_, .sources = token_sources_, .encoded = encoded_, .cache = cache_},
      activations_, logits);
}

void BeamSearch::search(std::span<const std::int64_t> chosen) {
  encode(chosen);
  members_.clear();
  for (std::int64_t i = 0; i < std::ssize(chosen); ++i) {
    const std::int64_t source = chosen[static_cast<std::size_t>(i)];
    const std::int64_t max_length =
        max_output_length(options_, decoder_, length_of(sources_, source));
    BeamTree* const tree =
        options_.trees != nullptr ? &(*options_.trees)[static_cast<std::size_t>(source)] : nullptr;
    members_.push_back({BeamSource(source, max_length, rules_, tree), i, 0});
  }
  cache_.truncate(0);
  parents_.assign(members_.size(), 0);
  while (!members_.empty()) {
    require(!stop_requested(options_.stop), ErrorCode::interrupted,
            "stopped after {} of {} sources", done_, sources_.count());
    step();
  }
}

// Appends one token to each hypothesis.
void BeamSearch::step() {
  cache_.select(parents_);
  if (cache_.length() == cache_.capacity()) {
    cache_.reserve(std::min(cache_.capacity() + cache_step, decoder_.context));
  }
  tokens_.clear();
  token_sources_.clear();
  for (Member& member : members_) {
    member.first_row = std::ssize(tokens_);
    member.search.for_each_last_token([&](std::int32_t token) {
      tokens_.push_back(token);
      token_sources_.push_back(member.source);
    });
  }
  const View<float> logits = logits_.view().slice(0, 0, std::ssize(tokens_));
  decode(logits);
  advance_all();
  remove_done();
  parents_.clear();
  for (const Member& member : members_) {
    member.search.for_each_parent(
        [&](std::int64_t parent) { parents_.push_back(member.first_row + parent); });
  }
}

void BeamSearch::advance_all() {
  parallel_items(std::ssize(members_), [&](std::int64_t m) {
    Member& member = members_[static_cast<std::size_t>(m)];
    member.search.advance(
        logits_.view().slice(0, member.first_row, member.first_row + member.search.width()));
  });
}

// The last source takes the place of one that is done, so that the caches of the others stay where
// they are.
void BeamSearch::remove_done() {
  const std::int64_t before = done_;
  for (std::size_t m = 0; m < members_.size();) {
    BeamSource& search = members_[m].search;
    if (!search.is_done()) {
      ++m;
      continue;
    }
    results_[static_cast<std::size_t>(search.index())] = search.results(options_.n_best);
    ++done_;
    if (m + 1 < members_.size()) members_[m] = std::move(members_.back());
    members_.pop_back();
  }
  if (done_ > before) report();
}

}  // namespace

void BeamOptions::validate(const Architecture& architecture) const {
  const auto in = [](const char* name, std::int64_t value, std::int64_t min, std::int64_t max) {
    require(value >= min && value <= max, ErrorCode::invalid_argument,
            "{} is {}: expected {} to {}", name, value, min, max);
  };
  require(architecture.is_encoder_decoder(), ErrorCode::invalid_argument,
          "beam search decodes an encoder and a decoder, not {} stack", architecture.stacks.size());
  in("the number of beams", beams, 1, 1024);
  in("the number of hypotheses", n_best, 1, beams);
  in("the maximum length", max_length, 0, architecture.decoder().context);
  in("the number of tokens to draw from", drawable, 0, architecture.decoder().vocabulary_size);
  in("the batch size in tokens", batch_tokens, 1, max_extent);
  require(std::isfinite(length_penalty) && std::abs(length_penalty) <= 100,
          ErrorCode::invalid_argument, "the length penalty is {}: expected −100 to 100",
          length_penalty);
}

std::vector<std::vector<TokenHypothesis>> beam_search(const Transformer& model,
                                                      const TokenRows& sources,
                                                      const BeamOptions& options) {
  options.validate(model.architecture());
  if (options.trees != nullptr) options.trees->clear();
  if (sources.count() <= 0) return {};
  require_sources(model.architecture(), sources);
  const bool is_edited = options.editor != nullptr || model.editor() != nullptr;
  require(!is_edited || sources.count() == 1, ErrorCode::invalid_argument,
          "{} sources are not decoded with edits together: expected one", sources.count());
  return BeamSearch(model, sources, options).run();
}

std::vector<TokenHypothesis> greedy_search(const Transformer& model, const TokenRows& sources,
                                           BeamOptions options) {
  options.beams = options.n_best = 1;
  std::vector<TokenHypothesis> found;
  for (auto& hypotheses : beam_search(model, sources, options)) {
    found.push_back(std::move(hypotheses.front()));
  }
  return found;
}

}  // namespace heed
