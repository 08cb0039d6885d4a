#include "microscope/attention/head_scan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "kernels/attention_summaries.h"
#include "kernels/kernels.h"
#include "microscope/attention/visible_keys.h"
#include "microscope/traces/point_names.h"
#include "model/edited_points.h"
#include "model/editor.h"
#include "model/input_checks.h"

namespace heed {
namespace {

constexpr std::uint64_t window_stream = 0x77696e;  // of the random numbers that choose windows

// Rows of a custom pattern that are compared together.
constexpr std::int64_t custom_block = 32;

constexpr std::array<std::pair<std::string_view, HeadPattern>, 3> pattern_names{
    {{"previous", HeadPattern::previous},
     {"duplicate", HeadPattern::duplicate},
     {"induction", HeadPattern::induction}}};

// For each position, how many earlier ones hold the same token.
std::vector<std::int64_t> earlier_copies(View<const std::int32_t> tokens) {
  std::unordered_map<std::int32_t, std::int64_t> seen;
  std::vector<std::int64_t> copies;
  for (std::int64_t t = 0; t < tokens.extent(0); ++t) copies.push_back(seen[tokens(t)]++);
  return copies;
}

}  // namespace

std::optional<HeadPattern> head_pattern_from_name(std::string_view name) {
  for (const auto& [known, pattern] : pattern_names) {
    if (known == name) return pattern;
  }
  return std::nullopt;
}

// The numbers of every row of a layer whose queries see their past alone, (B, H, T) each.
struct HeadScan::Rows {
  std::int64_t layer;
  View<const std::int32_t> tokens;  // (B, T), or none
  kernels::AttentionInput<float> input;
  View<const float> log_sum_exp;
  Pass pass;              // with its editor
  Tensor<float> numbers;  // (9, B·H·T)
  kernels::AttentionRowStatistics<float> rows;
  View<float> total;  // Σ p: one unless the row was edited

  struct Edits {
    Editor* editor;  // or null
    std::int64_t text;
  };
  Rows(const Point& pattern, const Attended& attended, View<const std::int32_t> read,
       const Edits& edits)
      : layer(pattern.layer),
        tokens(read),
        input(attended.input),
        log_sum_exp(attended.log_sum_exp),
        pass({.sequences = {log_sum_exp.extent(0), log_sum_exp.extent(2)},
              .site = pattern.site,
              .editor = edits.editor,
              .first_sequence = edits.text}),
        numbers(Shape{9, log_sum_exp.size()}) {
    const View<const float> lse = log_sum_exp;
    const auto part = [&](std::int64_t index) {
      return View<float>(numbers.data() + index * lse.size(), lse.shape());
    };
    rows = {part(0), part(1), part(2), part(3), part(4), part(5), part(6), part(7)};
    total = part(8);
    std::ranges::fill(total.span(), 1.0F);
    if (score_precision(input) == kernels::Precision::f32) {
      kernels::attention_row_statistics(input, log_sum_exp, tokens, rows);
    } else {
      for (std::int64_t plane = 0; plane < lse.extent(0) * lse.extent(1); ++plane) {
        add_rounded_plane(plane);
      }
    }
    for (std::int64_t b = 0; b < lse.extent(0); ++b) {
      for (std::int64_t h = 0; h < lse.extent(1); ++h) {
        if (is_edited(h)) add_edited_plane(b, h);
      }
    }
  }

  std::int64_t positions() const { return log_sum_exp.extent(2); }

  bool is_edited(std::int64_t head) const {
    const auto edits = [&](const Point& point) {
      return pass.edits(point) && pass.editor->edits_head(point, head);
    };
    return edits(pass.point(PointKind::scores, layer)) ||
           edits(pass.point(PointKind::pattern, layer));
  }

