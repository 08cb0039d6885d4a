// heed serve and heed explore: a model behind HTTP, and the page that shows what it thinks.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <memory>

#include "base/files.h"
#include "base/index_list.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/model_options.h"
#include "cli/number_option.h"
#include "server/serve.h"

namespace heed::cli {
namespace {

constexpr int nearby_ports = 32;

struct ServeCommandOptions {
  std::string model = "starter";
  std::string dtype;
  std::string cache_type = "f32";
  server::ServeOptions serve;
  double request_time = 600;
  double grace_time = 5;
  std::string trace_budget = "2GiB";
  bool any_near_port = false;  // where nobody asked for one
};

void check_access(const Command& command, const server::ServeOptions& serve) {
  if (command.count("--api-key") > 0 && serve.gate.api_key.empty()) {
    fail_usage("--api-key '' would let everybody in; give a key, or leave the option out");
  }
  for (const std::string& origin : serve.gate.allowed_origins) {
    if (origin != "*" && origin != "null" && origin.find("://") == std::string::npos) {
      fail_usage(
          fmt::format("--allow-origin '{}' is no origin such as https://example.org", origin));
    }
  }
  for (const std::string& host : serve.gate.allowed_hosts) {
    if (host.empty() || host.find_first_of(" /:") != std::string::npos) {
      fail_usage(fmt::format("--allow-host '{}' is no name such as models.example.org", host));
    }
  }
}

void start(const ServeCommandOptions& options) {
  server::ServeOptions serve = options.serve;
  serve.http.request_time = server::HttpOptions::Seconds(options.request_time);
  serve.http.grace_time = server::HttpOptions::Seconds(options.grace_time);
  serve.scheduler.cache_type = kernels::parse_cache_type(options.cache_type);
  serve.explorer.trace_budget = parse_bytes(options.trace_budget);
  // Opened when somebody asks for it; a name that leads nowhere shows now.
  if (!serve.explorer.corpus.empty()) MappedFile(serve.explorer.corpus);
  LoadedModel model = load_model_as(options.model, options.dtype);
  const std::string name = model.name;
  if (options.any_near_port) serve.http.next_ports = nearby_ports;
  server::serve(std::move(model), serve, interrupt_flag(), [&](const std::string& address) {
    spdlog::info("heed: '{}' is at {} (Ctrl-C stops)", name, address);
  });
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
                   "Tokens of a text, prompt included [the model's context]")
      ->check(at_least(1));
  command
      ->add_option("--host", http.host, "Address to listen on; the default is this machine alone")
      ->capture_default_str()
      ->type_name("ADDRESS");
  command->add_option("--port", http.port, "Port to listen on; 0 takes any that is free")
      ->capture_default_str()
      ->check(between(0, 65535));
  command
      ->add_option("--alias", options->serve.alias,
                   "What the model is called [its directory's name]")
      ->type_name("NAME");
  command->add_option("--api-key", gate.api_key, "Key that requests must carry")
      ->envname("HEED_API_KEY")
      ->type_name("KEY")
      ->group("Access");
  command
      ->add_option("--allow-origin", gate.allowed_origins,
                   "Other pages that may ask, such as https://example.org; may be repeated")
      ->type_name("ORIGIN")
      ->group("Access");
  command
      ->add_option("--allow-host", gate.allowed_hosts,
                   "Other names that the server is called by; may be repeated")
      ->type_name("NAME")
      ->group("Access");
  command->add_option("--parallel", scheduler.parallel, "Texts that are continued together")
      ->capture_default_str()
      ->check(between(1, 4096))
      ->group("Limits");
  command->add_option("--max-waiting", scheduler.waiting, "Texts that wait for their turn")
      ->capture_default_str()
      ->check(between(1, 1 << 20))
      ->group("Limits");
  command->add_option("--max-body", gate.max_body_bytes, "Bytes of a request's body")
      ->capture_default_str()
      ->check(at_least(1))
      ->group("Limits");
  command->add_option("--max-connections", http.max_connections, "Connections at once")
      ->capture_default_str()
      ->check(between(1, 4096))
      ->group("Limits");
  command->add_option("--request-time", options->request_time, "Seconds that a reply may take")
      ->capture_default_str()
      ->check(seconds_above_zero())
      ->group("Limits");
  command
      ->add_option("--grace-time", options->grace_time,
                   "Seconds that replies under way get when the server stops")
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
  add_serving_command(app, "serve", "Answer OpenAI-style requests over HTTP",
                      server::Face::service);
}

void add_explore_command(Command app) {
  auto options = add_serving_command(app, "explore", "Serve the page that shows a model think",
                                     server::Face::explorer);
  Command command = app.get_subcommand("explore");
  command->get_option("--port")->description(
      "Port to listen on; 0 takes any that is free [8080, or the next one that is]");
  server::ExplorerOptions& explorer = options->serve.explorer;
  command
      ->add_option("--run", explorer.runs,
                   "Directory of a training run to watch, live or finished; may be repeated")
      ->type_name("DIR")
      ->allow_extra_args(false)
      ->group("Explorer");
  command
      ->add_option("--trace-budget", options->trace_budget,
                   "Memory that traces may take together; those used longest ago go first")
      ->capture_default_str()
      ->type_name("SIZE")
      ->group("Explorer");
  command
      ->add_option("--corpus", explorer.corpus,
                   "Text that neurons' contexts come from [the microworld, for the starter model]")
      ->type_name("FILE")
      ->group("Explorer");
}

}  // namespace heed::cli
