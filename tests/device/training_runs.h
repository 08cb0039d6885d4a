// Runs of a tiny model, on any device.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/temporary_directory.h"
#include "heed/train.h"
#include "tensor/device.h"

namespace heed::testing {

class TrainingRuns : public ::testing::Test {
 protected:
  // Of a text of so many sentences, with these settings beside those of all runs.
  TrainingRuns(int sentences, std::vector<std::pair<std::string, std::string>> settings)
      : sentences_(sentences), settings_(std::move(settings)) {
    ::setenv("HEED_CACHE", (directory_ / "cache").c_str(), 1);
  }
  ~TrainingRuns() override {
    ::unsetenv("HEED_CACHE");
    set_default_device("cpu");
  }

  // The losses of a run's steps on a device, to so many; one that is there is resumed.
  std::vector<double> losses(const std::string& device, const std::string& run, int steps) {
    set_default_device(device);
    const bool resumes = std::filesystem::exists(directory_ / run);
    std::vector<double> found;
    TrainingOptions options{.out = directory_ / run,
                            .resume = resumes,
                            .settings = {{"steps", std::to_string(steps)}},
                            .progress = [&](const TrainingProgress& now) {
                              if (!now.validation_loss) found.push_back(now.loss);
                            }};
    if (!resumes) {
      for (int i = 0; i < sentences_; ++i) {
        options.text += "the quick brown fox jumps over the lazy dog. ";
      }
      for (const auto& [name, value] :
           std::vector<std::pair<std::string, std::string>>{{"layers", "2"},
                                                            {"heads", "2"},
                                                            {"channels", "16"},
                                                            {"tokenizer", "char"},
                                                            {"precision", "f32"},
                                                            {"batch_size", "3"},
                                                            {"warmup_steps", "2"},
                                                            {"learning_rate", "1e-2"},
                                                            {"evaluate_every", "6"},
                                                            {"decay_steps", "12"}}) {
        options.settings.emplace_back(name, value);
      }
      options.settings.insert(options.settings.end(), settings_.begin(), settings_.end());
    }
    train_model(options);
    return found;
  }

  TemporaryDirectory directory_;

 private:
  int sentences_;
  std::vector<std::pair<std::string, std::string>> settings_;
};

}  // namespace heed::testing
