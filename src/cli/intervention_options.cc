#include "cli/intervention_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "engine/edits.h"
#include "microscope/intervene/intervention_text.h"

namespace heed::cli {
namespace {

std::vector<float> read_vector(const std::string& file) {
  const Json document = parse_json(read_text_file(file), file);
  const auto is_number = [](const Json& value) { return value.is_number(); };
  require(document.is_array() && !document.empty() && std::ranges::all_of(document, is_number),
          ErrorCode::invalid_argument, "'{}' is not a JSON list of numbers such as [0.5, -1.25]",
          file);
  return document.get<std::vector<float>>();
}

// A model, the texts of the passes that are changed, and how other texts are read.
struct EditedRun {
  const Architecture& architecture;
  Texts texts;
  TextLengths lengths;  // of the positions that may be changed
  std::int64_t first_position = 0;
  std::function<Texts(const std::string&)> encode;
  std::function<Texts(const std::string&)> encode_part;  // of steering
};

// The options as the library's edits.
class EditList {
 public:
  EditList(const InterventionOptions& options, const EditedRun& run)
      : options_(options), run_(run) {}

  std::vector<Edit> make() {
    if (options_.renormalise && options_.cut.empty() && options_.cut_words.empty()) {
      fail_usage("--renormalise needs --cut or --cut-words");
    }
    const CutEdges::Rest rest =
        options_.renormalise ? CutEdges::Rest::renormalised : CutEdges::Rest::kept;
    for (const std::string& where : options_.ablate) add(where, SetZero{});
    for (const std::string& where : options_.mean)
      add(where, SetMean{{text(options_.mean_text, "--mean-text")}});
    for (const std::string& option : options_.scale) {
      const auto [where, factor] = parse_assignment(option, "--scale L2H3=0.5");
      add(where, ScaleBy{parse_factor(factor)});
    }
    for (const std::string& option : options_.add) {
      const auto [where, file] = parse_assignment(option, "--add L2.mlp=FILE");
      add(where, AddVector{read_vector(file)});
    }
    add_steering();
    for (const std::string& where : options_.replace) replace(where);
    for (const std::string& where : options_.freeze) {
      add_to_patterns(where, FreezePattern{text(options_.freeze_text, "--freeze-text")});
    }
    for (const std::string& option : options_.cut) {
      HeadEdges cut = parse_edges(option);
      for (const InterventionPoint& pattern : pattern_points(run_.architecture, cut.head)) {
        require_edges(pattern, cut.edges, run_.lengths, option);
      }
      add_to_patterns(cut.head, CutEdges{std::move(cut.edges), rest});
    }
    if (!options_.cut_words.empty() && run_.texts.target.empty()) {
      fail_usage("--cut-words needs the words of a target: give one to heed attend or heed trace");
    }
    for (const std::string& option : options_.cut_words) {
      const HeadEdges cut = parse_edges(option);
      for (const auto& [query, key] : cut.edges) {
        add_to_patterns(cut.head, CutWords{run_.texts, query, key, rest});
      }
    }
    for (const std::string& option : options_.mask) {
      const auto [where, kind] = parse_assignment(option, "--mask encoder=causal");
      add_to_patterns(where, parse_mask(kind));
    }
    return std::move(edits_);
  }

 private:
  template <class Change>
  void add(const std::string& where, Change change) {
    add_at(where, parse_points(run_.architecture, where), std::move(change));
  }
  template <class Change>
  void add_to_patterns(const std::string& where, Change change) {
    add_at(where, pattern_points(run_.architecture, where), std::move(change));
  }
  template <class Change>
  void add_at(const std::string& where, const std::vector<InterventionPoint>& points,
              Change change) {
    for (const InterventionPoint& selected : points) {
      require_positions(selected, run_.lengths, where);
      require(selected.where.last_position >= run_.first_position, ErrorCode::invalid_argument,
              "'{}' ends before position {}, where --edit-from-step begins", where,
              run_.first_position);
    }
    edits_.push_back({where, std::move(change), run_.first_position});
  }

