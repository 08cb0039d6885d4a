// Text generation, token by token, as server-sent events; other requests run between the steps.
#include <algorithm>
#include <limits>
#include <optional>

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
#include "server/sampling_fields.h"

namespace heed::server {
namespace {

// As in other requests, but without "seed" the text is the same every time.
SamplingOptions sampling_of(const Fields& fields, std::int64_t vocabulary) {
  SamplingOptions sampling = read_sampling(fields, vocabulary);
  if (!fields.has("seed")) sampling.seed = 0;
  return sampling;
}

// A running generation. Its steps run on the computing thread.
class Writing {
 public:
  Writing(State& state, const Json& body, StopFlag stop) : Writing(state, Fields(body)) {
    const LoadedModel& model = *source_.model;
    const StackSpecification& config = model.gpt.config();
    const std::int64_t length = std::min(std::ssize(tokens_) + most_, config.context);
    state.traces.require_room(config, length);
    const auto given = body.find("interventions");
    const Json list_of_none, &list = given != body.end() ? *given : list_of_none;
    const std::size_t kept = state.traces.keep(passes_named_in(list));
    const auto take = [&](std::int64_t bytes) { state.traces.take(held_, bytes, kept); };
    state.traces.take(session_memory_, session_bytes(config, length), kept);
    interventions_ = requested_list(list);
    take(interventions_.bytes());
    editor_ = read_interventions(list, {.gpt = model.gpt,
                                        .tokens = tokens_,
                                        .traces = state.traces,
                                        .last_position = config.context - 1,
                                        .take_memory = take,
                                        .stop = stop});
    session_.emplace(model.gpt, length);
    session_->set_editor(editor_.get());
  }

  bool is_done() const { return finish_reason_ != nullptr; }

  // Generates one token and sends it as an event.
  std::string step() {
    const auto unread = std::span<const std::int32_t>(tokens_).subspan(
        static_cast<std::size_t>(session_->length()));
    const std::span<const float> read =
        session_->length() == 0 ? session_->feed(unread) : session_->step(unread.front());
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
  std::string finish(StopFlag stop) {
    session_.reset();
    session_memory_ = {};
    const std::string id = state_.traces
                               .add({.source = source_,
                                     .tokens = tokens_,
                                     .editor = editor_,
                                     .interventions = std::move(interventions_),
                                     .held = std::move(held_)},
                                    stop)
                               .id;
    const OrderedJson event{{"finish_reason", finish_reason_}, {"trace", nullptr}};
    return "event: done\ndata: " + with_member(event, "trace", trace_text(state_.traces.use(id))) +
           "\n\n";
  }

 private:
  Writing(State& state, const Fields& fields)
      : state_(state),
        source_(state.models.explored()),
        tokens_(prompt_of(fields)),
        prompt_length_(tokens_.size()),
        sampling_(sampling_of(fields, source_.model->gpt.config().vocabulary_size)),
        sampler_(sampling_),
        end_tokens_(source_.model->end_tokens()) {
    const StackSpecification& config = source_.model->gpt.config();
    require_text_fits(config, tokens_);
    most_ = fields.integer("max_new_tokens", 1, config.context)
                .value_or(std::min<std::int64_t>(32, config.context));
    top_ = fields.integer("top", 0, config.vocabulary_size).value_or(10);
  }

  // Keys and values of a text, and the activations of its prompt.
  static std::int64_t session_bytes(const StackSpecification& config, std::int64_t positions) {
    return cache_bytes(config, CacheType::f32, positions) +
           GptActivations::bytes_needed(config, 1, positions, Keep::one_block);
  }

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
  RequestedList interventions_;
  std::shared_ptr<Interventions> editor_;
  MemoryBudget::Share held_;  // by the two above
  MemoryBudget::Share session_memory_;
  std::optional<Session> session_;
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
  writer.write(compute.run(stop, [&] { return writing.finish(stop); }));
}

Reply generate(State& state, const Request& request) {
  const MemoryBudget::Share in_flight = share_of_document(state.traces, request.body, 't');
  const Json body = request.json();
  Fields(body).expect_only({"text", "tokens", "max_new_tokens", "temperature", "top_k", "top_p",
                            "min_p", "repeat_penalty", "repeat_last_n", "presence_penalty",
                            "frequency_penalty", "seed", "interventions", "top"});
  auto writing = std::make_shared<Writing>(state, body, request.stop);
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
