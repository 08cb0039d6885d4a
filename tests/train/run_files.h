// The files of a run, to compare one run with another.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>

#include "base/files.h"
#include "base/json.h"

namespace heed::testing {

inline std::string metrics_without_clock(const std::filesystem::path& file) {
  std::string text;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    Json row = Json::parse(line);
    row.erase("tokens_per_s");
    row.erase("seconds");
    text += row.dump() + "\n";
  }
  return text;
}

inline std::string state_without_clock(const std::filesystem::path& file) {
  Json manifest = Json::parse(read_text_file(file));
  manifest.erase("seconds");
  return manifest.dump();
}

// Every file of a run, by its path in it, without what a clock decides.
inline std::map<std::string, std::string> files_of(const std::filesystem::path& run) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(run)) {
    if (!entry.is_regular_file()) continue;
    const std::filesystem::path& path = entry.path();
    const std::string name = path.lexically_relative(run).string();
    if (name == "metrics.jsonl") {
      files[name] = metrics_without_clock(path);
    } else if (path.filename() == "training_state.json") {
      files[name] = state_without_clock(path);
    } else {
      files[name] = read_text_file(path);
    }
  }
  return files;
}

inline void expect_same_files(const std::filesystem::path& run,
                              const std::filesystem::path& other) {
  const auto files = files_of(run);
  const auto others = files_of(other);
  for (const auto& [name, content] : files) {
    ASSERT_TRUE(others.contains(name)) << other << " has no " << name;
    EXPECT_TRUE(others.at(name) == content) << name << " differs in " << other;
  }
  EXPECT_EQ(files.size(), others.size());
}

}  // namespace heed::testing
