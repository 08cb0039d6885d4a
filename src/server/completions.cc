#include "server/completions.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>

#include "base/error.h"
#include "server/completion_request.h"
#include "server/fields.h"
#include "server/reply_format.h"

namespace heed::server {
namespace {

std::string random_id(const char* prefix) {
  std::random_device device;
  return fmt::format("{}{:08x}{:08x}{:08x}", prefix, device(), device(), device());
}

std::int64_t unix_time() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// A request being answered. Its work stops when it is destroyed.
class Completion {
 public:
  Completion(CompletionRequest request, std::unique_ptr<const ReplyFormat> format, Context& context,
             const char* route)
      : request_(std::move(request)),
        format_(std::move(format)),
        compute_(context.compute),
        count_(context.metrics),
        first_token_(context.metrics.first_token_seconds, route) {
    header_ = {{"id", random_id(format_->id_prefix())},
               {"object", request_.streams ? format_->stream_object() : format_->object()},
               {"created", unix_time()},
               {"model", context.name}};
    std::vector<SequenceOptions> sequences;
    for (const auto& prompt : request_.prompts) {
      for (std::int64_t i = 0; i < request_.candidates; ++i) {
        SequenceOptions options = request_.sequence;
        options.prompt = prompt;
        options.max_tokens = request_.max_tokens_of(prompt);
        options.sampling.seed = request_.seed_of(i);
        sequences.push_back(std::move(options));
      }
    }
    sequences_ = context.scheduler.submit(std::move(sequences), notifier_);
    for (std::size_t i = 0; i < sequences_.size(); ++i) {
      open_.push_back(i);
      choices_.emplace_back(context.model, format_->choice_options());
    }
    echoed_.resize(sequences_.size());
    begun_.resize(sequences_.size());
  }

  ~Completion() {
    for (const auto& sequence : sequences_) sequence->abandon();
  }
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;

  bool streams() const { return request_.streams; }

  // All at once.
  OrderedJson whole() {
    while (!open_.empty()) collect();
    OrderedJson listed = OrderedJson::array();
    for (std::size_t prompt = 0; prompt < request_.prompts.size(); ++prompt) {
      for (const std::size_t i : best_of(prompt)) {
        listed.push_back(format_->choice(choices_[i].take(), std::ssize(listed)));
      }
    }
    OrderedJson json = header_;
    json["choices"] = std::move(listed);
    json["usage"] = usage();
    first_token_.accept();
    return json;
  }

  // As it comes: writes what has come, and returns whether more will.
  bool stream(StreamWriter& writer) {
    first_token_.accept();
    try {
      for (std::size_t i = 0; i < choices_.size(); ++i) {
        if (choices_[i].has_unsent() && !write_unsent(i, writer)) return false;
      }
      if (!open_.empty()) {
        collect();
        return true;
      }
      if (request_.streams_usage) {
        OrderedJson last = header_;
        last["choices"] = OrderedJson::array();
        last["usage"] = usage();
        if (!writer.write(server_sent_event(last))) return false;
      }
    } catch (...) {
      const Reply refusal = reply_to_exception();
      writer.write("data: " + refusal.body.substr(0, refusal.body.size() - 1) + "\n\n");
    }
    writer.write("data: [DONE]\n\n");
    return false;
  }

  // Waits until a sequence has new pieces, and takes the pieces of all sequences.
  void collect() {
    compute_.work_once();
    notifier_->wait();
    require(!stop_requested(request_.sequence.stop), ErrorCode::interrupted,
            "stopped before the text was complete");
    std::erase_if(open_, [&](std::size_t i) { return !advance(i); });
  }

 private:
  // Takes the pieces of one sequence; returns false once it has ended.
  bool advance(std::size_t i) {
    Sequence& sequence = *sequences_[i];
    const std::vector<Sequence::Piece> pieces = sequence.take();
    const std::optional<SequenceEnd> end = sequence.end();
    if (pieces.empty() && !end) return true;
    if (!pieces.empty()) first_token_.token_arrived();
    if (request_.echoes && !echoed_[i]) {
      choices_[i].echo(sequence.options().prompt, sequence.prompt_scores());
      echoed_[i] = true;
    }
    for (const Sequence::Piece& piece : pieces) choices_[i].add(piece);
    if (end) choices_[i].finish(*end);
    return !end;
  }

