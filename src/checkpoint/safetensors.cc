#include "checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <set>
#include <tuple>
#include <utility>

#include "base/bf16.h"
#include "base/error.h"
#include "base/json.h"
#include "base/threads.h"
#include "tensor/tensor.h"

namespace heed {
namespace {

static_assert(std::endian::native == std::endian::little, "files are read as they lie in memory");

// Minimum number of elements for each thread.
constexpr std::int64_t grain = 1 << 16;

// Side of the square blocks of a transposition: 64 × 64 f32 are 16 KiB on each side, so that both
// stay in the first-level cache.
constexpr std::int64_t tile = 64;

// Converts a stored element to a float; memcpy because elements in a file may be unaligned.
template <class Stored, float (*convert)(Stored)>
struct Reader {
  const std::byte* data;

  float operator()(std::int64_t index) const {
    Stored stored;
    std::memcpy(&stored, data + index * static_cast<std::int64_t>(sizeof(Stored)), sizeof(Stored));
    return convert(stored);
  }
};

float same(float value) { return value; }
float narrow(double value) { return static_cast<float>(value); }

// Calls `use` with the Reader for the entry's dtype.
template <class Use>
void with_reader(const TensorEntry& entry, Use&& use) {
  const FilePart part = bytes_of(entry);
  check(part.bytes().size() == entry.size_in_bytes(),
        "a tensor entry holds the bytes of its shape");
  const std::byte* data = part.bytes().data();
  switch (entry.dtype) {
    case DType::f32: return use(Reader<float, same>{data});
    case DType::f16: return use(Reader<std::uint16_t, f16_to_f32>{data});
    case DType::bf16: return use(Reader<std::uint16_t, bf16_to_f32>{data});
    case DType::f64: return use(Reader<double, narrow>{data});
    default:
      fail(ErrorCode::unsupported,
           "tensor '{}' holds {} elements; weights are read from F32, F16, BF16 or F64", entry.name,
           dtype_name(entry.dtype));
  }
}

using enum ErrorCode;

constexpr std::size_t prefix_size = 8;  // the header's length, u64 little-endian

constexpr std::array known_dtypes = {DType::f32, DType::f16, DType::bf16,   DType::f64, DType::i8,
                                     DType::u8,  DType::i16, DType::u16,    DType::i32, DType::u32,
                                     DType::i64, DType::u64, DType::boolean};

// Dtypes of the format that heed does not support.
constexpr std::array<std::string_view, 9> foreign_dtypes = {"F8_E4M3",     "F8_E5M2",     "F8_E8M0",
                                                            "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F6_E2M3",
                                                            "F6_E3M2",     "F4",          "C64"};

// An entry of the header with its byte range, before ranges are checked against each other.
struct Claim {
  TensorEntry entry;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// The header's length, of a file of `size` bytes that begins so.
std::uint64_t header_length(std::span<const std::byte> beginning, std::uint64_t size,
                            std::string_view source) {
  require(size >= prefix_size, corrupt_data,
          "{}: holds {} bytes; a safetensors file starts with the 8-byte length of its header",
          source, size);
  std::uint64_t length = 0;
  std::memcpy(&length, beginning.data(), prefix_size);
  require(length <= safetensors_max_header, corrupt_data,
          "{}: the header length is {} bytes; safetensors allows {}", source, length,
          safetensors_max_header);
  require(length <= size - prefix_size, corrupt_data,
          "{}: the header length is {} bytes, but only {} follow", source, length,
          size - prefix_size);
  return length;
}

// The header, from the beginning of a file.
std::string_view header_text(std::span<const std::byte> beginning, std::uint64_t length,
                             std::string_view source) {
  const std::string_view text(reinterpret_cast<const char*>(beginning.data()) + prefix_size,
                              length);
  require(text.starts_with('{'), corrupt_data, "{}: the header does not start with '{{'", source);
  // The JSON parser treats a NUL byte as the end and would ignore the rest.
  require(text.find('\0') == std::string_view::npos, corrupt_data,
          "{}: the header holds a NUL byte at {}", source, text.find('\0'));
  return text;
}

DType parse_dtype(const Json& description, std::string_view where) {
  const auto found = description.find("dtype");
  require(found != description.end() && found->is_string(), corrupt_data,
          "{}: 'dtype' is missing or not a string", where);
  const auto& name = found->get_ref<const std::string&>();
  for (const DType type : known_dtypes) {
    if (dtype_name(type) == name) return type;
  }
  const bool foreign = std::ranges::find(foreign_dtypes, name) != foreign_dtypes.end();
  fail(foreign ? unsupported : corrupt_data, "{}: {} dtype '{}'", where,
       foreign ? "unsupported" : "unknown", name);
}

Shape parse_shape(const Json& description, std::size_t element_size, std::string_view where) {
  const auto found = description.find("shape");
  require(found != description.end() && found->is_array(), corrupt_data,
          "{}: 'shape' is missing or not a list", where);
  require(found->size() <= Shape::max_rank, unsupported,
          "{}: {} dimensions; at most {} are supported", where, found->size(), Shape::max_rank);
  std::array<std::int64_t, Shape::max_rank> extents{};
  // Extents of zero are skipped, so that strides cannot overflow either.
  std::int64_t size = static_cast<std::int64_t>(element_size);
  int rank = 0;
  for (const Json& extent : *found) {
    require(extent.is_number_unsigned() && extent.get<std::uint64_t>() <= INT64_MAX, corrupt_data,
            "{}: extent {} is not a whole number between 0 and 2^63 - 1", where, extent.dump());
    extents[rank] = extent.get<std::int64_t>();
    require(!__builtin_mul_overflow(size, std::max<std::int64_t>(extents[rank], 1), &size),
            corrupt_data, "{}: shape {} takes more than 2^63 bytes", where, found->dump());
    ++rank;
  }
  return Shape(extents.data(), rank);
}

Claim parse_claim(const std::string& name, const Json& description, std::uint64_t data_size,
                  const std::string& source) {
  require(!name.empty(), corrupt_data, "{}: a tensor has an empty name", source);
  const std::string where = fmt::format("{}: tensor '{}'", source, name);
  require(description.is_object(), corrupt_data, "{}: is described by {} instead of an object",
          where, description.type_name());
  Claim claim;
  claim.entry.name = name;
  claim.entry.dtype = parse_dtype(description, where);
  const std::size_t element_size = dtype_size(claim.entry.dtype);
  claim.entry.shape = parse_shape(description, element_size, where);

  const auto range = description.find("data_offsets");
  require(range != description.end() && range->is_array() && range->size() == 2 &&
              (*range)[0].is_number_unsigned() && (*range)[1].is_number_unsigned(),
          corrupt_data, "{}: 'data_offsets' is missing or not a pair of whole numbers", where);
  claim.begin = (*range)[0].get<std::uint64_t>();
  claim.end = (*range)[1].get<std::uint64_t>();
  require(claim.begin <= claim.end, corrupt_data, "{}: data begins at {} and ends at {}, before it",
          where, claim.begin, claim.end);
  require(claim.end <= data_size, corrupt_data, "{}: data ends at {}, but the file holds {} bytes",
          where, claim.end, data_size);
  const std::uint64_t expected =
      static_cast<std::uint64_t>(claim.entry.shape.size()) * element_size;
  require(claim.end - claim.begin == expected, corrupt_data,
          "{}: {} bytes of data, but shape {} of {} takes {}", where, claim.end - claim.begin,
          claim.entry.shape.text(), dtype_name(claim.entry.dtype), expected);
  return claim;
}

std::map<std::string, std::string> parse_metadata(const Json& value, std::string_view source) {
  require(value.is_object(), corrupt_data, "{}: '{}' is {} instead of an object", source,
          safetensors_metadata_key, value.type_name());
  std::map<std::string, std::string> metadata;
  for (const auto& [key, text] : value.items()) {
    require(text.is_string(), corrupt_data, "{}: metadata '{}' is {} instead of a string", source,
            key, text.type_name());
    metadata.emplace(key, text.get<std::string>());
  }
  return metadata;
}

// Sorts the entries by offset and requires that each begins where the previous one ends, and that
// the last one ends at the end of the file.
void require_tiling(std::vector<Claim>& claims, std::uint64_t data_size, std::string_view source) {
  std::ranges::sort(claims, {}, [](const Claim& claim) {
    return std::tie(claim.begin, claim.end, claim.entry.name);
  });
  std::uint64_t reached = 0;
  for (const Claim& claim : claims) {
    require(claim.begin == reached, corrupt_data,
            "{}: tensor '{}': data begins at {}, {} the data before it, which ends at {}", source,
            claim.entry.name, claim.begin,
            claim.begin < reached ? "overlapping" : "leaving a gap after", reached);
    reached = claim.end;
  }
  require(reached == data_size, corrupt_data,
          "{}: the tensors end at {}, but the file goes on to {}", source, reached, data_size);
}

using enum ErrorCode;

template <class T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<float>() {
  return DType::f32;
}
template <>
constexpr DType dtype_of<double>() {
  return DType::f64;
}
template <>
constexpr DType dtype_of<std::int8_t>() {
  return DType::i8;
}
template <>
constexpr DType dtype_of<std::uint8_t>() {
  return DType::u8;
}
template <>
constexpr DType dtype_of<std::int16_t>() {
  return DType::i16;
}
template <>
constexpr DType dtype_of<std::uint16_t>() {
  return DType::u16;
}
template <>
constexpr DType dtype_of<std::int32_t>() {
  return DType::i32;
}
template <>
constexpr DType dtype_of<std::uint32_t>() {
  return DType::u32;
}
template <>
constexpr DType dtype_of<std::int64_t>() {
  return DType::i64;
}
template <>
constexpr DType dtype_of<std::uint64_t>() {
  return DType::u64;
}

// Rows of the transposed matrix per chunk: 1 MiB, at least one row.
constexpr std::int64_t block_elements = 1 << 18;

std::uint64_t byte_size(const OutgoingTensor& tensor) {
  return static_cast<std::uint64_t>(tensor.shape.size()) * dtype_size(tensor.dtype);
}

// Returns the header after its length, padded so that the data starts at a multiple of 8.
std::string header(std::span<const OutgoingTensor> tensors,
                   const std::map<std::string, std::string>& metadata) {
  OrderedJson description = OrderedJson::object();
  if (!metadata.empty()) description[std::string(safetensors_metadata_key)] = metadata;
  std::set<std::string_view> names;
  std::uint64_t offset = 0;
  for (const OutgoingTensor& tensor : tensors) {
    require(!tensor.name.empty() && tensor.name != safetensors_metadata_key, invalid_argument,
            "a tensor cannot be saved under the name '{}'", tensor.name);
    require(names.insert(tensor.name).second, invalid_argument,
            "two tensors to be saved have the name '{}'", tensor.name);
    const std::uint64_t end = offset + byte_size(tensor);
    description[tensor.name] = {{"dtype", dtype_name(tensor.dtype)},
                                {"shape", std::vector(tensor.shape.begin(), tensor.shape.end())},
                                {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text;
  try {
    text = description.dump();
  } catch (const OrderedJson::exception& error) {
    fail(invalid_argument, "a name or metadata to be saved is not UTF-8 ({})", error.what());
  }
  text.append((8 - text.size() % 8) % 8, ' ');
  require(text.size() <= safetensors_max_header, invalid_argument,
          "the names of {} tensors and the metadata take {} bytes; safetensors allows {}",
          tensors.size(), text.size(), safetensors_max_header);
  const std::uint64_t length = text.size();
  std::string prefix(sizeof(length), '\0');
  std::memcpy(prefix.data(), &length, sizeof(length));
  return prefix + text;
}

}  // namespace

std::size_t TensorEntry::size_in_bytes() const {
  if (blocks) {
    const BlockLayout layout = block_layout(*blocks);
    return static_cast<std::size_t>(shape.size() / layout.values * layout.bytes);
  }
  return static_cast<std::size_t>(shape.size()) * dtype_size(dtype);
}

FilePart bytes_of(const TensorEntry& entry) {
  return entry.file ? entry.file->part(entry.begin, entry.size_in_bytes()) : FilePart(entry.bytes);
}

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& path) {
  MappedFile file(path);
  SafetensorsFile parsed = parse(file.bytes(), fmt::format("'{}'", path.string()));
  parsed.file_ = std::move(file);  // the mapping itself does not move
  return parsed;
}

SafetensorsFile SafetensorsFile::open_in_parts(const std::filesystem::path& path) {
  const FileParts parts(path);
  std::string source = fmt::format("'{}'", path.string());
  const std::uint64_t size = parts.size();
  if (!parts.mapped().empty() || size < prefix_size) return open(path);
  const std::uint64_t length = header_length(parts.part(0, prefix_size).bytes(), size, source);
  const FilePart header = parts.part(0, static_cast<std::size_t>(prefix_size + length));
  const std::string_view text = header_text(header.bytes(), length, source);
  SafetensorsFile file = parse_header(text, size, std::move(source));
  for (TensorEntry& entry : file.tensors_) entry.file = parts;
  return file;
}

SafetensorsFile SafetensorsFile::parse(std::span<const std::byte> bytes, std::string source) {
  const std::uint64_t length = header_length(bytes, bytes.size(), source);
  const std::string_view text = header_text(bytes, length, source);
  SafetensorsFile file = parse_header(text, bytes.size(), std::move(source));
  for (TensorEntry& entry : file.tensors_) {
    entry.bytes = bytes.subspan(entry.begin, entry.size_in_bytes());
  }
  return file;
}

SafetensorsFile SafetensorsFile::parse_header(std::string_view text, std::uint64_t size,
                                              std::string source) {
  const std::uint64_t data_begin = prefix_size + text.size();
  const std::uint64_t data_size = size - data_begin;
  const Json header = parse_json(text, source);

  SafetensorsFile file;
  std::vector<Claim> claims;
  for (const auto& [name, description] : header.items()) {
    if (name == safetensors_metadata_key) {
      file.metadata_ = parse_metadata(description, source);
    } else {
      claims.push_back(parse_claim(name, description, data_size, source));
    }
  }
  require_tiling(claims, data_size, source);

  for (Claim& claim : claims) {
    claim.entry.begin = static_cast<std::size_t>(data_begin + claim.begin);
    file.index_.emplace(claim.entry.name, file.tensors_.size());
    file.tensors_.push_back(std::move(claim.entry));
  }
  file.source_ = std::move(source);
  return file;
}

const TensorEntry* SafetensorsFile::find(std::string_view name) const {
  const auto found = index_.find(std::string(name));
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

template <class T>
OutgoingTensor outgoing(std::string name, View<const T> elements) {
  const auto bytes = std::as_bytes(elements.span());
  OutgoingTensor tensor;
  tensor.name = std::move(name);
  tensor.dtype = dtype_of<T>();
  tensor.shape = elements.shape();
  tensor.produce = [bytes](const ByteSink& sink) { sink(bytes); };
  return tensor;
}

template OutgoingTensor outgoing(std::string, View<const float>);
template OutgoingTensor outgoing(std::string, View<const double>);
template OutgoingTensor outgoing(std::string, View<const std::int8_t>);
template OutgoingTensor outgoing(std::string, View<const std::uint8_t>);
template OutgoingTensor outgoing(std::string, View<const std::int16_t>);
template OutgoingTensor outgoing(std::string, View<const std::uint16_t>);
template OutgoingTensor outgoing(std::string, View<const std::int32_t>);
template OutgoingTensor outgoing(std::string, View<const std::uint32_t>);
template OutgoingTensor outgoing(std::string, View<const std::int64_t>);
template OutgoingTensor outgoing(std::string, View<const std::uint64_t>);

OutgoingTensor outgoing_transposed(std::string name, View<const float> matrix) {
  require(matrix.rank() == 2, invalid_argument,
          "tensor '{}' has shape {}; only a matrix can be transposed", name, matrix.shape().text());
  const std::int64_t rows = matrix.extent(1);  // of the file
  const std::int64_t columns = matrix.extent(0);
  const auto produce = [matrix, rows, columns](const ByteSink& sink) {
    const std::int64_t step = std::clamp<std::int64_t>(
        block_elements / std::max<std::int64_t>(columns, 1), 1, std::max<std::int64_t>(rows, 1));
    Tensor<float> block(Shape{step, columns});
    for (std::int64_t top = 0; top < rows; top += step) {
      const std::int64_t height = std::min(step, rows - top);
      // Tiles of 64 columns, so that the cache lines that a tile reads remain in the cache.
      parallel_ranges(columns, 64, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t left = begin; left < end; left += 64) {
          const std::int64_t right = std::min<std::int64_t>(left + 64, end);
          for (std::int64_t row = 0; row < height; ++row) {
            float* const to = block.data() + row * columns;
            for (std::int64_t column = left; column < right; ++column) {
              to[column] = matrix(column, top + row);
            }
          }
        }
      });
      sink(std::as_bytes(block.span().first(static_cast<std::size_t>(height * columns))));
    }
  };
  return {
      .name = std::move(name), .dtype = DType::f32, .shape = {rows, columns}, .produce = produce};
}

void write_safetensors(const std::filesystem::path& path, std::span<const OutgoingTensor> tensors,
                       const std::map<std::string, std::string>& metadata) {
  AtomicFile file(path);
  write_safetensors(file, tensors, metadata);
  file.commit();
}

void write_safetensors(AtomicFile& file, std::span<const OutgoingTensor> tensors,
                       const std::map<std::string, std::string>& metadata) {
  file.write(header(tensors, metadata));
  for (const OutgoingTensor& tensor : tensors) {
    std::uint64_t written = 0;
    tensor.produce([&](std::span<const std::byte> piece) {
      file.write(piece.data(), piece.size());
      written += piece.size();
    });
    check(written == byte_size(tensor), "a tensor hands over the bytes of its shape");
  }
}

namespace {

void unpack(const TensorEntry& entry, std::span<float> out) {
  const BlockLayout layout = block_layout(*entry.blocks);
  require(holds_weights(*entry.blocks), ErrorCode::unsupported,
          "tensor '{}' holds integers ({}), not weights", entry.name, layout.name);
  const std::int64_t count = std::ssize(out) / layout.values;
  const FilePart part = bytes_of(entry);
  parallel_ranges(count, grain / layout.values, [&](std::int64_t begin, std::int64_t end) {
    const auto range = [&](auto all, std::int64_t size) {
      return all.subspan(static_cast<std::size_t>(begin * size),
                         static_cast<std::size_t>((end - begin) * size));
    };
    unpack_blocks(*entry.blocks, range(part.bytes(), layout.bytes), range(out, layout.values));
  });
}

}  // namespace

void read_as_f32(const TensorEntry& entry, View<float> out) {
  require_shape(View<const float>(out), entry.shape,
                fmt::format("memory for tensor '{}'", entry.name));
  float* const to = out.span().data();
  if (entry.blocks) return unpack(entry, out.span());
  if (entry.dtype == DType::f32) {
    const FilePart part = bytes_of(entry);
    const std::byte* const from = part.bytes().data();
    parallel_ranges(entry.shape.size(), grain, [&](std::int64_t begin, std::int64_t end) {
      std::memcpy(to + begin, from + begin * 4, static_cast<std::size_t>(end - begin) * 4);
    });
    return;
  }
  with_reader(entry, [&](auto read) {
    parallel_ranges(entry.shape.size(), grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) to[i] = read(i);
    });
  });
}

void read_transposed_as_f32(const TensorEntry& entry, View<float> out) {
  require(entry.shape.rank() == 2, ErrorCode::invalid_argument,
          "tensor '{}' has shape {}; only a matrix can be transposed", entry.name,
          entry.shape.text());
  const std::int64_t rows = entry.shape[0];
  const std::int64_t columns = entry.shape[1];
  require_shape(View<const float>(out), Shape{columns, rows},
                fmt::format("memory for the transpose of tensor '{}'", entry.name));
  check(out.stride(1) == 1, "the rows of a transposed tensor are dense");
  check(!entry.blocks, "no tensor of blocks is stored transposed");
  with_reader(entry, [&](auto read) {
    const std::int64_t column_grain = std::max(tile, grain / std::max<std::int64_t>(rows, 1));
    parallel_ranges(columns, column_grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t left = begin; left < end; left += tile) {
        const std::int64_t right = std::min(left + tile, end);
        for (std::int64_t top = 0; top < rows; top += tile) {
          const std::int64_t bottom = std::min(top + tile, rows);
          for (std::int64_t column = left; column < right; ++column) {
            float* const to = out.data() + column * out.stride(0);
            for (std::int64_t row = top; row < bottom; ++row)
              to[row] = read(row * columns + column);
          }
        }
      }
    });
  });
}

}  // namespace heed
