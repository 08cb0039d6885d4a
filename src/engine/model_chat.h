// The chat template of a model, and the prompts that it makes of conversations.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "chat/chat_template.h"
#include "engine/loaded_model.h"

namespace heed {

// Copies share the template. Threads may use one at the same time.
class ModelChat {
 public:
  // The template in the model's directory; nothing where there is none. Throws
  // Error{corrupt_data} for damaged files and Error{unsupported} for a template that needs more of
  // Jinja than heed has.
  static std::optional<ModelChat> find(const LoadedModel& model);

  // A Jinja template; `special_tokens` are its variables bos_token, eos_token, …
  ModelChat(std::string_view source, std::string name,
            std::map<std::string, std::string> special_tokens);

  const std::string& name() const { return name_; }

  // The tokens of the messages, [{"role", "content"}], and of the beginning of a reply. Special
  // tokens are recognised in the template's own text, never in a message; none is added that the
  // template does not write. Throws Error{invalid_argument} for a conversation that the template
  // refuses.
  std::vector<std::int32_t> encode(const OrderedJson& messages, const Tokenizer& tokenizer) const;

 private:
  std::string name_;
  std::map<std::string, std::string> special_tokens_;
  std::shared_ptr<const chat::ChatTemplate> template_;
};

}  // namespace heed
