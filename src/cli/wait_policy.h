// How long idle threads spin before they sleep.
#pragma once

namespace heed::cli {

// GNU's OpenMP lets a waiting thread spin for about a millisecond. Where other programs want the
// same cores, the spinning thread holds the core that the thread it waits for needs, and work goes
// tens of times slower. A wait between two loops of heed takes microseconds, so a short spin loses
// nothing on an idle machine. The runtime reads its environment once, at load time: this sets
// the environment and executes the program again, unless the user has set it.
void shorten_spins(char** argv);

}  // namespace heed::cli
