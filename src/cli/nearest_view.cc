// The words that a position's vector points to, block by block, in the terminal.
#include <fmt/format.h>

#include "cli/lens.h"
#include "cli/output.h"
#include "cli/terminal/table.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/text.h"

namespace heed::cli {
namespace {

std::string depth_name(std::size_t depth, std::size_t depths) {
  if (depth == 0) return "embedding";
  return depth + 1 == depths ? "out" : fmt::format("L{}", depth - 1);
}

}  // namespace

void print_nearest(const ExplainedText& text, const NearestWordsByDepth& found) {
  const Ink ink(standard_output());
  Table table({{"depth", Align::left}, {"chance", Align::right}, {"nearest words", Align::left}});
  for (std::size_t depth = 0; depth < found.depths.size(); ++depth) {
    const NearestWords& here = found.depths[depth];
    std::string words;
    for (const NearWord& word : here.words) {
      words +=
          fmt::format("{}{} {:.2f}", words.empty() ? "" : "  ", text.name(word.token), word.cosine);
    }
    if (here.words.empty()) {
      words = ink.quiet(fmt::format("none nearer than chance ({} {:.2f})",
                                    text.name(here.best.token), here.best.cosine));
    }
    table.add({depth_name(depth, found.depths.size()), fmt::format("{:.2f}", here.chance),
               std::move(words)});
  }
  print("\n" + ink.title("Nearest words by block") +
        ink.quiet(fmt::format("  at {} {}, by the cosine with their embeddings, less the mean\n",
                              found.position,
                              text.name(text.tokens[static_cast<std::size_t>(found.position)]))) +
        text.changes_line(ink) + "\n" + table.text(ink));
  print(ink.quiet(fmt::format(
      "\n  Chance: the largest cosine of any word with the same numbers in {} random orders.\n"
      "  Ln is the residual stream before block n, out after the last one.\n",
      nearest_word_shuffles)));
}

}  // namespace heed::cli
