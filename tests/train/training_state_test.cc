#include "train/training_state.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/expect_error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/temporary_directory.h"
#include "checkpoint/safetensors.h"
#include "comm/group.h"
#include "comm/local_group.h"
#include "model/transformer.h"
#include "train/run_directory.h"
#include "train/stop_after.h"
#include "train/training.h"

namespace heed {
namespace {

using testing::as_members;
using testing::expect_error;
using testing::TemporaryDirectory;

const StackSpecification& shape() {
  static const StackSpecification config = make_gpt_config(1, 2, 32, 16, 100);
  return config;
}

float number(std::size_t index, int array) {
  return std::sin(static_cast<float>(index) + 0.25F * static_cast<float>(array));
}

// Odd ranges, which cut tensors, that `size` processes take in turn.
std::vector<ArenaRange> ranges_of(int rank, int size, std::size_t numbers) {
  std::vector<ArenaRange> own;
  constexpr std::size_t step = 1237;
  std::size_t index = 0;
  for (std::size_t begin = 0; begin < numbers; begin += step, ++index) {
    if (index % static_cast<std::size_t>(size) == static_cast<std::size_t>(rank)) {
      own.push_back({begin, std::min(begin + step, numbers)});
    }
  }
  return own;
}

// What one process has of a run.
struct Member {
  Member(int rank, int size)
      : parameters({.stacks = {shape()}}),
        own(ranges_of(rank, size, parameters.all().size())),
        optimizer(parameters.layout(), TrainSettings{}, own) {}

  // Numbers that their place in the arena decides.
  void fill() {
    const std::size_t size = parameters.all().size();
    std::vector<float> moments[2];
    for (int array = 0; array < 2; ++array) {
      for (std::size_t i = 0; i < size; ++i) moments[array].push_back(number(i, array + 1));
    }
    for (const ArenaRange& range : own) {
      for (std::size_t i = range.begin; i < range.end; ++i) parameters.all()[i] = number(i, 0);
    }
    optimizer.set_moments({0, size}, std::as_bytes(std::span(moments[0])),
                          std::as_bytes(std::span(moments[1])));
  }

  void expect_filled() const {
    std::size_t at = 0;
    for (const ArenaRange& range : own) {
      for (std::size_t i = range.begin; i < range.end; ++i, ++at) {
        ASSERT_EQ(parameters.all()[i], number(i, 0)) << i;
        ASSERT_EQ(optimizer.first_moment()[at], number(i, 1)) << i;
        ASSERT_EQ(optimizer.second_moment()[at], number(i, 2)) << i;
      }
    }
  }

  Checkpoint checkpoint(std::int64_t step, const std::string& run = "this") const {
    return {.position = {.step = step,
                         .evaluated = step % 2 == 0,
                         .data = {.epoch = 3, .index = 17},
                         .best_cost = step == 0 ? std::numeric_limits<double>::infinity() : 0.1,
                         .best_step = step / 2,
                         .seconds = 1.0 / 3},
            .run = run,
            .arrays = {own, parameters.all(), optimizer.first_moment(), optimizer.second_moment()},
            .save_model = [] {}};
  }

  Parameters parameters;
  std::vector<ArenaRange> own;
  Optimizer optimizer;
};

class TrainingState : public ::testing::Test {
 protected:
  void write(int processes, std::int64_t step, const std::string& run = "this") const {
    write_to(directory_.path(), processes, step, run);
  }

  static void write_to(const std::filesystem::path& directory, int processes, std::int64_t step,
                       const std::string& run) {
    as_members(processes, [&](Group& group) {
      Member member(group.rank(), group.size());
      member.fill();
      write_checkpoint(directory, group, member.checkpoint(step, run));
    });
  }

  RunPosition load() const {
    Member member(0, 1);
    const auto group = single_group();
    const RunPosition position = load_training_state(directory_.path(), *group, member.own,
                                                     member.parameters, member.optimizer);
    member.expect_filled();
    return position;
  }

  std::filesystem::path shard(const std::string& name) const {
    return directory_ / "training_state" / name;
  }
  std::size_t shards() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(directory_ / "training_state"), {}));
  }

  // Changes the manifest's text.
  void edit(const std::string& before, const std::string& after) const {
    std::string text = read_text_file(directory_ / "training_state.json");
    const std::size_t at = text.find(before);
    ASSERT_NE(at, std::string::npos) << before;
    write_text_file(directory_ / "training_state.json", text.replace(at, before.size(), after));
  }

  TemporaryDirectory directory_;
};

