// Every verb of interventions at every attention site, of one text and of two: by hand, by the
// library's edits, and as requests write it.
#include "microscope/traces/recorded_pass.h"
#include "server/explorer/intervention_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/expect_error.h"
#include "engine/edits.h"
#include "generate/random_transformer.h"
#include "microscope/toy_pairs.h"
#include "microscope/traces/capture.h"

namespace heed::server::verb_tests {
namespace {

using heed::testing::relative_error;

constexpr std::int64_t layer = 1, head = 2, size = 8;

struct Subject {
  std::string name;
  Transformer model;
  AttentionSite site;
  Texts texts{}, other{};

  Point point(PointKind self, PointKind cross) const {
    return {site == cross_site ? cross : self, layer, site.stack};
  }
  Point mixed() const { return point(PointKind::mixed_values, PointKind::cross_mixed_values); }
  Point pattern() const { return pattern_point(site, layer); }
  Point logits() const {
    return {PointKind::logits, -1,
            model.architecture().is_encoder_decoder() ? StackSite::decoder : StackSite::only};
  }
  // "L1H2", "cross.L1H2"
  std::string where() const {
    return (site.stack == StackSite::only ? "" : std::string(site_name(site)) + ".") + "L1H2";
  }
  bool sees_all() const {
    return attention_of(model.architecture(), site).mask.kind == MaskKind::full;
  }

  Capture run(const Texts& read, const std::vector<Point>& points,
              std::shared_ptr<Editor> editor = {}) const {
    Capture capture(points);
    observe_pass(model.with_editor(std::move(editor)), read, capture);
    return capture;
  }
  // Every token is a word.
  static std::vector<TextWord> words(PairSide, std::span<const std::int32_t> tokens) {
    std::vector<TextWord> all;
    for (std::int64_t t = 0; t < std::ssize(tokens); ++t) all.push_back({"word", t, t + 1});
    return all;
  }
  // "t1" is the pass over the other texts, "t2" the one over these.
  InterventionSource source() const {
    return {.model = model,
            .texts = texts,
            .recorded =
                [this](const std::string& id) {
                  const Texts& read = id == "t1" ? other : texts;
                  return RecordedText{TextLengths::of(read), [this, &read](Probe& probe) {
                                        observe_pass(model, read, probe);
                                      }};
                },
            .words = words,
            .take_memory = [](std::int64_t bytes) { EXPECT_GT(bytes, 0); }};
  }
};

std::vector<Subject> subjects() {
  using heed::testing::random_transformer;
  std::vector<Subject> all;
  all.push_back({"decoder", random_transformer(heed::testing::small_config()), only_site});
  StackSpecification reads_both_ways = heed::testing::small_config();
  reads_both_ways.role = StackRole::encoder;
  reads_both_ways.block.attention.mask.kind = MaskKind::full;
  all.push_back({"encoder", random_transformer(reads_both_ways), only_site});
  for (Subject& each : all) {
    each.texts.target = heed::testing::random_tokens(9, 61, 3);
    each.other.target = heed::testing::random_tokens(9, 61, 4);
  }
  for (const AttentionSite site : {encoder_site, decoder_site, cross_site}) {
    all.push_back({"translator, " + std::string(site_name(site)),
                   heed::testing::toy_translator(),
                   site,
                   heed::testing::toy_pair(),
                   {.source = {9, 3, 31, 17, 6, 22, 2}, .target = {1, 25, 4, 40, 11}}});
  }
  return all;
}

// Writes values at a point.
class Written final : public Editor {
 public:
  Written(Point point, Tensor<float> values) : point_(point), values_(std::move(values)) {}

