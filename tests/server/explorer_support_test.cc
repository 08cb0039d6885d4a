#include "server/explorer_support.h"

#include "base/files.h"
#include "train/trainer.h"

namespace heed::server::testing {
namespace {

ServeOptions options_with(ExplorerOptions explorer) {
  ServeOptions options;
  options.face = Face::explorer;
  options.explorer = std::move(explorer);
  return options;
}

}  // namespace

TestExplorer::TestExplorer(LoadedModel model, ExplorerOptions explorer, HeldTranslator* translator)
    : model_(std::move(model)),
      options_(options_with(std::move(explorer))),
      scheduler_(model_, compute_, metrics_, options_.scheduler),
      context_{.model = model_,
               .options = options_,
               .name = model_.name,
               .compute = compute_,
               .metrics = metrics_,
               .scheduler = scheduler_,
               .created = 0,
               .translator = translator} {
  register_service(router_, context_);
  register_explorer(router_, context_);
}

Reply TestExplorer::send(const std::string& method, const std::string& target,
                         const std::string& body) {
  Request request = parse_request(method, target);
  request.body = body;
  return router_.handle(std::move(request));
}

Json TestExplorer::get(const std::string& target, int status) {
  const Reply reply = send("GET", target);
  EXPECT_EQ(reply.status, status) << target << "\n" << reply.body.substr(0, 400);
  return Json::parse(reply.body, nullptr, false);
}

Json TestExplorer::post(const std::string& target, const Json& body, int status) {
  const Reply reply = send("POST", target, body.dump());
  EXPECT_EQ(reply.status, status) << target << " " << body << "\n" << reply.body.substr(0, 400);
  return Json::parse(reply.body, nullptr, false);
}

TestExplorer::Array TestExplorer::array(const std::string& target) {
  const Json json =
      get(target + (target.find('?') == std::string::npos ? "?" : "&") + "format=json");
  Array array{.shape = json.at("shape").get<std::vector<std::int64_t>>()};
  for (const Json& value : json.at("values")) {
    array.values.push_back(value.is_null() ? -INFINITY : value.get<float>());
  }
  return array;
}

std::string TestExplorer::trace(const std::string& text, const Json& interventions) {
  return post("/api/traces", {{"text", text}, {"interventions", interventions}})
      .at("id")
      .get<std::string>();
}

std::vector<TestExplorer::Event> TestExplorer::events(const std::string& target, const Json& body) {
  const Reply reply = send("POST", target, body.dump());
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.content_type, "text/event-stream");
  KeepingWriter writer;
  if (reply.stream) write_stream(reply, writer);
  std::vector<Event> events;
  for (std::size_t begin = 0; begin < writer.text.size();) {
    const std::size_t end = writer.text.find("\n\n", begin);
    const std::string event = writer.text.substr(begin, end - begin);
    begin = end + 2;
    const std::size_t line = event.find("\ndata: ");
    if (line == std::string::npos) continue;
    events.push_back({event.substr(7, line - 7), Json::parse(event.substr(line + 7))});
  }
  return events;
}

std::string TestExplorer::refusal(const std::string& method, const std::string& target, int status,
                                  const std::string& body) {
  const Reply reply = send(method, target, body);
  EXPECT_EQ(reply.status, status) << method << " " << target << " " << body << "\n"
                                  << reply.body.substr(0, 400);
  const Json json = Json::parse(reply.body, nullptr, false);
  if (!json.is_object() || !json.contains("error")) return "";
  EXPECT_TRUE(json["error"]["type"].is_string()) << json;
  return json["error"]["message"].get<std::string>();
}

std::filesystem::path train_small_run(const heed::testing::TemporaryDirectory& directory) {
  std::string text;
  for (int i = 0; i < 30; ++i) text += "the quick brown fox jumps over the lazy dog. ";
  write_text_file(directory / "text.txt", text);
  TrainRequest request;
  request.data = {directory / "text.txt"};
  request.out = directory / "small";
  request.cache = directory / "cache";
  request.settings.model = make_gpt_config(2, 2, 16, 8, 300);
  request.settings.tokenizer = "char";
  request.settings.steps = 6;
  request.settings.batch_size = 2;
  request.settings.keep_every = 3;
  request.settings.sample_every = 0;
  train(request);
  return request.out;
}

TestExplorer& starter_explorer() {
  static TestExplorer explorer(load_model("starter"));
  return explorer;
}

}  // namespace heed::server::testing
