// Models in the cache of `heed pull`.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace heed {

// cache_directory("models"): one directory a model, see HubName::directory_name.
std::filesystem::path default_model_cache();

// The directory of a model that was pulled by this name, such as "gpt2", "ORG/NAME" or
// "ORG/NAME@REVISION"; nothing if there is none, or only a part of one.
std::optional<std::filesystem::path> find_pulled_model(const std::string& name);

// Whether `name` may be pulled: it is like that of a repository, and not like that of a file.
bool may_be_pulled(const std::string& name);

// The name for people of a directory in the cache: "NAME" for ORG--NAME. Empty for others.
std::string pulled_model_name(const std::filesystem::path& directory);

}  // namespace heed
