// Traces of a source and a target: numbers of the pass, documents as OpenAPI says.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/loaded_model.h"
#include "engine/searched_beams.h"
#include "microscope/attention/recorded_attention.h"
#include "microscope/toy_pairs.h"
#include "microscope/traces/activation_trace.h"
#include "microscope/traces/capture.h"
#include "server/explorer_support.h"
#include "server/openapi.h"
#include "server/openapi_schema.h"

namespace heed::server {
namespace {

// A toy that speaks with the starter's tokens.
LoadedModel toy_translator() {
  Architecture architecture = heed::testing::toy_pair_architecture({});
  std::shared_ptr<const Tokenizer> tokenizer = load_model_tokenizer("starter");
  for (StackSpecification& stack : architecture.stacks) {
    stack.vocabulary_size = tokenizer->vocabulary_size();
    stack.end_of_text = 0;
  }
  architecture.decoder_start = 0;
  Transformer model(architecture);
  model.parameters().initialize(5);
  return {.name = "toy",
          .transformer = std::move(model),
          .tokenizer = tokenizer,
          .source_tokenizer = tokenizer};
}

class ExplorerTwoTexts : public ::testing::Test {
 protected:
  ExplorerTwoTexts() {
    register_translator_explorer(router_, compute_, translator_, std::int64_t{1} << 28);
  }

  Reply send(const std::string& method, const std::string& target, const Json& body = nullptr) {
    Request request = parse_request(method, target);
    if (!body.is_null()) request.body = body.dump();
    return router_.handle(std::move(request));
  }
  Json answer(const std::string& method, const std::string& target, const Json& body = nullptr) {
    const Reply reply = send(method, target, body);
    EXPECT_EQ(reply.status, 200) << target << "\n" << reply.body;
    return Json::parse(reply.body);
  }
  Json get(const std::string& target) { return answer("GET", target); }
  Json array(const std::string& target) {
    const char sign = target.find('?') == std::string::npos ? '?' : '&';
    return get(target + sign + "format=json");
  }
  std::string refusal(const std::string& method, const std::string& target, int status,
                      const Json& body = nullptr) {
    const Reply reply = send(method, target, body);
    EXPECT_EQ(reply.status, status) << target << "\n" << reply.body;
    return Json::parse(reply.body)["error"]["message"].get<std::string>();
  }
  void expect_fits(const Json& value, const std::string& method, const std::string& path) {
    const Json& schema = document_["paths"][path][method]["responses"]["200"]["content"]
                                  ["application/json"]["schema"];
    EXPECT_THAT(checker_.faults(value, schema), ::testing::IsEmpty()) << method << " " << path;
  }
  std::string make(const Json& body) {
    const Json pair = answer("POST", "/api/traces", body);
    expect_fits(pair, "post", "/api/traces");
    return "/api/traces/" + pair["id"].get<std::string>();
  }
  Json texts() const {
    return {{"source", "the queen met the mole"}, {"target", "one fluffy day"}};
  }

