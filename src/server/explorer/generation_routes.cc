// Text generation, token by token, as server-sent events; other requests run between the steps.
#include <algorithm>
#include <limits>

#include "base/error.h"
#include "engine/documents.h"
#include "engine/token_json.h"
#include "generate/generator.h"
#include "generate/session.h"
#include "generate/text_stream.h"
#include "model/input_checks.h"
#include "server/explorer/intervention_json.h"
#include "server/explorer/state.h"
#include "server/fields.h"

namespace heed::server {
namespace {

SamplingOptions sampling_of(const Fields& fields) {
  SamplingOptions sampling;
  sampling.temperature = fields.number("temperature").value_or(sampling.temperature);
  sampling.top_k = fields.integer("top_k").value_or(sampling.top_k);
  sampling.top_p = fields.number("top_p").value_or(sampling.top_p);
  sampling.min_p = fields.number("min_p").value_or(sampling.min_p);
  sampling.repeat_penalty = fields.number("repeat_penalty").value_or(sampling.repeat_penalty);
  sampling.repeat_last_n = fields.integer("repeat_last_n").value_or(sampling.repeat_last_n);
  sampling.presence_penalty = fields.number("presence_penalty").value_or(sampling.presence_penalty);
  sampling.frequency_penalty =
      fields.number("frequency_penalty").value_or(sampling.frequency_penalty);
  const std::int64_t seed =
      fields.integer("seed", 0, std::numeric_limits<std::int64_t>::max()).value_or(0);
  sampling.seed = static_cast<std::uint64_t>(seed);
  sampling.validate();
  return sampling;
}

// A running generation. Its steps run on the computing thread.
class Writing {
 public:
  Writing(State& state, const Fields& fields)
      : state_(state),
        source_(state.models.explored()),
        tokens_(prompt_of(fields)),
        prompt_length_(tokens_.size()),
        sampling_(sampling_of(fields)),
        sampler_(sampling_),
        interventions_(fields.has("interventions") ? fields.required_list("interventions")
                                                   : Json::array()),
        session_(source_.model->gpt),
        end_tokens_(source_.model->end_tokens()) {
    const StackSpecification& config = source_.model->gpt.config();
    const auto positions = std::ssize(tokens_);
    require_text_fits(config, tokens_);
    most_ = fields.integer("max_new_tokens", 1, config.context)
                .value_or(std::min<std::int64_t>(32, config.context));
    top_ = fields.integer("top", 0, config.vocabulary_size).value_or(10);
    state.traces.require_room(config, std::min(positions + most_, config.context));
    editor_ = read_interventions(interventions_, {.gpt = source_.model->gpt,
                                                  .tokens = tokens_,
                                                  .traces = state.traces,
                                                  .last_position = config.context - 1});
    session_.set_editor(editor_.get());
  }

  bool is_done() const { return finish_reason_ != nullptr; }

  // Generates one token and sends it as an event.
  std::string step() {
    const auto unread =
        std::span<const std::int32_t>(tokens_).subspan(static_cast<std::size_t>(session_.length()));
    const std::span<const float> read = session_.feed(unread);
    std::vector<float> logits(read.begin(), read.end());
    forbid_nameless(logits);
    const std::vector<Candidate> candidates = trace_candidates(logits, sampling_, tokens_);
    const std::int32_t token = sampler_.sample(logits, tokens_);
    tokens_.push_back(token);

    const LoadedModel& model = *source_.model;
    const bool ends = std::ranges::count(end_tokens_, token) > 0;
    const auto drawn = std::ranges::find(candidates, token, &Candidate::token);
    std::string text = ends ? stream_.finish() : stream_.push(model.token_bytes(token));
    finish_reason_ = reason_to_end(ends);
    if (finish_reason_ != nullptr && !ends) text += stream_.finish();
    OrderedJson event{{"step", steps_++},
                      {"token", token_json(model, token)},
                      {"text", text},
                      {"probability", json_number(drawn->probability(SamplingStage::model))},
                      {"drawn", json_number(drawn->probability(SamplingStage::temperature))},
                      {"candidates", OrderedJson::array()}};
    for (const Candidate& candidate :
         std::span(candidates).first(std::min<std::size_t>(top_, candidates.size()))) {
      event["candidates"].push_back(candidate_json(model, candidate));
    }
    return server_sent_event(event, "token");
  }

