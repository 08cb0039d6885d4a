// How the choices of a reply are written: as text completions or as chat completions.
#pragma once

#include <vector>

#include "server/choice.h"

namespace heed::server {

// Whether anything of a choice was sent before.
enum class ChunkPlace { first, later };

class ReplyFormat {
 public:
  virtual ~ReplyFormat() = default;

  virtual const char* id_prefix() const = 0;
  virtual const char* object() const = 0;         // of a whole reply
  virtual const char* stream_object() const = 0;  // of an event of a streamed one
  virtual Choice::Options choice_options() const { return {}; }

  // A whole choice.
  virtual OrderedJson choice(const Choice::Part& part, std::int64_t index) const = 0;
  // The new parts of a choice, each as the choices of one event.
  virtual std::vector<OrderedJson> chunks(const Choice::Part& part, std::int64_t index,
                                          ChunkPlace place) const = 0;
};

// OpenAI's legacy "text_completion". Both borrow the model.
class TextFormat final : public ReplyFormat {
 public:
  TextFormat(const LoadedModel& model, Choice::Options options)
      : model_(model), options_(options) {}
  const char* id_prefix() const override { return "cmpl-"; }
  const char* object() const override { return "text_completion"; }
  const char* stream_object() const override { return "text_completion"; }
  Choice::Options choice_options() const override { return options_; }
  OrderedJson choice(const Choice::Part& part, std::int64_t index) const override;
  std::vector<OrderedJson> chunks(const Choice::Part& part, std::int64_t index,
                                  ChunkPlace place) const override;

 private:
  const LoadedModel& model_;
  Choice::Options options_;
};

// OpenAI's "chat.completion".
class ChatFormat final : public ReplyFormat {
 public:
  ChatFormat(const LoadedModel& model, Choice::Options options)
      : model_(model), options_(options) {}
  const char* id_prefix() const override { return "chatcmpl-"; }
  const char* object() const override { return "chat.completion"; }
  const char* stream_object() const override { return "chat.completion.chunk"; }
  Choice::Options choice_options() const override { return options_; }
  OrderedJson choice(const Choice::Part& part, std::int64_t index) const override;
  std::vector<OrderedJson> chunks(const Choice::Part& part, std::int64_t index,
                                  ChunkPlace place) const override;

 private:
  OrderedJson log_probabilities(const Choice::Part& part) const;

  const LoadedModel& model_;
  Choice::Options options_;
};

}  // namespace heed::server
