// One head of an encoder-decoder as a map.
#include <fmt/format.h>

#include "cli/output.h"
#include "cli/pair_attend.h"
#include "cli/terminal/text.h"
#include "cli/weights_map.h"

namespace heed::cli {

void print_pair_map(AttendedPair& pair, const PairHeadChoice& choice, MapUnit unit,
                    const Screen& screen) {
  const Ink& ink = screen.ink;
  Tensor<float> weights = pair.attention.pattern(choice.kind, choice.layer, choice.head);
  const PairHeadStatistics statistics = pair_head_statistics(weights.view(), choice.kind);
  print_pair_texts(pair, screen);
  print("\n" +
        ink.title(fmt::format("{}, layer {}, head {}", site_title(choice.kind), choice.layer,
                              choice.head)) +
        ink.quiet(fmt::format("  mean largest weight {}; counted from 0\n",
                              percent(statistics.largest))));
  print(
      ink.quiet(choice.kind == cross_site
                    ? "  Rows are the target, columns the source; weights of a row sum to 100 %.\n"
                    : "  Rows are queries, columns keys; the weights of a row sum to 100 %.\n"));
  if (unit == MapUnit::words) {
    weights = by_words(weights, pair.query_words(choice.kind), pair.key_words(choice.kind),
                       WordRow::read);
    print(ink.quiet(
        "  A word's row is that of its last token; the weights of its tokens are summed.\n"));
  }
  print("\n");
  print_weights_map({.queries = pair.query_names(choice.kind, unit),
                     .keys = pair.key_names(choice.kind, unit),
                     .weights = weights.view(),
                     .is_causal = choice.kind == decoder_site},
                    screen);
}

}  // namespace heed::cli
