// Edits of heed.interventions as those of the library.
#include "bindings.h"
#include "heed/intervention.h"

namespace heed::python {
namespace {

using SourceAndTargetIds = std::pair<std::vector<std::int32_t>, std::vector<std::int32_t>>;

Texts texts_of(const py::handle& pair) {
  auto [source, target] = pair.cast<SourceAndTargetIds>();
  return {.source = std::move(source), .target = std::move(target)};
}

Texts texts_at(const py::dict& edit, const char* name) {
  return edit.contains(name) ? texts_of(edit[name]) : Texts{};
}

CutEdges::Rest rest_of(const py::dict& edit) {
  return edit["renormalise"].cast<bool>() ? CutEdges::Rest::renormalised : CutEdges::Rest::kept;
}

Edit edit_of(const py::dict& edit) {
  const auto kind = edit["kind"].cast<std::string>();
  Edit made{.where = edit["where"].cast<std::string>(),
            .first_position = edit["first_position"].cast<std::int64_t>()};
  if (kind == "ablate") {
    made.change = SetZero{};
  } else if (kind == "scale") {
    made.change = ScaleBy{edit["factor"].cast<float>()};
  } else if (kind == "add") {
    made.change = AddVector{edit["vector"].cast<std::vector<float>>()};
  } else if (kind == "steer") {
    made.change = SteerBy{.factor = edit["factor"].cast<float>(),
                          .toward = texts_at(edit, "toward"),
                          .away = texts_at(edit, "away")};
  } else if (kind == "set") {
    made.change = SetRow{edit["vector"].cast<std::vector<float>>()};
  } else if (kind == "mean") {
    SetMean mean;
    for (const py::handle& text : edit["texts"]) mean.texts.push_back(texts_of(text));
    made.change = std::move(mean);
  } else if (kind == "replace") {
    made.change = TakeFromText{texts_at(edit, "text")};
  } else if (kind == "freeze") {
    made.change = FreezePattern{texts_at(edit, "text")};
  } else if (kind == "cut") {
    CutEdges cut{.edges = {}, .rest = rest_of(edit)};
    for (const auto& [query, key] :
         edit["edges"].cast<std::vector<std::pair<std::int64_t, std::int64_t>>>()) {
      cut.edges.push_back({query, key});
    }
    made.change = std::move(cut);
  } else if (kind == "cut_words") {
    made.change = CutWords{.text = texts_at(edit, "text"),
                           .query = edit["query"].cast<std::int64_t>(),
                           .key = edit["key"].cast<std::int64_t>(),
                           .rest = rest_of(edit)};
  } else if (kind == "mask") {
    const auto mask = edit["mask"].cast<std::string>();
    if (mask != "causal" && mask != "none") {
      throw Error(ErrorCode::invalid_argument,
                  "the mask is '" + mask + "', expected causal or none");
    }
    made.change = SetMask{mask == "causal" ? SetMask::Kind::causal : SetMask::Kind::none};
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
