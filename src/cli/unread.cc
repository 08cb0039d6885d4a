#include "cli/unread.h"

#include "base/json.h"
#include "cli/output.h"
#include "engine/views/reading_json.h"

namespace heed::cli {
namespace {

void tell(const std::string& note) {
  if (!note.empty()) say("note: " + note);
}

}  // namespace

void tell_of_unread(const LoadedModel& model, std::span<const std::int32_t> tokens, PairSide side) {
  tell(unread_note(unread_in(model, tokens, side), unread_for(side)));
}

void tell_of_unread(const LoadedModel& translator, std::string_view sources) {
  tell(unread_note(unread_in(translator, sources), UnreadFor::translation));
}

void add_reading(OrderedJson& document, const LoadedModel& model,
                 std::span<const std::int32_t> tokens) {
  document["read"] = read_json(model.reading);
  document["unread"] = unread_json(model, tokens);
}

}  // namespace heed::cli