  // Rows [begin, end) of a head's pattern, up to column `end`, as used in the pass.
  void pattern(std::int64_t b, std::int64_t head, std::int64_t begin, std::int64_t end,
               View<float> out) const {
    if (!is_edited(head)) {
      kernels::attention_pattern_tile(input, log_sum_exp, {b, head, begin, end, 0, end}, out);
      return;
    }
    const Tensor<float> plane = edited_plane(b, head);
    for (std::int64_t t = begin; t < end; ++t) {
      std::copy_n(&plane.view()(t, 0), end, &out(t - begin, 0));
    }
  }

 private:
  Tensor<float> edited_plane(std::int64_t b, std::int64_t head) const {
    Tensor<float> plane(Shape{positions(), positions()});
    pattern_plane(pass, layer, self_attention_points, input, log_sum_exp, b, head, plane);
    return plane;
  }

  // The statistics of attention_row_statistics(), for rows that need not sum to one.
  void add_edited_plane(std::int64_t b, std::int64_t h) {
    const Tensor<float> plane = edited_plane(b, h);
    for (std::int64_t t = 0; t < positions(); ++t) {
      const std::span<const float> p = plane.view()[t].span();
      double sum = 0, entropy = 0, distance = 0, duplicate = 0, induction = 0;
      float largest = 0;
      for (std::int64_t s = 0; s <= t; ++s) {
        sum += p[s];
        if (p[s] > 0) entropy -= p[s] * std::log(p[s]);
        distance += p[s] * static_cast<double>(t - s);
        if (s >= 1 && s < t - 1) largest = std::max(largest, p[s]);
        if (!tokens.present()) continue;
        if (s < t && tokens(b, s) == tokens(b, t)) duplicate += p[s];
        if (s >= 1 && tokens(b, s - 1) == tokens(b, t)) induction += p[s];
      }
      total(b, h, t) = static_cast<float>(sum);
      rows.entropy(b, h, t) = static_cast<float>(entropy);
      rows.distance(b, h, t) = static_cast<float>(distance);
      rows.first(b, h, t) = p[0];
      rows.self(b, h, t) = p[t];
      rows.previous(b, h, t) = t >= 1 ? p[t - 1] : 0.0F;
      rows.duplicate(b, h, t) = static_cast<float>(duplicate);
      rows.induction(b, h, t) = static_cast<float>(induction);
      rows.largest(b, h, t) = largest;
    }
  }

