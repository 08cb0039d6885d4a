#include "train/token_file.h"

#include <array>
#include <cstring>

#include "base/error.h"

namespace heed {
namespace {

constexpr std::int32_t magic = 20240520;
constexpr std::int32_t narrow_version = 1;
constexpr std::int32_t wide_version = 7;
constexpr std::size_t header_words = 256;
constexpr std::size_t header_bytes = header_words * sizeof(std::int32_t);

template <class Word>
void write_words(AtomicFile& file, std::span<const std::int32_t> tokens) {
  std::array<Word, 4096> buffer;
  for (std::size_t begin = 0; begin < tokens.size(); begin += buffer.size()) {
    const std::size_t count = std::min(buffer.size(), tokens.size() - begin);
    for (std::size_t i = 0; i < count; ++i) buffer[i] = static_cast<Word>(tokens[begin + i]);
    file.write(buffer.data(), count * sizeof(Word));
  }
}

template <class Word>
void read_words(const std::byte* from, std::span<std::int32_t> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    Word word;
    std::memcpy(&word, from + i * sizeof(Word), sizeof(Word));
    out[i] = static_cast<std::int32_t>(word);
  }
}

}  // namespace

void write_token_file(const std::filesystem::path& path, std::span<const std::int32_t> tokens,
                      std::int64_t vocabulary_size) {
  require(tokens.size() <= INT32_MAX, ErrorCode::unsupported,
          "{} tokens do not fit in one token file", tokens.size());
  const bool wide = vocabulary_size > 65536;
  std::array<std::int32_t, header_words> header{};
  header[0] = magic;
  header[1] = wide ? wide_version : narrow_version;
  header[2] = static_cast<std::int32_t>(tokens.size());
  AtomicFile file(path);
  file.write(header.data(), header_bytes);
  if (wide) {
    write_words<std::uint32_t>(file, tokens);
  } else {
    write_words<std::uint16_t>(file, tokens);
  }
  file.commit();
}

TokenFile::TokenFile(const std::filesystem::path& path) : file_(path) {
  const auto bytes = file_.bytes();
  require(bytes.size() >= header_bytes, ErrorCode::corrupt_data,
          "'{}' holds {} bytes, too few for the header of a token file", path.string(),
          bytes.size());
  std::array<std::int32_t, 3> header;
  std::memcpy(header.data(), bytes.data(), sizeof(header));
  require(header[0] == magic && (header[1] == narrow_version || header[1] == wide_version),
          ErrorCode::corrupt_data,
          "'{}' is not a token file: magic {} and version {}, expected {} and {} or {}",
          path.string(), header[0], header[1], magic, narrow_version, wide_version);
  wide_ = header[1] == wide_version;
  size_ = header[2];
  const std::size_t expected = static_cast<std::size_t>(size_) * (wide_ ? 4 : 2);
  require(size_ >= 0 && bytes.size() - header_bytes == expected, ErrorCode::corrupt_data,
          "the header of '{}' gives {} tokens, but {} bytes follow", path.string(), size_,
          bytes.size() - header_bytes);
}

void TokenFile::read(std::int64_t begin, std::span<std::int32_t> out) const {
  check(begin >= 0 && begin + static_cast<std::int64_t>(out.size()) <= size_,
        "a range inside the token file");
  const std::byte* from =
      file_.bytes().data() + header_bytes + static_cast<std::size_t>(begin) * (wide_ ? 4 : 2);
  if (wide_) {
    read_words<std::uint32_t>(from, out);
  } else {
    read_words<std::uint16_t>(from, out);
  }
}

}  // namespace heed
