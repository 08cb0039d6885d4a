#include "server/completions.h"

#include "server/completion.h"
#include "server/field_support.h"
#include "server/reply_format.h"

namespace heed::server {

Reply complete(const Request& request, Context& context) {
  const Json body = request.json();
  const Fields fields(body);
  fields.string("model");  // any name: there is one model
  CompletionRequest asked =
      read_completion_request(fields, context.model, context.completion_limits());
  asked.sequence.stop = request.stop;
  auto format = std::make_unique<TextFormat>(context.model, asked.log_probabilities.has_value());
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
