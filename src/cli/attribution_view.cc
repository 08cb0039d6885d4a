// The parts of a logit in the terminal, as JSON and in files.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/json.h"
#include "cli/lens.h"
#include "cli/output.h"
#include "cli/terminal/table.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/text.h"
#include "engine/views/token_json.h"
#include "tensor/tensor.h"

namespace heed::cli {
namespace {

using Part = AttributionTerm::Part;

constexpr std::size_t max_bars = 40;

struct NamedValue {
  std::string name;
  double value = 0;
};

std::string term_label(const ExplainedText& text, const AttributionTerm& term) {
  if (term.source < 0) return term.name();
  return fmt::format("L{}H{} ← {} {}", term.layer, term.index, term.source,
                     visible(text.model.token_bytes(text.tokens[term.source])));
}

// The terms of the largest magnitude; the rest as one, where there is any.
std::vector<NamedValue> strongest(const ExplainedText& text, const Attribution& attribution,
                                  std::size_t count) {
  std::vector<const AttributionTerm*> terms;
  for (const AttributionTerm& term : attribution.terms) terms.push_back(&term);
  std::ranges::stable_sort(terms, [](const AttributionTerm* a, const AttributionTerm* b) {
    return std::abs(a->value) > std::abs(b->value);
  });
  std::vector<NamedValue> named;
  double rest = 0;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (i < count) {
      named.push_back({term_label(text, *terms[i]), terms[i]->value});
    } else {
      rest += terms[i]->value;
    }
  }
  if (terms.size() > count) {
    named.push_back(
        {fmt::format("{} others", grouped(std::ssize(terms) - std::ssize(named))), rest});
  }
  return named;
}

void print_signed_bars(const std::vector<NamedValue>& values) {
  const Terminal terminal = standard_output();
  const Ink ink(terminal);
  double largest = 1e-12;
  int label_width = 0;
  for (const NamedValue& value : values) {
    largest = std::max(largest, std::abs(value.value));
    label_width = std::max(label_width, std::min(28, display_width(value.name)));
  }
  const int half = std::clamp((terminal.width - label_width - 16) / 2, 8, 40);
  for (const NamedValue& value : values) {
    const std::string drawn =
        repeat("█", static_cast<int>(std::lround(half * std::abs(value.value) / largest)));
    const std::string left = pad_left(value.value < 0 ? drawn : "", half);
    const std::string right = value.value < 0 ? "" : drawn;
    print("  " + pad_right(fit(value.name, label_width), label_width) +
          pad_left(fmt::format("{:+.3f}", value.value), 10) + "  " + ink.paint(left, colour::blue) +
          ink.quiet("│") + ink.paint(right, colour::orange) + "\n");
  }
}

OrderedJson question_json(const ExplainedText& text, const LogitQuestion& question) {
  return {{"token", token_json(text.model, question.token)},
          {"against",
           question.against ? token_json(text.model, *question.against) : OrderedJson(nullptr)}};
}

const char* unit_name(AttributionUnit unit) {
  switch (unit) {
    case AttributionUnit::component: return "component";
    case AttributionUnit::head: return "head";
    case AttributionUnit::neuron: return "neuron";
    case AttributionUnit::source: return "source";
  }
  return "unknown";
}

Figure draw_strongest(const std::vector<NamedValue>& values, const FigureText& text) {
  BarFigure bars{.value_name = "logits"};
  for (const NamedValue& value : values) {
    bars.labels.push_back(value.name);
    bars.values.push_back(value.value);
  }
  return draw_bars(bars, text);
}

// layers x heads
Figure draw_heads(const ExplainedText& text, const Attribution& attribution,
                  const FigureText& figure_text) {
  const StackSpecification& config = text.model.transformer.specification();
  Tensor<float> values(Shape{config.layers, config.heads()});
  for (const AttributionTerm& term : attribution.terms) {
    if (term.part == Part::head) {
      values.view()(term.layer, term.index) = static_cast<float>(term.value);
    }
  }
  return draw_heat_map({.values = std::as_const(values).view(),
                        .row_labels = numbered("L", config.layers),
                        .column_labels = numbered("H", config.heads()),
                        .row_axis = "block",
                        .column_axis = "head",
                        .value_name = "logits",
                        .scale = FigureScale::diverging},
                       figure_text);
}

// heads x source positions
Figure draw_sources(const ExplainedText& text, const Attribution& attribution,
                    const FigureText& figure_text) {
  const StackSpecification& config = text.model.transformer.specification();
  const std::int64_t positions = attribution.position + 1;
  Tensor<float> values(Shape{config.layers * config.heads(), positions});
  std::vector<std::string> rows;
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    for (std::int64_t head = 0; head < config.heads(); ++head) {
      rows.push_back(fmt::format("L{}H{}", layer, head));
    }
  }
  for (const AttributionTerm& term : attribution.terms) {
    // A head that was changed has no sources.
    if (term.part == Part::head && term.source >= 0) {
      values.view()(term.layer * config.heads() + term.index, term.source) =
          static_cast<float>(term.value);
    }
  }
  return draw_heat_map(
      {.values = std::as_const(values).view(),
       .row_labels = std::move(rows),
       .column_labels = axis_labels(text.model, std::span(text.tokens).first(positions)),
       .row_axis = "head",
       .column_axis = "source token",
       .value_name = "logits",
       .scale = FigureScale::diverging},
      figure_text);
}

