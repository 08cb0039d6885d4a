// The head that a view shows where nobody chose one, and why.
#include <fmt/format.h>

#include <regex>
#include <string>

#include "cli/attend.h"
#include "cli/output.h"
#include "cli/terminal/text.h"
#include "engine/views/token_json.h"

namespace heed::cli {
namespace {

std::string told_of(const AttendedTexts& text, const ShownEdge& edge) {
  const auto name = [&](const TokenChange& change) {
    return fit(visible(text.model.token_bytes(change.token)), 16);
  };
  std::string says =
      fmt::format("{}ith the edge to {} cut, {} goes from {} to {}",
                  edge.decides() ? "W" : "No single edge decides this: w",
                  fit(text.label(edge.effect.edge.key.begin, 24), 20), name(edge.likeliest),
                  percent(edge.likeliest.before), percent(edge.likeliest.after));
  if (edge.decides() && !edge.gained.empty()) {
    const TokenChange& gained = edge.gained.front();
    says += fmt::format(", and {} from {} to {}", name(gained), percent(gained.before),
                        percent(gained.after));
  }
  return says + ".";
}

// Heads as sentences name them: "block 4, head 1" for "L4H1".
std::string in_words(const std::string& sentences) {
  static const std::regex name("(^|[.!?] )?\\bL([0-9]+)H([0-9]+)\\b");
  std::string text;
  auto at = sentences.cbegin();
  for (std::sregex_iterator found(sentences.begin(), sentences.end(), name), end; found != end;
       ++found) {
    text.append(at, (*found)[0].first);
    text += fmt::format("{}{} {}, head {}", found->str(1), (*found)[1].matched ? "Block" : "block",
                        found->str(2), found->str(3));
    at = (*found)[0].second;
  }
  return text.append(at, sentences.cend());
}

}  // namespace

std::vector<TokenRun> shown_keys(const AttendedTexts& text) {
  if (!splits_characters(text.target_bytes)) return single_tokens(text.size());
  return token_runs(text.target_words);
}

std::string why_shown(const AttendedTexts& text, const HeadToShow& shown) {
  if (!shown.example.empty()) {
    return fmt::format("The example “{}” is about this head. {}", shown.example,
                       in_words(shown.caption));
  }
  return shown.edge ? told_of(text, *shown.edge) : "";
}

}  // namespace heed::cli
