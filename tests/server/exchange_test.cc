#include "server/exchange.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/expect_error.h"
#include "server/compute.h"
#include "server/fields.h"
#include "server/gate.h"
#include "server/router.h"

namespace heed::server {
namespace {

using heed::testing::expect_error;

TEST(Exchange, ReadsPathAndQuery) {
  const Request request = parse_request("GET", "/a%20b/c?x=1&y=%C3%A9+z&flag#part");
  EXPECT_EQ(request.path, "/a%20b/c");
  EXPECT_EQ(request.segments, (std::vector<std::string>{"a b", "c"}));
  EXPECT_EQ(request.integer("x", 7), 1);
  EXPECT_EQ(request.integer("absent", 7), 7);
  EXPECT_EQ(request.parameter("y"), "\u00e9 z");
  EXPECT_EQ(request.parameter("flag"), "");
  EXPECT_EQ(parse_request("GET", "/").segments, std::vector<std::string>{""});
}

TEST(Exchange, RefusesWhatIsNoAddress) {
  for (const char* target : {"",        "a",           "http://x/", "*",           "/%",
                             "/%2",     "/%zz",        "/a%00b",    "/a b",        "/..",
                             "/a/../b", "/a/%2e%2e/b", "/a/./b",    "/a%2f..%2fb", "/%2e%2e%2fb",
                             "/a%5cb",  "/?a=1&a=2",   "/?a=%",     "/a\x01",      "/a\n"}) {
    expect_error(ErrorCode::invalid_argument, [&] { parse_request("GET", target); });
  }
}

TEST(Exchange, NumbersAreWholeNumbersAndFinite) {
  const Request request =
      parse_request("GET", "/?i=1.5&j=99999999999999999999&n=nan&f=inf&g=1e3&h=2x");
  for (const char* name : {"i", "j", "n", "h"}) {
    expect_error(
        ErrorCode::invalid_argument, [&] { request.integer(name, 0); }, name);
  }
  for (const char* name : {"n", "f", "h"}) {
    expect_error(
        ErrorCode::invalid_argument, [&] { request.number(name, 0); }, name);
  }
  EXPECT_EQ(request.number("g", 0), 1000);
}

TEST(Exchange, WritesNumbersWithTheDigitsOfTheirType) {
  EXPECT_EQ(json_number(0.1F).dump(), "0.1");
  EXPECT_EQ(json_number(-INFINITY), nullptr);
  EXPECT_EQ(json_number(NAN), nullptr);
}

TEST(Exchange, RepliesInValidTextWhateverItIsGiven) {
  const Reply reply = json_reply({{"text", "\xC3"}});
  EXPECT_EQ(reply.body, "{\"text\":\"\uFFFD\"}\n");
}

Router small_router() {
  Router router;
  router.add("GET", "/items/{id}", [](const Request& request) {
    return json_reply({{"id", request.integer_in_path("id")}});
  });
  router.add("DELETE", "/items/{id}",
             [](const Request&) -> Reply { throw Error(ErrorCode::conflict, "it is in use"); });
  router.add("GET", "/items/all", [](const Request&) { return json_reply({{"id", "all"}}); });
  router.add("POST", "/fails", [](const Request&) -> Reply { throw std::bad_alloc(); });
  return router;
}

int status(const std::string& method, const std::string& target) {
  return small_router().handle(parse_request(method, target)).status;
}

TEST(Exchange, ErrorsAreOpenAIsObjects) {
  const auto error_of = [](const Reply& reply) { return Json::parse(reply.body)["error"]; };
  EXPECT_EQ(error_of(error_reply(401, "no key")), (Json{{"message", "no key"},
                                                        {"type", "authentication_error"},
                                                        {"param", nullptr},
                                                        {"code", "invalid_api_key"}}));
  EXPECT_EQ(error_of(error_reply(400, "bad")), (Json{{"message", "bad"},
                                                     {"type", "invalid_request_error"},
                                                     {"param", nullptr},
                                                     {"code", nullptr}}));
  const auto thrown = [&](const std::function<void()>& work) {
    try {
      work();
      return Json();
    } catch (...) {
      const Reply reply = reply_to_exception();
      EXPECT_EQ(reply.status, 400);
      return error_of(reply);
    }
  };
  EXPECT_EQ(thrown([] { throw FieldError("stop", field_code::invalid_type, "no"); }),
            (Json{{"message", "no"},
                  {"type", "invalid_request_error"},
                  {"param", "stop"},
                  {"code", "invalid_type"}}));
  EXPECT_TRUE(thrown([] { throw Error(ErrorCode::invalid_argument, "no"); })["param"].is_null());
}

// A client may print them.
TEST(Exchange, ErrorsHoldNoControlCharacters) {
  const Json error = Json::parse(
      error_reply(400, ErrorDetails{.message = "a\x1b[2J\u009b\n\xff", .param = "b\x1b"})
          .body)["error"];
  EXPECT_EQ(error["message"].get<std::string>(), "a\\x1B[2J\\u{9B}\\n\\xFF");
  EXPECT_EQ(error["param"].get<std::string>(), "b\\x1B");
  try {
    throw std::runtime_error("c\x1b");
  } catch (...) {
    EXPECT_NE(reply_to_exception().body.find("c\\\\x1B"), std::string::npos);
  }
}

TEST(Router, TellsItsObserverOfEveryReply) {
  std::vector<std::pair<std::string, int>> observed;
  Router router;
  router.set_observer([&](const std::string& route, int status, double seconds) {
    EXPECT_GE(seconds, 0);
    observed.emplace_back(route, status);
  });
  router.add("GET", "/a/{name}", [](const Request&) { return json_reply({}); });
  router.add("GET", "/stream", [](const Request&) {
    Reply reply;
    reply.stream = [](StreamWriter&) { return false; };
    return reply;
  });
  router.handle(parse_request("GET", "/a/b"));
  router.handle(parse_request("POST", "/a/b"));
  router.handle(parse_request("GET", "/nowhere"));
  const std::vector<std::pair<std::string, int>> whole{
      {"/a/{name}", 200}, {"/a/{name}", 405}, {"unmatched", 404}};
  EXPECT_EQ(observed, whole);
  class Ignore final : public StreamWriter {
    bool write(std::string_view) override { return true; }
  } writer;
  {
    const Reply reply = router.handle(parse_request("GET", "/stream"));
    EXPECT_EQ(observed.size(), 3U);  // a streamed reply ends with its stream
    write_stream(reply, writer);
    EXPECT_EQ(observed.size(), 4U);
  }
  EXPECT_EQ(observed.size(), 4U);
  router.handle(parse_request("GET", "/stream"));  // the client disconnected before the stream
  EXPECT_EQ(observed.size(), 5U);
}

TEST(Router, FindsHandlersAndSaysWhyNot) {
  EXPECT_EQ(small_router().handle(parse_request("GET", "/items/12")).body, "{\"id\":12}\n");
  EXPECT_EQ(status("HEAD", "/items/12"), 200);
  EXPECT_EQ(status("GET", "/items/x"), 400);
  EXPECT_EQ(status("GET", "/items/-1"), 400);
  EXPECT_EQ(status("GET", "/items/"), 404);
  EXPECT_EQ(status("GET", "/items/1/2"), 404);
  EXPECT_EQ(status("GET", "/nothing"), 404);
  EXPECT_EQ(status("DELETE", "/items/1"), 409);
  EXPECT_EQ(status("POST", "/fails"), 503);
  const Reply reply = small_router().handle(parse_request("POST", "/items/12"));
  EXPECT_EQ(reply.status, 405);
  ASSERT_EQ(reply.headers.size(), 1U);
  EXPECT_EQ(reply.headers[0].second, "GET, DELETE");
  EXPECT_NE(reply.body.find("\"type\":\"invalid_request_error\""), std::string::npos);
}

TEST(Router, ANameAtTheEndMayStandForSeveralSegments) {
  Router router;
  const Handler named = [](const Request& request) {
    return json_reply({{"name", request.in_path("name")}});
  };
  router.add("GET", "/models/{name...}", named);
  router.add("GET", "/runs/{name}", named);
  EXPECT_EQ(router.routes()[0].pattern, "/models/{name}");
  for (const char* target : {"/models/org/small", "/models/org%2Fsmall"}) {
    EXPECT_EQ(router.handle(parse_request("GET", target)).body, "{\"name\":\"org/small\"}\n");
  }
  for (const char* target : {"/models", "/models/", "/runs/a%2Fb", "/models%2Forg"}) {
    EXPECT_EQ(router.handle(parse_request("GET", target)).status, 404) << target;
  }
}

TEST(Router, RefusesParametersThatARouteDoesNotTake) {
  Router router;
  router.add("GET", "/a", [](const Request&) { return json_reply({}); });
  router.add("GET", "/b", [](const Request&) { return json_reply({}); });
  router.allow_queries({"GET", "/a"}, {"limit", "offset"});
  EXPECT_EQ(router.handle(parse_request("GET", "/a?limit=1&offset=2")).status, 200);
  EXPECT_EQ(router.handle(parse_request("GET", "/b?anything=1")).status, 200);
  const Reply reply = router.handle(parse_request("GET", "/a?limits=1"));
  EXPECT_EQ(reply.status, 400);
  EXPECT_NE(reply.body.find("did you mean 'limit'"), std::string::npos) << reply.body;
  EXPECT_NE(reply.body.find("\"code\":\"unknown_parameter\""), std::string::npos);
}

Request with_headers(const std::map<std::string, std::string>& headers,
                     const std::string& method = "GET", const std::string& target = "/v1/models") {
  Request request = parse_request(method, target);
  request.headers = headers;
  return request;
}

int refusal(const GateOptions& options, const Request& request) {
  const auto reply = Gate(options).check(request);
  return reply ? reply->status : 0;
}

TEST(Gate, KnowsItsOwnNames) {
  for (const char* host :
       {"localhost", "localhost:8080", "LOCALHOST", "127.0.0.1:1", "[::1]:8080", "192.168.1.7"}) {
    EXPECT_EQ(refusal({}, with_headers({{"host", host}})), 0) << host;
  }
  for (const char* host :
       {"evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "evil"}) {
    EXPECT_EQ(refusal({}, with_headers({{"host", host}})), 421) << host;
  }
  for (const char* host : {"[::1].evil.example", "[evil.com]", "localhost:x@evil.com",
                           "localhost:99999", "localhost:", "localhost, localhost"}) {
    EXPECT_EQ(refusal({}, with_headers({{"host", host}})), 400) << host;
  }
  EXPECT_EQ(refusal({}, with_headers({})), 400);
  EXPECT_EQ(refusal({.allowed_hosts = {"box.lan"}}, with_headers({{"host", "box.lan:8080"}})), 0);
  EXPECT_EQ(refusal({.allowed_hosts = {"Box.LAN"}}, with_headers({{"host", "bOX.lan."}})), 0);
}

TEST(Gate, KeepsOtherPagesOut) {
  const std::map<std::string, std::string> own{{"host", "localhost:8080"},
                                               {"origin", "http://localhost:8080"}};
  EXPECT_EQ(refusal({}, with_headers(own)), 0);
  for (const char* origin : {"http://evil.example", "null", "http://localhost:9"}) {
    EXPECT_EQ(refusal({}, with_headers({{"host", "localhost:8080"}, {"origin", origin}})), 403);
  }
  EXPECT_EQ(refusal({}, with_headers({{"host", "localhost"}, {"sec-fetch-site", "cross-site"}})),
            403);
  const GateOptions open{.allowed_origins = {"https://page.example"}};
  const Request asked =
      with_headers({{"host", "localhost"}, {"origin", "https://page.example"}}, "OPTIONS");
  EXPECT_EQ(refusal(open, asked), 204);
  Reply reply;
  Gate(open).add_headers(asked, reply);
  EXPECT_EQ(reply.headers[0].second, "https://page.example");
}

TEST(Gate, APageMaySendTheHeadersThatItAsksFor) {
  const auto allowed_headers = [](const std::string& asked) -> std::string {
    std::map<std::string, std::string> headers{{"host", "localhost"},
                                               {"origin", "https://page.example"},
                                               {"access-control-request-method", "POST"}};
    if (!asked.empty()) headers["access-control-request-headers"] = asked;
    const auto reply = Gate({.allowed_origins = {"https://page.example"}})
                           .check(with_headers(headers, "OPTIONS", "/v1/chat/completions"));
    EXPECT_EQ(reply->status, 204);
    for (const auto& [name, value] : reply->headers) {
      if (name == "Access-Control-Allow-Headers") return value;
    }
    return "";
  };
  // What OpenAI's client sends.
  const std::string openai =
      "authorization,content-type,x-stainless-arch,x-stainless-lang,x-stainless-retry-count";
  EXPECT_EQ(allowed_headers(openai), openai);
  const std::string usual = "Authorization, Content-Type, X-Api-Key";
  EXPECT_EQ(allowed_headers(""), usual);
  EXPECT_EQ(allowed_headers("x: y"), usual);
  const Request other = with_headers({{"host", "localhost"},
                                      {"origin", "https://other.example"},
                                      {"access-control-request-headers", "x-stainless-lang"}},
                                     "OPTIONS");
  EXPECT_EQ(refusal({.allowed_origins = {"https://page.example"}}, other), 403);
}

TEST(Gate, OnlyLinksAreFollowedFromOtherSites) {
  const std::map<std::string, std::string> followed{
      {"host", "localhost"}, {"sec-fetch-site", "cross-site"}, {"sec-fetch-mode", "navigate"}};
  EXPECT_EQ(refusal({}, with_headers(followed, "GET")), 0);
  EXPECT_EQ(refusal({}, with_headers(followed, "HEAD")), 0);
  for (const char* method : {"POST", "DELETE", "PUT", "OPTIONS"}) {
    EXPECT_EQ(refusal({}, with_headers(followed, method, "/api/training")), 403) << method;
  }
}

TEST(Gate, DoesNotAdviseToAllowTheOriginNull) {
  const std::string message =
      Gate({}).check(with_headers({{"host", "localhost"}, {"origin", "null"}}))->body;
  EXPECT_EQ(message.find("--allow-origin null"), std::string::npos) << message;
  EXPECT_NE(message.find("serve the page over HTTP"), std::string::npos) << message;
}

TEST(Gate, ComparesOriginsByWhatTheyMean) {
  const auto with = [](const std::string& host, const std::string& origin) {
    return with_headers({{"host", host}, {"origin", origin}});
  };
  EXPECT_EQ(refusal({}, with("LocalHost", "http://localhost:80")), 0);
  EXPECT_EQ(refusal({}, with("localhost:80", "HTTP://localhost")), 0);
  EXPECT_EQ(refusal({}, with("localhost:443", "https://localhost")), 0);
  EXPECT_EQ(refusal({}, with("[0::1]:8080", "http://[::1]:8080")), 0);
  EXPECT_EQ(refusal({}, with("localhost", "http://localhost:443")), 403);
  EXPECT_EQ(refusal({}, with("localhost:8080", "http://localhost")), 403);
  const GateOptions open{.allowed_origins = {"HTTPS://Page.example:443"}};
  EXPECT_EQ(refusal(open, with("localhost", "https://page.example")), 0);
  EXPECT_EQ(refusal(open, with("localhost", "http://page.example")), 403);
  EXPECT_EQ(refusal({.allowed_origins = {"null"}}, with("localhost", "null")), 0);
}

TEST(Gate, NamesTheOptionThatWouldAccept) {
  const auto message = [](const std::map<std::string, std::string>& headers) {
    return Gate({}).check(with_headers(headers))->body;
  };
  EXPECT_NE(message({{"host", "Box.LAN:8080"}}).find("--allow-host box.lan\""), std::string::npos);
  EXPECT_NE(message({{"host", "localhost"}, {"origin", "HTTPS://Example.com:443"}})
                .find("--allow-origin https://example.com\""),
            std::string::npos);
  EXPECT_NE(message({{"host", "localhost"}, {"sec-fetch-site", "cross-site"}})
                .find("--allow-origin '*'\""),
            std::string::npos);
}

TEST(Gate, AsksForTheKey) {
  const GateOptions options{.api_key = "secret"};
  const auto with = [](const std::string& name, const std::string& value) {
    return with_headers({{"host", "localhost"}, {name, value}});
  };
  EXPECT_EQ(refusal(options, with("authorization", "Bearer secret")), 0);
  EXPECT_EQ(refusal(options, with("authorization", "bearer secret")), 0);
  EXPECT_EQ(refusal(options, with("x-api-key", "secret")), 0);
  for (const char* key : {"", "Bearer", "Bearer ", "Bearer secre", "Bearer secrets",
                          "Bearer SECRET", "Basic secret", "Bearer secretsecret"}) {
    EXPECT_EQ(refusal(options, with("authorization", key)), 401) << key;
  }
  EXPECT_EQ(refusal(options, with_headers({{"host", "localhost"}}, "GET", "/health")), 0);
  EXPECT_EQ(refusal(options, with_headers({{"host", "localhost"}}, "GET", "/props")), 401);
}

TEST(Gate, LooksAtWhatABodyAnnounces) {
  const auto with = [](const std::string& name, const std::string& value) {
    return with_headers({{"host", "localhost"}, {name, value}}, "POST");
  };
  EXPECT_EQ(refusal({.max_body_bytes = 10}, with("content-length", "10")), 0);
  EXPECT_EQ(refusal({.max_body_bytes = 10}, with("content-length", "11")), 413);
  EXPECT_EQ(refusal({}, with("content-length", "99999999999999999999999")), 413);
  for (const char* length : {"-1", "x", "1x", "1, 1", " 1", "0x10"}) {
    EXPECT_EQ(refusal({}, with("content-length", length)), 400) << length;
  }
  EXPECT_EQ(refusal({}, with("transfer-encoding", "gzip")), 400);
  EXPECT_EQ(refusal({}, with("content-encoding", "gzip")), 415);
  EXPECT_EQ(refusal({}, with("content-type", "multipart/form-data; boundary=x")), 415);
}

TEST(Compute, TakesTurnsInOrderAndPassesErrorsOn) {
  Compute compute;
  std::vector<int> order;
  std::atomic<bool> begun{false};
  std::atomic<bool> released{false};
  compute.post([&] {
    begun = true;
    while (!released) std::this_thread::yield();
  });
  while (!begun) std::this_thread::yield();
  for (int i = 0; i < 4; ++i) compute.post([&order, i] { order.push_back(i); });
  EXPECT_EQ(compute.waiting(), 4);
  released = true;
  EXPECT_EQ(compute.run(nullptr, [&] { return order.size(); }), 4U);
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
  expect_error(ErrorCode::conflict,
               [&] { compute.run(nullptr, [] { throw Error(ErrorCode::conflict, "no"); }); });
  const std::atomic<bool> stop{true};
  expect_error(ErrorCode::interrupted,
               [&] { compute.run(&stop, [] { FAIL() << "the work was not wanted any more"; }); });
}

}  // namespace
}  // namespace heed::server
