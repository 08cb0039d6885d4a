#include "wasm/replies.h"

#include <algorithm>
#include <utility>

namespace heed::wasm {

class Replies::Writer final : public server::StreamWriter {
 public:
  Writer(const Page& page, Open& open) : page_(page), open_(open) {}

  bool write(std::string_view bytes) override {
    is_wanted_ =
        is_wanted_ && !open_.stop->load() && (bytes.empty() || page_.chunk(open_.id, bytes));
    return is_wanted_;
  }
  void wait(std::chrono::milliseconds time) override { open_.turn = Clock::now() + time; }

  bool is_wanted() const { return is_wanted_; }

 private:
  const Page& page_;
  Open& open_;
  bool is_wanted_ = true;
};

Replies::~Replies() {
  while (!open_.empty()) end(open_.begin(), "another model was opened");
}

std::list<Replies::Open>::iterator Replies::find(std::uint32_t id) {
  return std::find_if(open_.begin(), open_.end(), [id](const Open& open) { return open.id == id; });
}

void Replies::end(std::list<Open>::iterator open, const std::string& error) {
  const std::uint32_t id = open->id;
  open->stop->store(true);
  open_.erase(open);
  page_.end(id, error);
}

std::shared_ptr<std::atomic<bool>> Replies::begin(std::uint32_t id) {
  stop(id);
  open_.push_back({.id = id, .stop = std::make_shared<std::atomic<bool>>(false)});
  return open_.back().stop;
}

void Replies::answer(std::uint32_t id, server::Reply reply) {
  const auto open = find(id);
  if (open == open_.end()) return;
  page_.head(id, reply);
  if (reply.stream) {
    open->reply = std::move(reply);
    return;
  }
  Writer(page_, *open).write(reply.body);
  end(open, "");
}

void Replies::stop(std::uint32_t id) {
  const auto open = find(id);
  if (open != open_.end()) end(open, "stopped");
}

bool Replies::step() {
  const auto open = std::min_element(open_.begin(), open_.end(),
                                     [](const Open& a, const Open& b) { return a.turn < b.turn; });
  const Clock::time_point now = Clock::now();
  if (open == open_.end() || open->turn > now) return false;
  open->turn = now;
  // What it writes may stop it.
  const std::uint32_t id = open->id;
  Writer writer(page_, *open);
  bool goes_on = false;
  std::string error;
  try {
    goes_on = open->reply.stream(writer);
  } catch (const std::exception& failure) {
    error = failure.what();
  }
  if (goes_on && writer.is_wanted()) return true;
  if (const auto left = find(id); left != open_.end()) {
    end(left, !error.empty() ? error : writer.is_wanted() ? "" : "stopped");
  }
  return true;
}

std::optional<Replies::Clock::time_point> Replies::next_turn() const {
  std::optional<Clock::time_point> next;
  for (const Open& open : open_) next = std::min(next.value_or(open.turn), open.turn);
  return next;
}

}  // namespace heed::wasm
