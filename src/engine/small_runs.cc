#include "engine/small_runs.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/threads.h"
#include "microworld/microworld.h"

namespace heed {
namespace {

using microworld::StoryKind;

constexpr std::uint64_t story_seed = 7;

TrainSettings small_settings(std::int64_t channels, std::int64_t steps) {
  TrainSettings settings;
  settings.model = make_gpt_config(/*layers=*/3, /*heads=*/4, channels, /*context=*/192,
                                   /*vocabulary_size=*/1400);
  settings.tokenizer = "bpe";
  settings.validation_fraction = 0.02;
  settings.steps = steps;
  settings.batch_size = 8;
  settings.windows = Windows::prompts;
  settings.precision.reset();
  settings.learning_rate = 6e-3;
  settings.min_learning_rate = 1e-4;
  settings.warmup_steps = 50;
  settings.beta2 = 0.98;
  settings.evaluate_every = steps / 20;
  settings.evaluation_batches = 8;
  settings.checkpoint_every = steps / 4;
  settings.keep_every = steps / 8;
  settings.sample_every = steps / 8;
  settings.sample_tokens = 60;
  return settings;
}

std::vector<SmallRun> make_runs() {
  std::vector<SmallRun> runs;
  runs.push_back({.name = "sentences",
                  .title = "Famous sentences",
                  .note =
                      "Captions and sayings, a line each: the mole of biology, of chemistry and "
                      "of medicine, two towers, two Harrys, the cat that was too tired.",
                  .kinds = {StoryKind::album},
                  .stories = 12'000,
                  .settings = small_settings(/*channels=*/64, /*steps=*/2000)});
  runs.push_back({.name = "outings",
                  .title = "Words of several senses",
                  .note = "A day out with two words that have several senses, such as bank, bat or "
                          "model: what comes before them tells which.",
                  .kinds = {StoryKind::outing},
                  .stories = 12'000,
                  .settings = small_settings(/*channels=*/96, /*steps=*/2000)});
  return runs;
}

// The root of a directory that holds no run yet.
const std::filesystem::path& free_root(const RunDirectory& run) {
  require(!run.holds_a_run(), ErrorCode::conflict,
          "'{}' already holds a run: continue it with --resume, or choose another --out",
          run.root().string());
  return run.root();
}

}  // namespace

const std::vector<SmallRun>& small_runs() {
  static const std::vector<SmallRun> runs = make_runs();
  return runs;
}

const SmallRun* find_small_run(std::string_view name) {
  const auto found = std::ranges::find(small_runs(), name, &SmallRun::name);
  return found == small_runs().end() ? nullptr : &*found;
}

double write_stories(const SmallRun& run, const std::filesystem::path& file, StopFlag stop) {
  const microworld::Microworld world(story_seed, run.kinds);
  std::vector<microworld::Story> stories(static_cast<std::size_t>(run.stories));
  parallel_ranges(run.stories, 64, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last && !stop_requested(stop); ++i) {
      stories[static_cast<std::size_t>(i)] = world.story(i);
    }
  });
  require(!stop_requested(stop), ErrorCode::interrupted, "stopped while stories were written");
  double entropy = 0;
  AtomicFile text(file);
  for (const microworld::Story& story : stories) {
    entropy -= story.log_probability;
    text.write(story.text);
    text.write(microworld::end_of_text);
  }
  text.commit();
  return entropy;
}

RunText::RunText(const std::filesystem::path& run)
    : run_(run), directory_(free_root(run_)), file_(run_.root() / "text.txt") {
  std::error_code error;
  require(!std::filesystem::exists(file_, error), ErrorCode::conflict,
          "'{}' is there already: train on it with --data, or choose another --out",
          file_.string());
}

RunText::~RunText() {
  std::error_code ignored;
  if (run_.holds_a_run()) {
    directory_.keep();
  } else {
    std::filesystem::remove(file_, ignored);
  }
}

}  // namespace heed
