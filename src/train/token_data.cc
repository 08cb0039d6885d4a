#include "train/token_data.h"

#include <fmt/ranges.h>

#include <array>
#include <cstring>

#include "base/directories.h"
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

constexpr std::string_view document_mark = "<|endoftext|>";
constexpr std::int64_t shard_tokens = std::int64_t{1} << 26;
constexpr std::size_t slice_bytes = std::size_t{4} << 20;  // encoded in well under a second

// 128 bits of the content, by two multiply-rotate lanes over 8-byte words. It names cache files; it
// is no defence against someone who makes collisions in his own cache.
class TextHash {
 public:
  void add(std::string_view text) {
    add_word(text.size());
    std::size_t i = 0;
    for (; i + 8 <= text.size(); i += 8) {
      std::uint64_t word;
      std::memcpy(&word, text.data() + i, 8);
      add_word(word);
    }
    std::uint64_t rest = 0;
    std::memcpy(&rest, text.data() + i, text.size() - i);
    add_word(rest);
  }

  std::string text() const { return fmt::format("{:016x}{:016x}", mix(a_ + b_), mix(b_ ^ ~a_)); }

 private:
  static std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
    return x ^ (x >> 31);
  }
  void add_word(std::uint64_t word) {
    a_ = ((a_ ^ word) * 0x9E3779B97F4A7C15U);
    a_ ^= a_ >> 32;
    b_ = ((b_ + word) * 0xC2B2AE3D27D4EB4FU);
    b_ = (b_ << 31) | (b_ >> 33);
  }

  std::uint64_t a_ = 0x243F6A8885A308D3U;
  std::uint64_t b_ = 0x13198A2E03707344U;
};

// Where a slice of about slice_bytes may end without changing any token.
std::size_t slice_end(const Tokenizer& tokenizer, std::string_view text, std::size_t begin) {
  for (std::size_t i = begin + slice_bytes; i < text.size(); ++i) {
    if (tokenizer.may_cut(text, i)) return i;
  }
  return text.size();
}

// Collects tokens and makes a shard whenever there are enough: a file of the cache or, once that
// fails, a list in memory.
class ShardWriter {
 public:
  // An empty stem: no files.
  ShardWriter(std::filesystem::path stem, std::int64_t vocabulary_size)
      : stem_(std::move(stem)), vocabulary_size_(vocabulary_size) {}

  void add(std::span<const std::int32_t> tokens) {
    pending_.insert(pending_.end(), tokens.begin(), tokens.end());
    while (static_cast<std::int64_t>(pending_.size()) >= shard_tokens) flush(shard_tokens);
  }

  // `list` is written last: it makes the shards valid.
  TokenData::Shards finish(const std::filesystem::path& list) {
    if (!pending_.empty() || shards_.empty()) flush(static_cast<std::int64_t>(pending_.size()));
    if (!stem_.empty()) attempt([&] { write_text_file(list, names_); });
    return std::move(shards_);
  }

  const std::string& problem() const { return problem_; }  // why no file was written; may be empty

 private:
  void flush(std::int64_t count) {
    const auto tokens =
        std::span<const std::int32_t>(pending_).first(static_cast<std::size_t>(count));
    if (!stem_.empty()) {
      attempt([&] {
        const std::filesystem::path path =
            fmt::format("{}-{:05}.bin", stem_.string(), shards_.size());
        write_token_file(path, tokens, vocabulary_size_);
        auto file = std::make_unique<TokenFile>(path);
        names_ += path.filename().string() + "\n";
        shards_.push_back(std::move(file));
      });
    }
    if (stem_.empty()) {
      shards_.push_back(
          std::make_unique<TokenList>(std::vector<std::int32_t>(tokens.begin(), tokens.end())));
    }
    pending_.erase(pending_.begin(), pending_.begin() + count);
  }

  template <class Write>
  void attempt(Write&& write) {
    try {
      write();
    } catch (const Error& error) {
      problem_ = error.what();
      stem_.clear();
    }
  }

