#include "cli/microworld_pairs.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "base/files.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/terminal/progress_line.h"
#include "microworld/bilingual/bilingual.h"

namespace heed::cli {
namespace {

namespace bilingual = microworld::bilingual;

OrderedJson entropy_json(const bilingual::EntropyEstimate& estimate) {
  return {{"nats_per_pair", json_number(estimate.nats())},
          {"standard_error", json_number(estimate.standard_error())}};
}

OrderedJson summary_json(const bilingual::PairSummary& summary) {
  return {{"pairs", summary.english.count()},
          {"german_given_english", entropy_json(summary.german_given_english)},
          {"english", entropy_json(summary.english)},
          {"english_words", summary.english_words},
          {"german_words", summary.german_words},
          {"sure_links", summary.sure_links},
          {"possible_links", summary.possible_links}};
}

// DIR/train.* and, of the pairs that follow, DIR/valid.*, with DIR/entropy.json about both.
void write_pair_directory(const PairWriting& options, const bilingual::Bilingual& world) {
  ProgressLine line;
  OutputDirectory directory(options.out);
  bilingual::PairRange range{.begin = options.first,
                             .end = options.first + options.pairs,
                             .progress = line.callback(),
                             .stop = interrupt_flag()};
  OrderedJson document = {{"seed", options.seed}, {"first", options.first}};
  document["train"] = summary_json(write_pair_files(world, range, options.out, "train"));
  if (options.valid > 0) {
    range.begin = range.end;
    range.end += options.valid;
    document["valid"] = summary_json(write_pair_files(world, range, options.out, "valid"));
  }
  write_text_file(std::filesystem::path(options.out) / "entropy.json", document.dump(1) + "\n");
  directory.keep();
  line.clear();
  if (options.json) print_json(document);
}

}  // namespace

// Pairs of sentences: as files, as JSON, or one after the other on standard output.
void write_pairs(const PairWriting& options) {
  const bilingual::Bilingual world(options.seed);
  if (!options.out.empty()) return write_pair_directory(options, world);
  if (options.valid > 0) fail_usage("--valid writes files, and takes --out DIR");
  const bilingual::PairRange range{
      .begin = options.first, .end = options.first + options.pairs, .stop = interrupt_flag()};
  if (!options.json) {
    tell_pairs(world, range, [](const bilingual::Pair& pair) {
      print(fmt::format("{}\t{}\t{}\n", pair.english.text, pair.german.text,
                        pharaoh_line(pair.sure)));
    });
    return;
  }
  OrderedJson pairs = OrderedJson::array();
  const auto summary = tell_pairs(world, range, [&](const bilingual::Pair& pair) {
    pairs.push_back(OrderedJson::parse(to_json_line(pair)));
  });
  print_json(
      {{"seed", options.seed}, {"summary", summary_json(summary)}, {"pairs", std::move(pairs)}});
}

}  // namespace heed::cli
