// Names of models on a hub: "gpt2", "ORG/NAME", each with "@REVISION" or without.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace heed {

struct HubName {
  std::string repository;         // "gpt2" or "ORG/NAME"
  std::string revision = "main";  // a branch, a tag or a commit

  // The name of a directory for it, unlike that of any other name: "gpt2", "ORG--NAME",
  // "ORG--NAME@REVISION".
  std::string directory_name() const;
};

// Nothing if the text cannot be a name on a hub: words of letters, digits and -._ within 96 bytes,
// no '-' or '.' at their ends, no "--" and no "..".
std::optional<HubName> find_hub_name(std::string_view text);

// Throws Error{invalid_argument} where find_hub_name returns nothing.
HubName parse_hub_name(std::string_view text);

// Whether a path in a repository stays in it: relative, without "..", empty parts, backslashes and
// control characters.
bool is_safe_repository_path(std::string_view path);

}  // namespace heed
