#include "microscope/files/array_files.h"

#include <zlib.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "checkpoint/safetensors.h"

namespace heed {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are written as little-endian");

// A member of the archive: its header and borrowed elements.
struct Member {
  std::string name;
  std::string header;
  std::span<const std::byte> elements;

  std::uint64_t size() const { return header.size() + elements.size(); }
};

template <class T>
void append_integer(std::string& to, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  to.append(bytes, sizeof(T));
}

Member array_member(const NamedArray& array) {
  return std::visit(
      [&](const auto& values) {
        using Element = std::remove_cvref_t<decltype(*values.data())>;
        const char* type = std::is_same_v<Element, float> ? "<f4" : "<i4";
        const Shape shape = values.shape();
        return Member{.name = array.name + ".npy",
                      .header = npy_header(type, {shape.begin(), shape.end()}),
                      .elements = std::as_bytes(values.span())};
      },
      array.values);
}

// A NumPy string (dtype U), four bytes per character. JSON with non-ASCII characters escaped has
// one byte per character.
Member notes_member(const ArrayNotes& notes, std::vector<std::uint32_t>& characters) {
  const std::string text = Json(notes).dump(-1, ' ', true, Json::error_handler_t::replace);
  characters.assign(text.begin(), text.end());
  return {.name = "notes.npy",
          .header = npy_header("<U" + std::to_string(characters.size()), {}),
          .elements = std::as_bytes(std::span(characters))};
}

std::uint32_t checksum(const Member& member) {
  const auto* header = reinterpret_cast<const Bytef*>(member.header.data());
  const auto* elements = reinterpret_cast<const Bytef*>(member.elements.data());
  const uLong start = crc32_z(0, header, member.header.size());
  return static_cast<std::uint32_t>(crc32_z(start, elements, member.elements.size()));
}

constexpr std::uint32_t in_zip64_field = 0xFFFFFFFF;
constexpr std::uint16_t zip64_version = 45;
constexpr std::uint16_t utf8_names = 1 << 11;
constexpr std::uint16_t first_day =
    (1 << 5) | 1;  // 1 January 1980: files depend on the arrays only

// The fields shared by local header and central directory, from version to extra length.
std::string common_fields(const Member& member, std::uint32_t crc, std::uint16_t extra_size) {
  std::string fields;
  append_integer(fields, zip64_version);
  append_integer(fields, utf8_names);
  append_integer<std::uint16_t>(fields, 0);  // stored
  append_integer<std::uint16_t>(fields, 0);  // midnight
  append_integer(fields, first_day);
  append_integer(fields, crc);
  append_integer(fields, in_zip64_field);
  append_integer(fields, in_zip64_field);
  append_integer(fields, static_cast<std::uint16_t>(member.name.size()));
  append_integer(fields, extra_size);
  return fields;
}

std::string zip64_field(std::initializer_list<std::uint64_t> numbers) {
  std::string field;
  append_integer<std::uint16_t>(field, 1);
  append_integer(field, static_cast<std::uint16_t>(8 * numbers.size()));
  for (const std::uint64_t number : numbers) append_integer(field, number);
  return field;
}

std::string local_header(const Member& member, std::uint32_t crc) {
  const std::string extra = zip64_field({member.size(), member.size()});
  return "PK\x03\x04" + common_fields(member, crc, static_cast<std::uint16_t>(extra.size())) +
         member.name + extra;
}

std::string directory_entry(const Member& member, std::uint32_t crc, std::uint64_t offset) {
  const std::string extra = zip64_field({member.size(), member.size(), offset});
  std::string entry = "PK\x01\x02";
  append_integer(entry, zip64_version);  // made by
  entry += common_fields(member, crc, static_cast<std::uint16_t>(extra.size()));
  append_integer<std::uint16_t>(entry, 0);  // no comment
  append_integer<std::uint16_t>(entry, 0);  // first disk
  append_integer<std::uint16_t>(entry, 0);  // attributes
  append_integer<std::uint32_t>(entry, 0);
  append_integer(entry, in_zip64_field);  // offset
  return entry + member.name + extra;
}

std::string directory_end(std::uint64_t entries, std::uint64_t begin, std::uint64_t size) {
  std::string end = "PK\x06\x06";  // zip64 end of central directory
  append_integer<std::uint64_t>(end, 44);
  append_integer(end, zip64_version);
  append_integer(end, zip64_version);
  append_integer<std::uint64_t>(end, 0);  // disks
  append_integer(end, entries);
  append_integer(end, entries);
  append_integer(end, size);
  append_integer(end, begin);
  end += "PK\x06\x07";  // zip64 locator
  append_integer<std::uint32_t>(end, 0);
  append_integer(end, begin + size);
  append_integer<std::uint32_t>(end, 1);
  end += "PK\x05\x06";  // end of central directory, deferring to zip64
  append_integer<std::uint32_t>(end, 0);
  append_integer<std::uint16_t>(end, 0xFFFF);
  append_integer<std::uint16_t>(end, 0xFFFF);
  append_integer(end, in_zip64_field);
  append_integer(end, in_zip64_field);
  append_integer<std::uint16_t>(end, 0);
  return end;
}

// The caller commits the file. Members have zip64 sizes, so that arrays may be larger than 4 GiB
// (PKWARE, .ZIP File Format Specification 6.3; NumPy Enhancement Proposal 1).
void write_npz(AtomicFile& file, std::span<const NamedArray> arrays, const ArrayNotes& notes) {
  std::vector<std::uint32_t> characters;
  std::vector<Member> members;
  for (const NamedArray& array : arrays) members.push_back(array_member(array));
  if (!notes.empty()) members.push_back(notes_member(notes, characters));

  std::string directory;
  std::uint64_t offset = 0;
  for (const Member& member : members) {
    const std::uint32_t crc = checksum(member);
    const std::string header = local_header(member, crc);
    file.write(header);
    file.write(member.header);
    file.write(member.elements.data(), member.elements.size());
    directory += directory_entry(member, crc, offset);
    offset += header.size() + member.size();
  }
  file.write(directory);
  file.write(directory_end(members.size(), offset, directory.size()));
}

constexpr std::size_t buffer_size = 1 << 16;

// Buffers text and writes it in large pieces.
class TextWriter {
 public:
  explicit TextWriter(AtomicFile& file) : file_(file) {}

