// Redirects, secrets and refusals.
#include "download/hub.h"

#include <gmock/gmock.h>

#include "download/download_support.h"
#include "download/http_client.h"

namespace heed {
namespace {

using testing::content_length;
using testing::EnvironmentVariable;
using testing::expect_error;
using testing::http_reply;
using testing::HubAnswer;
using testing::HubRequest;
using testing::HubServer;

HubAnswer redirect_to(const std::string& address) {
  return {http_reply("302 Found", "Location: " + address + "\r\n" + content_length(4), "away")};
}

HubAnswer with_status(const std::string& status) {
  return {http_reply(status, content_length(5), "sorry")};
}

class HubDownload : public testing::DownloadTest {};

TEST_F(HubDownload, AsksForThePinnedCommit) {
  download();
  const std::vector<HubRequest> sent = server_.requests();
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(sent[0].path, "/api/models/org/small/revision/main?blobs=true");
  EXPECT_EQ(sent[1].path, std::string("/org/small/resolve/") + HubServer::commit + "/" + name_);
  EXPECT_EQ(sent[1].header("authorization"), "");
}

TEST_F(HubDownload, SendsTheTokenToTheEndpointAlone) {
  HubServer elsewhere;
  elsewhere.set_script([&](const HubRequest& request, int) { return whole(request); });
  server_.set_script([&](const HubRequest& request, int) -> std::optional<HubAnswer> {
    if (request.path.ends_with("/moved")) {
      return redirect_to(elsewhere.endpoint() + "/" + name_ + "?signed=1");
    }
    if (request.is_for(name_)) return redirect_to("/somewhere/moved");
    return std::nullopt;
  });
  download(options("hf_secret"));
  EXPECT_EQ(downloaded(), content_);
  const std::vector<HubRequest> sent = server_.requests();
  ASSERT_EQ(sent.size(), 3U);
  for (const HubRequest& request : sent) {
    EXPECT_EQ(request.header("authorization"), "Bearer hf_secret") << request.path;
  }
  ASSERT_EQ(elsewhere.requests().size(), 1U);
  EXPECT_EQ(elsewhere.requests()[0].header("authorization"), "");
  EXPECT_EQ(elsewhere.requests()[0].path, "/" + name_ + "?signed=1");
}

TEST_F(HubDownload, AnotherNameOfTheMachineIsAnotherHost) {
  server_.set_script([&](const HubRequest& request, int number) -> std::optional<HubAnswer> {
    if (!request.is_for(name_) || number > 0) return std::nullopt;
    return redirect_to(server_.endpoint("localhost") + request.path);
  });
  download(options("hf_secret"));
  EXPECT_EQ(downloaded(), content_);
  const std::vector<HubRequest> sent = server_.requests_for(name_);
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(sent[0].header("authorization"), "Bearer hf_secret");
  EXPECT_EQ(sent[1].header("authorization"), "");
}

TEST_F(HubDownload, DoesNotFollowEveryRedirect) {
  const auto refuse = [&](const std::string& address, const std::string& part) {
    server_.forget_requests();
    server_.set_script([&](const HubRequest& request, int) -> std::optional<HubAnswer> {
      return request.is_for(name_) ? std::optional(redirect_to(address)) : std::nullopt;
    });
    expect_error(
        ErrorCode::input_output, [&] { download(); }, part);
    EXPECT_EQ(downloaded().value_or(""), "");
  };
  refuse("/org/loop/" + name_, "more than 10 times");
  EXPECT_EQ(server_.requests_for(name_).size(), 11U);
  refuse("file:///etc/passwd", "neither https nor http");
  refuse("ftp://127.0.0.1/x", "neither https nor http");
  server_.set_script([&](const HubRequest& request, int) -> std::optional<HubAnswer> {
    return request.is_for(name_) ? std::optional(with_status("302 Found")) : std::nullopt;
  });
  expect_error(
      ErrorCode::input_output, [&] { download(); }, "without an address");
}

TEST_F(HubDownload, SaysWhatToDoWhereAModelMayNotBeRead) {
  struct Case {
    const char* status;
    const char* token;
    ErrorCode code;
    const char* part;
  };
  for (const Case& refused :
       {Case{"401 Unauthorized", "", ErrorCode::input_output, "set HF_TOKEN"},
        Case{"403 Forbidden", "", ErrorCode::input_output, "accept its terms at"},
        Case{"403 Forbidden", "hf_x", ErrorCode::input_output, "with the token's account"},
        Case{"404 Not Found", "", ErrorCode::not_found, "check the name"}}) {
    server_.forget_requests();
    server_.set_script([&](const HubRequest&, int) { return with_status(refused.status); });
    expect_error(
        refused.code, [&] { download(options(refused.token)); }, "org/small", refused.part);
    EXPECT_EQ(server_.requests().size(), 1U) << "no second try";
  }
  // Of the file alone.
  for (const char* status : {"401 Unauthorized", "403 Forbidden", "404 Not Found"}) {
    server_.set_script([&](const HubRequest& request, int) -> std::optional<HubAnswer> {
      return request.is_for(name_) ? std::optional(with_status(status)) : std::nullopt;
    });
    EXPECT_THROW(download(), Error) << status;
    EXPECT_EQ(downloaded().value_or(""), "");
  }
  EXPECT_TRUE(pauses_.empty());
}

TEST_F(HubDownload, TriesTheListingAgain) {
  server_.set_script([&](const HubRequest& request, int number) -> std::optional<HubAnswer> {
    if (request.is_for(name_) || number > 1) return std::nullopt;
    if (number == 0) return with_status("503 Service Unavailable");
    return HubServer::cut(HubServer::json_answer(server_.listing()), 40);
  });
  download();
  EXPECT_EQ(downloaded(), content_);
  EXPECT_EQ(pauses_.size(), 2U);
}

TEST_F(HubDownload, RefusesAnEndlessListing) {
  server_.set_script([&](const HubRequest&, int) {
    return HubAnswer{http_reply("200 OK", "", std::string(std::size_t{5} << 20, ' '))};
  });
  expect_error(
      ErrorCode::corrupt_data, [&] { download(); }, "4194304");
  // An endless error page is a status all the same.
  server_.set_script([&](const HubRequest&, int) {
    return HubAnswer{http_reply("404 Not Found", "", std::string(std::size_t{5} << 20, ' '))};
  });
  expect_error(
      ErrorCode::not_found, [&] { download(); }, "check the name");
}

TEST_F(HubDownload, MakesNoConnectionOffline) {
  HubOptions offline = options();
  offline.settings.offline = true;
  expect_error(
      ErrorCode::unsupported, [&] { download(offline); }, "HEED_OFFLINE");
  EXPECT_TRUE(server_.requests().empty());
}

TEST_F(HubDownload, TriesAgainWhereNobodyListens) {
  HubOptions nowhere = options();
  nowhere.settings.endpoint = "http://127.0.0.1:1";
  nowhere.retry.max_tries = 3;
  expect_error(
      ErrorCode::input_output, [&] { download(nowhere); }, "3 tries");
  EXPECT_EQ(pauses_.size(), 2U);
  // A name that no resolver asks the network for.
  pauses_.clear();
  nowhere.settings.endpoint = "http://" + std::string(64, 'a') + ".invalid";
  expect_error(
      ErrorCode::input_output, [&] { download(nowhere); }, "3 tries", "resolve");
  EXPECT_EQ(pauses_.size(), 2U);
}

TEST(HubSettings, AreTheEnvironments) {
  const EnvironmentVariable endpoint("HF_ENDPOINT", nullptr);
  const EnvironmentVariable token("HF_TOKEN", nullptr);
  const EnvironmentVariable offline("HEED_OFFLINE", nullptr);
  EXPECT_EQ(hub_settings_from_environment().endpoint, "https://huggingface.co");
  EXPECT_FALSE(hub_settings_from_environment().offline);
  {
    const EnvironmentVariable mirror("HF_ENDPOINT", "http://127.0.0.1:8080/hub/");
    const EnvironmentVariable secret("HF_TOKEN", " hf_abc\n");
    const EnvironmentVariable zero("HEED_OFFLINE", "0");
    EXPECT_EQ(hub_settings_from_environment().endpoint, "http://127.0.0.1:8080/hub");
    EXPECT_EQ(hub_settings_from_environment().token, "hf_abc");
    EXPECT_FALSE(hub_settings_from_environment().offline);
  }
  const EnvironmentVariable one("HEED_OFFLINE", "1");
  EXPECT_TRUE(hub_settings_from_environment().offline);
  for (const char* wrong : {"huggingface", "file:///tmp", "https://user:word@host",
                            "https://h/?a=b", "https://h/#f", "https://"}) {
    const EnvironmentVariable set("HF_ENDPOINT", wrong);
    expect_error(
        ErrorCode::invalid_argument, [] { hub_settings_from_environment(); }, "HF_ENDPOINT");
  }
  const EnvironmentVariable injected("HF_TOKEN", "hf_abc\r\nX-Header: x");
  expect_error(
      ErrorCode::invalid_argument, [] { hub_settings_from_environment(); }, "HF_TOKEN");
}

TEST(UrlOrigin, IsSchemeHostAndPort) {
  EXPECT_EQ(url_origin("https://HuggingFace.co/gpt2?x#y"), "https://huggingface.co:443");
  EXPECT_EQ(url_origin("http://127.0.0.1:8080/a"), "http://127.0.0.1:8080");
  EXPECT_EQ(url_origin("https://huggingface.co@evil.example/"), "https://evil.example:443");
  EXPECT_NE(url_origin("https://huggingface.co.evil.example/"),
            url_origin("https://huggingface.co"));
  EXPECT_NE(url_origin("http://huggingface.co:443/"), url_origin("https://huggingface.co"));
  EXPECT_EQ(url_origin("file:///etc/passwd"), "");
  EXPECT_EQ(url_origin("nothing"), "");
}

TEST(Redirect, NeverLeavesEncryption) {
  check_redirect("https://a.example/x", "https://b.example/y");
  check_redirect("http://a.example/x", "http://b.example/y");
  check_redirect("http://a.example/x", "https://a.example/x");
  expect_error(
      ErrorCode::input_output,
      [] { check_redirect("https://a.example/x?key=secret", "http://a.example/x"); },
      "'https://a.example/x' redirects", "not encrypted");
}

}  // namespace
}  // namespace heed
