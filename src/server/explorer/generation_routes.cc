// Text generation, token by token, as server-sent events; other requests run between the steps.
#include <algorithm>
#include <optional>

#include "base/error.h"
#include "engine/edits.h"
#include "engine/views/report_json.h"
#include "engine/views/token_json.h"
#include "generate/generator.h"
#include "generate/session.h"
#include "model/input_checks.h"
#include "server/explorer/intervention_json.h"
#include "server/explorer/state.h"
#include "server/fields.h"
#include "server/sampling_fields.h"

namespace heed::server {
namespace {

// As in other requests, but without "seed" the text is the same every time.
SamplingOptions sampling_of(const Fields& fields) {
  SamplingOptions sampling = read_sampling(fields);
  if (!fields.has("seed")) sampling.seed = 0;
  return sampling;
}

// A running generation. Its steps run on the computing thread.
class Writing {
 public:
  Writing(State& state, const Json& body, StopFlag stop) : Writing(state, Fields(body)) {
    const LoadedModel& model = *source_.model;
    const StackSpecification& config = model.transformer.specification();
    const std::int64_t length =
        std::min<std::int64_t>(std::ssize(tokens_) + max_new_tokens_, config.context);
    state.traces.require_room(model.transformer.architecture(), length);
    const auto given = body.find("interventions");
    const Json list_of_none, &list = given != body.end() ? *given : list_of_none;
    const std::size_t kept = state.traces.keep(passes_named_in(list));
    const auto take = [&](std::int64_t bytes) { state.traces.take(held_, bytes, kept); };
    state.traces.take(session_memory_, session_bytes(config, length), kept);
    interventions_ = requested_list(list);
    take(interventions_.bytes());
    const Texts texts{.target = tokens_};
    editor_ = read_interventions(
        list, {.model = model.transformer,
               .texts = texts,
               .recorded =
                   [&](const std::string& id) {
                     return recorded_text(state.traces, id, model.transformer.architecture());
                   },
               .words = words_of(model),
               .positions = config.context,
               .take_memory = take,
               .stop = stop});
    session_.emplace(model.transformer, length);
    generation_.emplace(*session_, model.tokenizer.get(),
                        GenerateOptions{.max_new_tokens = length - std::ssize(tokens_),
                                        .sampling = sampling_,
                                        .end_tokens = model.end_tokens(),
                                        .editor = editor_.get()});
  }

  bool is_done() const { return finish_reason_ != nullptr; }

  // Generates one token and sends it as an event.
  std::string step() {
    if (steps_ == 0) generation_->begin(tokens_);
    const std::optional<GenerationEvent> drawn_event = generation_->next();
    if (!drawn_event) return end();  // the prompt fills the context
    const LoadedModel& model = *source_.model;
    const std::vector<Candidate> candidates =
        trace_candidates(drawn_event->logits.first(nameable()), sampling_, tokens_);
    const std::int32_t token = *drawn_event->token;
    const auto drawn = std::ranges::find(candidates, token, &Candidate::token);
    tokens_.push_back(token);
    std::string text(drawn_event->text);
    if (generation_->is_over()) {
      if (const auto held_back = generation_->next()) text += held_back->text;
      end();
    }
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
    generation_.reset();
    session_.reset();
    session_memory_ = {};
    const std::string id = state_.traces
                               .add({.source = source_,
                                     .texts = {.source = {}, .target = tokens_},
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
        source_(state.pool.named(fields.string("model").value_or(""))),
        tokens_(prompt_of(fields)),
        sampling_(sampling_of(fields)) {
    const StackSpecification& config = source_.model->transformer.specification();
    require_text_fits(config, tokens_);
    max_new_tokens_ = fields.integer("max_new_tokens", 1, config.context)
                          .value_or(std::min<std::int64_t>(32, config.context));
    top_ = fields.integer("top", 0, config.vocabulary_size).value_or(10);
  }

  // Keys and values of a text, and the activations of its prompt.
  static std::int64_t session_bytes(const StackSpecification& config, std::int64_t positions) {
    return cache_bytes(config, CacheType::f32, positions) +
           StackActivations::bytes_needed(config, 1, positions, Keep::one_block);
  }

  std::vector<std::int32_t> prompt_of(const Fields& fields) const {
    if (!fields.has("tokens")) return source_.model->encode(fields.required_string("text"));
    require(!fields.has("text"), ErrorCode::invalid_argument, "give \"text\" or \"tokens\"");
    return fields.required_token_ids("tokens",
                                     source_.model->transformer.specification().vocabulary_size);
  }

  // A model's vocabulary may be padded beyond that of its tokenizer.
  std::size_t nameable() const {
    const LoadedModel& model = *source_.model;
    const std::int64_t all = model.transformer.specification().vocabulary_size;
    return static_cast<std::size_t>(
        model.tokenizer == nullptr
            ? all
            : std::min<std::int64_t>(all, model.tokenizer->vocabulary_size()));
  }

  // Says why the text ends; sends nothing.
  std::string end() {
    const FinishReason reason = generation_->result().finish_reason;
    const bool is_full = reason == FinishReason::length &&
                         std::ssize(generation_->result().tokens) < max_new_tokens_;
    finish_reason_ = finish_reason_name(is_full ? FinishReason::context_full : reason);
    return {};
  }

  State& state_;
  ChosenModel source_;
  std::vector<std::int32_t> tokens_;
  SamplingOptions sampling_;
  RequestedList interventions_;
  std::shared_ptr<Interventions> editor_;
  MemoryBudget::Share held_;  // by the two above
  MemoryBudget::Share session_memory_;
  std::optional<Session> session_;
  std::optional<Generation> generation_;
  std::int64_t max_new_tokens_ = 0;
  std::int64_t top_ = 0;
  std::int64_t steps_ = 0;
  const char* finish_reason_ = nullptr;
};

// A token, or after the last one the trace; returns whether more follows.
bool write_next(Writing& writing, Compute& compute, StopFlag stop, StreamWriter& writer) {
  if (!writing.is_done()) return writer.write(compute.run(stop, [&] { return writing.step(); }));
  writer.write(compute.run(stop, [&] { return writing.finish(stop); }));
  return false;
}

Reply generate(State& state, const Request& request) {
  const MemoryBudget::Share in_flight = share_of_document(state.traces, request.body, 't');
  const Json body = request.json();
  std::vector<std::string_view> names{"text",           "tokens",        "model",
                                      "max_new_tokens", "interventions", "top"};
  for (const SamplingOption& option : sampling_options()) names.emplace_back(option.name);
  Fields(body).expect_only(names);
  auto writing = std::make_shared<Writing>(state, body, request.stop);
  Reply reply;
  reply.content_type = "text/event-stream";
  reply.headers.emplace_back("Cache-Control", "no-store");
  reply.stream = [writing, &compute = state.context.compute,
                  stop = request.stop](StreamWriter& writer) {
    try {
      return write_next(*writing, compute, stop, writer);
    } catch (...) {
      const Reply refused = reply_to_exception();
      writer.write("event: error\ndata: " + refused.body + "\n");
      return false;
    }
  };
  return reply;
}

}  // namespace

void add_generation_routes(StateRoutes& routes) { routes.add("POST", "/api/generate", generate); }

}  // namespace heed::server
