#include "microworld/goods.h"

#include <span>
#include <string>
#include <utility>

#include "microworld/tables.h"
#include "microworld/writer.h"

namespace heed::microworld {
namespace {

const AdjectiveTable<Condition>& conditions() {
  static const AdjectiveTable<Condition> all("conditions", [](const TableRow& row) {
    return Condition{.adjectives = adjectives_of<3>(row[0]),
                     .tail = row[1],
                     .price = row[2],
                     .fate = row[3],
                     .thanks = row[4]};
  });
  return all;
}

// Where the adjectives of a thing come from: conditions [begin, end) for each of them.
struct Range {
  std::size_t begin, end;
};
constexpr Range any = {0, 6}, value = {0, 2}, size = {2, 4}, age = {4, 6};

using Form = std::array<Range, 2>;
constexpr std::array<Form, 3> forms_of_two = {{{value, size}, {value, age}, {size, age}}};

std::vector<Range> choose_form(Writer& writer, std::size_t max_adjectives) {
  static constexpr std::array<double, 4> weights = {4.0 / 7, 1.0 / 7, 1.0 / 7, 1.0 / 7};
  if (max_adjectives == 1) return {any};
  const std::size_t option = writer.choose({.count = weights.size(), .weights = weights});
  if (option == 0) return {any};
  const Form& form = forms_of_two[option - 1];
  return {form.begin(), form.end()};
}

}  // namespace

Goods write_goods(Writer& writer, const GoodsOptions& options) {
  constexpr std::size_t synonyms = AdjectiveTable<Condition>::synonyms;
  const std::span<const std::string_view> adjectives = conditions().adjectives();
  const std::vector<Range> form = choose_form(writer, options.max_adjectives);
  NounPhrase phrase{.nouns = things(), .except = options.except};
  for (const auto& [begin, end] : form) {
    phrase.adjectives.push_back({adjectives.subspan(begin * synonyms, (end - begin) * synonyms)});
  }
  const ChosenWords words = write_noun_phrase(writer, phrase);
  const std::size_t noun_end = writer.offset();

  std::vector<const Condition*> found;
  std::vector<std::string_view> tails;
  for (std::size_t i = 0; i < form.size(); ++i) {
    found.push_back(&conditions()[form[i].begin + words.adjectives[i] / synonyms]);
    tails.push_back(found[i]->tail);
  }
  write_tails(writer, tails);
  Goods goods{.condition = found[0], .noun = words.noun};
  if (form.size() == 1 && writer.alive()) {
    goods.evidence = {writer.story().adjectives.back().adjectives.front(),
                      {noun_end + 1, writer.offset()}};
  }
  return goods;
}

void write_fate(Writer& writer, const Goods& goods, const Slots& slots) {
  const std::size_t begin = writer.offset();
  say(writer, goods.condition->fate, slots);
  if (!writer.alive() || goods.evidence.empty()) return;
  // The word before the first that no other condition has.
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> decided = {
      {{" and hid it", " from"}, {" and", " used"}, {" and", " smiled"}}};
  const std::string_view text = std::string_view(writer.story().text).substr(begin);
  for (const auto& [before, answer] : decided) {
    if (!text.starts_with(std::string(before) + std::string(answer))) continue;
    const std::size_t end = begin + before.size();
    const std::size_t word = begin + before.rfind(' ') + 1;
    writer.story().evidence.push_back({.subject = "fate",
                                       .word = {word, end},
                                       .evidence = goods.evidence,
                                       .answer = {end, end + answer.size()}});
  }
}

}  // namespace heed::microworld
