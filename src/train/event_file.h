// The metrics of a run as TensorBoard reads them: event files, in the record format of TensorFlow.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/json.h"

namespace heed {

// A record is the length of its data (8 bytes), its checksum (4), the data, and its checksum (4),
// little-endian. A checksum is the CRC-32C of the bytes, rotated right by 15 bits, plus 0xA282EAD8.
std::string event_record(std::string_view data);

// Creates DIRECTORY/events.out.tfevents.…, beside those that are there: TensorBoard shows the
// newest from its beginning instead of what earlier ones had. Throws Error{input_output}.
class EventFile {
 public:
  // `start`: seconds since 1970 at which the run's own clock (`seconds` of its metrics) began.
  EventFile(const std::filesystem::path& directory, double start);

  // A line of metrics.jsonl: each of its finite numbers becomes a scalar of its step, a number
  // inside another member "member/name". Texts are left out.
  void add(const Json& line);

  const std::filesystem::path& path() const { return path_; }
  std::int64_t scalars() const { return scalars_; }  // written so far

 private:
  void write(std::string_view event);

  std::filesystem::path path_;
  std::ofstream file_;
  double start_ = 0;
  double seconds_ = 0;  // of the last line that had them
  std::int64_t scalars_ = 0;
};

// Adds every whole line of a run's metrics; a line that a kill cut short is left out.
void add_metrics(EventFile& events, const std::filesystem::path& metrics);

// Seconds since 1970 at which a run with these metrics would have begun, had it not paused: they
// end when the file was last written. Throws Error{not_found} where there is no such file.
double start_of(const std::filesystem::path& metrics);

}  // namespace heed
