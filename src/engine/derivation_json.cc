// A derivation as a document: its largest terms, and what the others add up to.
#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "engine/derivation.h"

namespace heed {

double Derivation::sum() const {
  double total = bias;
  for (const DerivationTerm& term : terms) total += term.value;
  return total;
}

OrderedJson derivation_json(Derivation derivation, std::size_t most) {
  std::vector<DerivationTerm>& terms = derivation.terms;
  const std::size_t count = terms.size();
  std::ranges::stable_sort(terms, [](const DerivationTerm& a, const DerivationTerm& b) {
    return std::abs(a.value) > std::abs(b.value);
  });
  double rest = 0;
  for (std::size_t i = std::min(most, count); i < count; ++i) rest += terms[i].value;
  terms.resize(std::min(most, count));
  OrderedJson rows = OrderedJson::array();
  for (const DerivationTerm& term : terms) {
    rows.push_back({{"label", term.label},
                    {"left", json_number(term.left)},
                    {"right", json_number(term.right)},
                    {"value", json_number(term.value)}});
  }
  return {{"name", derivation.name},
          {"value", json_number(static_cast<float>(derivation.value))},
          {"formula", derivation.formula},
          {"latex", derivation.latex},
          {"operation", derivation.operation},
          {"terms", std::move(rows)},
          {"count", count},
          {"rest", json_number(rest)},
          {"bias", json_number(derivation.bias)}};
}

}  // namespace heed
