// What a run has read: the record beside each model that it saves.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "formats/config_file.h"
#include "tokenizer/reading.h"
#include "train/token_data.h"

namespace heed {

// The words of a training text, counted in at most 128 MiB of it: in pieces that are spread evenly.
class TrainingWords {
 public:
  explicit TrainingWords(const TextViews& texts);

  // Those that were read often enough in `passes` over the text.
  WordSet read_words(double passes) const;

 private:
  WordCounter counter_;
  double share_ = 1;  // of the text that was counted
};

// "stories.txt", "a.txt and b.txt", "a.txt and 3 other files": names without directories.
std::string title_of_files(const std::vector<std::filesystem::path>& files);

// What a model that is trained on has read in all; nothing where that of `before` is not known.
std::optional<ReadingRecord> read_after(const std::filesystem::path& before, ReadingRecord own);

// The files of a model with this record, instead of any other.
SourceFiles with_reading(SourceFiles files, const std::optional<ReadingRecord>& reading);

}  // namespace heed