// Everything that a picture of heads alone leaves out.
std::string beside_heads(const Attribution& attribution) {
  double heads = 0;
  double others = 0;
  for (const AttributionTerm& term : attribution.terms) {
    (term.part == Part::head ? heads : others) += term.value;
  }
  return fmt::format(" Heads {:+.3f}, everything else {:+.3f}, together {:+.3f}.", heads, others,
                     heads + others);
}

}  // namespace

std::string question_text(const ExplainedText& text, const LogitQuestion& question) {
  std::string asked = "the logit of " + text.name(question.token);
  if (question.against) asked += " minus that of " + text.name(*question.against);
  return asked;
}

void print_attribution(const ExplainedText& text, const Attribution& attribution, std::size_t top) {
  const Ink ink(standard_output());
  print("\n" + ink.title("Attribution of " + question_text(text, attribution.question)) +
        ink.quiet(fmt::format("  after {}, by {}\n", counted(attribution.position + 1, "token"),
                              unit_name(attribution.unit))) +
        text.changes_line(ink) + "\n");
  print_signed_bars(strongest(text, attribution, top));
  print(fmt::format("\n  sum {:+.4f}, the model's logit {:+.4f}\n", attribution.sum(),
                    attribution.logit));
}

OrderedJson attribution_json(const ExplainedText& text, const Attribution& attribution) {
  OrderedJson terms = OrderedJson::array();
  for (const AttributionTerm& term : attribution.terms) {
    OrderedJson row{{"name", term.name()}, {"value", json_number(term.value)}};
    if (term.layer >= 0) row["layer"] = term.layer;
    if (term.part == Part::head) row["head"] = term.index;
    if (term.part == Part::neuron) row["neuron"] = term.index;
    if (term.source >= 0) row["source"] = term.source;
    terms.push_back(std::move(row));
  }
  return {{"question", question_json(text, attribution.question)},
          {"position", attribution.position},
          {"by", unit_name(attribution.unit)},
          {"logit", json_number(attribution.logit)},
          {"sum", json_number(attribution.sum())},
          {"terms", std::move(terms)}};
}