TEST_F(TrainingState, IsResumedByAnyNumberOfProcesses) {
  for (const int writers : {1, 2, 3}) {
    write(writers, 10 + writers);
    EXPECT_EQ(shards(), static_cast<std::size_t>(writers));
    for (const int readers : {1, 2, 4}) {
      as_members(readers, [&](Group& group) {
        Member member(group.rank(), group.size());
        const RunPosition position = load_training_state(directory_.path(), group, member.own,
                                                         member.parameters, member.optimizer);
        EXPECT_EQ(position.step, 10 + writers);
        member.expect_filled();
      });
    }
  }
}

TEST_F(TrainingState, KeepsThePosition) {
  for (const std::int64_t step : {0, 7}) {
    write(2, step);
    const RunPosition expected = Member(0, 1).checkpoint(step).position;
    for (const RunPosition& position : {load(), read_run_position(directory_.path())}) {
      EXPECT_EQ(position.step, step);
      EXPECT_EQ(position.evaluated, expected.evaluated);
      EXPECT_EQ(position.data.epoch, 3);
      EXPECT_EQ(position.data.index, 17);
      EXPECT_EQ(position.best_cost, expected.best_cost);
      EXPECT_EQ(position.best_step, expected.best_step);
      EXPECT_EQ(position.seconds, expected.seconds);
    }
  }
}

TEST_F(TrainingState, NamesAShardThatIsMissing) {
  write(3, 20);
  std::filesystem::remove(shard("00000020-2-of-3.safetensors"));
  expect_error(
      ErrorCode::not_found, [&] { load(); }, "00000020-2-of-3.safetensors' is missing");
}

TEST_F(TrainingState, NamesAShardOfAnotherRunOrStep) {
  const TemporaryDirectory other;
  const std::filesystem::path name = "00000020-2-of-3.safetensors";
  write(3, 20);
  write_to(other.path(), 3, 20, "that");
  const auto replace = [&](const std::filesystem::path& by) {
    std::filesystem::copy_file(other.path() / "training_state" / by, shard(name),
                               std::filesystem::copy_options::overwrite_existing);
  };
  replace(name);
  expect_error(
      ErrorCode::corrupt_data, [&] { load(); }, shard(name).string(), "of another run");
  write_to(other.path(), 3, 21, "this");
  replace("00000021-2-of-3.safetensors");
  expect_error(
      ErrorCode::corrupt_data, [&] { load(); }, shard(name).string(), "of step 21",
      "is of step 20");
  // Twice the same part, and another not at all.
  write_to(other.path(), 3, 20, "this");
  replace("00000020-1-of-3.safetensors");
  expect_error(
      ErrorCode::corrupt_data, [&] { load(); }, shard(name).string());
}

// One bit is enough, whichever process is to find it.
TEST_F(TrainingState, NamesAShardThatIsDamaged) {
  for (const char* name : {"00000020-1-of-2.safetensors", "00000020-2-of-2.safetensors"}) {
    write(2, 20);
    std::string bytes = read_text_file(shard(name));
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    write_text_file(shard(name), bytes);
    as_members(2, [&](Group& group) {
      Member member(group.rank(), group.size());
      expect_error(
          ErrorCode::corrupt_data,
          [&] {
            agreed(group, [&] {
              load_training_state(directory_.path(), group, member.own, member.parameters,
                                  member.optimizer);
            });
          },
          shard(name).string(), "its SHA-256 is");
    });
    write_text_file(shard(name), bytes.substr(0, bytes.size() - 4));
    expect_error(
        ErrorCode::corrupt_data, [&] { load(); }, shard(name).string(), "instead of");
  }
}

TEST_F(TrainingState, ShardsHaveToBeTheWholeModel) {
  write(2, 20);
  std::string text = read_text_file(directory_ / "training_state.json");
  Json manifest = Json::parse(text);
  manifest["shards"].erase(1);
  write_text_file(directory_ / "training_state.json", manifest.dump());
  expect_error(
      ErrorCode::corrupt_data, [&] { load(); }, "training_state.json",
      "its shards together are not");
}

TEST_F(TrainingState, RefusesAnotherModels) {
  write(2, 20);
  edit("\"numbers\": ", "\"numbers\": 1");
  expect_error(
      ErrorCode::corrupt_data, [&] { load(); }, "training_state.json", "numbers");
}

TEST_F(TrainingState, RefusesManifestsThatAreNone) {
  const std::pair<const char*, const char*> damages[] = {
      {"\"step\": 20", "\"step\": -1"},        {"\"step\": 20", "\"step\": \"20\""},
      {"\"evaluated\": true", "\"other\": 1"}, {"\"shards\": [", "\"shards\": 3, \"x\": ["},
      {"\"file\": \"", "\"file\": \"../"},     {"\"sha256\": \"", "\"sha256\": \"x"},
      {"\"bytes\": ", "\"bytes\": -"},         {"{", "["}};
  for (const auto& [before, after] : damages) {
    SCOPED_TRACE(after);
    write(2, 20);
    edit(before, after);
    expect_error(
        ErrorCode::corrupt_data, [&] { load(); }, "training_state.json");
  }
}

