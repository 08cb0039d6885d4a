#include "checkpoint/gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"

namespace heed {
namespace {

static_assert(std::endian::native == std::endian::little, "files are read as they lie in memory");

using enum ErrorCode;
namespace fs = std::filesystem;

constexpr std::string_view magic = "GGUF";
constexpr std::size_t default_alignment = 32;  // bytes
constexpr std::uint64_t max_key = 65535;       // bytes
constexpr std::uint64_t max_tensor_name = 63;  // bytes
constexpr std::uint32_t max_dimensions = 4;
constexpr std::string_view alignment_key = "general.alignment";
// Of a file without maps, what is read first: the header of a vocabulary of 50,000 tokens takes
// less.
constexpr std::size_t first_beginning = std::size_t{4} << 20;
// The vocabulary of 262,144 tokens with its scores takes a tenth of it.
constexpr std::size_t largest_header = std::size_t{256} << 20;

// Thrown by a reader that has a part of its file: the header goes on after it.
struct HeaderGoesOn {};

struct TypeFacts {
  std::string_view name;
  std::size_t size;  // bytes of one; 0: it says its own length
};
constexpr std::array<TypeFacts, 13> types = {{{"u8", 1},
                                              {"i8", 1},
                                              {"u16", 2},
                                              {"i16", 2},
                                              {"u32", 4},
                                              {"i32", 4},
                                              {"f32", 4},
                                              {"boolean", 1},
                                              {"string", 0},
                                              {"array", 0},
                                              {"u64", 8},
                                              {"i64", 8},
                                              {"f64", 8}}};

std::size_t size_of(GgufType type) { return types[static_cast<std::size_t>(type)].size; }

template <class Number>
Number number_in(std::span<const std::byte> bytes, std::uint64_t index) {
  Number value;
  std::memcpy(&value, bytes.data() + index * sizeof(Number), sizeof(Number));
  return value;
}

// The string whose length stands at `at`, which moves after it.
std::string_view next_text(std::span<const std::byte> bytes, std::size_t& at) {
  const auto length = number_in<std::uint64_t>(bytes.subspan(at), 0);
  const char* const begin = reinterpret_cast<const char*>(bytes.data()) + at + sizeof(length);
  at += sizeof(length) + length;
  return {begin, static_cast<std::size_t>(length)};
}

bool is_integer(GgufType type) {
  return type != GgufType::f32 && type != GgufType::f64 && type != GgufType::boolean &&
         type != GgufType::string && type != GgufType::array;
}

// The number in the name of a part, and how many the name says there are.
struct PartName {
  std::string stem;  // "model" of "model-00001-of-00003.gguf"
  std::int64_t number = 0;
  std::int64_t count = 0;

  std::string file_name(std::int64_t part) const {
    return fmt::format("{}-{:05}-of-{:05}.gguf", stem, part, count);
  }
};

bool is_digits(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// Whether the name is one of a part; those of whole files are not.
bool read_part_name(const std::string& name, PartName& part) {
  constexpr std::string_view pattern = "-00000-of-00000.gguf";
  if (name.size() <= pattern.size()) return false;
  const std::string_view end = std::string_view(name).substr(name.size() - pattern.size());
  const std::string_view number = end.substr(1, 5);
  const std::string_view count = end.substr(10, 5);
  if (end[0] != '-' || end.substr(6, 4) != "-of-" || end.substr(15) != ".gguf" ||
      !is_digits(number) || !is_digits(count)) {
    return false;
  }
  part = {.stem = name.substr(0, name.size() - pattern.size()),
          .number = std::stoll(std::string(number)),
          .count = std::stoll(std::string(count))};
  return true;
}

}  // namespace

// Reads the header front to back; every length is checked against what is left of the file.
class GgufReader {
 public:
  // `beginning` is all of the file, or a part that read() throws HeaderGoesOn for if it is too
  // short.
  GgufReader(std::span<const std::byte> beginning, std::uint64_t size, std::string source)
      : bytes_(beginning), size_(size) {
    file_.source_ = std::move(source);
  }

  GgufFile read() {
    read_version();
    // A tensor and an entry take at least this many bytes, so that no count asks for more memory
    // than a few times the file.
    const std::uint64_t tensors = read_count("tensors", 24);
    const std::uint64_t entries = read_count("entries of metadata", 13);
    read_metadata(entries);
    read_alignment();
    std::vector<std::uint64_t> offsets = read_tensors(tensors);
    place_tensors(offsets);
    return std::move(file_);
  }