  std::filesystem::path stem_;
  std::int64_t vocabulary_size_;
  std::vector<std::int32_t> pending_;
  TokenData::Shards shards_;
  std::string names_;
  std::string problem_;
};

void encode_text(const Tokenizer& tokenizer, std::string_view text, const TokenizeOptions& options,
                 Progress& progress, ShardWriter& writer) {
  for (std::size_t begin = 0; begin < text.size();) {
    require(!stop_requested(options.stop), ErrorCode::interrupted, "stopped while tokenizing");
    const std::size_t end = slice_end(tokenizer, text, begin);
    writer.add(tokenizer.encode(text.substr(begin, end - begin),
                                {.continues = begin > 0, .stop = options.stop}));
    progress.done += static_cast<std::int64_t>(end - begin);
    if (options.progress) options.progress(progress);
    begin = end;
  }
}

// The cached shards that `list` names. None where it is missing or a shard is damaged: they are
// then made again.
TokenData::Shards cached_shards(const std::filesystem::path& list) {
  TokenData::Shards shards;
  try {
    const std::string names = read_text_file(list, 1 << 20);
    for (std::size_t begin = 0; begin < names.size();) {
      const std::size_t end = std::min(names.find('\n', begin), names.size());
      shards.push_back(
          std::make_unique<TokenFile>(list.parent_path() / names.substr(begin, end - begin)));
      begin = end + 1;
    }
  } catch (const Error&) {
    shards.clear();
  }
  return shards;
}

// The directory, made and cleared of what killed processes left; empty where it cannot be made.
std::filesystem::path open_cache(const std::filesystem::path& directory, std::string& problem) {
  if (directory.empty()) {
    problem = no_cache_directory;
    return {};
  }
  try {
    make_directory(directory);
  } catch (const Error& error) {
    problem = error.what();
    return {};
  }
  remove_abandoned_files(directory);
  return directory;
}

// The tokens that `encode` gives to a writer, from the cache if they are there.
TokenData cached_tokens(const std::string& key, const Tokenizer& tokenizer,
                        const TokenizeOptions& options,
                        const std::function<void(ShardWriter&)>& encode) {
  std::string problem;
  const std::filesystem::path cache = open_cache(options.cache, problem);
  const std::filesystem::path stem = cache.empty() ? cache : cache / key;
  const std::filesystem::path list = stem.string() + ".list";
  if (!stem.empty()) {
    if (auto shards = cached_shards(list); !shards.empty()) return {std::move(shards), key};
  }
  ShardWriter writer(stem, tokenizer.vocabulary_size());
  encode(writer);
  TokenData::Shards shards = writer.finish(list);
  if (!writer.problem().empty()) problem = writer.problem();
  if (!problem.empty() && options.notice) {
    options.notice("tokens are kept in memory, not in a cache: " + problem);
  }
  return {std::move(shards), key};
}

}  // namespace

TokenData::TokenData(Shards shards, std::string key)
    : key_(std::move(key)), shards_(std::move(shards)), starts_{0} {
  for (const auto& shard : shards_) starts_.push_back(starts_.back() + shard->size());
}

void TokenData::read(std::int64_t begin, std::span<std::int32_t> out) const {
  while (!out.empty()) {
    const auto shard = static_cast<std::size_t>(
        std::upper_bound(starts_.begin(), starts_.end(), begin) - starts_.begin() - 1);
    check(shard < shards_.size(), "a range inside the token data");
    const std::int64_t available = starts_[shard + 1] - begin;
    const auto count = static_cast<std::size_t>(std::min<std::int64_t>(available, std::ssize(out)));
    shards_[shard]->read(begin - starts_[shard], out.first(count));
    out = out.subspan(count);
    begin += static_cast<std::int64_t>(count);
  }
}

