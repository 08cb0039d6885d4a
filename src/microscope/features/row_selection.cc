#include "microscope/features/row_selection.h"

#include "base/threads.h"

namespace heed {

FeatureRows sorted_rows(std::vector<RowSelection>& selected) {
  FeatureRows rows;
  for (RowSelection& row : selected) {
    rows.begins.push_back(rows.begins.back() + std::ssize(row.kept()));
  }
  rows.features.resize(static_cast<std::size_t>(rows.begins.back()));
  rows.values.resize(rows.features.size());
  parallel_ranges(std::ssize(selected), 64, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t n = begin; n < end; ++n) {
      std::vector<FeatureEntry>& kept = selected[static_cast<std::size_t>(n)].kept();
      std::ranges::sort(kept, std::ranges::less{}, &FeatureEntry::feature);
      auto at = static_cast<std::size_t>(rows.begins[static_cast<std::size_t>(n)]);
      for (const FeatureEntry& entry : kept) {
        rows.features[at] = entry.feature;
        rows.values[at++] = entry.value;
      }
    }
  });
  return rows;
}

}  // namespace heed
