// Where a story's freedom comes from. A story is told by a procedure that makes choices and writes
// text; a Chooser decides each choice. Sampler decides by chance. Replayer decides so that the text
// comes out as given, and tries every way in which it can.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "base/random.h"

namespace heed::microworld {

// One choice among `count` options.
struct Choice {
  std::size_t count = 0;
  std::span<const double> weights;               // empty: all options are equally likely
  std::span<const std::string_view> beginnings;  // text that each option writes first, if known

  double probability(std::size_t option) const;
};

class Chooser {
 public:
  virtual ~Chooser() = default;

  // The option taken, below choice.count.
  virtual std::size_t choose(const Choice& choice) = 0;

  // Told of every piece of text as it is written.
  virtual void wrote(std::string_view text) = 0;

  // False once the text can no longer come out right: the rest of the telling does not matter.
  virtual bool alive() const = 0;
};

class Sampler final : public Chooser {
 public:
  Sampler(std::uint64_t seed, std::uint64_t stream) : random_(seed, stream) {}

  std::size_t choose(const Choice& choice) override;
  void wrote(std::string_view) override {}
  bool alive() const override { return true; }

 private:
  RandomStream random_;
};

// Explores, depth first, the choices under which a telling yields exactly `text`. Each telling
// starts from the beginning and repeats the choices already made; the last one that has options
// left is then changed.
//
//   do { tell(...); if (replayer.matched()) ... } while (replayer.next());
class Replayer final : public Chooser {
 public:
  explicit Replayer(std::string_view text) : text_(text) {}

  std::size_t choose(const Choice& choice) override;
  void wrote(std::string_view text) override;
  bool alive() const override { return alive_; }

  // Whether the telling that has just ended wrote the whole text and nothing else.
  bool matched() const { return alive_ && position_ == text_.size(); }

  // Prepares the next telling; false when every way has been tried.
  bool next();

 private:
  std::string_view text_;
  std::size_t position_ = 0;
  std::size_t depth_ = 0;
  bool alive_ = true;
  std::vector<std::vector<std::size_t>> options_;  // per choice: what is left to try, current last
};

}  // namespace heed::microworld
