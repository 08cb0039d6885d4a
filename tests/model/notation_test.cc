// docs/notation.md beside the points that passes have.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/files.h"
#include "model/architecture.h"
#include "model/probe.h"

namespace heed {
namespace {

// The names between backquotes in the first column of the tables of a section, and how often each
// is.
std::map<std::string, int> listed_points() {
  const std::string text = read_text_file(HEED_SOURCE_DIR "/docs/notation.md");
  std::size_t at = text.find("## Points");
  std::map<std::string, int> found;
  while ((at = text.find("\n| `", at)) != std::string::npos) {
    const std::size_t end = text.find(" | ", at + 4);
    std::size_t begin = text.find('`', at);
    while (begin < end) {
      const std::size_t close = text.find('`', begin + 1);
      ++found[text.substr(begin + 1, close - begin - 1)];
      begin = text.find('`', close + 1);
    }
    at = end;
  }
  return found;
}

TEST(Notation, ListsEveryPointOnce) {
  StackSpecification gated = make_gpt_config(1, 4, 32, 8, 61);
  gated.block.feed_forward.gated = true;
  gated.block.norm.placement = NormPlacement::around;
  gated.block.attention.positions = PositionKind::rotary;
  StackSpecification post_norm = make_gpt_config(1, 4, 32, 8, 61);
  post_norm.block.norm.placement = NormPlacement::post;
  StackSpecification decoder = make_gpt_config(1, 4, 32, 8, 61);
  decoder.block.cross_attention = decoder.block.attention;

  std::set<std::string> names;
  const auto add = [&](const Point& point) {
    std::string name = point_name(point);
    const std::size_t layer = name.find(".0.");
    if (layer != std::string::npos) name.replace(layer, 3, ".l.");
    names.insert(name);
  };
  for (const StackSpecification& stack : {make_gpt_config(1, 4, 32, 8, 61), gated, post_norm}) {
    for (const Point& point : all_points(stack)) add(point);
  }
  for (const Point& point : all_points(decoder, StackSite::decoder)) {
    if (is_cross_point(point.kind)) add(point);
  }
  const std::map<std::string, int> listed = listed_points();
  for (const std::string& name : names) {
    const auto found = listed.find(name);
    EXPECT_EQ(found == listed.end() ? 0 : found->second, 1) << name;
  }
  for (const auto& [name, times] : listed) EXPECT_TRUE(names.contains(name)) << name;
}

}  // namespace
}  // namespace heed
