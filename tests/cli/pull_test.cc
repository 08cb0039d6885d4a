// heed pull, and -m NAME after it, from a hub on this machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "cli/run_heed.h"
#include "support/hub_server.h"
#include "support/small_model.h"

namespace heed {
namespace {

using ::testing::HasSubstr;
using testing::HubAnswer;
using testing::HubRequest;
using testing::HubServer;
using testing::Outcome;

class Pull : public ::testing::Test {
 protected:
  Pull() { server_.set_files(testing::model_directory()); }

  Outcome run(const std::string& arguments, const std::string& variables = "") const {
    return testing::run_heed(arguments,
                             "env -u HEED_CACHE -u HF_TOKEN -u HEED_OFFLINE "
                             "no_proxy=127.0.0.1 HF_ENDPOINT=" +
                                 server_.endpoint() + " XDG_CACHE_HOME=" + cache_.path().string() +
                                 " " + variables);
  }

  testing::ScratchDirectory cache_;
  HubServer server_;
};

TEST_F(Pull, MakesAModelUsableByItsName) {
  const Outcome before = run("predict -m org/small 'a mole'");
  EXPECT_EQ(before.status, 1);
  EXPECT_THAT(before.err, HasSubstr("`heed pull org/small` downloads it"));

  const Outcome pulled = run("pull org/small --json");
  ASSERT_EQ(pulled.status, 0) << pulled.err;
  const Json document = parse_json(pulled.out, "pull");
  EXPECT_EQ(document.at("model").get<std::string>(), "org/small");
  EXPECT_EQ(document.at("commit").get<std::string>(), HubServer::commit);
  EXPECT_EQ(document.at("directory").get<std::string>(),
            (cache_.path() / "heed/models/org--small").string());
  ASSERT_EQ(document.at("files").size(), 3U);
  EXPECT_TRUE(document.at("files").at(0).at("downloaded").get<bool>());

  const Outcome named = run("predict -m org/small 'a mole' --json");
  ASSERT_EQ(named.status, 0) << named.err;
  const Outcome direct =
      run("predict -m " + testing::model_directory().string() + " 'a mole' --json");
  const Json by_name = parse_json(named.out, "predict");
  const Json by_path = parse_json(direct.out, "predict");
  EXPECT_EQ(by_name.at("tokens"), by_path.at("tokens"));
  for (const char* call : {"tokenize -m org/small 'a mole'", "params org/small",
                           "eval -m org/small --tokens 5,6,7", "attend -m org/small 'a mole'"}) {
    const Outcome outcome = run(call);
    EXPECT_EQ(outcome.status, 0) << call << ": " << outcome.err;
  }

  const Outcome again = run("pull org/small");
  EXPECT_EQ(again.status, 0);
  EXPECT_THAT(again.out, HasSubstr("nothing new"));
  EXPECT_THAT(again.out, HasSubstr("-m org/small"));
}

TEST_F(Pull, SaysWhatIsWrong) {
  struct Case {
    const char* arguments;
    const char* variables;
    int status;
    const char* message;
  };
  for (const Case& wrong :
       {Case{"pull", "", 2, "required"}, Case{"pull ../x", "", 2, "ORG/NAME"},
        Case{"pull starter", "", 2, "built into heed"},
        Case{"pull org/absent", "", 1, "check the name"},
        Case{"pull org/small", "HEED_OFFLINE=1", 1, "HEED_OFFLINE"},
        Case{"pull org/small", "HF_ENDPOINT=nonsense", 2, "HF_ENDPOINT"},
        Case{"pull org/small", "XDG_CACHE_HOME=relative HOME=relative", 1, "XDG_CACHE_HOME"}}) {
    const Outcome outcome = run(wrong.arguments, wrong.variables);
    EXPECT_EQ(outcome.status, wrong.status) << wrong.arguments << ": " << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(wrong.message));
    EXPECT_EQ(outcome.out, "");
  }
}

TEST_F(Pull, StopsOnASignalAndContinuesLater) {
  const std::string name = "model.safetensors";
  const std::string weights = server_.files().at(name);
  server_.set_script([&](const HubRequest& request, int) -> std::optional<HubAnswer> {
    if (!request.is_for(name)) return std::nullopt;
    HubAnswer answer = HubServer::cut(HubServer::file_answer(request, weights), 10'000);
    answer.hold = true;
    return answer;
  });
  const std::string stopped_at = (cache_.path() / "stopped").string();
  // Waits for the first bytes, then interrupts heed.
  const std::filesystem::path partial =
      cache_.path() / "heed/models/org--small" / (name + ".partial");
  const Outcome outcome = run("pull org/small",
                              "bash -c '\"$0\" \"$@\" & pid=$!; "
                              "for i in $(seq 200); do [ -s " +
                                  partial.string() +
                                  " ] && break; sleep 0.05; done; kill -TERM $pid; "
                                  "SECONDS=0; wait $pid; status=$?; echo $SECONDS >" +
                                  stopped_at + "; exit $status'");
  EXPECT_EQ(outcome.status, 130) << outcome.err;
  EXPECT_LE(std::stoi(read_text_file(stopped_at)), 1);
  EXPECT_EQ(read_text_file(partial), weights.substr(0, 10'000));
  server_.set_script(nullptr);
  server_.forget_requests();
  EXPECT_EQ(run("pull org/small").status, 0);
  ASSERT_EQ(server_.requests_for(name).size(), 1U);
  EXPECT_EQ(server_.requests_for(name)[0].header("range"), "bytes=10000-");
  EXPECT_EQ(run("predict -m org/small 'a mole'").status, 0);
}

}  // namespace
}  // namespace heed
