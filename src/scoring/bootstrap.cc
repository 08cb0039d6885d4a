#include "scoring/bootstrap.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/threads.h"

namespace heed::scoring {
namespace {

// Samples are drawn in order, by one thread, and scored by all.
constexpr std::int64_t indices_drawn_at_once = std::int64_t{1} << 20;

void check_systems(std::span<const SentenceStatistics> systems, const BootstrapOptions& options) {
  require(options.samples >= 1, ErrorCode::invalid_argument,
          "a bootstrap needs at least 1 sample, not {}", options.samples);
  require(!systems.empty(), ErrorCode::invalid_argument,
          "there are no systems to compare; expected at least one");
  const std::int64_t sentences = systems[0].sentences();
  require(sentences >= 1 && sentences <= std::numeric_limits<std::uint32_t>::max(),
          ErrorCode::invalid_argument, "cannot draw samples from {} sentences", sentences);
  for (const SentenceStatistics& system : systems) {
    require(system.width == systems[0].width && system.sentences() == sentences,
            ErrorCode::invalid_argument,
            "systems are compared on the same sentences: one has {}, another {}", sentences,
            system.sentences());
  }
}

double score_of_sample(const Metric& metric, const SentenceStatistics& system,
                       std::span<const std::uint32_t> indices) {
  std::vector<std::int64_t> sum(static_cast<std::size_t>(system.width));
  for (const std::uint32_t index : indices) {
    const std::span<const std::int64_t> row = system.of(index);
    for (std::size_t i = 0; i < row.size(); ++i) sum[i] += row[i];
  }
  return metric.score(sum);
}

constexpr std::size_t pool_words = 4;
using Pool = std::array<std::uint32_t, pool_words>;

std::uint32_t fold(std::uint32_t value) { return value ^ (value >> 16); }

// A hash whose constant changes with every use.
class HashSequence {
 public:
  HashSequence(std::uint32_t constant, std::uint32_t multiplier)
      : constant_(constant), multiplier_(multiplier) {}

  std::uint32_t operator()(std::uint32_t value) {
    value ^= constant_;
    constant_ *= multiplier_;
    return fold(value * constant_);
  }

