#include "microscope/explain/word_directions.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "base/threads.h"
#include "kernels/kernels.h"
#include "kernels/prepared_weight.h"
#include "microscope/explain/vectors.h"
#include "microscope/traces/capture.h"
#include "microscope/traces/point_names.h"
#include "model/input_checks.h"

namespace heed {
namespace {

constexpr std::uint64_t permutation_seed = 7;
constexpr std::int64_t words_at_once = 1024;
constexpr std::int64_t tries = 1 + nearest_word_shuffles;  // the vector, then its shuffles

std::vector<double> mean_row(View<const float> rows) {
  std::vector<double> mean(static_cast<std::size_t>(rows.extent(1)));
  for (std::int64_t row = 0; row < rows.extent(0); ++row) {
    const std::span<const float> values = rows[row].span();
    for (std::size_t c = 0; c < mean.size(); ++c) mean[c] += values[c];
  }
  for (double& value : mean) value /= static_cast<double>(rows.extent(0));
  return mean;
}

// Less the mean, of length 1; zero where nothing is left.
void write_direction(std::span<const float> vector, std::span<const double> mean,
                     std::span<float> to) {
  double square = 0;
  for (std::size_t c = 0; c < mean.size(); ++c) square += std::pow(vector[c] - mean[c], 2);
  const double factor = square > 0 ? 1 / std::sqrt(square) : 0;
  for (std::size_t c = 0; c < mean.size(); ++c) {
    to[c] = static_cast<float>((vector[c] - mean[c]) * factor);
  }
}

// Of each vector its direction, then the same numbers in random orders: (N · tries, C).
Tensor<float> shuffled_directions(View<const float> vectors, std::span<const double> mean) {
  Tensor<float> all(Shape{vectors.extent(0) * tries, vectors.extent(1)});
  for (std::int64_t i = 0; i < vectors.extent(0); ++i) {
    write_direction(vectors[i].span(), mean, all.view()[i * tries].span());
    RandomStream random(permutation_seed, static_cast<std::uint64_t>(i));
    for (std::int64_t attempt = 1; attempt < tries; ++attempt) {
      const std::span<float> shuffled = all.view()[i * tries + attempt].span();
      std::ranges::copy(all.view()[i * tries + attempt - 1].span(), shuffled.begin());
      for (std::size_t c = shuffled.size() - 1; c > 0; --c) {
        std::swap(shuffled[c], shuffled[random.below(c + 1)]);
      }
    }
  }
  return all;
}

NearestWords named(std::span<const float> cosines, double chance, std::int64_t top,
                   std::int32_t left_out) {
  std::vector<std::int32_t> order(cosines.size());
  std::iota(order.begin(), order.end(), 0);
  std::erase(order, left_out);
  const auto end = order.begin() + std::min<std::int64_t>(top, std::ssize(order));
  std::partial_sort(order.begin(), end, order.end(), [&](std::int32_t a, std::int32_t b) {
    return cosines[a] != cosines[b] ? cosines[a] > cosines[b] : a < b;
  });
  NearestWords found{
      .words = {}, .best = {order.front(), cosines[order.front()]}, .chance = chance};
  for (auto token = order.begin(); token != end && cosines[*token] > chance; ++token) {
    found.words.push_back({*token, cosines[*token]});
  }
  return found;
}

double cosine_or_zero(std::span<const float> first, std::span<const float> second) {
  const double cosine = compare_vectors(first, second).cosine;
  return std::isnan(cosine) ? 0 : cosine;
}

}  // namespace

std::vector<NearestWords> nearest_words(View<const float> embeddings, View<const float> vectors,
                                        const NearestWordOptions& options) {
  const std::int64_t vocabulary = embeddings.extent(0), channels = embeddings.extent(1);
  const std::int64_t count = vectors.extent(0);
  require(options.top >= 1, ErrorCode::invalid_argument,
          "{} words of each vector: expected at least 1", options.top);
  require(vocabulary >= 2, ErrorCode::invalid_argument,
          "a vocabulary of {} has no words to compare", vocabulary);
  check(vectors.extent(1) == channels, "vectors as wide as embeddings");
  check(options.left_out.empty() || std::ssize(options.left_out) == count,
        "a word to leave out of each vector");
  const std::vector<double> mean = mean_row(embeddings);
  const Tensor<float> directions = shuffled_directions(vectors, mean);
  Tensor<float> cosines(Shape{count, vocabulary});
  std::vector<float> chance(static_cast<std::size_t>(count), -1.0F);
  Tensor<float> words(Shape{words_at_once, channels});
  Tensor<float> products(Shape{words_at_once, directions.view().extent(0)});
  for (std::int64_t begin = 0; begin < vocabulary; begin += words_at_once) {
    require(!stop_requested(options.stop), ErrorCode::interrupted, "the search was stopped");
    const std::int64_t rows = std::min(words_at_once, vocabulary - begin);
    parallel_items(rows, [&](std::int64_t row) {
      write_direction(embeddings[begin + row].span(), mean, words.view()[row].span());
    });
    kernels::linear_forward(std::as_const(words).view().slice(0, 0, rows),
                            {.weight = directions, .bias = {}}, products.view().slice(0, 0, rows));
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::span<const float> of_word = products.view()[row].span();
      for (std::int64_t i = 0; i < count; ++i) {
        cosines.view()(i, begin + row) = of_word[i * tries];
        const auto shuffled = of_word.subspan(i * tries + 1, nearest_word_shuffles);
        chance[i] = std::max(chance[i], *std::ranges::max_element(shuffled));
      }
    }
  }
  std::vector<NearestWords> found;
  for (std::int64_t i = 0; i < count; ++i) {
    found.push_back(named(std::as_const(cosines).view()[i].span(), chance[i], options.top,
                          options.left_out.empty() ? -1 : options.left_out[i]));
  }
  return found;
}

