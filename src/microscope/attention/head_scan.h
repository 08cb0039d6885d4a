// Statistics of every head over texts of any length, and how well each head fits a given attention
// pattern, in memory that grows with T, not with T². The numbers of a row are computed while its
// query, key and log-sum-exp are in memory, and only their sums are kept. Of every site of a model:
// a text, or a source and a target.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "microscope/attention/head_statistics.h"
#include "microscope/traces/recorded_pass.h"
#include "model/transformer.h"

namespace heed {

// Attention patterns to detect, as in TransformerLens's detect_head.
enum class HeadPattern {
  previous,   // attends to the previous token
  duplicate,  // to earlier copies of the token
  induction,  // to the tokens after earlier copies of the token
  custom,     // as a function defines
};
std::optional<HeadPattern> head_pattern_from_name(std::string_view name);  // "previous", …

// How a pattern p is compared with the detected one, d, over all rows and keys:
enum class DetectionMeasure {
  mul,  // Σ p·d / Σ p
  abs,  // 1 − Σ |p − d| / T
};

// Fills keys 0 to `query` of one row of the pattern to detect. Called from several threads.
using CustomPattern = std::function<void(std::int64_t query, std::span<float> keys)>;

struct HeadDetector {
  HeadPattern pattern = HeadPattern::previous;
  DetectionMeasure measure = DetectionMeasure::mul;
  bool exclude_first = false;  // leaves out the first token as a key: TransformerLens's exclude_bos
  bool exclude_own = false;    // leaves out each token as its own key: exclude_current_token
  CustomPattern custom{};      // for HeadPattern::custom
};

struct HeadScanSetup {
  std::vector<HeadDetector> detectors{};  // of sites whose queries see their past alone
  // Edits the scanned passes, or null. Only heads whose scores or pattern it edits need a plane in
  // memory, one at a time.
  Editor* editor = nullptr;
  std::vector<AttentionSite> sites{};  // empty: all
  StopFlag stop = nullptr;
};

class HeadScan final : public Probe {
 public:
  explicit HeadScan(const Architecture& architecture, HeadScanSetup setup = {});

  // Sets the tokens (B, T) of the next pass, which starts from an empty cache; of two texts, those
  // of the target, and those of the source. Of texts of different lengths, (1, N). Without them
  // duplicate and induction stay zero.
  void expect(View<const std::int32_t> tokens, View<const std::int32_t> source = {}) {
    tokens_ = tokens;
    source_ = source;
  }

  void begin_pass(StackSite site, const Sequences& sequences) override;
  bool wants(const Point&) const override { return false; }
  void observe(const Point&, View<const float>) override {}
  bool wants_attention_at(const Point& pattern) const override;
  // Throws Error{interrupted} when stopped.
  void observe_attention_at(const Point& pattern, const kernels::AttentionInput<float>& input,
                            View<const float> log_sum_exp, std::int64_t text) override;

  // Means over the queries of every sequence, as HeadStatistics says.
  HeadStatistics statistics(std::int64_t layer, std::int64_t head,
                            AttentionSite site = only_site) const;

  // One value for each detector, in order.
  double detection(std::int64_t layer, std::int64_t head, std::size_t detector,
                   AttentionSite site = only_site) const;

  // The number of queries that duplicate and induction are averaged over.
  std::int64_t repeated_queries() const { return sites_.front().sums.front().sum.repeated(); }

  std::int64_t layers(AttentionSite site = only_site) const { return of(site).layers; }
  std::int64_t heads(AttentionSite site = only_site) const {
    return of(site).attention.query_heads;
  }
  // Every head of the scanned sites, layer by layer.
  std::vector<RankedHead> all() const;

 private:
  struct Fit {
    double overlap = 0;   // Σ p·d
    double weight = 0;    // Σ p
    double distance = 0;  // Σ |p − d|
  };
  struct Sums {
    HeadStatisticsSum sum;
    std::int64_t positions = 0;  // including the first of each sequence
    std::vector<Fit> fits{};     // by detector
  };
  struct Site {
    AttentionSite site;
    AttentionScope scope;
    AttentionSpecification attention;
    std::int64_t layers;
    std::vector<Sums> sums;  // (L, H)
  };
  struct Rows;
  void scan_past(Site& site, const Rows& rows, std::int64_t layer);
  void scan_planes(Site& site, const Point& pattern, const Attended& attended, std::int64_t text);
  View<const std::int32_t> tokens_of(StackSite site, std::int64_t text) const;  // (B, T), or none
  Fit fit(const HeadDetector& detector, const Rows& rows, std::int64_t b, std::int64_t h) const;
  const Site& of(AttentionSite site) const;
  const Sums& at(std::int64_t layer, std::int64_t head, AttentionSite site) const;

  HeadScanSetup setup_;
  std::vector<Site> sites_;
  View<const std::int32_t> tokens_;
  View<const std::int32_t> source_;
  Sequences rows_, source_rows_;  // of the pass
};

// Of every head of these sites (empty: all) in a recorded pass over one text, or two.
HeadScan scan_heads(const RecordedPass& pass, std::vector<AttentionSite> sites = {},
                    StopFlag stop = nullptr);

struct HeadScanOptions {
  std::vector<HeadDetector> detectors{};
  Editor* editor = nullptr;  // edits the pass over each window; or null
  std::int64_t window = 0;   // tokens in a forward pass; 0: the model's context
  ProgressCallback progress{};
  StopFlag stop = nullptr;
};

// Windows of a long text, drawn at random without overlap.
struct WindowSample {
  std::vector<std::int64_t> begins;  // in the text, ascending; multiples of the window's length
  std::vector<std::int32_t> tokens;  // of the windows, one after the other
};

// All of the text's whole windows where it has no more than `count`; a text shorter than a window
// is one. Throws Error{invalid_argument} for no tokens, windows or tokens in a window.
WindowSample sample_windows(std::span<const std::int32_t> tokens, std::int64_t window,
                            std::int64_t count, std::uint64_t seed);

// Reads a text of any length in windows, each from its own beginning. Throws
// Error{invalid_argument} for no tokens, for unknown ids, and for a window beyond the context.
HeadScan scan_heads(const Transformer& model, std::span<const std::int32_t> tokens,
                    const HeadScanOptions& options = {});

}  // namespace heed
