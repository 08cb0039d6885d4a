// heed translate: sentences of one language into another, one a line.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/beam_tree_view.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/intervention_options.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/terminal/progress_line.h"
#include "cli/terminal/text.h"
#include "cli/unread.h"
#include "engine/embedded_files.h"
#include "engine/loaded_model.h"
#include "engine/long_texts.h"
#include "engine/searched_beams.h"
#include "engine/views/reading_json.h"
#include "engine/views/report_json.h"

namespace heed::cli {
namespace {

struct TranslateCallOptions {
  std::string model{embedded_translator_name};
  std::string dtype;
  std::string cache_type = "f32";
  std::optional<std::string> input;
  std::string file;
  BeamOptions search;
  InterventionOptions interventions;
  std::string out;
  std::string long_lines = "refuse";
  bool tree = false;
  bool json = false;
};

struct SourceLines {
  std::vector<std::string> lines;
  bool is_argument = false;  // one text of the command line
};

std::vector<std::string> lines_of(const std::string& text) {
  const std::vector<std::string_view> lines = text_lines(text);
  return {lines.begin(), lines.end()};
}

// A file's name stands for its lines.
bool names_a_file(const std::string& input) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(input, ignored);
}

SourceLines read_sources(const TranslateCallOptions& options) {
  if (options.input && !options.file.empty()) {
    fail_usage("give one of TEXT and --text FILE, not both");
  }
  if (!options.file.empty()) return {lines_of(read_text_file(options.file))};
  if (!options.input || *options.input == "-") {
    return {lines_of(read_standard_input(
        "there is nothing to translate: give TEXT, a file's name or a pipe, one sentence a line"))};
  }
  if (names_a_file(*options.input)) return {lines_of(read_text_file(*options.input))};
  return {{*options.input}, true};
}

bool is_blank_line(const std::string& line) {
  return line.find_first_not_of(" \t\v\f") == std::string::npos;
}

// A line, or a part of one, and its hypotheses; none where it is blank.
struct TranslatedPart {
  std::size_t line = 0;
  std::size_t part = 0;
  std::size_t parts = 1;  // of the line
  bool is_cropped = false;
  std::string source;
  std::vector<TokenHypothesis> hypotheses;
};

// Says which lines were longer than the encoder reads.
void tell_of_long_lines(const LoadedModel& translator, const std::vector<TranslatedPart>& parts) {
  std::vector<std::size_t> numbers;
  bool is_cropped = false;
  for (const TranslatedPart& each : parts) {
    if (each.part > 0 || (each.parts == 1 && !each.is_cropped)) continue;
    numbers.push_back(each.line + 1);
    is_cropped = each.is_cropped;
  }
  if (numbers.empty()) return;
  constexpr std::size_t max_shown = 10;
  const std::size_t shown = std::min(numbers.size(), max_shown);
  say(fmt::format(
      "note: {} {} more than the {} tokens that the encoder reads and {} {}: {}{}",
      counted(std::ssize(numbers), "line"), numbers.size() == 1 ? "has" : "have",
      translator.architecture().encoder().context, numbers.size() == 1 ? "was" : "were",
      is_cropped ? "cropped" : "split",
      fmt::join(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
      shown < numbers.size() ? ", …" : ""));
}

std::vector<TranslatedPart> translate_lines(const LoadedModel& translator,
                                            const SourceLines& sources,
                                            const TranslateCallOptions& options) {
  const LongTexts treatment = parse_long_texts(options.long_lines);
  SourceTokens tokens;
  std::vector<TranslatedPart> translated;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < sources.lines.size(); ++i) {
    const std::string& line = sources.lines[i];
    if (!sources.is_argument && is_blank_line(line)) {
      translated.push_back({.line = i, .source = line, .hypotheses = {}});
      continue;
    }
    const std::vector<std::string> parts = fitting_parts(translator, line, treatment);
    for (std::size_t part = 0; part < parts.size(); ++part) {
      tokens.add(translator.encode_source(parts[part], sources.is_argument
                                                           ? std::string("the text")
                                                           : fmt::format("line {}", i + 1)));
      places.push_back(translated.size());
      translated.push_back(
          {.line = i,
           .part = part,
           .parts = parts.size(),
           .is_cropped = treatment == LongTexts::crop && parts[part].size() < line.size(),
           .source = parts[part],
           .hypotheses = {}});
    }
  }
  tell_of_long_lines(translator, translated);
  ProgressLine progress;
  BeamOptions search = options.search;
  search.progress = progress.callback();
  search.stop = interrupt_flag();
  auto found = translator.translate(tokens, search);
  for (std::size_t i = 0; i < places.size(); ++i) {
    translated[places[i]].hypotheses = std::move(found[i]);
  }
  return translated;
}

// A translation is one line.
std::string in_one_line(std::string text) {
  std::ranges::replace_if(
      text, [](char letter) { return letter == '\n' || letter == '\r'; }, ' ');
  return text;
}

std::string plain_text(const LoadedModel& translator, const BeamOptions& search,
                       const std::vector<TranslatedPart>& translated) {
  std::string text;
  for (const auto& [line, part, parts, is_cropped, source, hypotheses] : translated) {
    if (search.n_best == 1) {
      text += hypotheses.empty() ? "" : in_one_line(translator.target_text(hypotheses[0].tokens));
      text += part + 1 < parts ? " " : "\n";
      continue;
    }
    for (const TokenHypothesis& hypothesis : hypotheses) {
      text += fmt::format("{}\t{:.4f}\t{}\n", line + 1, hypothesis.score,
                          in_one_line(translator.target_text(hypothesis.tokens)));
    }
  }
  return text;
}

OrderedJson document_of(const LoadedModel& translator, const BeamOptions& search,
                        const std::vector<TranslatedPart>& translated) {
  OrderedJson translations = OrderedJson::array();
  for (const TranslatedPart& each : translated) {
    OrderedJson translation{
        {"line", each.line + 1},
        {"source", each.source},
        {"unread", unread_json(unread_in(translator, each.source), UnreadFor::translation)}};
    if (each.is_cropped) translation["cropped"] = true;
    if (each.parts > 1) {
      translation["part"] = each.part + 1;
      translation["parts"] = each.parts;
    }
    translation["hypotheses"] = OrderedJson::array();
    for (const TokenHypothesis& hypothesis : each.hypotheses) {
      translation["hypotheses"].push_back(hypothesis_json(translator, hypothesis));
    }
    translations.push_back(std::move(translation));
  }
  return {{"model", translator.name},
          {"read", read_json(translator.reading)},
          {"beams", search.beams},
          {"length_penalty", search.length_penalty},
          {"translations", std::move(translations)}};
}

std::string translated_text(const LoadedModel& translator, const SourceLines& sources,
                            const TranslateCallOptions& options) {
  const BeamOptions& search = options.search;
  const std::vector<TranslatedPart> translated = translate_lines(translator, sources, options);
  return options.json ? document_of(translator, search, translated).dump() + "\n"
                      : plain_text(translator, search, translated);
}

// The search of one sentence, drawn or as a document.
std::string tree_text(const LoadedModel& translator, const SourceLines& sources,
                      const TranslateCallOptions& options) {
  const std::string& source = sources.lines.front();
  BeamOptions search = options.search;
  search.cache_type = translator.cache_type;
  search.stop = interrupt_flag();
  const SearchedBeams searched =
      search_beams(translator, translator.encode_source(source, "the text"), std::move(search));
  if (!options.json) {
    return draw_beam_tree(translator, source, searched,
                          options.out.empty() ? standard_output() : Terminal{});
  }
  OrderedJson document{
      {"model", translator.name},
      {"source", source},
      {"read", read_json(translator.reading)},
      {"unread", unread_json(unread_in(translator, source), UnreadFor::translation)}};
  document.update(searched_beams_json(translator, searched));
  return json_text(document) + "\n";
}

void require_one_sentence(const TranslateCallOptions& options, const SourceLines& sources) {
  if (sources.lines.size() != 1) {
    fail_usage(fmt::format("--tree draws the search of one sentence, and there are {} lines",
                           sources.lines.size()));
  }
  if (options.search.n_best != 1) {
    fail_usage("--tree shows every hypothesis that was found: --best has no effect beside it");
  }
  if (options.long_lines != "refuse") {
    fail_usage("--tree draws the search of a whole sentence: --long-lines has no effect beside it");
  }
}

void translate(TranslateCallOptions options) {
  BeamOptions& search = options.search;
  if (search.n_best > search.beams) {
    fail_usage(fmt::format("--best {} needs as many --beams, not {}", search.n_best, search.beams));
  }
  if (search.n_best > 1 && options.long_lines == "split") {
    fail_usage("--long-lines split joins the best translations of parts: it needs --best 1");
  }
  const LoadOptions load{.weights = parse_weight_type(options.dtype),
                         .cache = parse_key_value_type(options.cache_type)};
  const SourceLines sources = read_sources(options);
  if (options.tree) require_one_sentence(options, sources);
  const LoadedModel translator = load_translator(options.model, load);
  const auto editor = make_interventions(options.interventions, translator, {});
  search.editor = editor.get();
  if (!options.json) tell_of_unread(translator, fmt::format("{}", fmt::join(sources.lines, "\n")));
  const std::string text = options.tree ? tree_text(translator, sources, options)
                                        : translated_text(translator, sources, options);
  const bool is_plain = !options.tree && !options.json;
  if (options.out.empty()) return print(is_plain ? shown_text(text) : text);
  write_text_file(options.out, text);
}

}  // namespace