  // One head of one sequence, from queries and keys rounded as in the pass.
  void add_rounded_plane(std::int64_t plane) {
    const Shape& shape = input.query.shape();
    const std::int64_t positions = shape[1], size = shape[3];
    const std::int64_t b = plane / shape[2], h = plane % shape[2];
    const std::int64_t group = shape[2] / input.key.extent(2);
    const auto rounded = [&](View<const float> from, std::int64_t index) {
      Tensor<float> to(Shape{1, positions, 1, size});
      for (std::int64_t t = 0; t < positions; ++t) {
        for (std::int64_t i = 0; i < size; ++i) {
          to[t * size + i] = rounded_to(input.precision, from(b, t, index, i));
        }
      }
      return to;
    };
    const Tensor<float> query = rounded(input.query, h), key = rounded(input.key, h / group);
    const auto part = [&](std::int64_t index) {
      return View<float>(numbers.data() + index * log_sum_exp.size() + plane * positions,
                         {1, 1, positions});
    };
    kernels::attention_row_statistics(
        {.query = query,
         .key = key,
         .value = key,
         .mask = input.mask,
         .scale = input.scale,
         .window = input.window,
         .soft_cap = input.soft_cap,
         .position_bias = input.position_bias.of_head(h)},
        log_sum_exp[b].slice(0, h, h + 1).reshape({1, 1, positions}),
        tokens.present() ? View<const std::int32_t>(&tokens(b, 0), {1, positions}) : tokens,
        {part(0), part(1), part(2), part(3), part(4), part(5), part(6), part(7)});
  }
};

HeadScan::HeadScan(const Architecture& architecture, HeadScanSetup setup)
    : setup_(std::move(setup)) {
  for (const HeadDetector& detector : setup_.detectors) {
    require((detector.pattern == HeadPattern::custom) == static_cast<bool>(detector.custom),
            ErrorCode::invalid_argument,
            "a custom pattern needs a function; other patterns take none");
  }
  for (const AttentionSite site : sites_of(architecture)) {
    const bool is_wanted =
        setup_.sites.empty() || std::ranges::find(setup_.sites, site) != setup_.sites.end();
    if (!is_wanted) continue;
    Site& scanned = sites_.emplace_back(Site{.site = site,
                                             .scope = attention_scope(architecture, site),
                                             .attention = attention_of(architecture, site),
                                             .layers = architecture.of(site.stack).layers,
                                             .sums = {}});
    require(setup_.detectors.empty() || scanned.scope == AttentionScope::past,
            ErrorCode::unsupported,
            "patterns are detected under causal masks: without one, a query also attends to what "
            "follows");
    Sums none{.sum = HeadStatisticsSum(scanned.scope)};
    none.fits.resize(setup_.detectors.size());
    scanned.sums.assign(static_cast<std::size_t>(scanned.layers * scanned.attention.query_heads),
                        none);
  }
}

const HeadScan::Site& HeadScan::of(AttentionSite site) const {
  const auto found = std::ranges::find(sites_, site, &Site::site);
  check(found != sites_.end(), "a site that is scanned");
  return *found;
}

bool HeadScan::wants_attention_at(const Point& pattern) const {
  return std::ranges::find(sites_, site_of_pattern(pattern), &Site::site) != sites_.end();
}

void HeadScan::begin_pass(StackSite site, const Sequences& sequences) {
  (site == StackSite::encoder ? source_rows_ : rows_) = sequences;
}

View<const std::int32_t> HeadScan::tokens_of(StackSite site, std::int64_t text) const {
  const View<const std::int32_t>& all = site == StackSite::encoder ? source_ : tokens_;
  const Sequences& rows = site == StackSite::encoder ? source_rows_ : rows_;
  if (!all.present() || !rows.is_ragged()) return all;
  return all.slice(1, rows[text].row_begin, rows[text].row_end);
}

void HeadScan::observe_attention_at(const Point& pattern,
                                    const kernels::AttentionInput<float>& input,
                                    View<const float> log_sum_exp, std::int64_t text) {
  require(!stop_requested(setup_.stop), ErrorCode::interrupted,
          "interrupted while reading attention");
  Site& site = *std::ranges::find(sites_, site_of_pattern(pattern), &Site::site);
  if (site.scope != AttentionScope::past) {
    return scan_planes(site, pattern, {input, log_sum_exp}, text);
  }
  require(input.query.extent(1) == input.key.extent(1), ErrorCode::invalid_argument,
          "heads are scanned in passes over whole texts, not during cached decoding");
  const std::int64_t batch = input.query.extent(0);
  const View<const std::int32_t> tokens = tokens_of(pattern.site, text);
  if (tokens.present()) require_shape(tokens, {batch, input.key.extent(1)}, "expected tokens");
  scan_past(site, Rows(pattern, {input, log_sum_exp}, tokens, {setup_.editor, text}),
            pattern.layer);
}

void HeadScan::scan_past(Site& site, const Rows& all, std::int64_t layer) {
  const auto& rows = all.rows;
  const std::int64_t batch = rows.entropy.extent(0), heads = rows.entropy.extent(1);
  const std::int64_t positions = rows.entropy.extent(2);
  for (std::int64_t b = 0; b < batch; ++b) {
    std::int64_t repeated = 0;
    if (all.tokens.present()) {
      repeated = std::ranges::count_if(earlier_copies(all.tokens[b]),
                                       [](std::int64_t copies) { return copies > 0; });
    }
    for (std::int64_t h = 0; h < heads; ++h) {
      Sums& sums = site.sums[static_cast<std::size_t>(layer * heads + h)];
      for (std::int64_t t = 1; t < positions; ++t) {
        HeadStatistics row{
            .entropy = rows.entropy(b, h, t),
            .evenness = evenness_of(rows.entropy(b, h, t),
                                    visible_keys(site.attention, layer, t, positions).count()),
            .largest = std::max({rows.largest(b, h, t), rows.first(b, h, t), rows.self(b, h, t),
                                 rows.previous(b, h, t)}),
            .first = rows.first(b, h, t),
            .last = rows.self(b, h, t),
            .self = rows.self(b, h, t),
            .previous = rows.previous(b, h, t),
            .distance = rows.distance(b, h, t),
            .content_weight = rows.largest(b, h, t),
            .duplicate = rows.duplicate(b, h, t),
            .induction = rows.induction(b, h, t)};
        sums.sum.add(row);
      }
      sums.sum.add_repeated(repeated);
      sums.positions += positions;
      for (std::size_t i = 0; i < setup_.detectors.size(); ++i) {
        const Fit added = fit(setup_.detectors[i], all, b, h);
        sums.fits[i].overlap += added.overlap;
        sums.fits[i].weight += added.weight;
        sums.fits[i].distance += added.distance;
      }
    }
  }
}

// Rows of texts that are read whole are summed block by block.
void HeadScan::scan_planes(Site& site, const Point& pattern, const Attended& attended,
                           std::int64_t text) {
  const auto& [input, log_sum_exp] = attended;
  const bool across = site.scope == AttentionScope::other_text;
  const View<const std::int32_t> read =
      across ? View<const std::int32_t>{} : tokens_of(pattern.site, text);
  const AttentionPoints& points = across ? cross_attention_points : self_attention_points;
  const std::int64_t batch = input.query.extent(0), heads = input.query.extent(2);
  const std::int64_t queries = input.query.extent(1), keys = input.key.extent(1);
  if (read.present()) require_shape(read, {batch, keys}, "expected tokens");
  const Pass pass{.sequences = {batch, queries},
                  .site = pattern.site,
                  .editor = setup_.editor,
                  .first_sequence = text};
  for (std::int64_t b = 0; b < batch; ++b) {
    const auto tokens = read.present() ? read[b].span() : std::span<const std::int32_t>{};
    for (std::int64_t h = 0; h < heads; ++h) {
      Sums& sums = site.sums[static_cast<std::size_t>(pattern.layer * heads + h)];
      sums.sum.set_tokens(tokens);
      const bool is_edited = pass.edits_head(pattern, h) || pass.edits_head(scores_of(pattern), h);
      Tensor<float> plane(Shape{is_edited ? queries : std::min(custom_block, queries), keys});
      if (is_edited) {
        pattern_plane(pass, pattern.layer, points, input, log_sum_exp, b, h, plane);
      }
      for (std::int64_t t = 0; t < queries; ++t) {
        const std::int64_t row = is_edited ? t : t % custom_block;
        if (!is_edited && row == 0) {
          const std::int64_t end = std::min(t + custom_block, queries);
          kernels::attention_pattern_tile(input, log_sum_exp, {b, h, t, end, 0, keys},
                                          plane.view().slice(0, 0, end - t));
        }
        sums.sum.add_row(plane.view()[row].span(), t, {0, keys});
      }
      sums.positions += queries;
    }
  }
}

// For patterns d of zeros and ones, Σ |p − d| = Σ p − 2·Σ p·d + Σ d: the numbers of a row suffice.
HeadScan::Fit HeadScan::fit(const HeadDetector& detector, const Rows& all, std::int64_t b,
                            std::int64_t h) const {
  const auto& rows = all.rows;
  const std::int64_t positions = rows.entropy.extent(2);
  Fit fit;
  if (detector.pattern == HeadPattern::custom) {
    std::vector<float> wanted(static_cast<std::size_t>(custom_block * positions));
    Tensor<float> pattern(Shape{custom_block, positions});
    for (std::int64_t begin = 0; begin < positions; begin += custom_block) {
      const std::int64_t end = std::min(begin + custom_block, positions);
      const View<float> tile(pattern.data(), {end - begin, end});
      all.pattern(b, h, begin, end, tile);
      for (std::int64_t t = begin; t < end; ++t) {
        const std::span<float> row(wanted.data(), static_cast<std::size_t>(t + 1));
        detector.custom(t, row);
        for (std::int64_t s = detector.exclude_first ? 1 : 0; s <= t - detector.exclude_own; ++s) {
          const double p = tile(t - begin, s);
          const double d = row[static_cast<std::size_t>(s)];
          fit.overlap += p * d;
          fit.weight += p;
          fit.distance += std::abs(p - d);
        }
      }
    }
    return fit;
  }

  require(
      detector.pattern == HeadPattern::previous || all.tokens.present(),
      ErrorCode::invalid_argument,
      "the duplicate and induction patterns need the tokens: call set_tokens() before the pass");
  const View<const std::int32_t> tokens =
      all.tokens.present() ? all.tokens[b] : View<const std::int32_t>{};
  const std::vector<std::int64_t> copies = detector.pattern == HeadPattern::previous
                                               ? std::vector<std::int64_t>{}
                                               : earlier_copies(tokens);
  for (std::int64_t t = 0; t < positions; ++t) {
    double overlap = 0;     // Σ p·d of the row
    double ones = 0;        // Σ d
    bool first_is = false;  // whether d is one at the first key
    bool own_is = false;    // and at the query's own position
    switch (detector.pattern) {
      case HeadPattern::previous:
        overlap = rows.previous(b, h, t);
        ones = t >= 1 ? 1 : 0;
        first_is = t == 1;
        break;
      case HeadPattern::duplicate:
        overlap = rows.duplicate(b, h, t);
        ones = static_cast<double>(copies[t]);
        first_is = t > 0 && tokens(0) == tokens(t);
        break;
      default:
        overlap = rows.induction(b, h, t);
        ones = static_cast<double>(copies[t]);
        own_is = t > 0 && tokens(t - 1) == tokens(t);
    }
    double weight = all.total(b, h, t);
    const auto leave_out = [&](double p, bool is_one) {
      weight -= p;
      if (!is_one) return;
      overlap -= p;
      ones -= 1;
    };
    if (detector.exclude_first) leave_out(rows.first(b, h, t), first_is);
    if (detector.exclude_own && !(detector.exclude_first && t == 0)) {
      leave_out(rows.self(b, h, t), own_is);
    }
    fit.overlap += overlap;
    fit.weight += weight;
    fit.distance += weight - 2 * overlap + ones;
  }
  return fit;
}

const HeadScan::Sums& HeadScan::at(std::int64_t layer, std::int64_t head,
                                   AttentionSite site) const {
  const Site& scanned = of(site);
  const std::int64_t heads = scanned.attention.query_heads;
  require(layer >= 0 && layer < scanned.layers, ErrorCode::invalid_argument,
          "layer {} does not exist: the model has layers 0 to {}", layer, scanned.layers - 1);
  require(head >= 0 && head < heads, ErrorCode::invalid_argument,
          "head {} does not exist: a layer has heads 0 to {}", head, heads - 1);
  return scanned.sums[static_cast<std::size_t>(layer * heads + head)];
}

HeadStatistics HeadScan::statistics(std::int64_t layer, std::int64_t head,
                                    AttentionSite site) const {
  return at(layer, head, site).sum.means();
}

std::vector<RankedHead> HeadScan::all() const {
  std::vector<RankedHead> all;
  for (const Site& site : sites_) {
    for (std::int64_t layer = 0; layer < site.layers; ++layer) {
      for (std::int64_t head = 0; head < site.attention.query_heads; ++head) {
        all.push_back({layer, head, statistics(layer, head, site.site), site.site});
      }
    }
  }
  return all;
}

double HeadScan::detection(std::int64_t layer, std::int64_t head, std::size_t detector,
                           AttentionSite site) const {
  const Sums& sums = at(layer, head, site);
  require(detector < setup_.detectors.size(), ErrorCode::invalid_argument,
          "detector {} does not exist: there are {}", detector, setup_.detectors.size());
  const Fit& fit = sums.fits[detector];
  if (setup_.detectors[detector].measure == DetectionMeasure::mul) {
    return fit.weight > 0 ? fit.overlap / fit.weight : 0.0;
  }
  return 1.0 - fit.distance / static_cast<double>(std::max<std::int64_t>(sums.positions, 1));
}

WindowSample sample_windows(std::span<const std::int32_t> tokens, std::int64_t window,
                            std::int64_t count, std::uint64_t seed) {
  require(!tokens.empty() && window > 0 && count > 0, ErrorCode::invalid_argument,
          "cannot draw {} windows of {} tokens from {} tokens", count, window, tokens.size());
  const std::int64_t size = std::min<std::int64_t>(window, std::ssize(tokens));
  const std::int64_t available = std::ssize(tokens) / size;
  const Permutation order(static_cast<std::uint64_t>(available), seed, window_stream);
  WindowSample sample;
  for (std::int64_t i = 0; i < std::min(count, available); ++i) {
    const auto drawn = static_cast<std::int64_t>(order(static_cast<std::uint64_t>(i)));
    sample.begins.push_back(drawn * size);
  }
  std::ranges::sort(sample.begins);
  for (const std::int64_t begin : sample.begins) {
    const auto read =
        tokens.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(size));
    sample.tokens.insert(sample.tokens.end(), read.begin(), read.end());
  }
  return sample;
}