  LoadedModel translator_ = toy_translator();
  const LoadedModel& model_ = translator_;
  Compute compute_;
  Router router_;
  const Json document_ = Json::parse(openapi_document());
  const testing::SchemaChecker checker_{document_};
};

TEST_F(ExplorerTwoTexts, NumbersAreThoseOfThePass) {
  const std::string pair = make(texts());
  const Texts tokens{model_.encode_source("the queen met the mole"),
                     model_.encode_target("one fluffy day")};
  const RecordedPass pass(model_.transformer, tokens);
  const Json described = get(pair);
  EXPECT_EQ(described["source"]["tokens"].size(), tokens.source.size());
  EXPECT_EQ(described["target"]["words"][0]["end"].get<int>(), 1);  // the start by itself
  EXPECT_EQ(described["target"]["words"][1]["text"], "one");
  ASSERT_EQ(described["sites"].size(), 3U);
  for (const Json& site : described["sites"]) {
    const AttentionSite of = *site_named(site["site"].get<std::string>(), pass.architecture());
    EXPECT_EQ(site["queries"].get<std::int64_t>(), pass.queries(of));
    EXPECT_EQ(site["keys"].get<std::int64_t>(), pass.keys(of));
    const std::string head = pair + "/attention/" + site["site"].get<std::string>() + "/1/2";
    const Json plane = array(head);
    const Tensor<float> expected =
        RecordedAttention(RecordedPass(model_.transformer, tokens)).pattern(of, 1, 2);
    ASSERT_EQ(plane["values"].size(), static_cast<std::size_t>(expected.size()));
    for (std::int64_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(plane["values"][static_cast<std::size_t>(i)].get<float>(), expected[i], 1e-6);
    }
    EXPECT_EQ(array(head + "/tiles/0/0/0"), plane);
    const std::int64_t keys = pass.keys(of);
    const Json row = array(head + "/rows/2"), column = array(head + "/columns/1");
    EXPECT_EQ(row["values"][1], plane["values"][static_cast<std::size_t>(2 * keys + 1)]);
    EXPECT_EQ(column["values"][2], row["values"][1]);
    const Json thumbnails = array(pair + "/thumbnails?site=" + site["site"].get<std::string>());
    EXPECT_EQ(thumbnails["shape"][1].get<int>(), 4);
    EXPECT_EQ(thumbnails["values"][static_cast<std::size_t>(6 * expected.size())],
              plane["values"][0]);
  }
  const Json pattern = array(pair + "/arrays/decoder.1.cross_attn.hook_pattern?heads=2");
  EXPECT_EQ(pattern["values"].size(), static_cast<std::size_t>(pass.positions() * pass.sources()));
  const Json next = get(pair + "/next?position=1&limit=3");
  EXPECT_NEAR(next["actual"]["probability"].get<double>(),
              pass.next_probabilities(1)[static_cast<std::size_t>(tokens.target[2])], 1e-6);
}

TEST_F(ExplorerTwoTexts, AnswersAreAsTheDocumentSays) {
  Json body = texts();
  body["interventions"] = Json::parse(R"([{"kind":"ablate","point":"cross.L1H2"},
      {"kind":"scale","point":"decoder.L0.mlp","factor":0.5,"positions":"1-"},
      {"kind":"cut","point":"cross","edges":[[1,2]],"renormalise":true},
      {"kind":"cut_words","point":"decoder.L1","target":2,"source":1},
      {"kind":"mean","point":"encoder.L1.mlp","from":"t1"},
      {"kind":"steer","point":"cross.L0H1","factor":0.5,"toward":"t1"},
      {"kind":"freeze","point":"cross.L0","from":"t1"},
      {"kind":"mask","point":"decoder.L0H1","mask":"none"},
      {"kind":"mask_future","point":"encoder"}])");
  const std::string plain = make(texts()), pair = make(body);
  make({{"base", "t2"}});
  make({{"source", "the mole"}});
  make({{"source_tokens", {5, 6, 7}}, {"target_tokens", {0, 9}}});
  body["interventions"] =
      Json::parse(R"([{"kind":"swap","point":"encoder.resid_pre1","from":"t1"}])");
  const std::string swapped = make(body);
  const std::string id = "/api/traces/{id}";
  const auto check = [&](const std::string& path, const std::string& rest) {
    expect_fits(get(pair + rest), "get", path);
  };
  expect_fits(get("/api/traces"), "get", "/api/traces");
  check(id, "");
  const std::string head = id + "/attention/{site}/{layer}/{head}";
  expect_fits(array(pair + "/thumbnails"), "get", id + "/thumbnails");
  expect_fits(array(pair + "/arrays/encoder.0.hook_resid_pre"), "get", id + "/arrays/{point}");
  expect_fits(array(pair + "/attention/cross/1/2?unit=words&row=written"), "get", head);
  expect_fits(array(pair + "/attention/cross/1/2/tiles/0/0/0"), "get",
              head + "/tiles/{level}/{row}/{column}");
  check(head + "/rows/{query}", "/attention/cross/1/2/rows/1?top=2");
  check(head + "/rows/{query}", "/attention/cross/1/2/rows/1?top=2&unit=words");
  check(head + "/columns/{key}", "/attention/decoder/1/2/columns/1?top=2");
  check(head + "/columns/{key}", "/attention/encoder/1/2/columns/1?top=2&unit=words");
  check(id + "/heads", "/heads");
  check(id + "/heads", "/heads?site=cross");
  check(id + "/alignment", "/alignment");
  check(id + "/alignment", "/alignment?layer=0&head=1&row=read");
  check(id + "/next", "/next");
  check(id + "/compare/{other}", "/compare/t1");
  check(id + "/lens", "/lens?positions=1");
  check(id + "/effect", "/effect");
  check(id + "/influence", "/influence?side=target&position=1");
  expect_fits(answer("POST", pair + "/translation", {{"max_length", 4}}), "post",
              id + "/translation");
  expect_fits(answer("POST", pair + "/beams", {{"beams", 2}, {"max_length", 5}}), "post",
              id + "/beams");
  const Json errors = answer("POST", pair + "/alignment", {{"links", {{1, 1}, {2, 2}}}});
  expect_fits(errors, "post", id + "/alignment");
  EXPECT_EQ(errors["heads"].size(), 8U);
  const Json effects = get(swapped + "/effect");
  ASSERT_FALSE(effects["positions"].empty());
  for (const Json& effect : effects["positions"]) {
    EXPECT_EQ(effect["moved"].get<double>(), 0);  // of the same texts
  }
  expect_fits(answer("DELETE", plain), "delete", id);
  refusal("GET", plain, 404);
}

TEST_F(ExplorerTwoTexts, BeamsAreTheSearchAsATree) {
  const std::string pair = make(texts());
  const std::vector<std::int32_t> source = model_.encode_source("the queen met the mole");
  const SearchedBeams searched =
      search_beams(model_, source, {.beams = 3, .length_penalty = 0.5, .max_length = 6});
  const Json reply =
      answer("POST", pair + "/beams", {{"beams", 3}, {"length_penalty", 0.5}, {"max_length", 6}});
  ASSERT_EQ(reply["nodes"].size(), searched.tree.nodes.size());
  EXPECT_EQ(reply["nodes"].size(), 1U + 6 * 6);  // this toy's searches end at the longest length
  for (std::size_t i = 1; i < reply["nodes"].size(); ++i) {
    const Json& node = reply["nodes"][i];
    EXPECT_EQ(node["token"]["id"].get<std::int32_t>(), searched.tree.nodes[i].token);
    EXPECT_EQ(node["parent"].get<std::int32_t>(), searched.tree.nodes[i].parent);
    EXPECT_EQ(node["sum"].get<double>(), searched.tree.nodes[i].sum);
  }
  ASSERT_EQ(reply["hypotheses"].size(), 3U);
  for (const Json& hypothesis : reply["hypotheses"]) {
    const Json& last = reply["nodes"][hypothesis["node"].get<std::size_t>()];
    EXPECT_EQ(last["sum"], hypothesis["log_probability"]);
    EXPECT_EQ(last["step"].get<std::size_t>(), hypothesis["tokens"].size());
  }
  const Json defaults = answer("POST", pair + "/beams", Json::object());
  EXPECT_EQ(defaults["beams"].get<std::int64_t>(), BeamOptions{}.beams);  // as everywhere
  EXPECT_EQ(defaults["max_length"].get<int>(), 24);                       // the context
}

TEST_F(ExplorerTwoTexts, BeamsAreThoseOfTheChangedModel) {
  Json body = texts();
  body["interventions"] = Json::parse(R"([{"kind":"mask_future","point":"encoder"},
      {"kind":"ablate","point":"cross.L1H2"},
      {"kind":"scale","point":"decoder.L0.mlp","factor":3,"positions":"1-"}])");
  const std::string changed = make(body);
  const Json greedy = answer("POST", changed + "/translation", {{"max_length", 8}});
  const Json beams = answer("POST", changed + "/beams", {{"beams", 1}, {"max_length", 8}});
  EXPECT_EQ(beams["hypotheses"][0]["tokens"], greedy["tokens"]);
  // sums of eight f32 logarithms
  EXPECT_NEAR(beams["hypotheses"][0]["log_probability"].get<double>(),
              greedy["log_probability"].get<double>(), 1e-4);
  EXPECT_NE(greedy["tokens"], greedy["without"]["tokens"]);
}

