#include "comm/group.h"

#include <algorithm>
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

}  // namespace heed
