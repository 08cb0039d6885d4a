#include "checkpoint/zip_directory.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/utf8.h"

namespace heed {
namespace {

using enum ErrorCode;

// Sizes of the records before their names, and what they begin with.
constexpr std::size_t file_record = 30, directory_record = 46, end_record = 22;
constexpr std::size_t wide_end_record = 56, locator_record = 20;
constexpr std::string_view file_mark = "PK\x03\x04", directory_mark = "PK\x01\x02";
constexpr std::string_view end_mark = "PK\x05\x06", wide_end_mark = "PK\x06\x06";
constexpr std::string_view locator_mark = "PK\x06\x07";
constexpr std::uint64_t in_wide_field = 0xFFFFFFFFU;  // of ZIP64
constexpr std::uint64_t max_files = 1 << 20;

class ZipReader {
 public:
  ZipReader(std::span<const std::byte> bytes, const std::string& source)
      : bytes_(bytes), source_(source) {}

  std::map<std::string, std::span<const std::byte>> read() {
    find_directory();
    std::map<std::string, std::span<const std::byte>> files;
    for (std::uint64_t i = 0; i < count_; ++i) {
      auto [name, content] = next_file();
      require(files.emplace(name, content).second, corrupt_data, "{}: holds the file {} twice",
              source_, in_quotes(name));
    }
    return files;
  }

 private:
  template <class Number>
  std::uint64_t number(std::uint64_t at) const {
    require(at <= bytes_.size() && bytes_.size() - at >= sizeof(Number), corrupt_data,
            "{}: the archive ends at byte {}, within a record at byte {}", source_, bytes_.size(),
            at);
    Number value;
    std::memcpy(&value, bytes_.data() + at, sizeof(Number));
    return value;
  }
  std::uint64_t number16(std::uint64_t at) const { return number<std::uint16_t>(at); }
  std::uint64_t number32(std::uint64_t at) const { return number<std::uint32_t>(at); }
  std::uint64_t number64(std::uint64_t at) const { return number<std::uint64_t>(at); }

  std::string_view text(std::uint64_t at, std::uint64_t size) const {
    require(at <= bytes_.size() && bytes_.size() - at >= size, corrupt_data,
            "{}: {} bytes at byte {} lie outside of the archive's {}", source_, size, at,
            bytes_.size());
    return {reinterpret_cast<const char*>(bytes_.data()) + at, static_cast<std::size_t>(size)};
  }

  bool begins(std::uint64_t at, std::string_view mark) const {
    return at <= bytes_.size() && bytes_.size() - at >= mark.size() &&
           text(at, mark.size()) == mark;
  }

  // The record at the end, before a comment of up to 65,535 bytes.
  void find_directory() {
    require(begins(0, file_mark), unsupported,
            "{}: is no ZIP archive; PyTorch's files from before version 1.6 are not read", source_);
    const std::uint64_t farthest = std::min<std::uint64_t>(bytes_.size(), end_record + 65535);
    std::optional<std::uint64_t> end;
    for (std::uint64_t back = end_record; back <= farthest && !end; ++back) {
      if (begins(bytes_.size() - back, end_mark)) end = bytes_.size() - back;
    }
    require(end.has_value(), corrupt_data, "{}: has no directory of its files at its end", source_);
    count_ = number16(*end + 10);
    at_ = number32(*end + 16);
    const bool is_wide = *end >= locator_record && begins(*end - locator_record, locator_mark);
    if (is_wide) {
      const std::uint64_t wide = number64(*end - locator_record + 8);
      require(begins(wide, wide_end_mark), corrupt_data,
              "{}: has no directory of 64 bits at byte {}", source_, wide);
      text(wide, wide_end_record);
      count_ = number64(wide + 32);
      at_ = number64(wide + 48);
    }
    require(count_ <= max_files, unsupported, "{}: holds {} files; expected at most {}", source_,
            count_, max_files);
  }

  // A size or offset that the record has no room for: a field of 64 bits after the name has it.
  struct WideFields {
    std::uint64_t at = 0, end = 0;
  };
  WideFields wide_fields(std::uint64_t at, std::uint64_t size) const {
    const std::uint64_t end = at + size;
    while (at + 4 <= end) {
      const std::uint64_t kind = number16(at), length = number16(at + 2);
      if (kind == 1) return {.at = at + 4, .end = std::min(end, at + 4 + length)};
      at += 4 + length;
    }
    return {};
  }
  std::uint64_t widened(std::uint64_t value, WideFields& fields) const {
    if (value != in_wide_field || fields.at + 8 > fields.end) return value;
    fields.at += 8;
    return number64(fields.at - 8);
  }

  std::pair<std::string, std::span<const std::byte>> next_file() {
    require(begins(at_, directory_mark), corrupt_data,
            "{}: has no entry of its directory at byte {}", source_, at_);
    const std::uint64_t flags = number16(at_ + 8), method = number16(at_ + 10);
    const std::uint64_t name_size = number16(at_ + 28), more_size = number16(at_ + 30);
    const std::string name(text(at_ + directory_record, name_size));
    require((flags & 1) == 0 && method == 0, unsupported,
            "{}: the file {} is {}; only files that are stored as they are are read", source_,
            in_quotes(name), method == 0 ? "encrypted" : "compressed");
    text(at_ + directory_record + name_size, more_size);
    WideFields wide = wide_fields(at_ + directory_record + name_size, more_size);
    const std::uint64_t size = widened(number32(at_ + 24), wide);
    widened(number32(at_ + 20), wide);  // as it is stored: the same
    const std::uint64_t begin = widened(number32(at_ + 42), wide);
    at_ += directory_record + name_size + more_size + number16(at_ + 32);
    require(begins(begin, file_mark), corrupt_data, "{}: the file {} is not at byte {}", source_,
            in_quotes(name), begin);
    const std::uint64_t content = begin + file_record + number16(begin + 26) + number16(begin + 28);
    require(content <= bytes_.size() && bytes_.size() - content >= size, corrupt_data,
            "{}: the file {} of {} bytes at byte {} lies outside of the archive's {}", source_,
            in_quotes(name), size, content, bytes_.size());
    return {name,
            bytes_.subspan(static_cast<std::size_t>(content), static_cast<std::size_t>(size))};
  }

  std::span<const std::byte> bytes_;
  const std::string& source_;
  std::uint64_t at_ = 0;  // in the directory
  std::uint64_t count_ = 0;
};

}  // namespace

std::map<std::string, std::span<const std::byte>> read_zip_directory(
    std::span<const std::byte> bytes, const std::string& source) {
  return ZipReader(bytes, source).read();
}

}  // namespace heed