void write_attribution(const std::string& path, const ExplainedText& text,
                       const Attribution& attribution) {
  if (path.empty()) return;
  const auto count = std::ssize(attribution.terms);
  Tensor<float> values(Shape{count});
  Tensor<std::int32_t> indices(Shape{count, 3});
  for (std::int64_t i = 0; i < count; ++i) {
    const AttributionTerm& term = attribution.terms[i];
    values[i] = static_cast<float>(term.value);
    indices[3 * i] = static_cast<std::int32_t>(term.layer);
    indices[3 * i + 1] = static_cast<std::int32_t>(term.index);
    indices[3 * i + 2] = static_cast<std::int32_t>(term.source);
  }
  const View<const std::int32_t> tokens(text.tokens.data(), {std::ssize(text.tokens)});
  Result result{
      .text = {.title = "Attribution of " + question_text(text, attribution.question),
               .caption = text.caption() +
                          fmt::format(" Direct logit attribution by {} at position {}, the final "
                                      "norm's scale held constant; the logit is {:.4f}.",
                                      unit_name(attribution.unit), attribution.position,
                                      attribution.logit)},
      .arrays = {{"values", std::as_const(values).view()},
                 {"layer_index_source", std::as_const(indices).view()},
                 {"tokens", tokens}}};
  result.draw = [&](FigureText figure_text) {
    if (attribution.unit == AttributionUnit::head) {
      figure_text.caption += beside_heads(attribution);
      return draw_heads(text, attribution, figure_text);
    }
    if (attribution.unit == AttributionUnit::source) {
      figure_text.caption += beside_heads(attribution);
      return draw_sources(text, attribution, figure_text);
    }
    return draw_strongest(strongest(text, attribution, max_bars), figure_text);
  };
  write_result(path, result);
}

namespace {

std::vector<NamedValue> input_values(const ExplainedText& text,
                                     const IntegratedGradients& integrated) {
  std::vector<NamedValue> values;
  for (std::size_t t = 0; t < integrated.tokens.size(); ++t) {
    values.push_back({fmt::format("{} {}", t, visible(text.model.token_bytes(text.tokens[t]))),
                      integrated.tokens[t]});
  }
  return values;
}

}  // namespace

void print_integrated(const ExplainedText& text, const InputAttribution& attribution) {
  const IntegratedGradients& found = attribution.found;
  const Ink ink(standard_output());
  print("\n" +
        ink.title("Attribution by input token of " + question_text(text, attribution.question)) +
        ink.quiet("  integrated gradients\n\n"));
  print_signed_bars(input_values(text, found));
  print(fmt::format(
      "\n  {:+.4f} with the text, {:+.4f} with {}; the sum differs from the difference by {:.1e}\n",
      found.metric, found.baseline, attribution.baseline, std::abs(found.completeness_error)));
}

OrderedJson integrated_json(const ExplainedText& text, const InputAttribution& attribution) {
  const IntegratedGradients& found = attribution.found;
  OrderedJson values = OrderedJson::array();
  for (const double value : found.tokens) values.push_back(json_number(value));
  return {{"question", question_json(text, attribution.question)},
          {"by", "input"},
          {"metric", json_number(found.metric)},
          {"baseline", json_number(found.baseline)},
          {"completeness_error", json_number(found.completeness_error)},
          {"values", std::move(values)}};
}

void write_integrated(const std::string& path, const ExplainedText& text,
                      const InputAttribution& attribution) {
  if (path.empty()) return;
  const IntegratedGradients& found = attribution.found;
  const std::vector<float> values(found.tokens.begin(), found.tokens.end());
  const View<const std::int32_t> tokens(text.tokens.data(), {std::ssize(text.tokens)});
  write_result(
      path,
      {.text = {.title =
                    "Attribution by input token of " + question_text(text, attribution.question),
                .caption = text.caption() +
                           fmt::format(" Integrated gradients from {} ({:.4f}) to the text "
                                       "({:.4f}); the sum differs from the difference by {:.1e}.",
                                       attribution.baseline, found.baseline, found.metric,
                                       std::abs(found.completeness_error))},
       .draw =
           [&](const FigureText& figure_text) {
             return draw_strongest(input_values(text, found), figure_text);
           },
       .arrays = {{"values", View<const float>(values.data(), {std::ssize(values)})},
                  {"tokens", tokens}}});
}

}  // namespace heed::cli