 private:
  std::uint32_t constant_;
  std::uint32_t multiplier_;
};

// NumPy's SeedSequence: every bit of the seed reaches every word of the pool.
Pool mixed_pool(std::uint64_t seed) {
  const std::array<std::uint32_t, 2> entropy{static_cast<std::uint32_t>(seed),
                                             static_cast<std::uint32_t>(seed >> 32)};
  HashSequence hash(0x43b0d7e5, 0x931e8875);
  Pool pool{};
  for (std::size_t i = 0; i < pool_words; ++i) pool[i] = hash(i < 2 ? entropy[i] : 0);
  for (std::size_t source = 0; source < pool_words; ++source) {
    for (std::size_t target = 0; target < pool_words; ++target) {
      if (source == target) continue;
      pool[target] = fold(0xca01f9ddU * pool[target] - 0x4973f715U * hash(pool[source]));
    }
  }
  return pool;
}

std::array<std::uint64_t, 4> seed_words(std::uint64_t seed) {
  const Pool pool = mixed_pool(seed);
  HashSequence hash(0x8b51f9dd, 0x58f38ded);
  std::array<std::uint64_t, 4> words{};
  for (std::size_t i = 0; i < 2 * words.size(); ++i) {
    words[i / 2] |= std::uint64_t{hash(pool[i % pool_words])} << (i % 2 * 32);
  }
  return words;
}

}  // namespace

std::vector<std::vector<double>> resampled_scores(const Metric& metric,
                                                  std::span<const SentenceStatistics> systems,
                                                  const BootstrapOptions& options) {
  check_systems(systems, options);
  const std::int64_t sentences = systems[0].sentences();
  const std::int64_t samples_at_once =
      std::clamp<std::int64_t>(indices_drawn_at_once / sentences, 1, options.samples);
  std::vector<std::uint32_t> indices(static_cast<std::size_t>(samples_at_once * sentences));
  std::vector<std::vector<double>> scores(
      systems.size(), std::vector<double>(static_cast<std::size_t>(options.samples)));
  Pcg64 random(options.seed);
  for (std::int64_t first = 0; first < options.samples; first += samples_at_once) {
    if (options.progress) options.progress({"resampling", first, options.samples});
    require(!stop_requested(options.stop), ErrorCode::interrupted,
            "interrupted while resampling, after {} of {} samples", first, options.samples);
    const std::int64_t count = std::min(samples_at_once, options.samples - first);
    for (std::uint32_t& index :
         std::span(indices).first(static_cast<std::size_t>(count * sentences))) {
      index = random.below(static_cast<std::uint32_t>(sentences));
    }
    parallel_items(count * std::ssize(systems), [&](std::int64_t item) {
      const auto system = static_cast<std::size_t>(item / count);
      const std::int64_t sample = item % count;
      const auto drawn = std::span(indices).subspan(static_cast<std::size_t>(sample * sentences),
                                                    static_cast<std::size_t>(sentences));
      scores[system][static_cast<std::size_t>(first + sample)] =
          score_of_sample(metric, systems[system], drawn);
    });
  }
  return scores;
}

Interval interval_of(std::vector<double> scores) {
  require(!scores.empty(), ErrorCode::invalid_argument,
          "an interval needs at least one score, and there are none");
  std::ranges::sort(scores);
  const std::size_t outside = scores.size() / 40;  // 2.5 % on each side
  const double lower = scores[outside];
  const double upper = scores[scores.size() - 1 - outside];
  const double sum = std::accumulate(scores.begin(), scores.end(), 0.0);
  return {.mean = sum / static_cast<double>(scores.size()), .half_width = (upper - lower) / 2};
}

// One is added to both counts: the corpus itself is a sample, too, so that no p-value is 0.
double p_value(std::span<const double> baseline, std::span<const double> system,
               double difference) {
  require(baseline.size() == system.size() && !system.empty(), ErrorCode::invalid_argument,
          "paired scores come in pairs: there are {} of the baseline and {} of the system",
          baseline.size(), system.size());
  std::vector<double> differences(system.size());
  for (std::size_t i = 0; i < differences.size(); ++i) {
    differences[i] = std::abs(system[i] - baseline[i]);
  }
  const auto count = static_cast<double>(differences.size());
  const double mean = std::accumulate(differences.begin(), differences.end(), 0.0) / count;
  if (mean == 0) return 1;
  const auto as_large = std::ranges::count_if(
      differences, [&](double sample) { return sample - mean > std::abs(difference); });
  return (static_cast<double>(as_large) + 1) / (count + 1);
}

std::vector<SystemScore> paired_bootstrap(const Metric& metric,
                                          std::span<const SentenceStatistics> systems,
                                          const BootstrapOptions& options) {
  const std::vector<std::vector<double>> samples = resampled_scores(metric, systems, options);
  std::vector<SystemScore> scores;
  for (std::size_t i = 0; i < systems.size(); ++i) {
    SystemScore& score = scores.emplace_back();
    score.score = metric.score(systems[i].sum());
    score.interval = interval_of(samples[i]);
    if (i == 0) continue;
    score.p_value = p_value(samples[0], samples[i], score.score - scores[0].score);
  }
  return scores;
}

Pcg64::Wide Pcg64::add(Wide a, Wide b) {
  const std::uint64_t low = a.low + b.low;
  return {a.high + b.high + (low < a.low ? 1 : 0), low};
}

// Modulo 2^128, from products of 32 bits.
Pcg64::Wide Pcg64::multiply(Wide a, Wide b) {
  constexpr std::uint64_t half = 0xffffffff;
  const std::uint64_t low = (a.low & half) * (b.low & half);
  const std::uint64_t middle = (a.low >> 32) * (b.low & half) + (low >> 32);
  const std::uint64_t other = (a.low & half) * (b.low >> 32) + (middle & half);
  const std::uint64_t carried = (a.low >> 32) * (b.low >> 32) + (middle >> 32) + (other >> 32);
  return {carried + a.high * b.low + a.low * b.high, other << 32 | (low & half)};
}

Pcg64::Pcg64(std::uint64_t seed) {
  const std::array<std::uint64_t, 4> words = seed_words(seed);
  increment_ = {words[2] << 1 | words[3] >> 63, words[3] << 1 | 1};
  step();
  state_ = add(state_, {words[0], words[1]});
  step();
}

void Pcg64::step() {
  constexpr Wide multiplier{0x2360ed051fc65da4, 0x4385df649fccf645};
  state_ = add(multiply(state_, multiplier), increment_);
}

std::uint64_t Pcg64::next_u64() {
  step();
  return std::rotr(state_.high ^ state_.low, static_cast<int>(state_.high >> 58));
}

std::uint32_t Pcg64::next_u32() {
  has_kept_ = !has_kept_;
  if (!has_kept_) return static_cast<std::uint32_t>(kept_ >> 32);
  kept_ = next_u64();
  return static_cast<std::uint32_t>(kept_);
}

// A product's upper half is uniform once the lower halves that would favour some numbers are
// rejected. NumPy draws nothing where there is nothing to choose.
std::uint32_t Pcg64::below(std::uint32_t bound) {
  if (bound == 1) return 0;
  std::uint64_t product = std::uint64_t{next_u32()} * bound;
  if (static_cast<std::uint32_t>(product) < bound) {
    const std::uint32_t rejected = (0U - bound) % bound;
    while (static_cast<std::uint32_t>(product) < rejected) {
      product = std::uint64_t{next_u32()} * bound;
    }
  }
  return static_cast<std::uint32_t>(product >> 32);
}

}  // namespace heed::scoring
