// heed pull: downloads a published model.
#include <fmt/format.h>

#include <memory>

#include "base/json.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/terminal/progress_line.h"
#include "cli/terminal/text.h"
#include "engine/pull.h"
#include "formats/model_files.h"

namespace heed::cli {
namespace {

struct PullCallOptions {
  std::string name;
  bool json = false;
};

OrderedJson pulled_json(const std::string& name, const PulledModel& pulled) {
  OrderedJson files = OrderedJson::array();
  for (const PulledFile& entry : pulled.files) {
    files.push_back({{"name", entry.file.name},
                     {"bytes", entry.file.size},
                     {hash_kind_name(entry.file.hash.kind), entry.file.hash.hex},
                     {"downloaded", entry.is_new}});
  }
  return {{"model", name},
          {"repository", pulled.name.repository},
          {"revision", pulled.name.revision},
          {"commit", pulled.commit},
          {"directory", pulled.directory.string()},
          {"files", std::move(files)}};
}

void print_pulled(const std::string& name, const PulledModel& pulled) {
  std::int64_t new_files = 0;
  double bytes = 0;
  for (const PulledFile& entry : pulled.files) {
    new_files += entry.is_new ? 1 : 0;
    bytes += static_cast<double>(entry.file.size);
  }
  const std::string amount = new_files == 0 ? "nothing new" : counted(new_files, "new file");
  const bool translates = is_encoder_decoder_directory(pulled.directory);
  print(fmt::format("{} at commit {}: {}, {} in {}\nUse it with {}-m {}\n", pulled.name.repository,
                    pulled.commit.substr(0, 12), amount, short_bytes(bytes),
                    pulled.directory.string(), translates ? "heed translate " : "", name));
}

void pull(const PullCallOptions& options) {
  ProgressLine line;
  const PulledModel pulled =
      pull_model(options.name, {.cache = default_model_cache(),
                                .hub = {.settings = hub_settings_from_environment(),
                                        .progress = line.callback(),
                                        .stop = interrupt_flag()}});
  line.clear();
  if (options.json) return print_json(pulled_json(options.name, pulled));
  print_pulled(options.name, pulled);
}

}  // namespace

void add_pull_command(Command app) {
  Command command = add_command(app, "pull", "Download a published model");
  auto options = std::make_shared<PullCallOptions>();
  command
      ->add_option("model", options->name,
                   "Download this model of the hub: gpt2, ORG/NAME@REVISION, ORG/NAME:Q4_K_M")
      ->required()
      ->type_name("NAME");
  add_json_option(*command, options->json);
  command->footer(
      "Models are kept in ~/.cache/heed/models and loaded by name: heed predict -m gpt2, heed "
      "translate -m Helsinki-NLP/opus-mt-en-de. The "
      "environment's HF_ENDPOINT names another hub, HF_TOKEN is a token for gated models, and "
      "HEED_OFFLINE=1 refuses to connect.");
  command->callback([options] { pull(*options); });
}

}  // namespace heed::cli