  // `option` names the text where none is given and there is no text itself.
  Texts text(const std::string& given, const char* option) const {
    if (!given.empty()) return run_.encode(given);
    if (run_.texts.target.empty()) fail_usage(fmt::format("give a {} TEXT", option));
    return run_.texts;
  }

  void add_steering() {
    if (options_.steer.empty()) return;
    if (options_.steer_to.empty()) fail_usage("--steer needs a --steer-to TEXT to move towards");
    for (const std::string& option : options_.steer) {
      const auto [where, factor] = parse_assignment(option, "--steer resid_pre2=4");
      SteerBy steer{.factor = parse_factor(factor), .toward = run_.encode_part(options_.steer_to)};
      if (!options_.steer_from.empty()) steer.away = run_.encode_part(options_.steer_from);
      add(where, std::move(steer));
    }
  }

  // Values go to the position that they come from, so that both texts must have it.
  void replace(const std::string& where) {
    if (options_.replace_text.empty()) fail_usage("--replace needs a --replace-text TEXT");
    Texts other = run_.encode(options_.replace_text);
    for (const InterventionPoint& selected : parse_points(run_.architecture, where)) {
      const std::int64_t theirs = TextLengths::of(other).rows(selected.point);
      const std::int64_t own = run_.texts.target.empty()
                                   ? theirs  // of each source that is translated
                                   : TextLengths::of(run_.texts).rows(selected.point);
      const bool open = selected.where.last_position == Selection{}.last_position;
      if (open ? theirs == own : selected.where.last_position < theirs) continue;
      fail_usage(
          fmt::format("--replace-text has {} tokens and the text {}: choose positions "
                      "that both have, such as {}@{}",
                      theirs, own, where.substr(0, where.find('@')), std::min(theirs, own) - 1));
    }
    add(where, TakeFromText{std::move(other)});
  }