  bool edits(const Point& point) const override { return point == point_; }
  void edit(const EditedPoint& edited, View<float> values) override {
    const View<const float> from =
        edited.head >= 0 ? values_.view().slice(1, edited.head, edited.head + 1) : values_.view();
    std::vector<float> row(static_cast<std::size_t>(values_.size()));
    copy_elements(from, row.data());
    for (std::int64_t a = 0, i = 0; a < values.extent(1); ++a) {
      for (std::int64_t b = 0; b < values.extent(2); ++b) {
        for (std::int64_t c = 0; c < values.extent(3); ++c) {
          values(0, a, b, c) = row[static_cast<std::size_t>(i++)];
        }
      }
    }
  }

 private:
  Point point_;
  Tensor<float> values_;
};

Tensor<float> copy_of(const Tensor<float>& from) {
  Tensor<float> copy(from.shape());
  std::ranges::copy(from.span(), copy.data());
  return copy;
}

// What a pass over the texts and one over the others have at the point.
struct Before {
  const Subject& subject;
  const Tensor<float>& own;
  const Tensor<float>& other;

  // Of the head's values, with change(value, t, d) for each.
  template <class Change>
  Tensor<float> values(Change&& change) const {
    Tensor<float> all = copy_of(own);
    for (std::int64_t t = 0; t < all.shape()[1]; ++t) {
      for (std::int64_t d = 0; d < size; ++d) {
        float& value = all.view()(0, t, head, d);
        value = change(value, t, d);
      }
    }
    return all;
  }
  // Of the head's pattern, with change(weight, query, key) for each.
  template <class Change>
  Tensor<float> weights(Change&& change) const {
    Tensor<float> all = copy_of(own);
    for (std::int64_t t = 0; t < all.shape()[2]; ++t) {
      for (std::int64_t s = 0; s < all.shape()[3]; ++s) {
        float& weight = all.view()(0, head, t, s);
        weight = change(weight, t, s);
      }
    }
    return all;
  }
  static float mean(const Tensor<float>& values, std::int64_t d) {
    double sum = 0;
    for (std::int64_t t = 0; t < values.shape()[1]; ++t) sum += values.view()(0, t, head, d);
    return static_cast<float>(sum / static_cast<double>(values.shape()[1]));
  }
};

struct Verb {
  std::string name;
  decltype(Edit::change) change;
  Json fields;  // beside "kind" and "point"
  std::function<Tensor<float>(const Before&)> by_hand;
  bool of_pattern = false;
  double tolerance = 0;  // of values of size one
};

// The pattern of all keys, or of those up to the query: softmax(scale · query · keyᵀ).
Tensor<float> masked_by_hand(const Before& before, SetMask::Kind kind) {
  const Subject& subject = before.subject;
  const Point query = subject.point(PointKind::query, PointKind::cross_query);
  const Point key = subject.point(PointKind::key, PointKind::cross_key);
  const Capture found = subject.run(subject.texts, {query, key});
  const double scale = attention_of(subject.model.architecture(), subject.site).score_scale();
  const auto visible = [&](std::int64_t t, std::int64_t s) {
    return kind == SetMask::Kind::none || s <= t;
  };
  const auto exponential = [&](std::int64_t t, std::int64_t s) {
    double product = 0;
    for (std::int64_t d = 0; d < size; ++d) {
      product +=
          double{found.at(query).view()(0, t, head, d)} * found.at(key).view()(0, s, head, d);
    }
    return visible(t, s) ? std::exp(scale * product) : 0.0;
  };
  return before.weights([&](float, std::int64_t t, std::int64_t s) {
    double sum = 0;
    for (std::int64_t k = 0; k < before.own.shape()[3]; ++k) sum += exponential(t, k);
    return static_cast<float>(exponential(t, s) / sum);
  });
}

std::vector<Verb> verbs(const Subject& subject) {
  const std::vector<float> vector{0.5F, -1.0F, 2.0F, 0.0F, 0.25F, 1.0F, -3.0F, 4.0F};
  std::vector<Verb> all{
      {"ablate", SetZero{}, Json::object(),
       [](const Before& was) { return was.values([](auto...) { return 0.0F; }); }},
      {"scale",
       ScaleBy{1.5F},
       {{"factor", 1.5}},
       [](const Before& was) {
         return was.values([](float value, auto...) { return value * 1.5F; });
       }},
      {"add",
       AddVector{vector},
       {{"vector", vector}},
       [vector](const Before& was) {
         return was.values([&](float value, std::int64_t, std::int64_t d) {
           return value + vector[static_cast<std::size_t>(d)];
         });
       }},
      {"mean",
       SetMean{{subject.other}},
       {{"from", "t1"}},
       [](const Before& was) {
         return was.values(
             [&](float, std::int64_t, std::int64_t d) { return Before::mean(was.other, d); });
       }},
      {"steer",
       SteerBy{2.5F, subject.other, subject.texts},
       {{"factor", 2.5}, {"toward", "t1"}, {"away", "t2"}},
       [](const Before& was) {
         return was.values([&](float value, std::int64_t, std::int64_t d) {
           return value + 2.5F * (Before::mean(was.other, d) - Before::mean(was.own, d));
         });
       },
       false,
       1e-5},
      {"replace",
       TakeFromText{subject.other},
       {{"from", "t1"}},
       [](const Before& was) {
         return was.values([&](float, std::int64_t t, std::int64_t d) {
           return was.other.view()(0, t, head, d);
         });
       }},
      {"freeze",
       FreezePattern{subject.other},
       {{"from", "t1"}},
       [](const Before& was) {
         return was.weights([&](float, std::int64_t t, std::int64_t s) {
           return was.other.view()(0, head, t, s);
         });
       },
       true},
      {"cut",
       CutEdges{{{3, 1}, {3, 2}}},
       {{"edges", {{3, 1}, {3, 2}}}},
       [](const Before& was) {
         return was.weights([](float weight, std::int64_t t, std::int64_t s) {
           return t == 3 && (s == 1 || s == 2) ? 0.0F : weight;
         });
       },
       true},
      {"cut_words",
       CutWords{subject.texts, 3, 1},
       {{"target", 3}, {"source", 1}},
       [](const Before& was) {
         // The position before a word writes it; an encoder reads it.
         const bool writes =
             was.subject.model.architecture().of(was.subject.site.stack).is_causal();
         return was.weights([&](float weight, std::int64_t t, std::int64_t s) {
           return t == (writes ? 2 : 3) && s == 1 ? 0.0F : weight;
         });
       },
       true}};
  if (subject.site != cross_site) {
    const SetMask mask{subject.sees_all() ? SetMask::Kind::causal : SetMask::Kind::none};
    all.push_back({"mask",
                   mask,
                   {{"mask", subject.sees_all() ? "causal" : "none"}},
                   [mask](const Before& was) { return masked_by_hand(was, mask.kind); },
                   true,
                   1e-5});
  }
  return all;
}

std::shared_ptr<Interventions> edited(const Subject& subject, decltype(Edit::change) change) {
  return std::make_shared<Interventions>(
      subject.model.architecture(),
      resolve_edits(subject.model, {{.where = subject.where(), .change = std::move(change)}},
                    Subject::words));
}

std::shared_ptr<Interventions> requested(const Subject& subject, Json fields) {
  return read_interventions(Json::array({std::move(fields)}), subject.source());
}

void expect_near(const Tensor<float>& actual, const Tensor<float>& expected, double tolerance) {
  ASSERT_EQ(actual.shape(), expected.shape());
  for (std::int64_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << i;
  }
}

TEST(InterventionVerbs, AreTheSameByHandByEditAndByRequest) {
  for (const Subject& subject : subjects()) {
    for (const Verb& verb : verbs(subject)) {
      SCOPED_TRACE(subject.name + ": " + verb.name);
      const Point point = verb.of_pattern ? subject.pattern() : subject.mixed();
      const std::vector<Point> points{point, subject.logits()};
      const Capture own = subject.run(subject.texts, points);
      const Capture other = subject.run(subject.other, {point});
      const Tensor<float> by_hand = verb.by_hand({subject, own.at(point), other.at(point)});

      const Capture changed = subject.run(subject.texts, points, edited(subject, verb.change));
      expect_near(changed.at(point), by_hand, verb.tolerance);
      const Capture written =
          subject.run(subject.texts, points, std::make_shared<Written>(point, copy_of(by_hand)));
      // Roundings of the values by hand grow by the layers after them.
      expect_near(changed.at(subject.logits()), written.at(subject.logits()), 20 * verb.tolerance);
      EXPECT_GT(
          relative_error(changed.at(subject.logits()).span(), own.at(subject.logits()).span()),
          1e-5);

      Json fields = verb.fields;
      fields["kind"] = verb.name;
      fields["point"] = subject.where();
      const Capture same = subject.run(subject.texts, points, requested(subject, fields));
      expect_near(same.at(point), changed.at(point), verb.tolerance);
      expect_near(same.at(subject.logits()), changed.at(subject.logits()), 20 * verb.tolerance);
    }
  }
}

TEST(InterventionVerbs, ThatChangeNothingChangeNoBit) {
  for (const Subject& subject : subjects()) {
    SCOPED_TRACE(subject.name);
    const std::vector<Point> points{subject.logits()};
    const Capture own = subject.run(subject.texts, points);
    for (const Json& fields :
         {Json{{"kind", "add"}, {"vector", std::vector<float>(8, 0.0F)}},
          Json{{"kind", "scale"}, {"factor", 1}}, Json{{"kind", "replace"}, {"from", "t2"}},
          Json{{"kind", "swap"}, {"from", "t2"}}, Json{{"kind", "freeze"}, {"from", "t2"}}}) {
      Json each = fields;
      each["point"] = subject.where();
      const Capture same = subject.run(subject.texts, points, requested(subject, each));
      EXPECT_TRUE(heed::testing::same_bits(same.at(subject.logits()), own.at(subject.logits())))
          << each;
    }
    EXPECT_EQ(read_interventions(Json::array(), subject.source()), nullptr);
  }
}

// A swap of the positions of one text to others of the next, on the side that the point has.
TEST(InterventionVerbs, RowsAreMovedOnTheirSide) {
  for (const Subject& subject : subjects()) {
    SCOPED_TRACE(subject.name);
    const Point key = subject.point(PointKind::key, PointKind::cross_key);
    Json fields{{"kind", "swap"},
                {"point", subject.where() + ".k"},
                {"positions", "1-2"},
                {"from", "t1"},
                {"from_positions", "3-4"}};
    const Capture other = subject.run(subject.other, {key});
    const Capture own = subject.run(subject.texts, {key});
    const Capture moved = subject.run(subject.texts, {key}, requested(subject, fields));
    for (std::int64_t d = 0; d < size; ++d) {
      EXPECT_EQ(moved.at(key).view()(0, 1, head, d), other.at(key).view()(0, 3, head, d));
      EXPECT_EQ(moved.at(key).view()(0, 2, head, d), other.at(key).view()(0, 4, head, d));
      EXPECT_EQ(moved.at(key).view()(0, 3, head, d), own.at(key).view()(0, 3, head, d));
      EXPECT_EQ(moved.at(key).view()(0, 1, 0, d), own.at(key).view()(0, 1, 0, d));
    }
    // The source has positions that the target lacks.
    const bool of_source = subject.site == encoder_site || subject.site == cross_site;
    const std::int64_t last = of_source ? 6 : std::ssize(subject.texts.target) - 1;
    fields["positions"] = fields["from_positions"] = std::to_string(last);
    EXPECT_NE(requested(subject, fields), nullptr);
    fields["positions"] = std::to_string(last + 1);
    heed::testing::expect_error(
        ErrorCode::invalid_argument, [&] { requested(subject, fields); },
        fmt::format("positions 0 to {}", last));
  }
}

// Without its mask, the first position of a decoder sees the last token.
TEST(InterventionVerbs, LiftedMasksShowTheFuture) {
  for (const Subject& subject : subjects()) {
    if (subject.sees_all()) continue;
    SCOPED_TRACE(subject.name);
    Texts other = subject.texts;
    other.target.back() = 5;
    const auto distance = [&](const std::shared_ptr<Editor>& editor) {
      const Point mixed = subject.mixed();
      const Capture one = subject.run(subject.texts, {mixed}, editor);
      const Capture two = subject.run(other, {mixed}, editor);
      return relative_error(one.at(mixed).view()[0][0].span(), two.at(mixed).view()[0][0].span());
    };
    EXPECT_EQ(distance(nullptr), 0);
    const std::string all = subject.site.stack == StackSite::only ? "self" : "decoder";
    EXPECT_GT(distance(requested(subject, {{"kind", "mask"}, {"point", all}, {"mask", "none"}})),
              1e-6);
    // An edge to what the mask hid can then be cut, and lies beyond it otherwise.
    const Json cut{{"kind", "cut"}, {"point", subject.where()}, {"edges", {{0, 4}}}};
    const auto cut_alone = [&] { requested(subject, cut); };
    heed::testing::expect_error(ErrorCode::invalid_argument, cut_alone, "no edge from 0 to 4");
    const Json both =
        Json::array({{{"kind", "mask"}, {"point", subject.where()}, {"mask", "none"}}, cut});
    const Capture without =
        subject.run(subject.texts, {subject.pattern()}, read_interventions(both, subject.source()));
    EXPECT_EQ(without.at(subject.pattern()).view()(0, head, 0, 4), 0);
    EXPECT_GT(without.at(subject.pattern()).view()(0, head, 0, 3), 0);
  }
}

TEST(InterventionVerbs, RefuseWithTheIndexTheValueAndTheNearestName) {
  for (const Subject& subject : subjects()) {
    SCOPED_TRACE(subject.name);
    const auto refused = [&](const Json& fields, const std::string& says) {
      heed::testing::expect_error(
          ErrorCode::invalid_argument, [&] { requested(subject, fields); }, says);
    };
    const std::string where = subject.where();
    refused({{"kind", "oblate"}, {"point", where}}, "did you mean \"ablate\"");
    refused({{"kind", "ablate"}, {"point", where}, {"factor", 2}}, "\"factor\"");
    refused({{"kind", "mean"}, {"point", where + ".pattern"}, {"from", "t1"}}, "no mean");
    refused({{"kind", "steer"}, {"point", where}, {"factor", 1}}, "\"toward\"");
    refused({{"kind", "mask"}, {"point", where}, {"mask", "full"}}, "causal or none");
    refused({{"kind", "mask"}, {"point", where}, {"mask", subject.sees_all() ? "none" : "causal"}},
            subject.site == cross_site ? "attention within one text" : "causal mask");
    refused({{"kind", "cut_words"}, {"point", where}, {"target", 90}, {"source", 0}}, "word 90");
    refused({{"kind", "cut"}, {"point", where}, {"edges", {{90, 0}}}}, "position 90");
    if (subject.site.stack == StackSite::only) {
      refused({{"kind", "ablate"}, {"point", "cross.L1H2"}}, "cross.L1H2");
    } else {
      refused({{"kind", "ablate"}, {"point", "L1H2"}}, "cross.L1H2");
      refused({{"kind", "cut"}, {"layer", 1}, {"head", 2}, {"edges", {{1, 0}}}}, "\"point\"");
    }
  }
  const Subject decoder = std::move(subjects().front());
  heed::testing::expect_error(
      ErrorCode::invalid_argument,
      [&] {
        read_interventions(Json::parse(R"([{"kind":"ablate","point":"L1"}, {"kind":"scale"}])"),
                           decoder.source());
      },
      "intervention 1");
}

}  // namespace
}  // namespace heed::server::verb_tests
