// heed tour: a model on one sentence, in one screen.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "base/json.h"
#include "cli/arguments.h"
#include "cli/attend.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/terminal/table.h"
#include "cli/terminal/text.h"
#include "cli/unread.h"
#include "engine/views/reading_json.h"
#include "engine/views/report_json.h"
#include "engine/views/token_json.h"
#include "generate/generator.h"
#include "microscope/intervene/edge_effects.h"
#include "model/parameter_count.h"

namespace heed::cli {
namespace {

constexpr const char* default_sentence = "Late one evening, a fluffy blue hare";
constexpr std::size_t next_words = 5;
constexpr std::size_t heads_shown = 4;
constexpr std::size_t row_tokens = 6;
constexpr int lines_of_text = 5;

struct TourOptions {
  std::string model = "starter";
  TextOptions text;
  std::int64_t length = 60;
  bool json = false;
};

std::vector<Candidate> likeliest_next(const LoadedModel& model,
                                      const std::vector<std::int32_t>& tokens) {
  Session session(model.transformer,
                  std::min(std::ssize(tokens), model.transformer.specification().context));
  auto candidates = trace_candidates(session.feed(tokens), SamplingOptions::unmodified(), tokens);
  candidates.resize(std::min(candidates.size(), next_words));
  return candidates;
}

GenerationResult continue_text(const TourOptions& options, const LoadedModel& model,
                               const std::vector<std::int32_t>& tokens) {
  return generate(model.transformer, model.tokenizer.get(), tokens,
                  {.max_new_tokens = options.length,
                   .overflow = ContextOverflow::shift_window,
                   .stop = interrupt_flag()});
}

// The attention of the last word in the head of the edge that the next token rests on.
struct TokenTableRow {
  TextWord word;
  HeadToShow shown;
  std::vector<std::int64_t> positions;  // those with the largest weights, the largest first
};

TokenTableRow last_word_row(const AttendedTexts& text) {
  const std::vector<TextWord> words = words_of(text.target_bytes);
  TokenTableRow row{
      .word = words.empty() ? TextWord{"", text.size() - 1, text.size()} : words.back(),
      .shown = {},
      .positions = {}};
  row.shown = head_to_show(text.model, text.tokens(),
                           {.word = {row.word.begin, row.word.end}, .keys = shown_keys(text)},
                           interrupt_flag());
  const auto& [layer, head] = row.shown.head;
  const Tensor<float> pattern = text.pattern(only_site, layer, head);
  const std::span<const float> weights = pattern.view()[row.word.last()].span();
  for (std::int64_t s = 0; s <= row.word.last(); ++s) row.positions.push_back(s);
  std::ranges::stable_sort(row.positions, std::greater{},
                           [&](std::int64_t s) { return weights[static_cast<std::size_t>(s)]; });
  row.positions.resize(std::min(row.positions.size(), row_tokens));
  return row;
}

class Tour {
 public:
  Tour(const AttendedTexts& text, const Screen& screen) : text_(text), screen_(screen) {}

  void introduce() const {
    const StackSpecification& config = text_.model.transformer.specification();
    print("\n" + ink().title("heed") +
          ink().quiet(fmt::format("  model {}: {} parameters, {} blocks of {} heads\n",
                                  fit(text_.model.name, 24),
                                  short_count(static_cast<double>(count_parameters(config).total)),
                                  config.layers, config.heads())));
  }

  void show_tokens() const {
    heading("Tokens of the text", counted(text_.size(), "token"));
    constexpr std::array<Rgb, 2> grounds{{{214, 228, 255}, {255, 226, 201}}};
    int column = 0;
    std::string line = "  ";
    for (int i = 0; i < text_.size(); ++i) {
      std::string piece = text_.label(i, 24);
      if (!ink().has_colours() && i > 0) piece = "|" + piece;
      if (column + display_width(piece) > screen_.width() - 3) {
        line += "\n  ";
        column = 0;
      }
      line += ink().paint(piece, {0, 0, 0}, grounds[i % grounds.size()]);
      column += display_width(piece);
    }
    print(line + "\n");
  }

  void show_next(const std::vector<Candidate>& candidates) const {
    heading("Next token", "heed predict shows every filter");
    for (const Candidate& candidate : candidates) {
      const double probability = candidate.probability(SamplingStage::model);
      const std::string name = fit(visible(text_.model.token_bytes(candidate.token)), 16);
      print("  " + ink().bold(pad_right(name, 16)) + " " + pad_left(percent(probability), 6) +
            "  " + ink().paint(bar(probability, bar_room(28)), colour::blue) + "\n");
    }
  }

  void show_heads(const std::vector<RankedHead>& heads) const {
    heading("Most selective heads", "heed attend draws every head");
    print_selective_heads(text_, heads, heads_shown, screen_);
  }

