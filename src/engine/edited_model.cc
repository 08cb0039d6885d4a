// EditedModel: a model whose passes an editor changes.
#include "engine/edits.h"
#include "engine/facade.h"
#include "heed/intervention.h"

namespace heed {

EditedModel::EditedModel(const Model& model, const std::vector<Edit>& edits)
    : Model([&] {
        const Transformer& gpt = ModelAccess::loaded(model).gpt;
        return ModelAccess::with_editor(
            model, std::make_shared<Interventions>(gpt.specification(), resolve_edits(gpt, edits)));
      }()) {}

}  // namespace heed