HeadScan scan_heads(const Transformer& model, std::span<const std::int32_t> tokens,
                    const HeadScanOptions& options) {
  require_tokens(tokens);
  const std::int64_t context = model.specification().context;
  require(options.window >= 0 && options.window <= context, ErrorCode::invalid_argument,
          "windows of {} tokens: expected 1 to {}, the model's context", options.window, context);
  const EditorOfPass editor(model.editor(), options.editor);
  HeadScan scan(model.architecture(), {.detectors = options.detectors, .editor = editor.get()});
  const std::int64_t window =
      std::min<std::int64_t>(options.window > 0 ? options.window : context, std::ssize(tokens));
  std::unique_ptr<const StackActivations> activations;
  for (std::int64_t begin = 0; begin < std::ssize(tokens); begin += window) {
    require(!stop_requested(options.stop), ErrorCode::interrupted, "interrupted");
    const std::int64_t positions = std::min<std::int64_t>(window, std::ssize(tokens) - begin);
    if (!activations || activations->positions() != positions) {
      activations.reset();
      activations = std::make_unique<const StackActivations>(model.specification(), 1, positions,
                                                             Keep::one_block);
    }
    const View<const std::int32_t> read(tokens.data() + begin, {1, positions});
    scan.expect(read);
    model.forward(read, {.sequences = {1, positions}, .probe = &scan, .editor = editor.get()},
                  *activations);
    if (options.progress) options.progress({"reading", begin + positions, std::ssize(tokens)});
  }
  scan.expect({});
  return scan;
}

HeadScan scan_heads(const RecordedPass& pass, std::vector<AttentionSite> sites, StopFlag stop) {
  HeadScan scan(pass.architecture(),
                {.editor = pass.edited_by(), .sites = std::move(sites), .stop = stop});
  const Texts& texts = pass.texts();
  View<const std::int32_t> source;
  if (!texts.source.empty()) source = {texts.source.data(), {1, std::ssize(texts.source)}};
  const Sequences& rows = pass.sequences();
  scan.expect({texts.target.data(), {rows.view_batch(), rows.view_positions()}}, source);
  pass.replay(scan);
  scan.expect({});
  return scan;
}

}  // namespace heed