  void show_row(const TokenTableRow& row) const {
    heading(fmt::format("Attention of “{}”", fit(row.word.text, 20)),
            fmt::format("block {}, head {}; heed attend --word shows every number",
                        row.shown.head.layer, row.shown.head.head));
    const Tensor<float> pattern =
        text_.pattern(only_site, row.shown.head.layer, row.shown.head.head);
    for (const std::int64_t position : row.positions) {
      const double weight = pattern.view()(row.word.last(), position);
      print("  " + pad_right(fit(text_.described(position), 30), 30) + " " +
            pad_left(percent(weight), 6) + "  " +
            ink().paint(bar(weight, bar_room(42)), colour::orange) + "\n");
    }
    for (const std::string& line : wrap(why_shown(text_, row.shown), screen_.width() - 4)) {
      print("  " + ink().quiet(line) + "\n");
    }
  }

  void show_continuation(const GenerationResult& result) const {
    heading("A continuation", "heed generate continues any prompt");
    std::string told;
    for (const std::string& bytes : text_.target_bytes) told += bytes;
    std::vector<std::string> lines = wrap(printable_lines(told + result.text), screen_.width() - 4);
    if (lines.size() > lines_of_text) {
      lines.resize(lines_of_text);
      lines.back() = fit(lines.back() + " …", screen_.width() - 2);
    }
    for (const std::string& line : lines) print("  " + line + "\n");
    print("\n");
  }

 private:
  const Ink& ink() const { return screen_.ink; }
  int bar_room(int taken) const { return std::clamp(screen_.width() - taken, 8, 48); }

  void heading(std::string_view title, std::string_view note) const {
    print("\n" + ink().bold(title) + "  " + ink().quiet(note) + "\n");
  }

  const AttendedTexts& text_;
  const Screen& screen_;
};

OrderedJson tour_json(const AttendedTexts& text, const std::vector<Candidate>& candidates,
                      const std::vector<RankedHead>& heads, const TokenTableRow& row,
                      const GenerationResult& result) {
  OrderedJson next = OrderedJson::array();
  for (const Candidate& candidate : candidates) {
    OrderedJson token = token_json(text.model, candidate.token);
    token["probability"] = json_number(candidate.probability(SamplingStage::model));
    next.push_back(std::move(token));
  }
  OrderedJson selective = OrderedJson::array();
  for (const RankedHead& head : std::span(heads).first(std::min(heads_shown, heads.size()))) {
    selective.push_back(head_statistics_json(head));
  }
  OrderedJson weights = OrderedJson::array();
  const Tensor<float> pattern = text.pattern(only_site, row.shown.head.layer, row.shown.head.head);
  for (std::int64_t s = 0; s <= row.word.last(); ++s) {
    weights.push_back(json_number(pattern.view()(row.word.last(), s)));
  }
  return {{"model", text.model.name},
          {"tokens", tokens_json(text.model, text.tokens())},
          {"read", read_json(text.model.reading)},
          {"unread", unread_json(unread_in(text.model, text.tokens()))},
          {"next", std::move(next)},
          {"heads", std::move(selective)},
          {"word",
           {{"word", row.word.text},
            {"position", row.word.last()},
            {"layer", row.shown.head.layer},
            {"head", row.shown.head.head},
            {"edge", row.shown.edge ? shown_edge_json(text.model, text.tokens(), *row.shown.edge)
                                    : OrderedJson(nullptr)},
            {"weights", std::move(weights)}}},
          {"continuation", result.text}};
}

void tour(TourOptions options) {
  const LoadedModel model = load_model(options.model);
  if (!options.text.any()) options.text.text = default_sentence;
  const AttendedTexts text(model,
                           {.tokens = {.source = {}, .target = read_tokens(options.text, model)}});
  const auto candidates = likeliest_next(model, text.tokens());
  const std::vector<RankedHead> heads = ranked_heads(text, {only_site});
  const TokenTableRow row = last_word_row(text);
  const GenerationResult result = continue_text(options, model, text.tokens());
  if (options.json) return print_json(tour_json(text, candidates, heads, row, result));

  tell_of_unread(model, text.tokens());
  const Screen screen;
  const Tour shown(text, screen);
  shown.introduce();
  shown.show_tokens();
  shown.show_next(candidates);
  shown.show_heads(heads);
  shown.show_row(row);
  shown.show_continuation(result);
}

}  // namespace

void add_tour_command(Command app) {
  Command command = add_command(app, "tour", "Show what a model does with a sentence");
  auto options = std::make_shared<TourOptions>();
  add_model_option(*command, options->model);
  add_text_options(*command, options->text);
  command->get_option("TEXT")->description("The text, as one argument [an example sentence]");
  command->add_option("-n,--max-tokens", options->length, "Continue by at most N tokens")
      ->capture_default_str()
      ->check(at_least(1));
  add_json_option(*command, options->json);
  command->callback([options] { tour(*options); });
}

}  // namespace heed::cli
