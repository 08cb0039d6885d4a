// heed chat: a conversation in the terminal, or line by line from a pipe.
#include <fmt/format.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include "base/error.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/text.h"
#include "engine/conversation.h"

namespace heed::cli {
namespace {

constexpr int milliseconds_between_checks = 200;  // a signal is seen this late at most
constexpr std::size_t max_message = 16U << 20U;   // bytes

struct ChatOptions {
  std::string model = "starter";
  std::string dtype;
  std::string cache_type = "f32";
  ConversationOptions conversation;
};

// Lines of standard input.
class LineReader {
 public:
  // The next line without its newline; nothing at the end. Throws Error{interrupted} when stopped.
  std::optional<std::string> next() {
    while (true) {
      const std::size_t end = buffer_.find('\n', searched_);
      if (end != std::string::npos) return take(end, end + 1);
      searched_ = buffer_.size();
      require(buffer_.size() <= max_message, ErrorCode::invalid_argument,
              "a message may have {} bytes", max_message);
      if (!read_more()) break;
    }
    if (buffer_.empty()) return std::nullopt;
    return take(buffer_.size(), buffer_.size());
  }

 private:
  std::string take(std::size_t end, std::size_t next) {
    std::string line = buffer_.substr(0, end);
    buffer_.erase(0, next);
    searched_ = 0;
    return line;
  }

  // False at the end of the input.
  bool read_more() {
    while (true) {
      require(!stop_requested(interrupt_flag()), ErrorCode::interrupted, "interrupted");
      pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
      if (::poll(&input, 1, milliseconds_between_checks) <= 0) continue;
      char bytes[4096];
      const ssize_t count = ::read(STDIN_FILENO, bytes, sizeof bytes);
      if (count < 0 && errno == EINTR) continue;
      require(count >= 0, ErrorCode::input_output, "cannot read standard input: {}",
              std::strerror(errno));
      buffer_.append(bytes, static_cast<std::size_t>(count));
      return count > 0;
    }
  }

  std::string buffer_;
  std::size_t searched_ = 0;  // no newline before here
};

ModelChat require_chat(const LoadedModel& model, const std::string& name) {
  std::optional<ModelChat> chat = ModelChat::find(model);
  require(
      chat.has_value(), ErrorCode::not_found,
      "'{}' has no chat template (chat_template.jinja, or chat_template in "
      "tokenizer_config.json): it continues texts and does not answer; try: heed generate -m {}",
      name, name);
  return *std::move(chat);
}

// What the user should know of a reply besides its text.
void tell_of(const ConversationReply& reply) {
  if (reply.forgotten > 0) {
    spdlog::info("the context is full: the oldest {} were left out",
                 counted(reply.forgotten, "message"));
  }
  if (reply.finish_reason == FinishReason::context_full) {
    spdlog::info("the reply ends here: the context is full");
  }
}

class Chat {
 public:
  Chat(Conversation& conversation, bool interactive)
      : conversation_(conversation), interactive_(interactive) {}

  void run() {
    LineReader lines;
    while (true) {
      if (interactive_) show(ink_.bold("> "));
      const std::optional<std::string> line = lines.next();
      if (!line) break;
      if (line->find_first_not_of(" \t\r") != std::string::npos) answer(*line);
    }
    if (interactive_) print("\n");  // after the prompt
  }

 private:
  static void show(std::string_view text) {
    print(text);
    flush_output();
  }

  void answer(const std::string& message) {
    try {
      const ConversationReply reply = conversation_.say(
          message, interrupt_flag(), [](std::string_view text) { show(shown_text(text)); });
      show(interactive_ ? "\n\n" : "\n");
      tell_of(reply);
      const bool stopped = reply.finish_reason == FinishReason::interrupted;
      require(!stopped || interactive_, ErrorCode::interrupted, "interrupted in a reply");
      if (stopped) clear_interrupt();
    } catch (const Error& error) {
      // A message that cannot be answered does not end the conversation of a person.
      if (!interactive_ || error.code() != ErrorCode::invalid_argument) throw;
      spdlog::error("{}", error.what());
    }
  }

  Conversation& conversation_;
  bool interactive_;
  Ink ink_{standard_output()};
};

void talk_with_model(const ChatOptions& options) {
  ConversationOptions conversation = options.conversation;
  conversation.sampling.validate();
  conversation.cache_type = kernels::parse_cache_type(options.cache_type);
  const LoadedModel model = load_model_as(options.model, options.dtype);
  Conversation talk(model, require_chat(model, options.model), conversation);
  Chat(talk, ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1).run();
}

}  // namespace

void add_chat_command(Command app) {
  Command command = add_command(app, "chat", "Talk with a model that has a chat template");
  auto options = std::make_shared<ChatOptions>();
  ConversationOptions& conversation = options->conversation;
  add_model_option(*command, options->model);
  add_dtype_option(*command, options->dtype);
  add_cache_type_option(*command, options->cache_type);
  command->add_option("--system", conversation.system, "Begin with these instructions")
      ->type_name("TEXT");
  command
      ->add_option("-n,--max-tokens", conversation.max_new_tokens,
                   "Generate at most N tokens a reply; 0: what fits")
      ->capture_default_str()
      ->check(at_least(0));
  command
      ->add_option("-c,--context", conversation.context,
                   "Keep N tokens of conversation [the model's context, at most 8192]")
      ->check(at_least(2));
  add_sampling_options(*command, conversation.sampling);
  add_sampling_seed_option(*command, conversation.sampling);
  command->footer(
      "Each line is a message. Ctrl-C stops a reply, Ctrl-D ends the conversation. From a pipe, "
      "replies alone are printed.");
  command->callback([options] { talk_with_model(*options); });
}

}  // namespace heed::cli