TokenData tokenize_texts(const Tokenizer& tokenizer, const TextViews& texts,
                         const TokenizeOptions& options) {
  Progress progress{.what = "tokenizing"};
  TextHash hash;
  hash.add(tokenizer.content_key());
  for (const std::string_view text : texts) {
    hash.add(text);
    progress.total += static_cast<std::int64_t>(text.size());
  }
  return cached_tokens(hash.text(), tokenizer, options, [&](ShardWriter& writer) {
    for (std::size_t i = 0; i < texts.size(); ++i) {
      encode_text(tokenizer, texts[i], options, progress, writer);
      const auto mark = tokenizer.end_of_text();
      const bool marked = texts[i].ends_with(document_mark) ||
                          texts[i].ends_with(std::string(document_mark) + "\n");
      if (mark && !marked && i + 1 < texts.size()) writer.add(std::span(&*mark, 1));
    }
  });
}

TokenData tokenize_lines(const Tokenizer& tokenizer, const TextViews& lines,
                         const TokenizeOptions& options) {
  const auto end = tokenizer.end_of_text();
  require(end.has_value(), ErrorCode::invalid_argument,
          "the tokenizer has no token that ends a text, such as </s>, which pairs need");
  Progress progress{.what = "tokenizing", .total = std::ssize(lines)};
  const std::vector<std::int32_t>& before = tokenizer.text_template().before;
  TextHash hash;
  hash.add("lines");
  hash.add(tokenizer.content_key());
  if (!before.empty()) hash.add(fmt::format("behind {}", fmt::join(before, " ")));
  for (const std::string_view line : lines) hash.add(line);
  return cached_tokens(hash.text(), tokenizer, options, [&](ShardWriter& writer) {
    constexpr std::int64_t lines_a_report = 1000;
    for (const std::string_view line : lines) {
      if (progress.done % lines_a_report == 0) {
        require(!stop_requested(options.stop), ErrorCode::interrupted, "stopped while tokenizing");
        if (options.progress) options.progress(progress);
      }
      writer.add(before);
      writer.add(tokenizer.encode(line, {.special_tokens = false, .stop = options.stop}));
      writer.add(std::span(&*end, 1));
      ++progress.done;
    }
  });
}

std::filesystem::path default_token_cache() { return cache_directory("tokens"); }

SplitTexts split_texts(const TextViews& texts, double fraction) {
  std::size_t total = 0;
  for (const std::string_view text : texts) total += text.size();
  auto position = static_cast<std::size_t>((1.0 - fraction) * static_cast<double>(total));
  SplitTexts split;
  for (const std::string_view text : texts) {
    if (position >= text.size()) {
      split.training.push_back(text);
      position -= text.size();
      continue;
    }
    if (position == 0) {
      split.validation.push_back(text);
      continue;
    }
    std::size_t cut = position;
    position = 0;
    if (const std::size_t mark = text.find(document_mark, cut); mark != std::string_view::npos) {
      cut = mark + document_mark.size();
    } else {
      while (cut < text.size() && (static_cast<unsigned char>(text[cut]) & 0xC0U) == 0x80U) ++cut;
    }
    split.training.push_back(text.substr(0, cut));
    if (cut < text.size()) split.validation.push_back(text.substr(cut));
  }
  return split;
}

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

std::vector<std::int64_t> document_starts(const TokenSequence& tokens, std::int32_t end_of_text,
                                          std::int64_t sequence_length) {
  std::vector<std::int64_t> starts{0};
  std::vector<std::int32_t> buffer(std::size_t{1} << 16);
  for (std::int64_t begin = 0; begin < tokens.size(); begin += std::ssize(buffer)) {
    const std::int64_t count = std::min<std::int64_t>(std::ssize(buffer), tokens.size() - begin);
    tokens.read(begin, std::span(buffer).first(static_cast<std::size_t>(count)));
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t position = begin + i;
      const bool has_target = position + 1 < tokens.size();
      const bool starts_document = buffer[static_cast<std::size_t>(i)] == end_of_text;
      const bool goes_on = position - starts.back() == sequence_length;
      if (has_target && position > 0 && (starts_document || goes_on)) starts.push_back(position);
    }
  }
  return starts;
}

}  // namespace heed
