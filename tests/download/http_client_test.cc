// Servers that drip, headers without end, and certificates of other hosts.
#include "download/http_client.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "base/environment_variable.h"
#include "base/expect_error.h"
#include "base/temporary_directory.h"
#include "support/hub_server.h"

namespace heed {
namespace {

using testing::EnvironmentVariable;
using testing::expect_error;
using testing::HubAnswer;
using testing::HubRequest;
using testing::HubServer;
using testing::TemporaryDirectory;

class KeptBody : public HttpBody {
 public:
  bool begin(const HttpReply&) override { return true; }
  void write(std::string_view bytes) override { text += bytes; }
  std::string text;
};

class HttpClientTest : public ::testing::Test {
 protected:
  const EnvironmentVariable no_proxy_{"no_proxy", "127.0.0.1,localhost"};
  HubServer server_;
  KeptBody body_;
};

TEST_F(HttpClientTest, GivesUpAServerThatDrips) {
  server_.set_script([](const HubRequest&, int) -> std::optional<HubAnswer> {
    return HubAnswer{
        .bytes = testing::http_reply("200 OK", testing::content_length(60), std::string(60, 'a')),
        .drips = true};
  });
  HttpClient client({.stall_timeout = std::chrono::seconds(1)});
  const HttpReply reply = client.get({.url = server_.endpoint() + "/file"}, body_);
  EXPECT_EQ(reply.status, 200);
  EXPECT_NE(reply.failure, "") << "another try may bring more";
  EXPECT_LT(body_.text.size(), 60U);
}

TEST_F(HttpClientTest, RefusesAHeaderWithoutEnd) {
  std::string lines;
  for (int i = 0; i < 10'000; ++i)
    lines += "X-" + std::to_string(i) + ": " + std::string(40, 'a') + "\r\n";
  for (const std::string& header : {lines, "X: " + std::string(1 << 20, 'a') + "\r\n"}) {
    server_.set_script([&](const HubRequest&, int) -> std::optional<HubAnswer> {
      return HubAnswer{testing::http_reply("200 OK", header, "")};
    });
    HttpClient client({});
    expect_error(
        ErrorCode::input_output, [&] { client.get({.url = server_.endpoint() + "/file"}, body_); },
        "the header of the reply has more than");
  }
}

// openssl's own server, with a certificate for one name.
class TlsServer {
 public:
  TlsServer(const TemporaryDirectory& directory, const std::string& name) {
    const std::string key = (directory / "key.pem").string();
    certificate_ = (directory / "certificate.pem").string();
    const std::string make =
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=heed -addext subjectAltName=" +
        name + " -keyout " + key + " -out " + certificate_ + " 2>/dev/null";
    if (std::system(make.c_str()) != 0) return;
    int output[2];
    if (::pipe(output) != 0) return;
    process_ = ::fork();
    if (process_ == 0) {
      ::dup2(output[1], STDOUT_FILENO);
      ::execlp("openssl", "openssl", "s_server", "-accept", "127.0.0.1:0", "-cert",
               certificate_.c_str(), "-key", key.c_str(), "-www", nullptr);
      ::_exit(127);
    }
    ::close(output[1]);
    FILE* const lines = ::fdopen(output[0], "r");
    char line[256];
    while (port_ == 0 && std::fgets(line, sizeof line, lines) != nullptr) {
      std::sscanf(line, "ACCEPT 127.0.0.1:%d", &port_);
    }
    std::fclose(lines);
  }
  ~TlsServer() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  TlsServer(const TlsServer&) = delete;
  TlsServer& operator=(const TlsServer&) = delete;

  bool is_running() const { return port_ > 0; }
  const std::string& certificate() const { return certificate_; }
  std::string url() const { return "https://127.0.0.1:" + std::to_string(port_) + "/"; }

 private:
  std::string certificate_;
  pid_t process_ = -1;
  int port_ = 0;
};

TEST_F(HttpClientTest, RefusesTheCertificateOfAnotherHost) {
  const TemporaryDirectory directory, other_directory;
  const TlsServer right(directory, "IP:127.0.0.1");
  const TlsServer other(other_directory, "DNS:other.example");
  if (!right.is_running() || !other.is_running()) GTEST_SKIP() << "there is no openssl";
  {
    const EnvironmentVariable trusted("CURL_CA_BUNDLE", right.certificate().c_str());
    HttpClient client({});
    const HttpReply reply = client.get({.url = right.url()}, body_);
    EXPECT_EQ(reply.status, 200) << reply.failure;
  }
  // Its certificate is trusted, but names another host.
  const EnvironmentVariable trusted("CURL_CA_BUNDLE", other.certificate().c_str());
  HttpClient client({});
  expect_error(
      ErrorCode::input_output, [&] { client.get({.url = other.url()}, body_); }, "127.0.0.1");
  // A certificate that nobody vouches for.
  HttpClient stranger({});
  expect_error(
      ErrorCode::input_output, [&] { stranger.get({.url = right.url()}, body_); }, "certificate");
}

}  // namespace
}  // namespace heed