  void add(std::string_view text) {
    text_ += text;
    if (text_.size() >= buffer_size) flush();
  }
  void add_number(std::int32_t value) { add_digits(value); }
  void add_number(float value) { add_digits(value); }
  void flush() {
    file_.write(text_);
    text_.clear();
  }

 private:
  template <class T>
  void add_digits(T value) {
    char digits[32];
    const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value);
    add({digits, static_cast<std::size_t>(end - digits)});
  }

  AtomicFile& file_;
  std::string text_;
};

std::string json_text(const Json& document) {
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

template <class T>
void add_json_list(TextWriter& out, View<const T> values) {
  if (values.rank() == 0) {
    const T value = *values.data();
    return std::isfinite(static_cast<double>(value)) ? out.add_number(value) : out.add("null");
  }
  out.add("[");
  for (std::int64_t i = 0; i < values.extent(0); ++i) {
    if (i > 0) out.add(",");
    add_json_list(out, values[i]);
  }
  out.add("]");
}

void write_json(AtomicFile& file, std::span<const NamedArray> arrays, const ArrayNotes& notes) {
  TextWriter out(file);
  out.add("{\"notes\":" + json_text(Json(notes)) + ",\"arrays\":{");
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (i > 0) out.add(",");
    out.add(json_text(Json(arrays[i].name)) + ":");
    std::visit([&](const auto& values) { add_json_list(out, values); }, arrays[i].values);
  }
  out.add("}}\n");
  out.flush();
}

// RFC 4180: quoted if it contains a comma, a quote or a line break.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

template <class T>
void add_csv_rows(TextWriter& out, View<const T> values, const std::string& before,
                  int index_columns) {
  if (values.rank() > 0) {
    for (std::int64_t i = 0; i < values.extent(0); ++i) {
      add_csv_rows(out, values[i], before + "," + std::to_string(i), index_columns - 1);
    }
    return;
  }
  out.add(before);
  for (int i = 0; i < index_columns; ++i) out.add(",");
  out.add(",");
  out.add_number(*values.data());
  out.add("\n");
}

void write_csv(AtomicFile& file, std::span<const NamedArray> arrays) {
  int index_columns = 0;
  for (const NamedArray& array : arrays) {
    index_columns = std::max(index_columns, array.shape().rank());
  }
  TextWriter out(file);
  out.add("array");
  for (int i = 0; i < index_columns; ++i) out.add(",index_" + std::to_string(i));
  out.add(",value\n");
  for (const NamedArray& array : arrays) {
    std::visit(
        [&](const auto& values) {
          add_csv_rows(out, values, csv_field(array.name), index_columns);
        },
        array.values);
  }
  out.flush();
}

void write_tensors(AtomicFile& file, std::span<const NamedArray> arrays, const ArrayNotes& notes) {
  std::vector<OutgoingTensor> tensors;
  for (const NamedArray& array : arrays) {
    std::visit([&](const auto& values) { tensors.push_back(outgoing(array.name, values)); },
               array.values);
  }
  // safetensors requires UTF-8; the text of tokens need not be.
  write_safetensors(file, tensors, Json::parse(json_text(Json(notes))).get<ArrayNotes>());
}

void require_names(std::span<const NamedArray> arrays) {
  require(!arrays.empty(), ErrorCode::invalid_argument, "there are no arrays to write");
  std::set<std::string_view> names{"notes"};  // reserved for the notes
  for (const NamedArray& array : arrays) {
    require(!array.name.empty() && names.insert(array.name).second, ErrorCode::invalid_argument,
            "the array name '{}' is empty, reserved or repeated", array.name);
  }
}

}  // namespace

const Shape& NamedArray::shape() const {
  return std::visit([](const auto& view) -> const Shape& { return view.shape(); }, values);
}

ArrayFormat array_format(const std::filesystem::path& path) {
  const std::string extension = path.extension().string();
  if (extension == ".npz") return ArrayFormat::npz;
  if (extension == ".safetensors") return ArrayFormat::safetensors;
  if (extension == ".json") return ArrayFormat::json;
  if (extension == ".csv") return ArrayFormat::csv;
  fail(ErrorCode::invalid_argument,
       "'{}' is not an array file: expected the extension .npz, .safetensors, .json or .csv",
       path.string());
}

void write_arrays(const std::filesystem::path& path, std::span<const NamedArray> arrays,
                  const ArrayNotes& notes) {
  const ArrayFormat format = array_format(path);
  require_names(arrays);
  AtomicFile file(path);
  switch (format) {
    case ArrayFormat::npz: write_npz(file, arrays, notes); break;
    case ArrayFormat::safetensors: write_tensors(file, arrays, notes); break;
    case ArrayFormat::json: write_json(file, arrays, notes); break;
    case ArrayFormat::csv: write_csv(file, arrays); break;
  }
  file.commit();
}

}  // namespace heed
