#include "microscope/files/array_files.h"

#include <charconv>
#include <cmath>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "checkpoint/safetensors.h"
#include "microscope/files/npz_writer.h"

namespace heed {
namespace {

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
