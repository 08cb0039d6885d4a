// Progress of a long operation: one live line on a terminal, a plain line every ten seconds in a
// pipe.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/progress.h"
#include "cli/terminal/terminal.h"

namespace heed::cli {

// Writes to standard error. Not thread-safe.
//
//   ProgressLine line;
//   line.update({"training", step, steps}, "loss 2.31  12,000 tokens/s");  // at any rate
//   line.log("step 500  val 2.28");                                       // a line that stays
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();  // takes the live line away
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Redraws a live line ten times a second at most; in a pipe, prints a line every ten seconds, so
  // that log files stay short.
  void update(const Progress& progress, std::string_view detail = {});

  // A line that stays, or several, above the live one. What files and models say is escaped, here
  // and in update().
  void log(std::string_view text);

  void clear();

  // Clears the live line of whichever ProgressLine has drawn one: before an error message.
  static void clear_any();

  // For work that takes a callback; `this` must outlive it.
  ProgressCallback callback() {
    return [this](const Progress& progress) { update(progress); };
  }

 private:
  using Clock = std::chrono::steady_clock;

  std::string bar_text(const Progress& progress, std::string_view detail) const;
  std::string plain_text(const Progress& progress, std::string_view detail) const;
  std::string remaining_text(const Progress& progress) const;

  Terminal terminal_;
  Clock::time_point started_;
  Clock::time_point last_;
  std::string what_;
  std::int64_t first_done_ = 0;
  bool drawn_ = false;
};

}  // namespace heed::cli
