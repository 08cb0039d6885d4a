// Downloads published models into the cache, where load_model() finds them by name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "download/hub.h"

namespace heed {

struct PullOptions {
  std::filesystem::path cache;  // such as default_model_cache()
  HubOptions hub;
};

struct PulledFile {
  HubFile file;
  bool is_new = false;  // downloaded now; otherwise it was there, and whole
};

struct PulledModel {
  HubName name;
  std::string commit;
  std::filesystem::path directory;  // of the cache, or a GGUF file in it; what load_model() takes
  std::vector<PulledFile> files;
};

// Downloads what heed reads of a repository in the Hugging Face layout, of a model of any family:
// config.json; model.safetensors, or the shards of its index; tokenizer.json, or else the files of
// another tokenizer (load_tokenizer); tokenizer_config.json, generation_config.json and
// chat_template.jinja where there are any. All are of one commit, and every size and hash is
// checked, also of files that were there already.
//
// Files are downloaded beside the old ones, *.partial, and renamed once all of them are verified,
// config.json last: a model in the cache is whole and of one commit, or it has no config.json and
// is not found. What an interrupted call leaves is continued by the next one.
//
// Of "REPO:Q4_K_M", the one GGUF file of these weights, or its parts, which is the whole model.
//
// Throws what Hub throws; Error{invalid_argument} for a name that no model can have;
// Error{unsupported} for a model that heed cannot read, before its weights are downloaded;
// Error{conflict} where another process is pulling it; Error{input_output} where the disk is full.
PulledModel pull_model(const std::string& name, const PullOptions& options);

// cache_directory("models"): one directory a model, see HubName::directory_name.
std::filesystem::path default_model_cache();

// The directory of a model that was pulled by this name, such as "gpt2", "ORG/NAME" or
// "ORG/NAME@REVISION", or the (first) GGUF file of one such as "ORG/NAME:Q4_K_M"; nothing if there
// is none, or only a part of one.
std::optional<std::filesystem::path> find_pulled_model(const std::string& name);

// Whether `name` may be pulled: it is like that of a repository, and not like that of a file.
bool may_be_pulled(const std::string& name);

// The name for people of a directory in the cache: "NAME" for ORG--NAME. Empty for others.
std::string pulled_model_name(const std::filesystem::path& directory);

}  // namespace heed