 private:
  const std::string& source() const { return file_.source_; }
  std::uint64_t left() const { return size_ - at_; }

  std::span<const std::byte> take(std::uint64_t size, std::string_view what) {
    require(size <= left(), corrupt_data, "{}: {} takes {} bytes, but {} are left at byte {}",
            source(), what, size, left(), at_);
    if (size > bytes_.size() - at_) throw HeaderGoesOn{};
    const auto taken = bytes_.subspan(at_, static_cast<std::size_t>(size));
    at_ += static_cast<std::size_t>(size);
    return taken;
  }

  template <class Number>
  Number take_number(std::string_view what) {
    return number_in<Number>(take(sizeof(Number), what), 0);
  }

  std::string_view take_text(std::string_view what) {
    const auto length = take_number<std::uint64_t>(what);
    const auto bytes = take(length, what);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  void read_version() {
    const auto first = take(std::min<std::uint64_t>(magic.size(), left()), "GGUF");
    require(std::string_view(reinterpret_cast<const char*>(first.data()), first.size()) == magic,
            corrupt_data, "{}: does not begin with 'GGUF'", source());
    file_.version_ = take_number<std::uint32_t>("the version");
    require((file_.version_ & 0xFFFFU) != 0 || file_.version_ == 0, unsupported,
            "{}: is written big-endian; only little-endian GGUF files are read", source());
    require(file_.version_ == 2 || file_.version_ == 3,
            file_.version_ == 1 ? unsupported : corrupt_data,
            "{}: has version {} of GGUF; versions 2 and 3 are read", source(), file_.version_);
  }

  std::uint64_t read_count(std::string_view what, std::uint64_t min_bytes) {
    const auto count = take_number<std::uint64_t>(what);
    require(count <= left() / min_bytes, corrupt_data,
            "{}: says it holds {} {}, but only {} bytes follow", source(), count, what, left());
    return count;
  }

  GgufType take_type(const std::string& where) {
    const auto number = take_number<std::uint32_t>(where);
    require(number < types.size(), corrupt_data, "{}: {} has type {}; types are 0 to {}", source(),
            where, number, types.size() - 1);
    return static_cast<GgufType>(number);
  }

  void require_booleans(std::span<const std::byte> bytes, const std::string& where) const {
    for (const std::byte byte : bytes) {
      require(std::to_integer<int>(byte) <= 1, corrupt_data,
              "{}: {} is a boolean of value {}; expected 0 or 1", source(), where,
              std::to_integer<int>(byte));
    }
  }

  GgufValue take_value(const std::string& where) {
    const GgufType type = take_type(where);
    GgufType element = type;
    std::uint64_t count = 1;
    if (type == GgufType::array) {
      element = take_type(where);
      require(element != GgufType::array, unsupported, "{}: {} is an array of arrays", source(),
              where);
      count = take_number<std::uint64_t>(where);
    }
    const std::size_t size = size_of(element);
    const std::size_t begin = at_;
    if (size == 0) {
      require(count <= left() / sizeof(std::uint64_t), corrupt_data,
              "{}: {} holds {} strings, but only {} bytes are left", source(), where, count,
              left());
      for (std::uint64_t i = 0; i < count; ++i) take_text(where);
    } else {
      require(count <= left() / size, corrupt_data,
              "{}: {} holds {} numbers of {} bytes, but only {} bytes are left", source(), where,
              count, size, left());
      take(count * size, where);
    }
    const auto bytes = bytes_.subspan(begin, at_ - begin);
    if (element == GgufType::boolean) require_booleans(bytes, where);
    return GgufValue(type, element, count, bytes);
  }

  std::string take_name(std::string_view what, std::uint64_t longest) {
    const std::string_view name = take_text(what);
    require(!name.empty() && name.size() <= longest, corrupt_data,
            "{}: {} has {} bytes; expected 1 to {}", source(), what, name.size(), longest);
    require(is_valid_utf8(name) && name.find('\0') == std::string_view::npos, corrupt_data,
            "{}: {} is {}, which is not text in UTF-8", source(), what, in_quotes(name));
    return std::string(name);
  }

  void read_metadata(std::uint64_t entries) {
    for (std::uint64_t i = 0; i < entries; ++i) {
      std::string key = take_name("the key of an entry", max_key);
      const std::string where = fmt::format("key {}", in_quotes(key));
      require(file_.keys_.emplace(key, file_.metadata_.size()).second, corrupt_data,
              "{}: {} stands in it twice", source(), where);
      GgufValue value = take_value(where);
      file_.metadata_.push_back({std::move(key), value});
    }
  }

  void read_alignment() {
    file_.alignment_ = default_alignment;
    const GgufValue* const value = file_.find_value(alignment_key);
    if (value == nullptr) return;
    require(!value->is_array() && value->element() == GgufType::u32, corrupt_data,
            "{}: {} is not a u32", source(), alignment_key);
    const std::int64_t alignment = value->integer();
    require(alignment > 0 && std::has_single_bit(static_cast<std::uint64_t>(alignment)),
            corrupt_data, "{}: {} is {}; expected a power of 2", source(), alignment_key,
            alignment);
    file_.alignment_ = static_cast<std::size_t>(alignment);
  }

  // Extents with their product checked, so that Shape cannot refuse them.
  Shape take_shape(const std::string& where) {
    const auto rank = take_number<std::uint32_t>(where);
    require(rank <= max_dimensions, corrupt_data, "{}: {} has {} dimensions; the most is {}",
            source(), where, rank, max_dimensions);
    std::array<std::int64_t, max_dimensions> extents{};
    std::int64_t size = 1;
    for (std::uint32_t i = 0; i < rank; ++i) {
      const auto extent = take_number<std::uint64_t>(where);
      require(extent > 0 && extent <= INT64_MAX &&
                  !__builtin_mul_overflow(size, static_cast<std::int64_t>(extent), &size),
              corrupt_data,
              "{}: {} has an extent of {}; expected at least 1, and fewer than 2^63 "
              "numbers in all",
              source(), where, extent);
      extents[rank - 1 - i] = static_cast<std::int64_t>(extent);
    }
    return Shape(extents.data(), static_cast<int>(rank));
  }

  BlockType take_block_type(const std::string& where) {
    const auto number = take_number<std::uint32_t>(where);
    const auto type = find_block_type(number);
    const std::string_view name = unread_block_type(number);
    require(type || name.empty(), unsupported, "{}: {} is stored as {}, which heed does not read",
            source(), where, name);
    require(type.has_value(), corrupt_data, "{}: {} has the unknown type {}", source(), where,
            number);
    return *type;
  }

  std::vector<std::uint64_t> read_tensors(std::uint64_t count) {
    std::vector<std::uint64_t> offsets;
    for (std::uint64_t i = 0; i < count; ++i) {
      GgufTensor tensor;
      tensor.name = take_name("the name of a tensor", max_tensor_name);
      const std::string where = fmt::format("tensor {}", in_quotes(tensor.name));
      require(file_.index_.emplace(tensor.name, file_.tensors_.size()).second, corrupt_data,
              "{}: {} stands in it twice", source(), where);
      tensor.shape = take_shape(where);
      tensor.type = take_block_type(where);
      const BlockLayout layout = block_layout(tensor.type);
      const std::int64_t row = tensor.shape.rank() == 0 ? 1 : tensor.shape[tensor.shape.rank() - 1];
      require(row % layout.values == 0, corrupt_data,
              "{}: {} has rows of {} numbers; blocks of {} hold {}", source(), where, row,
              layout.name, layout.values);
      offsets.push_back(take_number<std::uint64_t>(where));
      file_.tensors_.push_back(std::move(tensor));
    }
    return offsets;
  }

  // `size` bytes up to the next multiple of the alignment; false if that overflows.
  bool pad(std::uint64_t& size) const {
    const std::uint64_t over = size % file_.alignment_;
    return over == 0 || !__builtin_add_overflow(size, file_.alignment_ - over, &size);
  }

  // Each tensor begins where the one before it ends, padded.
  void place_tensors(const std::vector<std::uint64_t>& offsets) {
    std::uint64_t begin = at_;
    if (offsets.empty()) return;
    require(pad(begin) && begin <= size_, corrupt_data,
            "{}: holds {} bytes; its tensors would begin at byte {}", source(), size_, begin);
    const std::uint64_t data_size = size_ - begin;
    std::uint64_t reached = 0;
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      GgufTensor& tensor = file_.tensors_[i];
      const BlockLayout layout = block_layout(tensor.type);
      require(offsets[i] == reached, corrupt_data,
              "{}: tensor '{}' begins at byte {} of the data; expected {}", source(), tensor.name,
              offsets[i], reached);
      std::int64_t size = 0;
      require(!__builtin_mul_overflow(tensor.shape.size() / layout.values, layout.bytes, &size) &&
                  static_cast<std::uint64_t>(size) <= data_size - reached,
              corrupt_data, "{}: tensor '{}' of {} as {} does not fit into the {} bytes of data",
              source(), tensor.name, tensor.shape.text(), layout.name, data_size);
      tensor.begin = static_cast<std::size_t>(begin + reached);
      tensor.size = static_cast<std::size_t>(size);
      if (bytes_.size() == size_) tensor.bytes = bytes_.subspan(tensor.begin, tensor.size);
      reached += static_cast<std::uint64_t>(size);
      if (i + 1 == offsets.size()) break;  // files may end with the last tensor, unpadded
      require(pad(reached) && reached <= data_size, corrupt_data,
              "{}: ends within or before tensor '{}'", source(), file_.tensors_[i + 1].name);
    }
  }

