// The translator beside a model: described, used for pairs and translations, loaded when it is
// first needed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/embedded_files.h"
#include "engine/loaded_model.h"
#include "microscope/attention/recorded_attention.h"
#include "server/explorer_support.h"
#include "server/openapi.h"
#include "server/openapi_schema.h"
#include "server/test_server.h"
#include "server/translation_server.h"
#include "support/small_model.h"

namespace heed::server {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::small_loaded_translator;
using testing::TestExplorer;

LoadedModel small_decoder() {
  return {.name = "decoder", .transformer = heed::testing::small_gpt(300, 64)};
}

class TranslatorBesideAModel : public ::testing::Test {
 protected:
  std::vector<std::string> faults(const Json& value, const std::string& method,
                                  const std::string& path) const {
    return testing::SchemaChecker(document_).faults(
        value, document_["paths"][path][method]["responses"]["200"]["content"]["application/json"]
                        ["schema"]);
  }

  int loads_ = 0;
  HeldTranslator held_{[this] {
    ++loads_;
    return small_loaded_translator();
  }};
  TestExplorer explorer_{small_decoder(), {}, &held_};
  const Json document_ = Json::parse(openapi_document());
};

TEST_F(TranslatorBesideAModel, IsLoadedAtItsFirstUse) {
  explorer_.get("/api/model");
  explorer_.get("/v1/models");
  EXPECT_FALSE(held_.is_loaded());
  explorer_.get("/api/traces");
  explorer_.post("/api/traces", {{"tokens", {1, 2}}});
  EXPECT_FALSE(held_.is_loaded());
  explorer_.post("/api/traces", {{"source", "the dog"}});
  EXPECT_TRUE(held_.is_loaded());
  explorer_.get("/api/translator");
  explorer_.post("/v1/translations", {{"input", "the dog"}, {"max_tokens", 2}});
  EXPECT_EQ(loads_, 1);
}

TEST_F(TranslatorBesideAModel, IsDescribed) {
  const Json card = explorer_.get("/api/translator");
  EXPECT_THAT(faults(card, "get", "/api/translator"), IsEmpty());
  EXPECT_TRUE(card["name"] == "small");
  EXPECT_FALSE(card["embedded"].get<bool>());
  EXPECT_TRUE(card["languages"].is_null());
  EXPECT_TRUE(card["examples"].empty());
  const Architecture& architecture = held_.get().transformer.architecture();
  EXPECT_EQ(card["decoder"]["vocabulary"].get<std::int64_t>(),
            architecture.decoder().vocabulary_size);
  EXPECT_EQ(card["encoder"]["layers"].get<std::int64_t>(), architecture.encoder().layers);
  EXPECT_EQ(card["parameters"].get<std::int64_t>(),
            std::ssize(held_.get().transformer.parameters().all()));
  EXPECT_TRUE(card["architecture"]["encoder"]["positions"] == "sinusoidal");
  EXPECT_TRUE(explorer_.get("/api/model")["name"] == "decoder");
}

TEST_F(TranslatorBesideAModel, TranslatesAndShowsPairs) {
  const Json reply = explorer_.post(
      "/v1/translations", {{"input", {"the dog sees", "a bird"}}, {"beams", 3}, {"n", 2}});
  EXPECT_THAT(faults(reply, "post", "/v1/translations"), IsEmpty());
  EXPECT_TRUE(reply["model"] == "small");
  testing::TranslationServer alone;
  const Json expected = alone.post("/v1/translations",
                                   {{"input", {"the dog sees", "a bird"}}, {"beams", 3}, {"n", 2}});
  EXPECT_TRUE(reply["choices"] == expected["choices"]);

  const Json pair = explorer_.post("/api/traces", {{"source", "the dog"}, {"target", "der Hund"}});
  EXPECT_TRUE(pair["model"]["name"] == "small");
  const auto shown =
      explorer_.array("/api/traces/" + pair["id"].get<std::string>() + "/attention/cross/0/1");
  const LoadedModel& model = held_.get();
  const RecordedPass pass(model.transformer,
                          {model.encode_source("the dog"), model.encode_target("der Hund")});
  const Tensor<float> plane = RecordedAttention(pass).pattern(cross_site, 0, 1);
  ASSERT_EQ(std::ssize(shown.values), plane.size());
  for (std::int64_t i = 0; i < plane.size(); ++i) {
    EXPECT_NEAR(shown.values[static_cast<std::size_t>(i)], plane[i], 1e-6);
  }
}

TEST(TranslatorBesideNone, SaysSo) {
  TestExplorer explorer(small_decoder());
  EXPECT_THAT(explorer.refusal("GET", "/api/translator", 404), HasSubstr("no translator"));
  EXPECT_THAT(explorer.refusal("POST", "/v1/translations", 422, R"({"input":"a"})"),
              HasSubstr("does not translate"));
}

TEST(TranslatorBesideNone, AFailureToLoadIsReportedEachTime) {
  HeldTranslator held([]() -> LoadedModel { fail(ErrorCode::corrupt_data, "damaged"); });
  TestExplorer explorer(small_decoder(), {}, &held);
  for (int i = 0; i < 2; ++i) {
    EXPECT_GE(explorer.send("GET", "/api/translator").status, 400);
    EXPECT_GE(explorer.send("POST", "/api/traces", R"({"source":"a"})").status, 400);
  }
  EXPECT_EQ(explorer.send("GET", "/health").status, 200);
}

TEST(TranslatorAsTheModel, IsDescribedAlike) {
  const LoadedModel translator = small_loaded_translator();
  Compute compute;
  Router router;
  register_translator_explorer(router, compute, translator, 1 << 24);
  const Reply reply = router.handle(parse_request("GET", "/api/translator"));
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_TRUE(Json::parse(reply.body)["name"] == "small");
}

// A whole server without -m.
TEST(TranslatorOfHeed, IsHeldBesideTheStarter) {
  if (!translator_files()) GTEST_SKIP() << "this build carries no translator";
  ServeOptions options;
  options.face = Face::explorer;
  const testing::TestServer server(options);
  const Json card = server.get("/api/translator");
  EXPECT_TRUE(card["embedded"].get<bool>());
  EXPECT_EQ(card["languages"].size(), 2U);
  EXPECT_GE(card["examples"].size(), 6U);
  const Json reply = server.post("/v1/translations", {{"input", "The dog sleeps."}});
  EXPECT_TRUE(reply["model"] == "translator");
  const Json pair = server.post("/api/traces", {{"source", "The dog sleeps."}});
  EXPECT_TRUE(pair["model"]["name"] == "translator");
}

}  // namespace
}  // namespace heed::server
