#include "server/explorer/downloads.h"

#include <array>
#include <utility>

#include "base/error.h"
#include "engine/known_models.h"
#include "engine/pull.h"
#include "server/exchange.h"
#include "server/explorer/shown_files.h"

namespace heed::server {
namespace {

constexpr std::chrono::seconds ending_time{5};  // that cancel() waits for the end

std::string names_of_published() {
  std::string names;
  for (const PublishedModel& model : published_models()) {
    names += (names.empty() ? "" : ", ") + std::string(model.name);
  }
  return names;
}

// What a reply would say of the exception that is being handled.
Json error_of_reply() { return Json::parse(reply_to_exception().body).at("error"); }

}  // namespace

Downloads::~Downloads() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

const char* Downloads::state_name(State state) {
  constexpr std::array names = {"none", "running", "finished", "cancelled", "failed"};
  return names[static_cast<std::size_t>(state)];
}

OrderedJson Downloads::describe() const {
  const std::lock_guard lock(mutex_);
  if (state_ == State::none) return nullptr;
  return {
      {"name", name_},          {"state", state_name(state_)}, {"doing", progress_.what},
      {"done", progress_.done}, {"total", progress_.total},    {"error", OrderedJson(failure_)}};
}

std::string Downloads::running() const {
  const std::lock_guard lock(mutex_);
  return state_ == State::running ? name_ : "";
}

void Downloads::start(const std::string& name) {
  const PublishedModel* const model = find_published_model(name);
  require(model != nullptr, ErrorCode::not_found,
          "'{}' is none of the models that may be downloaded here: {}", name.substr(0, 100),
          names_of_published());
  if (!options_.why_no_downloads.empty()) throw HttpError(403, options_.why_no_downloads);
  const std::lock_guard lock(mutex_);
  if (state_ == State::running && name_ == name) return;
  require(state_ != State::running, ErrorCode::conflict,
          "'{}' is being downloaded: cancel it, or wait for its end", name_);
  if (thread_.joinable()) thread_.join();  // it has ended
  stop_ = false;
  thread_ = std::thread([this, name] { work(name); });  // which waits for the lock
  name_ = name;
  progress_ = {.what = "finding " + name};
  failure_ = nullptr;
  state_ = State::running;
}

void Downloads::cancel(const std::string& name) {
  std::unique_lock lock(mutex_);
  require(state_ == State::running && name_ == name, ErrorCode::conflict,
          "'{}' is not being downloaded", name.substr(0, 100));
  stop_ = true;
  changed_.wait_for(lock, ending_time, [&] { return state_ != State::running; });
}

void Downloads::report(Progress progress) {
  const std::lock_guard lock(mutex_);
  progress_ = std::move(progress);
}

Downloads::State Downloads::pull(const std::string& name, Json& failure) {
  try {
    PullOptions pull{.cache = default_model_cache(),
                     .hub = {.retry = options_.download_retry,
                             .progress = [this](const Progress& progress) { report(progress); },
                             .stop = &stop_}};
    pull.hub.settings = hub_settings_from_environment();
    pull.hub.retry.waiting = [this](std::chrono::milliseconds delay) {
      const auto seconds = std::chrono::ceil<std::chrono::seconds>(delay).count();
      report({.what = fmt::format("waiting {} s to try again", seconds)});
    };
    naming_files_from(pull.cache, [&] { pull_model(name, pull); });
    return State::finished;
  } catch (...) {
    if (stop_) return State::cancelled;
    failure = error_of_reply();
    return State::failed;
  }
}

void Downloads::work(const std::string& name) {
  Json failure;
  const State reached = pull(name, failure);
  const std::lock_guard lock(mutex_);
  state_ = reached;
  failure_ = std::move(failure);
  changed_.notify_all();
}

}  // namespace heed::server
