// The names of settings, and how each is read from JSON and written to it.
#pragma once

#include <functional>
#include <vector>

#include "train/settings.h"

namespace heed {

// A setting has a name, a reader from JSON and a writer to JSON. Text from the command line is
// parsed as JSON, or taken as a string where it is not valid JSON.
struct Setting {
  const char* name;
  std::function<void(TrainSettings&, const Json&)> read;
  std::function<Json(const TrainSettings&)> write;
};

const std::vector<Setting>& all_settings();

}  // namespace heed