  // The sequences of a prompt to return, most likely first if best_of generated more.
  std::vector<std::size_t> best_of(std::size_t prompt) const {
    std::vector<std::size_t> order(static_cast<std::size_t>(request_.candidates));
    std::iota(order.begin(), order.end(), prompt * order.size());
    if (request_.candidates > request_.choices) {
      std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return choices_[a].mean_log_probability() > choices_[b].mean_log_probability();
      });
      order.resize(static_cast<std::size_t>(request_.choices));
    }
    return order;
  }

  // False: the client disconnected.
  bool write_unsent(std::size_t i, StreamWriter& writer) {
    const auto index = static_cast<std::int64_t>(i);
    for (OrderedJson& chunk : format_->chunks(choices_[i].take(), index,
                                              begun_[i] ? ChunkPlace::later : ChunkPlace::first)) {
      OrderedJson json = header_;
      json["choices"] = OrderedJson::array({std::move(chunk)});
      if (request_.streams_usage) json["usage"] = nullptr;
      if (!writer.write(server_sent_event(json))) return false;
    }
    begun_[i] = true;
    return true;
  }

  OrderedJson usage() const {
    std::int64_t read = 0;
    std::int64_t drawn = 0;
    for (const auto& prompt : request_.prompts) read += std::ssize(prompt);
    for (const auto& sequence : sequences_) drawn += sequence->drawn();
    return {{"prompt_tokens", read}, {"completion_tokens", drawn}, {"total_tokens", read + drawn}};
  }

  const CompletionRequest request_;
  const std::unique_ptr<const ReplyFormat> format_;
  Compute& compute_;
  RequestCount count_;
  FirstTokenTimer first_token_;
  OrderedJson header_;
  std::vector<std::shared_ptr<Sequence>> sequences_;  // of the first prompt first
  std::vector<Choice> choices_;                       // one for each sequence
  std::shared_ptr<Notifier> notifier_ = std::make_shared<Notifier>();
  std::vector<std::size_t> open_;  // sequences that go on
  std::vector<bool> echoed_;       // whether a choice begins with its prompt already
  std::vector<bool> begun_;        // whether anything of a choice was sent
};

// Answers a completion request: submits its sequences and writes their choices, whole or streamed.
// `route` labels the time to first token. Waits for the first tokens, so that an error before them
// determines the status of the reply.
Reply run_completion(CompletionRequest request, std::unique_ptr<const ReplyFormat> format,
                     Context& context, const char* route) {
  const auto completion =
      std::make_shared<Completion>(std::move(request), std::move(format), context, route);
  if (!completion->streams()) return json_reply(completion->whole());
  completion->collect();
  Reply reply;
  reply.content_type = "text/event-stream";
  reply.stream = [completion](StreamWriter& writer) { return completion->stream(writer); };
  return reply;
}

}  // namespace

Reply complete(const Request& request, Context& context) {
  const Json body = request.json();
  const Fields fields(body);
  fields.string("model");  // any name: there is one model
  CompletionRequest asked =
      read_completion_request(fields, context.model, context.completion_limits());
  asked.sequence.stop = request.stop;
  auto format = std::make_unique<TextFormat>(
      context.model, Choice::Options{.has_log_probabilities = asked.log_probabilities.has_value()});
  Reply reply = run_completion(std::move(asked), std::move(format), context, "/v1/completions");
  warn_of_ignored(fields, reply);
  return reply;
}

Reply complete_chat(const Request& request, Context& context) {
  const Json body = request.json();
  const Fields fields(body);
  fields.string("model");  // any name: there is one model
  CompletionRequest asked =
      read_chat_request({.fields = fields, .body = request.body, .stop = request.stop},
                        context.model, context.chat_template, context.completion_limits());
  asked.sequence.stop = request.stop;
  const std::vector<std::string> ignored = std::move(asked.ignored);
  // White space before a reply is the template's affair; before the rest of a message it is text.
  auto format = std::make_unique<ChatFormat>(
      context.model, Choice::Options{.has_log_probabilities = asked.log_probabilities.has_value(),
                                     .trims_start = !asked.continues_message});
  Reply reply =
      run_completion(std::move(asked), std::move(format), context, "/v1/chat/completions");
  warn_of_ignored(fields, reply, ignored);
  return reply;
}

}  // namespace heed::server