  const InterventionOptions& options_;
  const EditedRun& run_;
  std::vector<Edit> edits_;
};

// The text of a model of one text; of a translator "SOURCE ||| TARGET", or a source alone with its
// translation.
Texts read_texts(const LoadedModel& model, const std::string& text) {
  if (!model.is_translator()) return {.source = {}, .target = model.encode(text)};
  constexpr std::string_view between = "|||";
  const std::size_t at = text.find(between);
  std::vector<std::int32_t> source = model.encode_source(text.substr(0, at));
  if (at == std::string::npos) {
    return translated_pair(model, std::move(source), interrupt_flag()).tokens;
  }
  return {std::move(source), model.encode_target(text.substr(at + between.size()))};
}

TextLengths edited_lengths(const LoadedModel& model, const Texts& texts,
                           const EditedPositions& edited) {
  TextLengths lengths = TextLengths::of(texts);
  if (edited.end > 0) lengths.target = edited.end;
  if (lengths.target > 0 || !model.is_translator()) return lengths;
  return {model.architecture().encoder().context, model.architecture().decoder().context};
}

}  // namespace

const char* const intervention_group = "Interventions";
const char* const intervention_footer =
    "POINT is a head (L2H3, or its points L2H3.q, .k, .v, .z, .scores, .pattern), a neuron "
    "(L2N17), a block (L2), one of its branches (L2.attn, L2.mlp) or a point by name (resid_pre2, "
    "blocks.*.hook_mlp_out); in a translator, after encoder, decoder or cross: cross.L1H2, "
    "decoder.L1.mlp. A suffix @5, @3-7 or @4- selects positions. HEAD is a head, a block, or "
    "self, encoder, decoder or cross: all heads of an attention. TEXT of a translator is a source, "
    "or 'SOURCE ||| TARGET'.";

std::array<const std::vector<std::string>*, 10> InterventionOptions::all() const {
  return {&ablate, &mean, &scale, &add, &steer, &replace, &freeze, &cut, &cut_words, &mask};
}

bool InterventionOptions::any() const {
  return std::ranges::any_of(all(), [](const auto* points) { return !points->empty(); });
}

bool InterventionOptions::name_two_texts() const {
  const auto names_stack = [](const std::string& point) {
    return point.starts_with("encoder") || point.starts_with("decoder") ||
           point.starts_with("cross");
  };
  return std::ranges::any_of(
      all(), [&](const auto* points) { return std::ranges::any_of(*points, names_stack); });
}

std::string InterventionOptions::summary() const {
  std::string text;
  const auto tell = [&text](const char* verb, const std::vector<std::string>& points,
                            const std::string& after = "") {
    for (const std::string& point : points) {
      text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", verb, point, after);
    }
  };
  const auto quoted = [](const char* word, const std::string& given) {
    return given.empty() ? "" : fmt::format(" {} “{}”", word, given);
  };
  tell("ablate", ablate);
  tell("mean", mean, quoted("over", mean_text));
  tell("scale", scale);
  tell("add", add);
  tell("steer", steer, quoted("to", steer_to) + quoted("from", steer_from));
  tell("replace", replace, quoted("from", replace_text));
  tell("freeze", freeze, quoted("at", freeze_text));
  tell("cut", cut, renormalise ? " renormalised" : "");
  tell("cut words", cut_words, renormalise ? " renormalised" : "");
  tell("mask", mask);
  return text;
}

void add_intervention_options(Command command, InterventionOptions& options) {
  const auto add = [&command](const char* name, std::vector<std::string>& items, const char* type,
                              const char* description, char values_after = '\0') {
    add_list_option(command, name, items, description, values_after)
        ->type_name(type)
        ->group(intervention_group);
  };
  add("--ablate", options.ablate, "POINT,…", "Set activations to zero");
  add("--mean", options.mean, "POINT,…", "Replace activations by their mean over --mean-text");
  add("--scale", options.scale, "POINT=X,…", "Multiply activations by X", '=');
  add("--add", options.add, "POINT=FILE,…", "Add the vector in a JSON file", '=');
  add("--steer", options.steer, "POINT=X,…",
      "Add X times the difference of --steer-to and --steer-from", '=');
  add("--replace", options.replace, "POINT,…",
      "Patch in activations from --replace-text, position by position");
  add("--freeze", options.freeze, "POINT,…", "Keep attention patterns as in --freeze-text");
  add("--cut", options.cut, "HEAD:Q>K,…", "Cut a head's edges from query to key positions", ':');
  add("--cut-words", options.cut_words, "HEAD:Q>K,…",
      "Cut the edges from word Q, from 0, to word K", ':');
  add("--mask", options.mask, "HEAD=KIND,…", "Give attention a causal mask, or none", '=');
  const auto add_text = [&command](const char* name, std::string& text, const char* description) {
    command.add_option(name, text, description)->type_name("TEXT")->group(intervention_group);
  };
  add_text("--mean-text", options.mean_text, "Take --mean over this text [the text itself]");
  add_text("--steer-to", options.steer_to, "Steer towards this text");
  add_text("--steer-from", options.steer_from, "Steer away from this text [zero]");
  add_text("--replace-text", options.replace_text, "Take --replace from this text");
  add_text("--freeze-text", options.freeze_text, "Take --freeze from this text [the text itself]");
  command.add_flag("--renormalise", options.renormalise, "Rescale rows to sum to one after cuts")
      ->group(intervention_group);
  command.footer(intervention_footer);
}

std::vector<Edit> make_edits(const InterventionOptions& options, const LoadedModel& model,
                             const Texts& texts, const EditedPositions& edited) {
  const auto read = [&](const std::string& text) { return read_texts(model, text); };
  const auto read_part = [&](const std::string& text) {
    return model.is_translator() ? read(text) : Texts{.target = model.encode_part(text)};
  };
  const EditedRun run{.architecture = model.architecture(),
                      .texts = texts,
                      .lengths = edited_lengths(model, texts, edited),
                      .first_position = edited.first,
                      .encode = read,
                      .encode_part = read_part};
  return EditList(options, run).make();
}

std::unique_ptr<Interventions> make_interventions(const InterventionOptions& options,
                                                  const LoadedModel& model, const Texts& texts,
                                                  const EditedPositions& edited) {
  const std::vector<Edit> edits = make_edits(options, model, texts, edited);
  if (edits.empty()) return nullptr;
  return std::make_unique<Interventions>(model.architecture(),
                                         resolve_edits(model.transformer, edits, words_of(model)));
}

}  // namespace heed::cli