TEST_F(ExplorerTwoTexts, WhatAnEncoderIs) {
  const std::string pair = make(texts());
  Json body = texts();
  body["interventions"] = Json::parse(R"([{"kind":"mask_future","point":"encoder"}])");
  const std::string masked = make(body);
  const Json seen = get(pair + "/influence?side=source&position=3")["encoder"];
  const Json hidden = get(masked + "/influence?side=source&position=3")["encoder"];
  const std::size_t sources = get(pair)["source"]["tokens"].size();
  ASSERT_EQ(seen.size(), sources);
  for (std::size_t t = 0; t < seen.size(); ++t) {
    EXPECT_GT(seen[t].get<double>(), 0);
    EXPECT_EQ(hidden[t].get<double>() > 0, t >= 3);
  }
  const Json target = get(pair + "/influence?side=target&position=2");
  ASSERT_EQ(target["encoder"].size(), sources);
  for (const Json& change : target["encoder"]) EXPECT_EQ(change.get<double>(), 0);
  EXPECT_EQ(target["decoder"][1].get<double>(), 0);
  EXPECT_GT(target["decoder"][2].get<double>(), 0);
}

TEST_F(ExplorerTwoTexts, CutWordsAreTheEdgesThatWriteTheWord) {
  const std::string pair = make(texts());
  const Json words = get(pair)["target"]["words"];
  Json body = texts();
  body["interventions"] =
      Json::parse(R"([{"kind":"cut_words","point":"cross.L1","target":2,"source":1}])");
  const std::string cut = make(body);
  for (int head = 0; head < 4; ++head) {
    const std::string plane = fmt::format("/attention/cross/1/{}?unit=words&row=written", head);
    const Json before = array(pair + plane), after = array(cut + plane);
    const auto columns = before["shape"][1].get<std::size_t>();
    EXPECT_GT(before["values"][2 * columns + 1].get<double>(), 0);
    EXPECT_EQ(after["values"][2 * columns + 1].get<double>(), 0);
    EXPECT_EQ(after["values"][3 * columns + 1], before["values"][3 * columns + 1]);
  }
  const Json effects = get(cut + "/effect")["positions"];
  const auto begin = words[2]["begin"].get<std::size_t>(), end = words[2]["end"].get<std::size_t>();
  ASSERT_EQ(effects.size(), get(pair)["target"]["tokens"].size());
  for (std::size_t t = 0; t < effects.size(); ++t) {
    EXPECT_EQ(effects[t]["moved"].get<double>() > 0, t + 1 >= begin && t + 1 < end) << t;
  }
}