void add_translate_command(Command app) {
  Command command = add_command(app, "translate", "Translate sentences, one a line");
  auto options = std::make_shared<TranslateCallOptions>();
  command
      ->add_option("-m,--model", options->model,
                   "Load a translator: a directory, run, pulled name or \"translator\"")
      ->capture_default_str()
      ->type_name("MODEL");
  add_dtype_option(*command, options->dtype);
  add_cache_type_option(*command, options->cache_type);
  command
      ->add_option_function<std::string>(
          "TEXT", [options](const std::string& input) { options->input = input; },
          "A sentence, a file of them, or - for standard input [standard input]")
      ->type_name("TEXT|FILE|-");
  add_text_file_option(*command, options->file);
  BeamOptions& search = options->search;
  command->add_option("--beams", search.beams, "Keep N hypotheses at each step; 1: greedy")
      ->capture_default_str()
      ->check(between(1, 1024));
  command
      ->add_option("--length-penalty", search.length_penalty,
                   "Divide log-probabilities by length to the power of X")
      ->capture_default_str();
  command->add_option("--best", search.n_best, "Print the N best translations with their scores")
      ->capture_default_str()
      ->check(between(1, 1024));
  command->add_flag("--tree", options->tree, "Draw the beam search of one sentence as a tree");
  command
      ->add_option("-n,--max-tokens", search.max_length,
                   "End translations after N tokens [3 for each of the source, and 16]")
      ->check(at_least(1));
  command
      ->add_option("-b,--batch", search.batch_tokens,
                   "Decode sentences together up to N source tokens times --beams")
      ->capture_default_str()
      ->check(at_least(1));
  command
      ->add_option("--long-lines", options->long_lines,
                   "Refuse, crop or split lines longer than the encoder reads")
      ->capture_default_str()
      ->check(one_of(long_texts_names()))
      ->type_name("HOW");
  command->add_option("-o,--out", options->out, "Write to a file [standard output]")
      ->type_name("FILE");
  add_json_option(*command, options->json);
  add_intervention_options(*command, options->interventions);
  command->callback([options] { translate(*options); });
}

}  // namespace heed::cli
