// Processes that train together, each on a device: as threads, which share the one of this process.
#include <gtest/gtest.h>

#include <cmath>

#include "base/json.h"
#include "checkpoint/safetensors.h"
#include "comm/local_group.h"
#include "tensor/device.h"
#include "train/run_directory.h"
#include "train/training.h"

namespace heed {
namespace {

using testing::as_members;

class PlacedGroup : public testing::Training {
 protected:
  // The losses of the run's steps, from its metrics.
  std::vector<double> losses(const std::string& run) const {
    std::vector<double> found;
    std::istringstream lines(read_text_file(directory_ / run / "metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const Json metrics = Json::parse(line);
      if (metrics.contains("loss")) found.push_back(metrics.at("loss").get<double>());
    }
    return found;
  }

  void train_together(const std::string& run, Device device, std::int64_t steps = 6,
                      RunStart start = RunStart::fresh) {
    as_members(2, [&](Group& group) {
      TrainRequest own = request(run);
      own.settings.decay_steps = 6;
      own.settings.batch_size = 4;
      own.settings.precision = kernels::Precision::f32;
      own.start = start;
      if (start == RunStart::resume) own.settings = RunDirectory(own.out).read_record().settings;
      own.settings.steps = steps;
      own.group = &group;
      own.device = device;
      own.cache = directory_ / ("cache-" + std::to_string(group.rank()));
      train(own);
    });
  }
};

TEST_F(PlacedGroup, TrainsAsOnProcessors) {
  train_together("here", Device{});
  train_together("there", open_device("cuda"));
  const std::vector<double> here = losses("here"), there = losses("there");
  ASSERT_EQ(here.size(), 6U);
  ASSERT_EQ(there.size(), here.size());
  for (std::size_t i = 0; i < here.size(); ++i) EXPECT_NEAR(there[i], here[i], 1e-4) << i;
  EXPECT_EQ(device_memory().used, 0U);
}

// Parameters that are still on their way from the other process are waited for.
TEST_F(PlacedGroup, GoesOnWhereItStopped) {
  const Device device = open_device("cuda");
  train_together("whole", device);
  train_together("parts", device, 3);
  train_together("parts", device, 6, RunStart::resume);
  EXPECT_EQ(losses("parts"), losses("whole"));
  EXPECT_EQ(weights("parts"), weights("whole"));
}

}  // namespace
}  // namespace heed