TEST_F(ExplorerTwoTexts, RefusesWithTheFieldAndTheValue) {
  using ::testing::HasSubstr;
  const std::string pair = make(texts());
  const auto create = [&](const Json& body) { return refusal("POST", "/api/traces", 400, body); };
  EXPECT_THAT(create({{"target", "one"}}), HasSubstr("none of \"source\""));
  EXPECT_THAT(create({{"source", " "}}), HasSubstr("source is empty"));
  EXPECT_THAT(create({{"source", "one"}, {"source_tokens", {1}}}), HasSubstr("source_tokens"));
  EXPECT_THAT(create({{"source_tokens", {1 << 20}}}), HasSubstr("source_tokens"));
  EXPECT_THAT(create({{"source_tokens", std::vector<int>(25, 4)}, {"target_tokens", {0}}}),
              HasSubstr("24"));
  const auto change = [&](const char* intervention) {
    Json body = texts();
    body["interventions"] = Json::array({Json::parse(intervention)});
    return create(body);
  };
  EXPECT_THAT(change(R"({"kind":"ablat","point":"cross.L0"})"), HasSubstr("\"ablate\""));
  EXPECT_THAT(change(R"({"kind":"ablate","point":"L0H1"})"), HasSubstr("cross.L0H1"));
  EXPECT_THAT(change(R"({"kind":"ablate","point":"cross.L0","positions":"90"})"),
              HasSubstr("outside the text"));
  EXPECT_THAT(change(R"({"kind":"cut","point":"cross.L0","edges":[[1,90]]})"), HasSubstr("90"));
  EXPECT_THAT(change(R"({"kind":"mask_future","point":"cross"})"), HasSubstr("mask_future"));
  EXPECT_THAT(change(R"({"kind":"cut_words","point":"cross","target":90,"source":0})"),
              HasSubstr("word 90"));
  EXPECT_THAT(change(R"({"kind":"cut_words","point":"decoder","target":1,"source":3})"),
              HasSubstr("comes later"));
  EXPECT_THAT(refusal("GET", pair + "/attention/other/0/0", 400), HasSubstr("\"other\""));
  EXPECT_THAT(refusal("GET", pair + "/attention/cross/2/0", 400), HasSubstr("layer 2"));
  EXPECT_THAT(refusal("GET", pair + "/attention/cross/0/4", 400), HasSubstr("head 4"));
  EXPECT_THAT(refusal("GET", pair + "/attention/encoder/0/0?unit=words&row=written", 400),
              HasSubstr("writes no words"));
  EXPECT_THAT(refusal("GET", pair + "/next?position=99", 400), HasSubstr("99"));
  EXPECT_THAT(refusal("GET", pair + "/arrays/blocks.0.hook_resid_pre", 400), HasSubstr("no point"));
  EXPECT_THAT(refusal("POST", pair + "/alignment", 400, {{"links", {{90, 0}}}}), HasSubstr("90"));
  EXPECT_THAT(refusal("GET", "/api/traces/t99", 404), HasSubstr("t99"));
  const auto search = [&](const Json& beams) {
    return refusal("POST", pair + "/beams", 400, beams);
  };
  EXPECT_THAT(search({{"beams", 17}}), HasSubstr("16"));
  EXPECT_THAT(search({{"beams", 0}}), HasSubstr("beams"));
  EXPECT_THAT(search({{"max_length", 25}}), HasSubstr("24"));
  EXPECT_THAT(search({{"length_penalty", "x"}}), HasSubstr("length_penalty"));
  EXPECT_THAT(search({{"beam", 2}}), HasSubstr("\"beams\""));
  EXPECT_THAT(refusal("POST", "/api/traces/t99/beams", 404, Json::object()), HasSubstr("t99"));
}

