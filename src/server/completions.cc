#include "server/completions.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <random>
#include <set>

#include "base/error.h"
#include "server/choice.h"
#include "server/completion_request.h"

namespace heed::server {
namespace {

std::string random_id() {
  std::random_device device;
  return fmt::format("cmpl-{:08x}{:08x}{:08x}", device(), device(), device());
}

std::int64_t unix_time() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// A request being answered. Once nobody holds it any more, its work stops.
class Completion {
 public:
  Completion(CompletionRequest request, Context& context)
      : request_(std::move(request)), count_(context.metrics) {
    header_ = {{"id", random_id()},
               {"object", "text_completion"},
               {"created", unix_time()},
               {"model", context.name}};
    std::vector<SequenceOptions> sequences;
    for (const auto& prompt : request_.prompts) {
      for (std::int64_t i = 0; i < request_.candidates; ++i) {
        SequenceOptions options = request_.sequence;
        options.prompt = prompt;
        options.sampling.seed = request_.seed_of(i);
        sequences.push_back(std::move(options));
      }
    }
    sequences_ = context.scheduler.submit(std::move(sequences), news_);
    for (std::size_t i = 0; i < sequences_.size(); ++i) {
      open_.push_back(i);
      choices_.emplace_back(context.model, request_.log_probabilities.has_value());
    }
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
        listed.push_back(choices_[i].take(std::ssize(listed)));
      }
    }
    OrderedJson json = header_;
    json["choices"] = std::move(listed);
    json["usage"] = usage();
    return json;
  }

  // As it comes.
  void stream(StreamWriter& writer) {
    try {
      while (true) {
        for (std::size_t i = 0; i < choices_.size(); ++i) {
          if (choices_[i].has_news() && !writer.write(event(i))) return;
        }
        if (open_.empty()) break;
        collect();
      }
      if (request_.streams_usage) {
        OrderedJson last = header_;
        last["choices"] = OrderedJson::array();
        last["usage"] = usage();
        if (!writer.write(server_sent_event(last))) return;
      }
    } catch (...) {
      const Reply refusal = reply_to_exception();
      writer.write("data: " + refusal.body.substr(0, refusal.body.size() - 1) + "\n\n");
    }
    writer.write("data: [DONE]\n\n");
  }

  // Waits until something goes on, and takes what all have by then.
  void collect() {
    news_->wait();
    require(!stop_requested(request_.sequence.stop), ErrorCode::interrupted,
            "stopped before the text was complete");
    std::erase_if(open_, [&](std::size_t i) { return !advance(i); });
  }

 private:
  // Takes what one sequence has; false: nothing will follow.
  bool advance(std::size_t i) {
    Sequence& sequence = *sequences_[i];
    const std::vector<Sequence::Piece> pieces = sequence.take();
    const std::optional<SequenceEnd> end = sequence.end();
    if (pieces.empty() && !end) return true;
    if (request_.echoes && echoed_.insert(i).second) {
      choices_[i].echo(sequence.options().prompt, sequence.prompt_scores());
    }
    for (const Sequence::Piece& piece : pieces) choices_[i].add(piece);
    if (end) choices_[i].finish(*end);
    return !end;
  }

  // Of the sequences of a prompt, as many as were asked for: those whose tokens are likeliest.
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

  std::string event(std::size_t i) {
    OrderedJson json = header_;
    json["choices"] = OrderedJson::array({choices_[i].take(static_cast<std::int64_t>(i))});
    return server_sent_event(json);
  }

  OrderedJson usage() const {
    std::int64_t read = 0;
    std::int64_t drawn = 0;
    for (const auto& prompt : request_.prompts) read += std::ssize(prompt);
    for (const auto& sequence : sequences_) drawn += sequence->drawn();
    return {{"prompt_tokens", read}, {"completion_tokens", drawn}, {"total_tokens", read + drawn}};
  }

  const CompletionRequest request_;
  RequestCount count_;
  OrderedJson header_;
  std::vector<std::shared_ptr<Sequence>> sequences_;  // of the first prompt first
  std::vector<Choice> choices_;                       // of the same order
  std::shared_ptr<News> news_ = std::make_shared<News>();
  std::vector<std::size_t> open_;  // those that go on
  std::set<std::size_t> echoed_;
};

}  // namespace

Reply complete(const Request& request, Context& context) {
  const Json body = request.json();
  check_model_name(body, context.name);
  CompletionRequest asked =
      read_completion_request(body, context.model, context.completion_limits());
  asked.sequence.stop = request.stop;
  const auto completion = std::make_shared<Completion>(std::move(asked), context);
  if (!completion->streams()) return json_reply(completion->whole());
  completion->collect();  // what fails before the first byte still becomes a status
  Reply reply;
  reply.content_type = "text/event-stream";
  reply.stream = [completion](StreamWriter& writer) { completion->stream(writer); };
  return reply;
}

}  // namespace heed::server
