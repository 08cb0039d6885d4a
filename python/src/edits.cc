// Edits of heed.interventions as those of the library.
#include "bindings.h"
#include "heed/intervention.h"

namespace heed::python {
namespace {

std::vector<std::int32_t> tokens_at(const py::dict& edit, const char* name) {
  return edit.contains(name) ? edit[name].cast<std::vector<std::int32_t>>()
                             : std::vector<std::int32_t>{};
}

Edit edit_of(const py::dict& edit) {
  const auto kind = edit["kind"].cast<std::string>();
  Edit made{.where = edit["where"].cast<std::string>(),
            .first_position = edit["first_position"].cast<std::int64_t>()};
  if (kind == "zero") {
    made.change = SetZero{};
  } else if (kind == "scale") {
    made.change = ScaleBy{edit["factor"].cast<float>()};
  } else if (kind == "add") {
    made.change = AddVector{edit["vector"].cast<std::vector<float>>()};
  } else if (kind == "steer") {
    made.change = SteerBy{.factor = edit["factor"].cast<float>(),
                          .toward = tokens_at(edit, "toward"),
                          .away = tokens_at(edit, "away")};
  } else if (kind == "set") {
    made.change = SetRow{edit["vector"].cast<std::vector<float>>()};
  } else if (kind == "mean") {
    made.change = SetMean{edit["texts"].cast<std::vector<std::vector<std::int32_t>>>()};
  } else if (kind == "take") {
    made.change = TakeFromText{tokens_at(edit, "tokens")};
  } else if (kind == "freeze") {
    made.change = FreezePattern{tokens_at(edit, "tokens")};
  } else if (kind == "cut") {
    CutEdges cut;
    for (const auto& [query, key] :
         edit["edges"].cast<std::vector<std::pair<std::int64_t, std::int64_t>>>()) {
      cut.edges.push_back({query, key});
    }
    if (edit["renormalise"].cast<bool>()) cut.rest = CutEdges::Rest::renormalised;
    made.change = std::move(cut);
  } else {
    throw Error(ErrorCode::invalid_argument, "there is no kind of edit '" + kind + "'");
  }
  return made;
}

}  // namespace

std::vector<Edit> edits_of(const std::vector<py::dict>& edits) {
  std::vector<Edit> all;
  for (const py::dict& edit : edits) all.push_back(edit_of(edit));
  return all;
}

}  // namespace heed::python
