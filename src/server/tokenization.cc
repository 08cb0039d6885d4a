#include "server/tokenization.h"

#include <fmt/format.h>

#include "base/utf8.h"
#include "generate/text_stream.h"
#include "server/exchange.h"
#include "server/fields.h"

namespace heed::server {
namespace {

constexpr std::int64_t max_tokenized = std::int64_t{1} << 20;  // of POST /tokenize

// Appends a token's text, or its bytes if they are not valid UTF-8, in llama.cpp's format.
void append_piece(const LoadedModel& model, std::int32_t token, std::string& text) {
  const std::string bytes = model.token_bytes(token);
  if (is_valid_utf8(bytes)) {
    text += Json(bytes).dump();
    return;
  }
  char before = '[';
  for (const char byte : bytes) {
    text += fmt::format("{}{}", before, static_cast<unsigned char>(byte));
    before = ',';
  }
  text += ']';
}

// The reply is written as text: a document would take ten times its memory.
Reply tokenize(const Request& request, const LoadedModel& model) {
  std::vector<std::int32_t> ids;
  bool with_pieces = false;
  {
    const Json body = request.json();
    const Fields fields(body);
    const std::string content = fields.string("content").value_or("");
    const bool adds_special = fields.boolean("add_special").value_or(false);
    const EncodeOptions options{.special_tokens = fields.boolean("parse_special").value_or(true),
                                .add_beginning = adds_special,
                                .add_ending = adds_special && model.is_encoder()};
    with_pieces = fields.boolean("with_pieces").value_or(false);
    ids = model.require_tokenizer().encode(content, options);
  }
  require_field(std::ssize(ids) <= max_tokenized, "content", field_code::invalid_value,
                "content has {} tokens; at most {} are given in one reply", ids.size(),
                max_tokenized);
  std::string text = R"({"tokens":[)";
  for (const std::int32_t id : ids) {
    if (text.back() != '[') text += ',';
    if (with_pieces) {
      text += fmt::format(R"({{"id":{},"piece":)", id);
      append_piece(model, id, text);
      text += '}';
    } else {
      text += std::to_string(id);
    }
  }
  return text_reply(text + "]}", "application/json");
}

Reply detokenize(const Request& request, const LoadedModel& model) {
  const Json body = request.json();
  const Tokenizer& tokenizer = model.require_tokenizer();
  const auto ids = Fields(body).required_token_ids("tokens", tokenizer.vocabulary_size());
  TextStream stream;  // valid UTF-8 of any bytes
  std::string content = stream.push(tokenizer.decode(ids));
  content += stream.finish();
  return json_reply({{"content", content}});
}

}  // namespace

void register_tokenization(Router& router, const LoadedModel& model) {
  router.add("POST", "/tokenize",
             [&model](const Request& request) { return tokenize(request, model); });
  router.add("POST", "/detokenize",
             [&model](const Request& request) { return detokenize(request, model); });
}

}  // namespace heed::server
