// A server of a small translator, without sockets: requests go to the router.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "server/translations.h"
#include "support/small_translator.h"

namespace heed::server::testing {

inline LoadedModel small_loaded_translator() {
  TranslationTokenizers tokenizers = heed::testing::small_joint_vocabulary();
  Transformer model = heed::testing::small_translator(tokenizers);
  return {.name = "small",
          .transformer = std::move(model),
          .tokenizer = std::move(tokenizers.target),
          .source_tokenizer = std::move(tokenizers.source)};
}

class TranslationServer {
 public:
  TranslationServer() { register_translation_service(router_, context_); }

  const LoadedModel& translator() const { return translator_; }
  const Router& router() const { return router_; }

  Reply send(const std::string& method, const std::string& target, const std::string& body = "") {
    Request request = parse_request(method, target);
    request.body = body;
    return router_.handle(std::move(request));
  }

  // The reply's JSON; fails the test where the status is another.
  Json post(const std::string& target, const Json& body, int status = 200) {
    const Reply reply = send("POST", target, body.dump());
    EXPECT_EQ(reply.status, status) << reply.body;
    return Json::parse(reply.body);
  }

 private:
  LoadedModel translator_ = small_loaded_translator();
  Metrics metrics_;
  Compute compute_;
  TranslationContext context_{.translator = translator_,
                              .name = "small",
                              .aliases = {},
                              .compute = compute_,
                              .metrics = metrics_,
                              .created = 0};
  Router router_;
};

}  // namespace heed::server::testing
