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
#include "cli/terminal/table.h"
#include "cli/terminal/text.h"
#include "engine/loaded_model.h"
#include "engine/views/report_json.h"
#include "microworld/bilingual/bilingual.h"
#include "microworld/checks/pair_check.h"

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

constexpr std::size_t heads_listed = 4;

OrderedJson cuts_json(const PairCuts& cuts) {
  return {{"words", cuts.words},
          {"right", json_number(cuts.right)},
          {"without_true", json_number(cuts.without_true)},
          {"without_others", json_number(cuts.without_others)},
          {"probability", json_number(cuts.probability)},
          {"probability_without_true", json_number(cuts.probability_without_true)},
          {"probability_without_others", json_number(cuts.probability_without_others)}};
}

OrderedJson pair_check_json(const std::string& model, const PairCheck& check) {
  return {{"model", model},
          {"pairs", check.pairs},
          {"loss_nats_per_pair", json_number(check.loss_nats_per_pair)},
          {"entropy_nats_per_pair", json_number(check.entropy_nats_per_pair)},
          {"ratio", json_number(check.loss_nats_per_pair / check.entropy_nats_per_pair)},
          {"bleu", json_number(check.bleu)},
          {"exact", json_number(check.exact)},
          {"grammatical", json_number(check.grammatical)},
          {"heads", head_alignments_json(check.heads)},
          {"diagonal_error_rate", json_number(check.diagonal_error_rate)},
          {"cuts",
           {{"pairs", check.cut_pairs},
            {"all_words", cuts_json(check.all_words)},
            {"content_words", cuts_json(check.content_words)}}}};
}

std::string as_head(const HeadAlignment& head) {
  return fmt::format("cross.L{}H{}", head.layer, head.head);
}

std::string measures_text(const PairCheck& check, const Ink& ink) {
  Table table({{"measured", Align::left}, {"", Align::right}, {"", Align::left}});
  table.add({"loss per pair", ink.bold(fmt::format("{:.3f}", check.loss_nats_per_pair)),
             ink.quiet(fmt::format("nats; at best {:.3f}, the entropy: {:.3f} times",
                                   check.entropy_nats_per_pair,
                                   check.loss_nats_per_pair / check.entropy_nats_per_pair))});
  table.add({"right translations", ink.bold(percent(check.grammatical)),
             ink.quiet("that the grammar makes of the source")});
  table.add({"the pair's own", ink.bold(percent(check.exact)),
             ink.quiet("of several that are right, chosen at random")});
  table.add({"BLEU", ink.bold(fmt::format("{:.2f}", check.bleu)),
             ink.quiet("of greedy translations, against the pairs' own")});
  return table.text(ink);
}

std::string alignments_text(const PairCheck& check, const Ink& ink) {
  Table table({{"head", Align::left},
               {"error rate", Align::right},
               {"precision", Align::right},
               {"recall", Align::right}});
  for (const HeadAlignment& head :
       std::span(check.heads).first(std::min(heads_listed, check.heads.size()))) {
    table.add({as_head(head), ink.bold(percent(head.counts.error_rate())),
               percent(head.counts.precision()), percent(head.counts.recall())});
  }
  table.add({"by place alone", percent(check.diagonal_error_rate), "", ""});
  return table.text(ink);
}

std::string cuts_text(const PairCheck& check, const Ink& ink) {
  Table table({{"words", Align::left},
               {"", Align::right},
               {"right", Align::right},
               {"true edges cut", Align::right},
               {"others cut", Align::right}});
  const auto add = [&](const char* name, const PairCuts& cuts) {
    table.add({name, grouped(cuts.words), percent(cuts.right), ink.bold(percent(cuts.without_true)),
               percent(cuts.without_others)});
  };
  add("all", check.all_words);
  add("content words", check.content_words);
  return table.text(ink);
}

void print_pair_check(const std::string& model, const PairCheck& check) {
  const Ink ink(standard_output());
  print("\n" + ink.title("Translator check") +
        ink.quiet(fmt::format("  {}, {} pairs\n\n", model, grouped(check.pairs))) +
        measures_text(check, ink));
  print("\n" + ink.title("Alignment of words by heads of cross-attention") + "\n\n" +
        alignments_text(check, ink));
  print("\n" + ink.title("Words with cross-attention cut") +
        ink.quiet(fmt::format("  {} pairs; to the true source words, and to as many others\n\n",
                              grouped(check.cut_pairs))) +
        cuts_text(check, ink));
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

void check_translator(const PairChecking& options) {
  const LoadedModel translator = load_translator(options.model);
  ProgressLine line;
  const PairCheck check = check_pairs(translator.transformer, translator.tokenizers(),
                                      {.pairs = options.pairs,
                                       .cut_pairs = options.cut_pairs,
                                       .seed = options.seed,
                                       .progress = line.callback(),
                                       .stop = interrupt_flag()});
  line.clear();
  if (options.json) return print_json(pair_check_json(translator.name, check));
  print_pair_check(translator.name, check);
}

}  // namespace heed::cli