NearestWordsByDepth nearest_words(const RecordedPass& pass, std::int64_t position, std::int64_t top,
                                  StopFlag stop) {
  NearestWordsByDepth found{.position = position_in_text(position, pass.positions()),
                            .points = depth_points(pass.architecture()),
                            .depths = {}};
  Capture capture(found.points);
  pass.replay(capture);
  NearestWordOptions options{.top = top, .left_out = {}, .stop = stop};
  for (const Point& point : found.points) {
    const bool is_embedding = point.kind == PointKind::embedding;
    options.left_out.push_back(is_embedding ? pass.tokens()[found.position] : -1);
  }
  found.depths = nearest_words(pass.model().parameters().token_embedding(),
                               vectors_at(capture, found.position), options);
  return found;
}

WordCosines word_cosines(View<const float> vectors, View<const float> words,
                         View<const float> others) {
  check(others.extent(0) > 0, "words to compare with");
  WordCosines found;
  for (std::int64_t word = 0; word < words.extent(0); ++word) {
    std::vector<double>& of_word = found.words.emplace_back();
    for (std::int64_t i = 0; i < vectors.extent(0); ++i) {
      of_word.push_back(cosine_or_zero(vectors[i].span(), words[word].span()));
    }
  }
  for (std::int64_t i = 0; i < vectors.extent(0); ++i) {
    double sum = 0, largest = -1;
    for (std::int64_t other = 0; other < others.extent(0); ++other) {
      const double cosine = cosine_or_zero(vectors[i].span(), others[other].span());
      sum += cosine;
      largest = std::max(largest, cosine);
    }
    found.others_mean.push_back(sum / static_cast<double>(others.extent(0)));
    found.others_largest.push_back(largest);
  }
  return found;
}

std::vector<std::int32_t> spread_tokens(std::int64_t vocabulary, std::int64_t most,
                                        std::span<const std::int32_t> chosen) {
  const std::int64_t count = std::min(most, vocabulary);
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto token = static_cast<std::int32_t>((2 * i + 1) * vocabulary / (2 * count));
    if (std::ranges::find(chosen, token) == chosen.end()) tokens.push_back(token);
  }
  return tokens;
}

Tensor<float> word_directions(const Transformer& model, std::span<const std::int32_t> tokens,
                              WordDirection direction) {
  const StackSpecification& stack = model.specification();
  if (direction == WordDirection::next) require_unembedding(stack, "the direction of a word");
  Tensor<float> rows(Shape{std::ssize(tokens), stack.channels});
  for (std::int64_t row = 0; row < std::ssize(tokens); ++row) {
    const std::int32_t token = tokens[row];
    require(token >= 0 && token < stack.vocabulary_size, ErrorCode::invalid_argument,
            "token {} is not in the vocabulary of {}", token, stack.vocabulary_size);
    const std::span<float> to = rows.view()[row].span();
    if (direction == WordDirection::read) {
      std::ranges::copy(model.parameters().token_embedding()[token].span(), to.begin());
    } else {
      std::ranges::copy(kernels::multiplied_row(model.parameters().unembedding(), token),
                        to.begin());
    }
  }
  return rows;
}

}  // namespace heed