TEST_F(ExplorerTwoTexts, WhatNeedsOneTextSaysSo) {
  const std::string trace = make(texts());
  for (const char* rest : {"/walk", "/attribution", "/head", "/neurons", "/derivation?point=q0",
                           "/projection", "/figure?kind=lens"}) {
    EXPECT_THAT(refusal("GET", trace + rest, 422),
                ::testing::HasSubstr("of a trace of one text, and trace t1 is of a source"))
        << rest;
  }
  EXPECT_THAT(refusal("GET", "/api/vectors?first=t1:0&second=t1:1", 422),
              ::testing::HasSubstr("of one text"));
}

// As `heed trace --points ..._grad` gives them, and the flow of one loss through both stacks.
TEST_F(ExplorerTwoTexts, GradientsOfPointsAndLogits) {
  using ::testing::HasSubstr;
  const std::string trace = make(texts());
  const Json document = get(trace);
  Texts read;
  for (const Json& token : document["source"]["tokens"]) read.source.push_back(token["id"]);
  for (const Json& token : document["target"]["tokens"]) read.target.push_back(token["id"]);
  const GradientTarget logits{
      .logits = {{.position = 1, .token = 5}, {.position = 1, .token = 7, .weight = -1}}};
  const GradientTarget last{.logits = {{.position = -1, .token = 5}}};
  const std::pair<const char*, GradientTarget> targets[] = {
      {"", {}}, {"&token=5&against=7&position=1", logits}, {"&token=5", last}};
  for (const char* const point :
       {"encoder.0.hook_resid_pre_grad", "decoder.1.cross_attn.hook_v_grad",
        "decoder.0.attn.hook_z_grad", "unembed.hook_out_grad"}) {
    for (const auto& [query, target] : targets) {
      const Trace wanted = trace_texts(translator_.transformer, read, {.points = {point}}, target);
      const TracedArray& array = wanted.arrays.at(0);
      const Json found = get(trace + "/arrays/" + point + "?format=json" + query);
      EXPECT_EQ(found["shape"].get<std::vector<std::int64_t>>(), array.shape) << point << query;
      ASSERT_EQ(found["values"].size(), array.values.size());
      double size = 0;
      for (std::size_t i = 0; i < array.values.size(); ++i) {
        EXPECT_EQ(found["values"][i].get<float>(), array.values[i]) << point << query;
        size += std::abs(array.values[i]);
      }
      EXPECT_GT(size, 0) << point << query;
    }
  }
  EXPECT_THAT(refusal("GET", trace + "/arrays/cross.z1_grad?against=5", 400), HasSubstr("token"));
  EXPECT_THAT(refusal("GET", trace + "/arrays/cross.z1?token=5", 400), HasSubstr("z1_grad"));
  EXPECT_THAT(refusal("GET", trace + "/arrays/cross.z1_grad?token=9999", 400), HasSubstr("9999"));

  const Json flow = get(trace + "/gradients?position=0");
  expect_fits(flow, "get", "/api/traces/{id}/gradients");
  EXPECT_EQ(flow["token"], document["target"]["tokens"][1]);
  ASSERT_EQ(flow["source_rows"].size(), flow["source_norms"].size());
  ASSERT_EQ(flow["rows"].size(), flow["norms"].size());
  EXPECT_EQ(std::ssize(flow["rows"]), model_.architecture().decoder().layers + 1);
  for (const Json& row : flow["source_norms"]) {
    ASSERT_EQ(row.size(), read.source.size());
    for (const Json& norm : row) EXPECT_GT(norm.get<double>(), 0);
  }
  for (const Json& row : flow["norms"]) {
    ASSERT_EQ(row.size(), read.target.size());
    for (std::size_t t = 1; t < row.size(); ++t) EXPECT_EQ(row[t].get<double>(), 0);
  }
}

