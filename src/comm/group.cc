#include "comm/group.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <numeric>

namespace heed {
namespace {

// Parts of `sizes` elements each.
std::vector<std::size_t> starts_of(std::span<const std::size_t> sizes) {
  std::vector<std::size_t> starts(sizes.size() + 1, 0);
  std::partial_sum(sizes.begin(), sizes.end(), starts.begin() + 1);
  return starts;
}

template <class T>
std::vector<T> gather_numbers(Group& group, T value) {
  const auto size = static_cast<std::size_t>(group.size());
  std::vector<T> values(size);
  values[static_cast<std::size_t>(group.rank())] = value;
  const std::vector<std::size_t> sizes(size, sizeof(T));
  group.all_gather(std::as_writable_bytes(std::span(values)), starts_of(sizes));
  return values;
}

class SingleGroup final : public Group {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  int neighbours() const override { return 1; }
  void all_gather(std::span<std::byte>, PartStarts) override {}
  void reduce_scatter(std::span<float>, PartStarts) override {}
  void broadcast(std::span<std::byte>, int) override {}
  std::shared_ptr<const Exchange> begin_all_gather(std::span<std::byte>, PartStarts) override {
    return finished_exchange();
  }
  std::shared_ptr<const Exchange> begin_reduce_scatter(std::span<float>, PartStarts,
                                                       Wire) override {
    return finished_exchange();
  }
  std::shared_ptr<const Exchange> begin_shift(const Shift& shift) override {
    check(shift.to == 0 && shift.from == 0 && shift.sent.size() == shift.received.size(),
          "one process sends to itself what it receives");
    std::ranges::copy(shift.sent, shift.received.begin());
    return finished_exchange();
  }
  void progress() override {}
  void wait(const Exchange&) override {}
  double seconds() const override { return 0; }
  [[noreturn]] void abort(int status) override { std::_Exit(status); }
};

struct Failure {
  ErrorCode code;
  std::string message;
};

Failure described(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    return {error.code(), error.what()};
  } catch (const std::bad_alloc&) {
    return {ErrorCode::out_of_memory, "out of memory"};
  } catch (const std::exception& error) {
    return {ErrorCode::internal, error.what()};
  }
}

bool is_error(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

void all_gather(Group& group, std::span<float> values, PartStarts starts) {
  std::vector<std::size_t> in_bytes(starts.begin(), starts.end());
  for (std::size_t& start : in_bytes) start *= sizeof(float);
  group.all_gather(std::as_writable_bytes(values), in_bytes);
}

void barrier(Group& group) { gather_numbers(group, std::byte{}); }

bool any(Group& group, bool value) {
  bool result = false;
  for (const std::byte each : gather_numbers(group, std::byte{value})) {
    result = result || each != std::byte{};
  }
  return result;
}

std::vector<double> gather(Group& group, double value) { return gather_numbers(group, value); }

double sum(Group& group, double value) {
  const std::vector<double> values = gather(group, value);
  return std::accumulate(values.begin() + 1, values.end(), values.front());
}

std::vector<double> sum(Group& group, const std::vector<double>& values) {
  const auto size = static_cast<std::size_t>(group.size());
  const std::size_t count = values.size();
  std::vector<double> all(size * count);
  std::ranges::copy(values, all.begin() + static_cast<std::ptrdiff_t>(
                                              static_cast<std::size_t>(group.rank()) * count));
  const std::vector<std::size_t> sizes(size, count * sizeof(double));
  group.all_gather(std::as_writable_bytes(std::span(all)), starts_of(sizes));
  std::vector<double> sums(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count));
  for (std::size_t at = count; at < all.size(); ++at) sums[at % count] += all[at];
  return sums;
}

void all_reduce(Group& group, std::span<float> values) {
  const auto size = static_cast<std::size_t>(group.size());
  std::vector<std::size_t> starts;
  for (std::size_t r = 0; r <= size; ++r) starts.push_back(values.size() * r / size);
  group.reduce_scatter(values, starts);
  all_gather(group, values, starts);
}

std::shared_ptr<const Exchange> finished_exchange() {
  struct Finished final : Exchange {
    bool is_done() const override { return true; }
  };
  return std::make_shared<Finished>();
}

std::vector<std::string> gather(Group& group, const std::string& text) {
  const std::vector<std::size_t> starts = starts_of(gather_numbers(group, text.size()));
  std::string all(starts.back(), '\0');
  std::ranges::copy(text, all.begin() + static_cast<std::ptrdiff_t>(
                                            starts[static_cast<std::size_t>(group.rank())]));
  group.all_gather(std::as_writable_bytes(std::span(all)), starts);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    texts.push_back(all.substr(starts[i], starts[i + 1] - starts[i]));
  }
  return texts;
}

double of_first(Group& group, double value) {
  group.broadcast(std::as_writable_bytes(std::span(&value, 1)), 0);
  return value;
}

std::string of_first(Group& group, const std::string& text) {
  const auto size = static_cast<std::size_t>(of_first(group, static_cast<double>(text.size())));
  std::string result = group.is_first() ? text : std::string(size, '\0');
  group.broadcast(std::as_writable_bytes(std::span(result)), 0);
  return result;
}

std::unique_ptr<Group> single_group() { return std::make_unique<SingleGroup>(); }

std::string process_prefix(const Group& group, int rank) {
  if (group.is_alone()) return "";
  return fmt::format("process {} of {}: ", rank, group.size());
}

void agree(Group& group, const std::exception_ptr& failure) {
  if (group.is_alone()) {
    if (failure) std::rethrow_exception(failure);
    return;
  }
  // The code as a first character.
  std::string own;
  if (failure) {
    const auto [code, message] = described(failure);
    own = static_cast<char>('a' + static_cast<int>(code)) + message;
  }
  const std::vector<std::string> all = gather(group, own);
  const auto failed = [](const std::string& text) { return !text.empty(); };
  const auto first = std::ranges::find_if(all, failed);
  if (first == all.end()) return;
  const bool is_everywhere =
      std::ranges::all_of(all, [&](const auto& text) { return text == own; });
  const auto rank = static_cast<int>(first - all.begin());
  const Speaker speaker = rank == group.rank() ? Speaker::this_member : Speaker::another;
  if (speaker == Speaker::this_member && !is_error(failure)) std::rethrow_exception(failure);
  throw AgreedError(static_cast<ErrorCode>(first->front() - 'a'),
                    (is_everywhere ? "" : process_prefix(group, rank)) + first->substr(1), speaker);
}

}  // namespace heed