  std::span<const std::byte> bytes_;
  std::uint64_t size_;
  std::size_t at_ = 0;
  GgufFile file_;
};

std::string_view gguf_type_name(GgufType type) {
  return types[static_cast<std::size_t>(type)].name;
}

std::string GgufValue::described() const {
  const std::string_view name = gguf_type_name(element_);
  return is_array() ? fmt::format("an array of {} {}", count_, name) : fmt::format("a {}", name);
}

void GgufValue::require_scalar(std::string_view wanted) const {
  require(!is_array(), invalid_argument, "is {}; expected {}", described(), wanted);
}

void GgufValue::require_array(std::string_view wanted) const {
  require(is_array(), invalid_argument, "is {}; expected {}", described(), wanted);
}

std::int64_t GgufValue::integer_at(std::uint64_t index) const {
  switch (element_) {
    case GgufType::u8: return number_in<std::uint8_t>(bytes_, index);
    case GgufType::i8: return number_in<std::int8_t>(bytes_, index);
    case GgufType::u16: return number_in<std::uint16_t>(bytes_, index);
    case GgufType::i16: return number_in<std::int16_t>(bytes_, index);
    case GgufType::u32: return number_in<std::uint32_t>(bytes_, index);
    case GgufType::i32: return number_in<std::int32_t>(bytes_, index);
    case GgufType::i64: return number_in<std::int64_t>(bytes_, index);
    case GgufType::u64: {
      const auto value = number_in<std::uint64_t>(bytes_, index);
      require(value <= INT64_MAX, invalid_argument, "is {}; expected at most 2^63 - 1", value);
      return static_cast<std::int64_t>(value);
    }
    default: fail(invalid_argument, "is {}; expected integers", described());
  }
}

double GgufValue::number_at(std::uint64_t index) const {
  if (element_ == GgufType::f32) return number_in<float>(bytes_, index);
  if (element_ == GgufType::f64) return number_in<double>(bytes_, index);
  if (element_ == GgufType::u64) {
    return static_cast<double>(number_in<std::uint64_t>(bytes_, index));
  }
  require(is_integer(element_), invalid_argument, "is {}; expected numbers", described());
  return static_cast<double>(integer_at(index));
}

std::int64_t GgufValue::integer() const {
  require_scalar("an integer");
  return integer_at(0);
}

double GgufValue::number() const {
  require_scalar("a number");
  return number_at(0);
}

bool GgufValue::boolean() const {
  require(type_ == GgufType::boolean, invalid_argument, "is {}; expected a boolean", described());
  return number_in<std::uint8_t>(bytes_, 0) != 0;
}

std::string_view GgufValue::text() const {
  require(type_ == GgufType::string, invalid_argument, "is {}; expected a string", described());
  return {reinterpret_cast<const char*>(bytes_.data()) + sizeof(std::uint64_t),
          bytes_.size() - sizeof(std::uint64_t)};
}

std::vector<std::int64_t> GgufValue::integers() const {
  require_array("an array of integers");
  std::vector<std::int64_t> values(count_);
  for (std::uint64_t i = 0; i < count_; ++i) values[i] = integer_at(i);
  return values;
}

std::vector<double> GgufValue::numbers() const {
  require_array("an array of numbers");
  std::vector<double> values(count_);
  for (std::uint64_t i = 0; i < count_; ++i) values[i] = number_at(i);
  return values;
}

std::vector<std::string_view> GgufValue::texts() const {
  require_array("an array of strings");
  require(element_ == GgufType::string, invalid_argument, "is {}; expected an array of strings",
          described());
  std::vector<std::string_view> texts(count_);
  std::size_t at = 0;
  for (std::string_view& text : texts) text = next_text(bytes_, at);
  return texts;
}

std::string GgufValue::shown(std::size_t most) const {
  const std::uint64_t shown_count = std::min<std::uint64_t>(count_, most);
  std::vector<std::string> items;
  if (element_ == GgufType::string) {
    std::size_t at = 0;
    for (std::uint64_t i = 0; i < shown_count; ++i) {
      items.push_back(in_quotes(next_text(bytes_, at)));
    }
  } else {
    for (std::uint64_t i = 0; i < shown_count; ++i) {
      if (element_ == GgufType::boolean) {
        items.emplace_back(number_in<std::uint8_t>(bytes_, i) != 0 ? "true" : "false");
      } else if (element_ == GgufType::u64) {
        items.push_back(std::to_string(number_in<std::uint64_t>(bytes_, i)));
      } else if (is_integer(element_)) {
        items.push_back(std::to_string(integer_at(i)));
      } else if (element_ == GgufType::f32) {
        items.push_back(fmt::format("{}", number_in<float>(bytes_, i)));
      } else {
        items.push_back(fmt::format("{}", number_at(i)));
      }
    }
  }
  if (!is_array()) return items.front();
  std::string text = fmt::format("[{}", fmt::join(items, ", "));
  if (shown_count < count_) text += fmt::format("{}… of {}", items.empty() ? "" : ", ", count_);
  return text + "]";
}

GgufFile GgufFile::open(const fs::path& path) {
  MappedFile mapped(path);
  GgufFile file = parse(mapped.bytes(), fmt::format("'{}'", path.string()));
  file.file_ = std::move(mapped);
  return file;
}

GgufFile GgufFile::open_in_parts(const fs::path& path) {
  const FileParts parts(path);
  if (!parts.mapped().empty()) return open(path);
  const std::string source = fmt::format("'{}'", path.string());
  for (std::size_t length = std::min(first_beginning, parts.size());;
       length = std::min(2 * length, parts.size())) {
    require(length <= largest_header, unsupported,
            "{}: its header takes more than {} bytes, the most that is read of files in parts",
            source, largest_header);
    FilePart beginning = parts.part(0, length);
    try {
      GgufFile file = GgufReader(beginning.bytes(), parts.size(), source).read();
      file.beginning_ = std::move(beginning);
      for (GgufTensor& tensor : file.tensors_) {
        tensor.bytes = {};
        tensor.file = parts;
      }
      return file;
    } catch (const HeaderGoesOn&) {
      check(length < parts.size(), "the header of a whole file ends in it");
    }
  }
}

GgufFile GgufFile::parse(std::span<const std::byte> bytes, std::string source) {
  return GgufReader(bytes, bytes.size(), std::move(source)).read();
}

void GgufFile::release_pages(std::span<const std::byte> part) const {
  if (!file_.bytes().empty()) file_.release_pages(part);
}

const GgufValue* GgufFile::find_value(std::string_view key) const {
  const auto found = keys_.find(std::string(key));
  return found == keys_.end() ? nullptr : &metadata_[found->second].value;
}

const GgufTensor* GgufFile::find(std::string_view name) const {
  const auto found = index_.find(std::string(name));
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

std::vector<GgufFile> open_gguf_parts(const fs::path& path) {
  std::vector<GgufFile> files;
  PartName name;
  if (!read_part_name(path.filename().string(), name)) {
    files.push_back(GgufFile::open_in_parts(path));
    return files;
  }
  require(name.count >= 1 && name.number >= 1 && name.number <= name.count, corrupt_data,
          "'{}': part {} of {}", path.string(), name.number, name.count);
  std::set<std::string> names;
  for (std::int64_t part = 1; part <= name.count; ++part) {
    const fs::path file_path = path.parent_path() / name.file_name(part);
    require(fs::exists(file_path), not_found, "'{}' is part {} of {}: '{}' is missing",
            path.string(), name.number, name.count, file_path.string());
    files.push_back(GgufFile::open_in_parts(file_path));
    const GgufFile& file = files.back();
    // Parts say in their metadata which they are, counted from 0.
    for (const auto& [key, expected] :
         {std::pair{"split.no", part - 1}, std::pair{"split.count", name.count}}) {
      const GgufValue* const value = file.find_value(key);
      if (value == nullptr) continue;
      require(!value->is_array() && is_integer(value->element()) && value->integer() == expected,
              corrupt_data, "{}: '{}' is {}; its name says {}", file.source(), key, value->shown(4),
              expected);
    }
    for (const GgufTensor& tensor : file.tensors()) {
      require(names.insert(tensor.name).second, corrupt_data,
              "{}: tensor '{}' is in an earlier part, too", file.source(), tensor.name);
    }
  }
  return files;
}

}  // namespace heed
