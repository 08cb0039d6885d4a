// heed serve and heed explore: a model behind HTTP, with and without the explorer's page.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <memory>

#include "base/directories.h"
#include "base/files.h"
#include "base/numbers.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/model_options.h"
#include "engine/embedded_files.h"
#include "engine/loaded_model.h"
#include "engine/pull.h"
#include "server/serve.h"

namespace heed::cli {
namespace {

constexpr int nearby_ports = 32;

struct PageOptions {
  bool no_training = false;
  bool no_downloads = false;
  std::string live_runs;
};

struct ServeCommandOptions {
  std::string model = "starter";
  std::string dtype;
  std::string cache_type = "f32";
  server::ServeOptions serve;
  double request_time = 600;
  double idle_time = 5;
  double grace_time = 5;
  std::string trace_budget = "2GiB";
  std::string model_budget = "4GiB";
  bool any_near_port = false;  // without --port
  PageOptions page;
};

void check_access(const Command& command, const server::ServeOptions& serve) {
  if (command.count("--api-key") > 0 && serve.gate.api_key.empty()) {
    fail_usage("--api-key '' would admit every request; give a key, or leave the option out");
  }
  for (const std::string& alias : serve.aliases) {
    if (alias.empty()) fail_usage("--alias is empty; give a name, or leave the option out");
  }
  if (serve.gate.public_metrics && serve.gate.api_key.empty()) {
    fail_usage("--public-metrics needs --api-key; without a key /metrics is public");
  }
  for (const std::string& origin : serve.gate.allowed_origins) {
    if (origin != "*" && origin != "null" && origin.find("://") == std::string::npos) {
      fail_usage(
          fmt::format("--allow-origin '{}' is not an origin such as https://example.org", origin));
    }
  }
  for (const std::string& host : serve.gate.allowed_hosts) {
    if (host.empty() || host.find_first_of(" /:") != std::string::npos) {
      fail_usage(
          fmt::format("--allow-host '{}' is not a host name such as models.example.org", host));
    }
  }
}

// Whether only this machine's own clients reach the server.
bool is_local(const server::ServeOptions& serve) {
  const std::string& host = serve.http.host;
  const bool is_loopback = host == "localhost" || host == "::1" || host.starts_with("127.");
  return is_loopback && serve.gate.allowed_hosts.empty() && serve.gate.allowed_origins.empty();
}

// Training takes the processor and the disk, and its runs show the user's texts: both are for a
// server that only this machine's own clients reach, or those with a key, unless a directory of
// runs is named.
void choose_training(const PageOptions& chosen, server::ServeOptions& serve) {
  server::ExplorerOptions& explorer = serve.explorer;
  explorer.live_runs = chosen.live_runs;
  if (chosen.no_training) {
    explorer.why_no_training = "this server was started with --no-training";
    return;
  }
  if (!is_local(serve) && serve.gate.api_key.empty()) {
    explorer.why_no_training =
        "this server is open to others without --api-key, so it does not train";
    return;
  }
  if (explorer.live_runs.empty()) explorer.live_runs = data_directory("runs");
  if (explorer.live_runs.empty()) {
    explorer.why_no_training =
        "there is no place for runs: neither XDG_DATA_HOME nor HOME names a directory; start with "
        "--live-runs DIR";
  }
}

// A download fills the user's disk, and is made with the user's token.
std::string why_no_downloads(const PageOptions& chosen, const server::ServeOptions& serve) {
  if (chosen.no_downloads) return "this server was started with --no-downloads";
  if (!is_local(serve)) return "this server is open to others, so it does not download models";
  if (hub_settings_from_environment().offline) {
    return "HEED_OFFLINE is set, so heed does not connect to a hub";
  }
  if (default_model_cache().empty()) {
    return fmt::format("there is no place for models: {}", no_cache_directory);
  }
  return {};
}

// Unpacked where it can be made again; empty where that fails, as everything else works without it.
std::filesystem::path recorded_run() {
  const std::filesystem::path cache = cache_directory("recorded-run");
  if (cache.empty()) return {};
  try {
    return unpack_recorded_run(cache);
  } catch (const std::exception& error) {
    spdlog::warn("heed: the recorded run is not shown: {}", error.what());
    return {};
  }
}

void start(const ServeCommandOptions& options) {
  server::ServeOptions serve = options.serve;
  serve.http.request_time = server::HttpOptions::Seconds(options.request_time);
  serve.http.idle_time = server::HttpOptions::Seconds(options.idle_time);
  serve.http.grace_time = server::HttpOptions::Seconds(options.grace_time);
  serve.scheduler.cache_type = kernels::parse_cache_type(options.cache_type);
  serve.explorer.trace_budget = parse_bytes(options.trace_budget);
  serve.explorer.model_budget = parse_bytes(options.model_budget);
  // Read at the first request for it; a name without a file fails now.
  if (!serve.explorer.corpus.empty()) MappedFile(serve.explorer.corpus);
  if (serve.face == server::Face::explorer) {
    choose_training(options.page, serve);
    serve.explorer.why_no_downloads = why_no_downloads(options.page, serve);
    serve.explorer.recorded_run = recorded_run();
  }
  serve.warn = [](const std::string& message) { spdlog::warn("heed: {}", message); };
  if (options.any_near_port) serve.http.next_ports = nearby_ports;
  LoadedModel model =
      is_translator(options.model)
          ? load_translator(options.model, {.weights = parse_weight_type(options.dtype)})
          : load_model_as(options.model, options.dtype);
  const auto listening = [name = model.name](const std::string& address) {
    spdlog::info("heed: '{}' is at {} (Ctrl-C stops)", name, address);
  };
  server::serve(std::move(model), serve, interrupt_flag(), listening);
}

std::shared_ptr<ServeCommandOptions> add_serving_command(Command app, const std::string& name,
                                                         const std::string& description,
                                                         server::Face face) {
  Command command = add_command(app, name, description);
  auto options = std::make_shared<ServeCommandOptions>();
  options->serve.face = face;
  server::HttpOptions& http = options->serve.http;
  server::GateOptions& gate = options->serve.gate;
  add_model_option(*command, options->model);
  add_dtype_option(*command, options->dtype);
  add_cache_type_option(*command, options->cache_type);
  server::SchedulerOptions& scheduler = options->serve.scheduler;
  command
      ->add_option("-c,--context", scheduler.context,
                   "Limit a prompt and its reply to N tokens [the model's context]")
      ->check(at_least(1));
  command
      ->add_option("--host", http.host,
                   "Listen on this address; the default accepts local connections only")
      ->capture_default_str()
      ->type_name("ADDRESS");
  command->add_option("--port", http.port, "Listen on this port; 0 chooses a free one")
      ->capture_default_str()
      ->check(between(0, 65535));
  command
      ->add_option(
          "--alias", options->serve.aliases,
          "Serve the model under these names; replies use the first [its directory's name]")
      ->type_name("NAME,...")
      ->delimiter(',')
      ->refuse_extra_args();
  command
      ->add_option("--chat-template", options->serve.chat_template,
                   "Use chat template plain, chatml or a file [the model's own, else plain]")
      ->type_name("NAME|FILE");
  command->add_option("--api-key", gate.api_key, "Require this key of every request")
      ->envname("HEED_API_KEY")
      ->type_name("KEY")
      ->group("Access");
  command->add_flag("--public-metrics", gate.public_metrics, "Answer /metrics without the key")
      ->group("Access");
  command
      ->add_option("--allow-origin", gate.allowed_origins,
                   "Allow requests from pages of this origin, such as https://example.org")
      ->type_name("ORIGIN,...")
      ->delimiter(',')
      ->refuse_extra_args()
      ->group("Access");
  command
      ->add_option("--allow-host", gate.allowed_hosts,
                   "Allow requests to this host name besides localhost and addresses")
      ->type_name("NAME,...")
      ->delimiter(',')
      ->refuse_extra_args()
      ->group("Access");
  command->add_option("--parallel", scheduler.parallel, "Decode up to N sequences in one batch")
      ->capture_default_str()
      ->check(between(1, 4096))
      ->group("Limits");
  command->add_option("--max-waiting", scheduler.waiting, "Queue up to N sequences")
      ->capture_default_str()
      ->check(between(1, 1 << 20))
      ->group("Limits");
  command->add_option("--max-body", gate.max_body_bytes, "Accept request bodies of up to N bytes")
      ->capture_default_str()
      ->check(at_least(1))
      ->group("Limits");
  command
      ->add_option("--max-connections", http.max_connections, "Accept up to N connections at once")
      ->capture_default_str()
      ->check(between(1, 4096))
      ->group("Limits");
  command
      ->add_option("--request-time", options->request_time, "End replies after this many seconds")
      ->capture_default_str()
      ->check(seconds_above_zero())
      ->group("Limits");
  command
      ->add_option("--idle-time", options->idle_time,
                   "Close connections without a request for this many seconds")
      ->capture_default_str()
      ->check(seconds_above_zero())
      ->group("Limits");
  command
      ->add_option("--grace-time", options->grace_time,
                   "Let open replies continue for this many seconds at shutdown")
      ->capture_default_str()
      ->check(seconds_from_zero())
      ->group("Limits");
  command->callback([options, command, face] {
    check_access(*command, options->serve);
    options->any_near_port = face == server::Face::explorer && command->count("--port") == 0;
    start(*options);
  });
  return options;
}

}  // namespace

void add_serve_command(Command app) {
  add_serving_command(app, "serve",
                      "Answer OpenAI-style requests over HTTP; of an encoder, embeddings",
                      server::Face::service);
}

void add_explore_command(Command app) {
  auto options = add_serving_command(app, "explore", "Serve the API and the explorer page",
                                     server::Face::explorer);
  Command command = app.get_subcommand("explore");
  command->get_option("--port")->description(
      "Listen on this port; 0 chooses a free one [8080, or the next free one]");
  server::ExplorerOptions& explorer = options->serve.explorer;
  command->add_option("--run", explorer.runs, "Watch this training run; repeat for several")
      ->type_name("DIR")
      ->refuse_extra_args()
      ->group("Explorer");
  command
      ->add_option("--live-runs", options->page.live_runs,
                   "Keep runs that the page trains in this directory [heed/runs in XDG_DATA_HOME]")
      ->type_name("DIR")
      ->group("Explorer");
  command->add_flag("--no-training", options->page.no_training, "Do not train for the page")
      ->group("Explorer");
  command
      ->add_flag("--no-downloads", options->page.no_downloads,
                 "Do not download models for the page")
      ->group("Explorer");
  command
      ->add_option("--model-budget", options->model_budget,
                   "Keep models that the page changes to in this much memory; drop the least "
                   "recently used")
      ->capture_default_str()
      ->type_name("SIZE")
      ->group("Explorer");
  command
      ->add_option("--trace-budget", options->trace_budget,
                   "Keep traces in this much memory; evict the least recently used")
      ->capture_default_str()
      ->type_name("SIZE")
      ->group("Explorer");
  command
      ->add_option(
          "--corpus", explorer.corpus,
          "Search this plain text for contexts of neurons, such as a book; the starter has "
          "stories of the microworld")
      ->type_name("FILE")
      ->group("Explorer");
}

}  // namespace heed::cli
