#include "microworld/writer.h"

#include <cmath>
#include <numeric>

#include "base/error.h"

namespace heed::microworld {

std::size_t Writer::choose(const Choice& choice) {
  const std::size_t option = chooser_.choose(choice);
  story_.log_probability += std::log(choice.probability(option));
  return option;
}

Span Writer::write(std::string_view text) {
  chooser_.wrote(text);
  const std::size_t begin = offset();
  story_.text += text;
  return {begin, offset()};
}

std::size_t Writer::pick(std::span<const std::string_view> texts) {
  const std::size_t option = choose({.count = texts.size(), .beginnings = texts});
  write(texts[option]);
  return option;
}

double Choice::probability(std::size_t option) const {
  if (weights.empty()) return 1.0 / static_cast<double>(count);
  return weights[option] / std::accumulate(weights.begin(), weights.end(), 0.0);
}

std::size_t Sampler::choose(const Choice& choice) {
  check(choice.count > 0, "a choice has options");
  if (choice.weights.empty()) return random_.below(choice.count);
  const double total = std::accumulate(choice.weights.begin(), choice.weights.end(), 0.0);
  double left = random_.uniform() * total;
  for (std::size_t option = 0; option + 1 < choice.count; ++option) {
    left -= choice.weights[option];
    if (left < 0.0) return option;
  }
  return choice.count - 1;
}

std::size_t Replayer::choose(const Choice& choice) {
  check(choice.count > 0, "a choice has options");
  if (!alive_) return 0;
  if (depth_ == options_.size()) {
    const std::string_view rest = text_.substr(position_);
    std::vector<std::size_t> fitting;
    for (std::size_t option = choice.count; option-- > 0;) {
      if (!choice.weights.empty() && choice.weights[option] <= 0.0) continue;
      if (choice.beginnings.empty() || rest.starts_with(choice.beginnings[option])) {
        fitting.push_back(option);
      }
    }
    if (fitting.empty()) {
      alive_ = false;
      return 0;
    }
    options_.push_back(std::move(fitting));
  }
  return options_[depth_++].back();
}

void Replayer::wrote(std::string_view text) {
  if (!alive_) return;
  alive_ = text_.substr(position_).starts_with(text);
  position_ += text.size();
}

bool Replayer::next() {
  while (!options_.empty()) {
    options_.back().pop_back();
    if (!options_.back().empty()) break;
    options_.pop_back();
  }
  position_ = 0;
  depth_ = 0;
  alive_ = true;
  return !options_.empty();
}

}  // namespace heed::microworld
