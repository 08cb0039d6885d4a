#include "engine/embedded_models.h"

#include "base/error.h"

namespace heed {

std::optional<EmbeddedModel> embedded_model(std::string_view name) {
  if (name != starter_name && name != embedded_translator_name) return std::nullopt;
  std::optional<EmbeddedModel> files = name == starter_name ? starter_files() : translator_files();
  require(
      files.has_value(), ErrorCode::not_found,
      "this build of heed has no model '{0}' (models/{0} was missing when it was built); name a "
      "model directory instead",
      name);
  return files;
}

}  // namespace heed
