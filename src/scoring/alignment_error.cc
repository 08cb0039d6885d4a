#include "scoring/alignment_error.h"

#include <set>

#include "base/error.h"

namespace heed::scoring {
namespace {

using LinkSet = std::set<AlignmentLink>;

std::int64_t count_in(const LinkSet& links, const LinkSet& others) {
  std::int64_t count = 0;
  for (const AlignmentLink& link : links) count += others.contains(link) ? 1 : 0;
  return count;
}

double share(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 1 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

AlignmentCounts& AlignmentCounts::operator+=(const AlignmentCounts& other) {
  found += other.found;
  sure += other.sure;
  found_sure += other.found_sure;
  found_possible += other.found_possible;
  return *this;
}

double AlignmentCounts::precision() const { return share(found_possible, found); }

double AlignmentCounts::recall() const { return share(found_sure, sure); }

double AlignmentCounts::error_rate() const {
  return 1 - share(found_sure + found_possible, found + sure);
}

AlignmentCounts count_links(std::span<const AlignmentLink> found, const TrueAlignment& truth) {
  const LinkSet links(found.begin(), found.end());
  const LinkSet sure(truth.sure.begin(), truth.sure.end());
  LinkSet possible = sure;
  possible.insert(truth.possible.begin(), truth.possible.end());
  return {.found = std::ssize(links),
          .sure = std::ssize(sure),
          .found_sure = count_in(links, sure),
          .found_possible = count_in(links, possible)};
}

AlignmentCounts count_links(std::span<const std::vector<AlignmentLink>> found,
                            std::span<const TrueAlignment> truth) {
  require(found.size() == truth.size(), ErrorCode::invalid_argument,
          "there are alignments of {} sentences, and true ones of {}", found.size(), truth.size());
  AlignmentCounts counts;
  for (std::size_t i = 0; i < found.size(); ++i) counts += count_links(found[i], truth[i]);
  return counts;
}

}  // namespace heed::scoring
