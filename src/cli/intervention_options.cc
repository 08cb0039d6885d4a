#include "cli/intervention_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "cli/arguments.h"
#include "cli/command.h"
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

// The options as the library's edits.
class EditList {
 public:
  EditList(const InterventionOptions& options, const LoadedModel& model,
           std::span<const std::int32_t> tokens, const EditedPositions& edited)
      : options_(options),
        model_(model),
        tokens_(tokens.begin(), tokens.end()),
        first_position_(edited.first),
        positions_(edited.end > 0 ? edited.end : std::ssize(tokens)) {}

  std::vector<Edit> make() {
    for (const std::string& where : options_.ablate) add(where, SetZero{});
    for (const std::string& where : options_.mean) add(where, SetMean{{text(options_.mean_text)}});
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
      add(where, FreezePattern{text(options_.freeze_text)});
    }
    for (const std::string& option : options_.cut) {
      HeadEdges cut = parse_edges(option);
      require_positions(cut, positions_, option);
      add(cut.head,
          CutEdges{std::move(cut.edges),
                   options_.renormalise ? CutEdges::Rest::renormalised : CutEdges::Rest::kept});
    }
    return std::move(edits_);
  }

 private:
  template <class Change>
  void add(std::string where, Change change) {
    for (const InterventionPoint& selected : parse_points(model_.gpt.specification(), where)) {
      const Selection& positions = selected.where;
      require_positions(positions, positions_, where);
      require(positions.last_position >= first_position_, ErrorCode::invalid_argument,
              "'{}' ends before position {}, where --edit-from-step begins", where,
              first_position_);
    }
    edits_.push_back({std::move(where), std::move(change), first_position_});
  }

  std::vector<std::int32_t> text(const std::string& given) const {
    return given.empty() ? tokens_ : model_.encode(given);
  }

  void add_steering() {
    if (options_.steer.empty()) return;
    if (options_.steer_to.empty()) fail_usage("--steer needs a --steer-to TEXT to move towards");
    for (const std::string& option : options_.steer) {
      const auto [where, factor] = parse_assignment(option, "--steer resid_pre2=4");
      SteerBy steer{.factor = parse_factor(factor),
                    .toward = model_.encode_part(options_.steer_to)};
      if (!options_.steer_from.empty()) steer.away = model_.encode_part(options_.steer_from);
      add(where, std::move(steer));
    }
  }

  // Values go to the position that they come from, so that both texts must have it.
  void replace(const std::string& where) {
    if (options_.replace_text.empty()) fail_usage("--replace needs a --replace-text TEXT");
    const std::vector<std::int32_t> other = model_.encode(options_.replace_text);
    for (const InterventionPoint& selected : parse_points(model_.gpt.specification(), where)) {
      const bool all = where.find('@') == std::string::npos;
      const bool open = selected.where.last_position == Selection{}.last_position;
      const bool fits = all || open ? other.size() == tokens_.size()
                                    : selected.where.last_position < std::ssize(other);
      if (!fits) {
        fail_usage(
            fmt::format("--replace-text has {} tokens and the text {}: choose positions "
                        "that both have, such as {}@{}",
                        other.size(), tokens_.size(), where.substr(0, where.find('@')),
                        std::min(other.size(), tokens_.size()) - 1));
      }
    }
    add(where, TakeFromText{other});
  }

  const InterventionOptions& options_;
  const LoadedModel& model_;
  std::vector<std::int32_t> tokens_;
  std::int64_t first_position_;
  std::int64_t positions_;
  std::vector<Edit> edits_;
};

}  // namespace

const char* const intervention_group = "Interventions";
const char* const intervention_footer =
    "POINT is a head (L2H3, or its points L2H3.q, .k, .v, .z, .scores, .pattern), a neuron "
    "(L2N17), a block (L2), one of its branches (L2.attn, L2.mlp) or a point by name (resid_pre2, "
    "blocks.*.hook_mlp_out). A suffix @5, @3-7 or @4- selects positions.";

bool InterventionOptions::any() const {
  return std::ranges::any_of(
      std::array{&ablate, &mean, &scale, &add, &steer, &replace, &freeze, &cut},
      [](const auto* texts) { return !texts->empty(); });
}

bool InterventionOptions::only_pairs() const {
  return mean.empty() && add.empty() && steer.empty() && replace.empty() && freeze.empty();
}

std::string InterventionOptions::summary() const {
  std::string text;
  const auto tell = [&text](const char* verb, const std::vector<std::string>& points,
                            const std::string& behind = "") {
    for (const std::string& point : points) {
      text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", verb, point, behind);
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
  return text;
}

void add_intervention_options(Command command, InterventionOptions& options) {
  const auto add = [&command](const char* name, std::vector<std::string>& items, const char* type,
                              const char* description, char values_behind = '\0') {
    add_list_option(command, name, items, description, values_behind)
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
  const auto add_text = [&command](const char* name, std::string& text, const char* description) {
    command.add_option(name, text, description)->type_name("TEXT")->group(intervention_group);
  };
  add_text("--mean-text", options.mean_text, "Take --mean over this text [the text itself]");
  add_text("--steer-to", options.steer_to, "Steer towards this text");
  add_text("--steer-from", options.steer_from, "Steer away from this text [zero]");
  add_text("--replace-text", options.replace_text, "Take --replace from this text");
  add_text("--freeze-text", options.freeze_text, "Take --freeze from this text [the text itself]");
  command.add_flag("--renormalise", options.renormalise, "Rescale rows to sum to one after --cut")
      ->group(intervention_group);
  command.footer(intervention_footer);
}

std::vector<Edit> make_edits(const InterventionOptions& options, const LoadedModel& model,
                             std::span<const std::int32_t> tokens, const EditedPositions& edited) {
  if (!options.any()) return {};
  return EditList(options, model, tokens, edited).make();
}

std::unique_ptr<Interventions> make_interventions(const InterventionOptions& options,
                                                  const LoadedModel& model,
                                                  std::span<const std::int32_t> tokens,
                                                  const EditedPositions& edited) {
  if (!options.any()) return nullptr;
  const std::vector<Edit> edits = make_edits(options, model, tokens, edited);
  return std::make_unique<Interventions>(model.gpt.specification(),
                                         resolve_edits(model.gpt, edits));
}

}  // namespace heed::cli