TEST_F(ExplorerTwoTexts, OneTextNeedsAModelOfOneStack) {
  EXPECT_THAT(refusal("POST", "/api/traces", 404, {{"text", "one"}}),
              ::testing::HasSubstr("is a translator"));
  EXPECT_THAT(refusal("POST", "/api/traces", 400, {{"text", "one"}, {"source", "two"}}),
              ::testing::HasSubstr("\"source\" and a \"target\""));
}

TEST_F(ExplorerTwoTexts, AreCountedInTheBudgetOfAllTraces) {
  const std::int64_t none = get("/api/status")["trace_bytes"];
  const std::string trace = make(texts());
  const Json described = get(trace);
  const Json status = get("/api/status");
  EXPECT_EQ(status["trace_bytes"].get<std::int64_t>(),
            none + described["bytes"].get<std::int64_t>());
  EXPECT_EQ(status["traces"][0], described);
  answer("DELETE", trace);
  EXPECT_EQ(get("/api/status")["trace_bytes"].get<std::int64_t>(), none);
}

TEST(ExplorerOfADecoder, TwoTextsSayWhatTheyNeed) {
  const Reply reply =
      testing::starter_explorer().send("POST", "/api/traces", R"({"source":"a","target":"b"})");
  EXPECT_EQ(reply.status, 404);
  EXPECT_THAT(reply.body, ::testing::HasSubstr("not a translator"));
}

TEST(ExplorerOfADecoder, WhatNeedsTwoTextsSaysSo) {
  testing::TestExplorer& explorer = testing::starter_explorer();
  const std::string trace = "/api/traces/" + explorer.trace("One mole");
  for (const char* rest : {"/alignment", "/influence"}) {
    EXPECT_THAT(explorer.refusal("GET", trace + rest, 422),
                ::testing::HasSubstr("of a source and a target, and trace"));
  }
  for (const char* rest : {"/alignment", "/translation", "/beams"}) {
    EXPECT_THAT(explorer.refusal("POST", trace + rest, 422, "{}"),
                ::testing::HasSubstr("is of one text"));
  }
  EXPECT_THAT(explorer.refusal("GET", trace + "/attention/cross/0/0", 400),
              ::testing::HasSubstr("there is self"));
}

TEST(ExplorerOfADecoder, PairsHaveMoved) {
  testing::TestExplorer& explorer = testing::starter_explorer();
  for (const char* address : {"/api/pairs", "/api/pairs/p1", "/api/pairs/p1/heads?kind=cross"}) {
    for (const char* method : {"GET", "POST", "DELETE"}) {
      EXPECT_THAT(explorer.refusal(method, address, 404, "{}"),
                  ::testing::HasSubstr("POST /api/traces"))
          << address;
    }
  }
  EXPECT_THAT(explorer.refusal("GET", "/api/pairsofshoes", 404),
              ::testing::Not(::testing::HasSubstr("/api/traces")));
}

}  // namespace
}  // namespace heed::server
