#include "checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/json.h"

namespace heed {
namespace {

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

std::string_view header_text(std::span<const std::byte> bytes, std::string_view source) {
  require(bytes.size() >= prefix_size, corrupt_data,
          "{}: holds {} bytes; a safetensors file starts with the 8-byte length of its header",
          source, bytes.size());
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), prefix_size);
  require(length <= safetensors_largest_header, corrupt_data,
          "{}: the header length is {} bytes; safetensors allows {}", source, length,
          safetensors_largest_header);
  require(length <= bytes.size() - prefix_size, corrupt_data,
          "{}: the header length is {} bytes, but only {} follow", source, length,
          bytes.size() - prefix_size);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + prefix_size, length);
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

}  // namespace

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& path) {
  MappedFile file(path);
  SafetensorsFile parsed = parse(file.bytes(), fmt::format("'{}'", path.string()));
  parsed.file_ = std::move(file);  // the mapping itself does not move
  return parsed;
}

SafetensorsFile SafetensorsFile::parse(std::span<const std::byte> bytes, std::string source) {
  const std::string_view text = header_text(bytes, source);
  const std::span<const std::byte> data = bytes.subspan(prefix_size + text.size());
  const Json header = parse_json(text, source);

  SafetensorsFile file;
  std::vector<Claim> claims;
  for (const auto& [name, description] : header.items()) {
    if (name == safetensors_metadata_key) {
      file.metadata_ = parse_metadata(description, source);
    } else {
      claims.push_back(parse_claim(name, description, data.size(), source));
    }
  }
  require_tiling(claims, data.size(), source);

  for (Claim& claim : claims) {
    claim.entry.bytes = data.subspan(claim.begin, claim.end - claim.begin);
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

}  // namespace heed