// A process that cannot write its shard: the state before stays, and nothing of the new one.
TEST_F(TrainingState, StaysWholeWhereOneProcessCannotWrite) {
  write(2, 20);
  std::filesystem::create_directories(shard("00000030-2-of-2.safetensors") / "taken");
  int spoke = 0;
  as_members(2, [&](Group& group) {
    Member member(group.rank(), group.size());
    member.fill();
    try {
      write_checkpoint(directory_.path(), group, member.checkpoint(30));
      ADD_FAILURE() << "written";
    } catch (const AgreedError& error) {
      EXPECT_EQ(error.code(), ErrorCode::input_output);
      EXPECT_THAT(error.what(), ::testing::HasSubstr("process 1 of 2: cannot write"));
      if (error.speaks()) ++spoke;
    }
  });
  EXPECT_EQ(spoke, 1);
  EXPECT_EQ(load().step, 20);
  EXPECT_FALSE(std::filesystem::exists(shard("00000030-1-of-2.safetensors")));
}

// What a process that was killed while it wrote leaves is removed.
TEST_F(TrainingState, UnusedShardsAreRemoved) {
  write(2, 20);
  write_text_file(shard("00000030-1-of-2.safetensors"), "of a checkpoint that was not published");
  remove_unused_shards(directory_.path());
  EXPECT_EQ(shards(), 2U);
  EXPECT_EQ(load().step, 20);
}

View<const float> as_view(std::span<const float> values) {
  return {values.data(), {std::ssize(values)}};
}

// One file, of the whole arena, and nothing else.
void write_as_earlier_versions_did(const std::filesystem::path& directory,
                                   const RunPosition& position, const TrainingArrays& arrays) {
  const std::int64_t counters[] = {position.step, position.data.epoch, position.data.index,
                                   position.best_step};
  const double measures[] = {position.best_cost, position.seconds};
  const OutgoingTensor tensors[] = {outgoing("counters", View<const std::int64_t>(counters, {4})),
                                    outgoing("measures", View<const double>(measures, {2})),
                                    outgoing("parameters", as_view(arrays.parameters)),
                                    outgoing("first_moment", as_view(arrays.first_moment)),
                                    outgoing("second_moment", as_view(arrays.second_moment))};
  write_safetensors(directory / "training_state.safetensors", tensors);
}

TEST_F(TrainingState, OfEarlierVersionsIsRead) {
  Member member(0, 1);
  member.fill();
  const Checkpoint checkpoint = member.checkpoint(8);
  write_as_earlier_versions_did(directory_.path(), checkpoint.position, checkpoint.arrays);
  EXPECT_TRUE(holds_training_state(directory_.path()));
  const RunPosition position = load();
  EXPECT_EQ(position.step, 8);
  EXPECT_EQ(position.data.index, 17);
  EXPECT_EQ(position.best_cost, 0.1);
  EXPECT_EQ(read_run_position(directory_.path()).step, 8);
  as_members(2, [&](Group& group) {
    Member part(group.rank(), group.size());
    load_training_state(directory_.path(), group, part.own, part.parameters, part.optimizer);
    part.expect_filled();
  });
  // The next checkpoint takes its place.
  write(2, 9);
  EXPECT_FALSE(std::filesystem::exists(directory_ / "training_state.safetensors"));
  EXPECT_EQ(load().step, 9);
}

using EarlierRuns = testing::Training;

TEST_F(EarlierRuns, GoOnToTheBit) {
  TrainRequest whole = request("whole");
  train(whole);
  TrainRequest first = request("earlier");
  testing::StopAfter observer(14);
  first.observer = &observer;
  first.stop = &observer.flag;
  ASSERT_TRUE(train(first).interrupted);
  // As if what was done so far were of an earlier version.
  const RunDirectory run(first.out);
  const RunRecord record = run.read_record();
  Transformer transformer({.stacks = {record.settings.model}});
  Optimizer optimizer(record.settings.model, record.settings);
  const auto group = single_group();
  const std::vector<ArenaRange> all{{0, transformer.parameters().all().size()}};
  const RunPosition position =
      load_training_state(run.last(), *group, all, transformer.parameters(), optimizer);
  std::filesystem::remove_all(run.last() / "training_state");
  std::filesystem::remove(run.last() / "training_state.json");
  write_as_earlier_versions_did(
      run.last(), position,
      {all, transformer.parameters().all(), optimizer.first_moment(), optimizer.second_moment()});
  first.settings = record.settings;
  first.start = RunStart::resume;
  first.observer = nullptr;
  first.stop = nullptr;
  EXPECT_EQ(train(first).steps, whole.settings.steps);
  EXPECT_EQ(weights("earlier"), weights("whole"));
}

}  // namespace
}  // namespace heed
