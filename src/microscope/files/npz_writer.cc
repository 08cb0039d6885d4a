#include "microscope/files/npz_writer.h"

#include <zlib.h>

#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "base/json.h"
#include "microscope/files/npy_header.h"

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

}  // namespace

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

}  // namespace heed
