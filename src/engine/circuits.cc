// The matrices of heads, of the public facade.
#include "heed/circuits.h"

#include "base/error.h"
#include "engine/facade.h"
#include "microscope/explain/head_circuits.h"

namespace heed {

Array composition_scores(const Model& model, CompositionKind kind) {
  return make_array(composition_scores(ModelAccess::of_one_text(model).transformer, kind));
}

void refactor_heads(const Model& model) {
  const Transformer& transformer = ModelAccess::of_one_text(model).transformer;
  require(keeps_f32(transformer.parameters()), ErrorCode::unsupported,
          "heads are refactored in the model's memory: load it in f32, without packed weights");
  // As views of weights are, which callers may write to.
  auto& changed = const_cast<Transformer&>(transformer);
  refactor_heads(changed);
  if (!changed.device().is_cpu()) changed.place(changed.device());
}

}  // namespace heed