  // Runs the model on the whole text and stores the trace.
  std::string finish() {
    const std::string id = state_.traces
                               .add({.source = source_,
                                     .tokens = tokens_,
                                     .editor = editor_,
                                     .interventions = interventions_})
                               .id;
    return server_sent_event(
        {{"finish_reason", finish_reason_}, {"trace", trace_json(state_.traces.use(id))}}, "done");
  }

 private:
  std::vector<std::int32_t> prompt_of(const Fields& fields) const {
    if (!fields.has("tokens")) return source_.model->encode(fields.required_string("text"));
    require(!fields.has("text"), ErrorCode::invalid_argument, "give \"text\" or \"tokens\"");
    return fields.required_token_ids("tokens", source_.model->gpt.config().vocabulary_size);
  }

  // A model's vocabulary may be padded beyond that of its tokenizer.
  void forbid_nameless(std::vector<float>& logits) const {
    if (source_.model->tokenizer == nullptr) return;
    const auto named = static_cast<std::size_t>(source_.model->tokenizer->vocabulary_size());
    for (std::size_t i = named; i < logits.size(); ++i) {
      logits[i] = -std::numeric_limits<float>::infinity();
    }
  }

  const char* reason_to_end(bool ends) const {
    const auto length = std::ssize(tokens_);
    if (ends) return finish_reason_name(FinishReason::stop_token);
    if (length - static_cast<std::int64_t>(prompt_length_) >= most_) {
      return finish_reason_name(FinishReason::length);
    }
    if (length >= source_.model->gpt.config().context) {
      return finish_reason_name(FinishReason::context_full);
    }
    return nullptr;
  }

  State& state_;
  ChosenModel source_;
  std::vector<std::int32_t> tokens_;
  std::size_t prompt_length_;
  SamplingOptions sampling_;
  Sampler sampler_;
  Json interventions_;
  std::shared_ptr<Interventions> editor_;
  Session session_;
  std::vector<std::int32_t> end_tokens_;  // any of them ends the text
  TextStream stream_;
  std::int64_t most_ = 0;
  std::int64_t top_ = 0;
  std::int64_t steps_ = 0;
  const char* finish_reason_ = nullptr;
};

void write_all(Writing& writing, Compute& compute, StopFlag stop, StreamWriter& writer) {
  while (!writing.is_done()) {
    if (!writer.write(compute.run(stop, [&] { return writing.step(); }))) return;
  }
  writer.write(compute.run(stop, [&] { return writing.finish(); }));
}

Reply generate(State& state, const Request& request) {
  const Json body = request.json();
  const Fields fields(body);
  fields.expect_only({"text", "tokens", "max_new_tokens", "temperature", "top_k", "top_p", "min_p",
                      "repeat_penalty", "repeat_last_n", "presence_penalty", "frequency_penalty",
                      "seed", "interventions", "top"});
  auto writing = std::make_shared<Writing>(state, fields);
  Reply reply;
  reply.content_type = "text/event-stream";
  reply.headers.emplace_back("Cache-Control", "no-store");
  reply.stream = [writing, &compute = state.context.compute,
                  stop = request.stop](StreamWriter& writer) {
    try {
      write_all(*writing, compute, stop, writer);
    } catch (...) {
      const Reply refused = reply_to_exception();
      writer.write("event: error\ndata: " + refused.body + "\n");
    }
  };
  return reply;
}

}  // namespace

void add_generation_routes(StateRoutes& routes) { routes.add("POST", "/api/generate", generate); }

}  // namespace heed::server
