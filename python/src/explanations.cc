// What explains a prediction: stacks of the stream, lenses, attributions, heads, patches.
#include <memory>

#include "heed/circuits.h"
#include "heed/detection.h"
#include "heed/explain.h"
#include "heed/patch.h"
#include "heed/stacks.h"
#include "recorded.h"

namespace heed::python {
namespace {

// A vector of doubles as a NumPy array that owns it.
py::array doubles(std::vector<double> values, std::vector<py::ssize_t> shape) {
  auto held = std::make_unique<std::vector<double>>(std::move(values));
  double* const data = held->data();
  const py::capsule base(held.get(),
                         [](void* memory) { delete static_cast<std::vector<double>*>(memory); });
  static_cast<void>(held.release());
  return py::array_t<double>(std::move(shape), data, base);
}

StackRequest stack_request(std::int64_t layer, bool before_feed_forward,
                           const std::vector<std::int64_t>& positions) {
  return {.layer = layer, .before_feed_forward = before_feed_forward, .positions = positions};
}

py::tuple labelled(ResidualStack stack) {
  return py::make_tuple(array_of(stack.values), stack.labels);
}

void bind_stacks(py::module_& module) {
  module.def("accumulated_residual", [](const Recorded& recorded, std::int64_t layer,
                                        bool before_feed_forward,
                                        const std::vector<std::int64_t>& positions, bool middles) {
    return labelled(unlocked([&] {
      return accumulated_residual(recorded.activations(),
                                  stack_request(layer, before_feed_forward, positions),
                                  middles ? StreamPoints::middles : StreamPoints::before_layers);
    }));
  });
  module.def("decomposed_residual", [](const Recorded& recorded, std::int64_t layer,
                                       bool before_feed_forward,
                                       const std::vector<std::int64_t>& positions,
                                       const std::string& mode) {
    if (mode != "all" && mode != "attn" && mode != "mlp") {
      throw Error(ErrorCode::invalid_argument, "mode is '" + mode + "', expected all, attn or mlp");
    }
    const StackParts parts = mode == "attn"  ? StackParts::attention
                             : mode == "mlp" ? StackParts::feed_forward
                                             : StackParts::all;
    return labelled(unlocked([&] {
      return decomposed_residual(recorded.activations(),
                                 stack_request(layer, before_feed_forward, positions), parts);
    }));
  });
  module.def("head_results", [](const Recorded& recorded, std::int64_t layer,
                                const std::vector<std::int64_t>& positions, bool remainder) {
    return labelled(unlocked([&] {
      return head_results(recorded.activations(), stack_request(layer, false, positions),
                          remainder ? StackRemainder::included : StackRemainder::left_out);
    }));
  });
  module.def("neuron_results", [](const Recorded& recorded, std::int64_t first_layer,
                                  std::int64_t layer, const std::vector<std::int64_t>& neurons,
                                  const std::vector<std::int64_t>& positions, bool remainder) {
    return labelled(unlocked([&] {
      return neuron_results(recorded.activations(), stack_request(layer, false, positions),
                            {.first_layer = first_layer, .neurons = neurons},
                            remainder ? StackRemainder::included : StackRemainder::left_out);
    }));
  });
  module.def("full_decomposition", [](const Recorded& recorded, std::int64_t layer,
                                      bool before_feed_forward,
                                      const std::vector<std::int64_t>& positions, bool by_neuron) {
    return labelled(unlocked([&] {
      return full_decomposition(recorded.activations(),
                                stack_request(layer, before_feed_forward, positions),
                                by_neuron ? FeedForwardUnit::neuron : FeedForwardUnit::layer);
    }));
  });
  module.def("normalised_stack", [](const Recorded& recorded, const FloatArray& stack,
                                    std::int64_t layer, bool before_feed_forward,
                                    const std::vector<std::int64_t>& positions, bool of_each_part) {
    return array_of(unlocked([&] {
      return normalised_stack(recorded.activations(), borrowed(stack),
                              stack_request(layer, before_feed_forward, positions),
                              of_each_part ? NormScale::of_each_part : NormScale::of_pass);
    }));
  });
  module.def("logit_contributions", [](const Recorded& recorded, const FloatArray& stack,
                                       const std::vector<std::int32_t>& tokens,
                                       const std::vector<std::int32_t>& against,
                                       const std::vector<std::int64_t>& positions) {
    return array_of(unlocked([&] {
      return logit_contributions(recorded.activations(), borrowed(stack),
                                 {.tokens = tokens, .against = against, .positions = positions});
    }));
  });
}

// {statistic: (L, H)}
py::dict statistics_of(const std::vector<HeadSummary>& heads) {
  const std::int64_t layers = heads.back().layer + 1, per_layer = heads.back().head + 1;
  const auto column = [&](double HeadSummary::*statistic) {
    std::vector<double> values;
    for (const HeadSummary& head : heads) values.push_back(head.*statistic);
    return doubles(std::move(values), {layers, per_layer});
  };
  py::dict found;
  found["entropy"] = column(&HeadSummary::entropy);
  found["evenness"] = column(&HeadSummary::evenness);
  found["distance"] = column(&HeadSummary::distance);
  found["first"] = column(&HeadSummary::first);
  found["last"] = column(&HeadSummary::last);
  found["self"] = column(&HeadSummary::self);
  found["previous"] = column(&HeadSummary::previous);
  found["next"] = column(&HeadSummary::next);
  found["duplicate"] = column(&HeadSummary::duplicate);
  found["induction"] = column(&HeadSummary::induction);
  found["largest"] = column(&HeadSummary::largest);
  found["content_weight"] = column(&HeadSummary::content_weight);
  return found;
}

py::dict head_statistics(const ModelHandle& handle, const OneRead& read, const std::string& kind) {
  const auto model = handle.get();
  const Texts texts = texts_read(read);
  return statistics_of(unlocked([&] { return heads(*model, texts, kind); }));
}

Excluded excluded_of(bool first, bool own) {
  if (first && own) return Excluded::first_and_own_key;
  if (first) return Excluded::first_key;
  return own ? Excluded::own_key : Excluded::nothing;
}

void bind_heads(py::module_& module) {
  module.def("head_statistics", &head_statistics);
  module.def("detection_pattern", [](const std::string& name, const TokenArray& tokens) {
    return array_of(detection_pattern(name, vector_of(tokens)));
  });
  module.def("detect_heads", [](const Recorded& recorded, const FloatArray& wanted,
                                const std::string& measure, bool without_first, bool without_own) {
    if (measure != "mul" && measure != "abs") {
      throw Error(ErrorCode::invalid_argument,
                  "error_measure is '" + measure + "', expected mul or abs");
    }
    return array_of(unlocked([&] {
      return detect_heads(recorded.activations(), borrowed(wanted),
                          measure == "mul" ? Similarity::share : Similarity::distance,
                          excluded_of(without_first, without_own));
    }));
  });
}

LogitOf logit_of(std::int32_t token, std::optional<std::int32_t> against, std::int64_t position) {
  return {.token = token, .against = against, .position = position};
}

// (tokens (L + 1, T, top), probabilities, entropies (L + 1, T), divergences)
py::tuple lens_arrays(const std::vector<std::vector<LayerPrediction>>& lens) {
  const auto rows = static_cast<py::ssize_t>(lens.size());
  const auto columns = static_cast<py::ssize_t>(lens.front().size());
  const auto kept = static_cast<py::ssize_t>(lens.front().front().tokens.size());
  py::array_t<std::int32_t> found({rows, columns, kept});
  std::vector<double> probabilities, entropies, divergences;
  std::int32_t* to = found.mutable_data();
  for (const auto& row : lens) {
    for (const LayerPrediction& cell : row) {
      to = std::copy(cell.tokens.begin(), cell.tokens.end(), to);
      probabilities.insert(probabilities.end(), cell.probabilities.begin(),
                           cell.probabilities.end());
      entropies.push_back(cell.entropy);
      divergences.push_back(cell.divergence);
    }
  }
  return py::make_tuple(found, doubles(std::move(probabilities), {rows, columns, kept}),
                        doubles(std::move(entropies), {rows, columns}),
                        doubles(std::move(divergences), {rows, columns}));
}

void bind_lenses(py::module_& module) {
  module.def("logit_lens", [](const ModelHandle& handle, const OneRead& read, std::int64_t top) {
    const auto model = handle.get();
    const Texts texts = texts_read(read);
    return lens_arrays(unlocked([&] { return logit_lens(*model, texts, top); }));
  });
  // [(nearest of all, its cosine, chance, [(token, cosine)])], one for each depth.
  module.def("nearest_words", [](const ModelHandle& handle, const TokenArray& tokens,
                                 std::int64_t position, std::int64_t top) {
    const auto model = handle.get();
    const std::vector<std::int32_t> all = vector_of(tokens);
    const auto found = unlocked([&] { return nearest_words(*model, all, position, top); });
    py::list depths;
    for (const NearestWords& here : found) {
      py::list words;
      for (const NearWord& word : here.words) words.append(py::make_tuple(word.token, word.cosine));
      depths.append(
          py::make_tuple(here.best.token, here.best.cosine, here.chance, std::move(words)));
    }
    return depths;
  });
  module.def("attribute_logit", [](const ModelHandle& handle, const TokenArray& tokens,
                                   std::int32_t token, std::optional<std::int32_t> against,
                                   std::int64_t position, const std::string& unit) {
    const auto by = [&] {
      if (unit == "component") return AttributeBy::component;
      if (unit == "head") return AttributeBy::head;
      if (unit == "neuron") return AttributeBy::neuron;
      if (unit == "source") return AttributeBy::source;
      throw Error(ErrorCode::invalid_argument,
                  "unit is '" + unit + "', expected component, head, neuron or source");
    }();
    const auto model = handle.get();
    const std::vector<std::int32_t> all = vector_of(tokens);
    const auto parts = unlocked(
        [&] { return attribute_logit(*model, all, logit_of(token, against, position), by); });
    std::vector<std::string> names;
    std::vector<double> values;
    for (const LogitPart& part : parts) {
      names.push_back(part.name);
      values.push_back(part.value);
    }
    const auto count = static_cast<py::ssize_t>(values.size());
    return py::make_tuple(names, doubles(std::move(values), {count}));
  });
  module.def("attribute_tokens",
             [](const ModelHandle& handle, const TokenArray& tokens, std::int32_t token,
                std::optional<std::int32_t> against, std::int64_t position, std::int64_t steps,
                const std::string& baseline, const TokenArray& baseline_tokens) {
               const auto model = handle.get();
               const std::vector<std::int32_t> all = vector_of(tokens);
               IntegrationOptions options{.steps = steps};
               if (baseline == "mean") options.baseline.kind = AttributionBaseline::Kind::mean;
               if (baseline == "tokens") {
                 options.baseline = {AttributionBaseline::Kind::tokens, vector_of(baseline_tokens)};
               }
               TokenAttribution found = unlocked([&] {
                 return attribute_tokens(*model, all, logit_of(token, against, position), options);
               });
               const auto count = static_cast<py::ssize_t>(found.tokens.size());
               return py::make_tuple(doubles(std::move(found.tokens), {count}), found.logit,
                                     found.baseline, found.completeness_error);
             });
  // (L, H, L, H)
  module.def("composition_scores", [](const ModelHandle& handle, const std::string& mode) {
    const auto kind = [&] {
      if (mode == "Q") return CompositionKind::query;
      if (mode == "K") return CompositionKind::key;
      if (mode == "V") return CompositionKind::value;
      throw Error(ErrorCode::invalid_argument, "mode is '" + mode + "', expected 'Q', 'K' or 'V'");
    }();
    const auto model = handle.get();
    return array_of(unlocked([&] { return composition_scores(*model, kind); }));
  });
  module.def("refactor_heads", [](const ModelHandle& handle) {
    const auto model = handle.get();
    unlocked([&] { refactor_heads(*model); });
  });
  module.def("save_processed", [](const ModelHandle& handle, const std::string& directory) {
    const auto model = handle.get();
    unlocked([&] { save_processed(*model, directory); });
  });
}

PatchMetric metric_of(const std::string& kind, std::int32_t answer, std::int32_t wrong) {
  PatchMetric metric{.answer = answer, .wrong = wrong};
  if (kind == "logit_difference") {
    metric.kind = PatchMetric::Kind::logit_difference;
  } else if (kind == "probability") {
    metric.kind = PatchMetric::Kind::probability;
  } else if (kind == "kl") {
    metric.kind = PatchMetric::Kind::kl;
  } else if (kind == "own") {
    metric.kind = PatchMetric::Kind::own;
  } else {
    throw Error(ErrorCode::invalid_argument,
                "metric is '" + kind + "', expected logit_difference, probability or kl");
  }
  return metric;
}

// (values (rows, columns), clean, corrupted, resumed cells); `texts` are the clean and the
// corrupted one, each with its source where the model is a translator.
py::tuple sweep(const ModelHandle& handle, PatchRequest request, const py::dict& options,
                const py::object& progress) {
  const auto text = [&](const char* name) { return options[name].cast<std::string>(); };
  const auto token = [&](const char* name) { return options[name].cast<std::int32_t>(); };
  const std::string method = text("method");
  if (method != "exact" && method != "attribution") {
    throw Error(ErrorCode::invalid_argument,
                "method is '" + method + "', expected exact or attribution");
  }
  request.grid = patch_grid_from_name(text("grid"));
  request.metric = metric_of(text("metric"), token("answer"), token("wrong"));
  if (request.metric.kind == PatchMetric::Kind::own) {
    request.metric.own = [&options](std::span<const float> logits) {
      const Locked lock;
      const Array copy({static_cast<std::int64_t>(logits.size())},
                       std::vector<float>(logits.begin(), logits.end()));
      return options["own"](array_of(copy)).cast<double>();
    };
  }
  request.method = method == "exact" ? PatchMethod::exact : PatchMethod::attribution;
  request.layer = options["layer"].cast<std::int64_t>();
  request.head = options["head"].cast<std::int64_t>();
  request.results = text("results");
  request.progress = [poll = SignalPoll{}, &progress](std::int64_t done,
                                                      std::int64_t cells) mutable {
    poll();
    if (progress.is_none()) return true;
    const Locked lock;
    const py::object going_on = progress(done, cells);
    return going_on.is_none() || going_on.cast<bool>();
  };
  const auto model = handle.get();
  PatchResult found = unlocked([&] { return patch_sweep(*model, request); });
  return py::make_tuple(doubles(std::move(found.values), {found.rows, found.columns}), found.clean,
                        found.corrupted, found.resumed_cells);
}

void bind_patches(py::module_& module) {
  module.def("patch_grid_names", &patch_grid_names);
  module.def("patch_head_names",
             [](const ModelHandle& handle, const std::string& grid, const std::string& site) {
               return patch_head_names(*handle.get(), patch_grid_from_name(grid), site);
             });
  module.def("patch_sweep",
             [](const ModelHandle& handle, const std::pair<TokenArray, TokenArray>& clean,
                const std::pair<TokenArray, TokenArray>& corrupted, const py::dict& options,
                const py::object& progress) {
               return sweep(handle,
                            {.clean = {vector_of(clean.first), vector_of(clean.second)},
                             .corrupted = {vector_of(corrupted.first), vector_of(corrupted.second)},
                             .site = options["site"].cast<std::string>()},
                            options, progress);
             });
}

}  // namespace

void bind_explanations(py::module_& module) {
  bind_stacks(module);
  bind_heads(module);
  bind_lenses(module);
  bind_patches(module);
}

}  // namespace heed::python
