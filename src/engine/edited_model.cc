// EditedModel: forward passes with an editor.
#include "engine/arrays.h"
#include "engine/edits.h"
#include "engine/model_parts.h"
#include "engine/model_passes.h"
#include "engine/traced_generation.h"
#include "heed/intervention.h"
#include "microscope/traces/activation_trace.h"

namespace heed {

struct EditedModel::Parts {
  const LoadedModel& model;
  Interventions editor;
};

EditedModel::EditedModel(const Model& model, const std::vector<Edit>& edits) {
  const LoadedModel& loaded = ModelAccess::loaded(model);
  parts_ = std::make_unique<Parts>(
      Parts{loaded, Interventions(loaded.gpt.config(), resolve_edits(loaded.gpt, edits))});
}
EditedModel::EditedModel(EditedModel&&) noexcept = default;
EditedModel& EditedModel::operator=(EditedModel&&) noexcept = default;
EditedModel::~EditedModel() = default;

Array EditedModel::logits(std::span<const std::int32_t> tokens) const {
  return next_logits(parts_->model, tokens, &parts_->editor);
}

Array EditedModel::all_logits(std::span<const std::int32_t> tokens) const {
  return heed::all_logits(parts_->model, tokens, &parts_->editor);
}

Array EditedModel::embeddings(std::span<const std::int32_t> tokens) const {
  return final_states(parts_->model, tokens, &parts_->editor);
}

std::vector<Model::Next> EditedModel::predict(std::span<const std::int32_t> tokens,
                                              const Model::Sampling& sampling,
                                              std::size_t most) const {
  return next_tokens(parts_->model, logits(tokens), tokens, {sampling, most});
}

Model::Generation EditedModel::generate(std::span<const std::int32_t> prompt,
                                        const Model::GenerateOptions& options,
                                        const Model::TextCallback& callback) const {
  return continue_prompt(parts_->model, prompt, options, callback, &parts_->editor);
}

Trace EditedModel::trace(std::span<const std::int32_t> tokens, const TraceRequest& request,
                         const GradientTarget& target) const {
  return with_shapes(trace_prompt(parts_->model.gpt, tokens, request, target, &parts_->editor));
}

Trace EditedModel::trace_generation(std::span<const std::int32_t> prompt, std::int64_t new_tokens,
                                    const TraceRequest& request) const {
  return with_shapes(
      heed::trace_generation(parts_->model.gpt, prompt, new_tokens, request, &parts_->editor));
}

}  // namespace heed
