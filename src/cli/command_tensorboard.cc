// heed tensorboard: the metrics of a run as TensorBoard reads them.
#include <fmt/format.h>

#include <memory>

#include "base/error.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/terminal/text.h"
#include "train/event_file.h"
#include "train/run_directory.h"

namespace heed::cli {
namespace {

struct TensorboardOptions {
  std::string run;
  std::string out;
  bool json = false;
};

void write_events(const TensorboardOptions& options) {
  const RunDirectory run(options.run);
  require(run.holds_a_run(), ErrorCode::not_found,
          "there is no run in '{}': `heed train` makes one", options.run);
  EventFile events(options.out, start_of(run.metrics_file()));
  add_metrics(events, run.metrics_file());
  if (options.json) {
    return print_json({{"file", events.path().string()}, {"scalars", events.scalars()}});
  }
  print(fmt::format("{} in {}\n", counted(events.scalars(), "scalar"), events.path().string()));
}

}  // namespace

void add_tensorboard_command(Command app) {
  Command command = add_command(app, "tensorboard", "Write a run's metrics for TensorBoard");
  auto options = std::make_shared<TensorboardOptions>();
  command->add_option("run", options->run, "Read the metrics of this run of `heed train`")
      ->required()
      ->type_name("DIR");
  command->add_option("-o,--out", options->out, "Write an event file into this directory")
      ->required()
      ->type_name("DIR");
  add_json_option(*command, options->json);
  command->footer("`heed train --tensorboard DIR` writes the same while a run goes on.");
  command->callback([options] { write_events(*options); });
}

}  // namespace heed::cli
