#include "train/event_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace heed {
namespace {

// CRC-32C, of the polynomial 0x1EDC6F41 with its bits reversed.
constexpr std::array<std::uint32_t, 256> crc_table = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0x82F63B78U : 0U);
    table[byte] = value;
  }
  return table;
}();

std::uint32_t masked_checksum(std::string_view bytes) {
  std::uint32_t value = ~0U;
  for (const char byte : bytes) {
    value = (value >> 8) ^ crc_table[(value ^ static_cast<unsigned char>(byte)) & 0xFFU];
  }
  return std::rotr(~value, 15) + 0xA282EAD8U;
}

void append_little_endian(std::string& bytes, std::uint64_t value, int count) {
  for (int i = 0; i < count; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFFU);
}

// Protocol buffers: a field is its number and kind, then a varint, 8 or 4 bytes, or a length and as
// many bytes.
enum class WireType : std::uint32_t { varint = 0, eight_bytes = 1, bytes = 2, four_bytes = 5 };

void append_varint(std::string& bytes, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7FU) | 0x80U);
  bytes += static_cast<char>(value);
}

void append_key(std::string& bytes, std::uint32_t field, WireType type) {
  append_varint(bytes, (field << 3) | static_cast<std::uint32_t>(type));
}

void append_text(std::string& bytes, std::uint32_t field, std::string_view value) {
  append_key(bytes, field, WireType::bytes);
  append_varint(bytes, value.size());
  bytes += value;
}

// The fields of the messages Event, SessionLog, Summary and Summary.Value.
namespace event_field {
constexpr std::uint32_t wall_time = 1, step = 2, file_version = 3, summary = 5, session_log = 7;
}
constexpr std::uint32_t session_status = 1, session_start = 1;
constexpr std::uint32_t summary_value = 1, value_tag = 1, value_number = 2;

std::string event_of(double wall_time, std::int64_t step, std::uint32_t field,
                     std::string_view content) {
  std::string event;
  append_key(event, event_field::wall_time, WireType::eight_bytes);
  append_little_endian(event, std::bit_cast<std::uint64_t>(wall_time), 8);
  append_key(event, event_field::step, WireType::varint);
  append_varint(event, static_cast<std::uint64_t>(step));
  append_text(event, field, content);
  return event;
}

void append_scalar(std::string& summary, const std::string& name, double number) {
  std::string value;
  append_text(value, value_tag, name);
  append_key(value, value_number, WireType::four_bytes);
  append_little_endian(value, std::bit_cast<std::uint32_t>(static_cast<float>(number)), 4);
  append_text(summary, summary_value, value);
}

std::int64_t append_scalars(std::string& summary, const std::string& prefix, const Json& members) {
  std::int64_t count = 0;
  for (const auto& [name, value] : members.items()) {
    if (prefix.empty() && (name == "step" || name == "seconds")) continue;
    if (value.is_object()) count += append_scalars(summary, prefix + name + "/", value);
    if (!value.is_number()) continue;
    append_scalar(summary, prefix + name, value.get<double>());
    ++count;
  }
  return count;
}

// A name that no file has, and that sorts after earlier ones.
std::filesystem::path new_event_file(const std::filesystem::path& directory) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  std::error_code error;
  for (int number = 0;; ++number) {
    std::filesystem::path path =
        directory / fmt::format("events.out.tfevents.{:010}.{:03}.{}.{}.heed", seconds, number,
                                host.data(), ::getpid());
    if (!std::filesystem::exists(path, error)) return path;
  }
}

}  // namespace

std::string event_record(std::string_view data) {
  std::string record;
  append_little_endian(record, data.size(), 8);
  append_little_endian(record, masked_checksum(record), 4);
  record += data;
  append_little_endian(record, masked_checksum(data), 4);
  return record;
}

EventFile::EventFile(const std::filesystem::path& directory, double start) : start_(start) {
  make_directory(directory);
  path_ = new_event_file(directory);
  file_.open(path_, std::ios::binary);
  write(event_of(start_, 0, event_field::file_version, "brain.Event:2"));
  // Events of earlier files from this step on, all of them, are given again.
  std::string session;
  append_key(session, session_status, WireType::varint);
  append_varint(session, session_start);
  write(event_of(start_, 0, event_field::session_log, session));
}

void EventFile::write(std::string_view event) {
  file_ << event_record(event);
  file_.flush();
  require(file_.good(), ErrorCode::input_output, "cannot write '{}': {}", path_.string(),
          std::strerror(errno));
}

void EventFile::add(const Json& line) {
  if (!line.is_object() || !line.contains("step") || !line["step"].is_number_integer()) return;
  if (line.contains("seconds") && line["seconds"].is_number()) {
    seconds_ = line["seconds"].get<double>();
  }
  std::string summary;
  const std::int64_t count = append_scalars(summary, "", line);
  if (count == 0) return;
  write(
      event_of(start_ + seconds_, line["step"].get<std::int64_t>(), event_field::summary, summary));
  scalars_ += count;
}

namespace {

// Calls `take` with each whole line.
template <class Take>
void for_each_line(const std::filesystem::path& metrics, Take&& take) {
  const std::string content = read_text_file(metrics);
  for (const std::string_view line : text_lines(content)) {
    Json json;
    try {
      json = parse_json(line, metrics.string());
    } catch (const Error&) {
      continue;
    }
    take(json);
  }
}

}  // namespace

void add_metrics(EventFile& events, const std::filesystem::path& metrics) {
  for_each_line(metrics, [&](const Json& line) { events.add(line); });
}

double start_of(const std::filesystem::path& metrics) {
  double seconds = 0;
  for_each_line(metrics, [&](const Json& line) {
    if (line.is_object() && line.contains("seconds") && line["seconds"].is_number()) {
      seconds = line["seconds"].get<double>();
    }
  });
  struct stat status {};
  require(::stat(metrics.c_str(), &status) == 0, ErrorCode::not_found, "cannot read '{}': {}",
          metrics.string(), std::strerror(errno));
  return static_cast<double>(status.st_mtim.tv_sec) +
         1e-9 * static_cast<double>(status.st_mtim.tv_nsec) - seconds;
}

}  // namespace heed
