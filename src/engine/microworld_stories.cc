// The microworld of the public facade.
#include <algorithm>

#include "base/error.h"
#include "heed/microworld.h"
#include "microworld/microworld.h"

namespace heed {

std::vector<std::string> microworld_kinds() {
  const auto names = microworld::story_kind_names();
  return {names.begin(), names.end()};
}

std::string microworld_story(std::uint64_t seed, std::int64_t index,
                             const std::vector<std::string>& kinds) {
  const auto names = microworld::story_kind_names();
  std::vector<microworld::StoryKind> chosen;
  for (const std::string& kind : kinds) {
    const auto found = std::ranges::find(names, kind);
    require(found != names.end(), ErrorCode::invalid_argument,
            "there is no kind of story '{}': expected one of {}", kind, fmt::join(names, ", "));
    chosen.push_back(static_cast<microworld::StoryKind>(found - names.begin()));
  }
  return microworld::to_json_line(microworld::Microworld(seed, chosen).story(index));
}

double microworld_log_probability(std::string_view text) {
  return microworld::log_probability(text);
}

}  // namespace heed
