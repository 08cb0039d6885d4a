#include "checkpoint/numpy_file.h"

#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "base/utf8.h"
#include "checkpoint/zip_directory.h"

namespace heed {
namespace {

using enum ErrorCode;

struct NumpyType {
  std::string_view name;
  DType dtype;
};
constexpr NumpyType numpy_types[] = {
    {"<f4", DType::f32}, {"<f2", DType::f16}, {"<f8", DType::f64}, {"<i4", DType::i32},
    {"<i8", DType::i64}, {"|i1", DType::i8},  {"|u1", DType::u8},  {"|b1", DType::boolean}};

// The description of an array, a Python dictionary of three known keys.
class HeaderReader {
 public:
  HeaderReader(std::string_view text, const std::string& label) : rest_(text), label_(label) {}

  TensorEntry read() {
    TensorEntry entry;
    expect("{");
    bool has_type = false, has_order = false, has_shape = false;
    while (!skip("}")) {
      const std::string_view key = quoted();
      expect(":");
      if (key == "descr" && !has_type) {
        entry.dtype = dtype();
        has_type = true;
      } else if (key == "fortran_order" && !has_order) {
        require(!skip("True"), unsupported,
                "{}: is in Fortran's order, expected C's: save numpy.ascontiguousarray() of it",
                label_);
        expect("False");
        has_order = true;
      } else if (key == "shape" && !has_shape) {
        entry.shape = shape();
        has_shape = true;
      } else {
        fail(corrupt_data, "{}: the description has {}, expected descr, fortran_order and shape",
             label_, in_quotes(key));
      }
      if (!skip(",")) {
        expect("}");
        break;
      }
    }
    require(has_type && has_order && has_shape, corrupt_data,
            "{}: the description lacks descr, fortran_order or shape", label_);
    skip_spaces();
    require(rest_.empty(), corrupt_data, "{}: the description goes on with {}", label_,
            in_quotes(rest_));
    return entry;
  }

 private:
  void skip_spaces() {
    const std::size_t end = rest_.find_first_not_of(" \n");
    rest_ = end == std::string_view::npos ? std::string_view{} : rest_.substr(end);
  }
  bool skip(std::string_view token) {
    skip_spaces();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  void expect(std::string_view token) {
    require(skip(token), corrupt_data, "{}: the description goes on with {}, expected '{}'", label_,
            in_quotes(rest_), token);
  }
  std::string_view quoted() {
    expect("'");
    const std::size_t end = rest_.find('\'');
    require(end != std::string_view::npos, corrupt_data, "{}: the description ends within a name",
            label_);
    const std::string_view text = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return text;
  }
  DType dtype() {
    const std::string_view name = quoted();
    for (const NumpyType& type : numpy_types) {
      if (type.name == name) return type.dtype;
    }
    fail(unsupported, "{}: the type {} is not supported, expected <f4, <f2, <f8 or integers",
         label_, in_quotes(name));
  }
  Shape shape() {
    expect("(");
    std::vector<std::int64_t> extents;
    while (!skip(")")) {
      skip_spaces();
      std::int64_t extent = -1;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), extent);
      require(error == std::errc{} && extent >= 0, corrupt_data,
              "{}: the shape goes on with {}, expected an extent", label_, in_quotes(rest_));
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      extents.push_back(extent);
      require(extents.size() <= Shape::max_rank, unsupported, "{}: has more than {} dimensions",
              label_, Shape::max_rank);
      if (!skip(",")) {
        expect(")");
        break;
      }
    }
    std::int64_t size = 1;
    for (const std::int64_t extent : extents) {
      require(!__builtin_mul_overflow(size, extent, &size), corrupt_data,
              "{}: the extents have a product that is too large", label_);
    }
    return {extents.data(), static_cast<int>(extents.size())};
  }

  std::string_view rest_;
  const std::string& label_;
};

TensorEntry read_array(const std::string& name, std::span<const std::byte> bytes,
                       const std::string& source) {
  const std::string label = fmt::format("{}: the array {}", source, in_quotes(name));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  constexpr std::string_view mark("\x93NUMPY", 6);
  require(text.starts_with(mark) && text.size() >= 12, corrupt_data,
          "{} does not begin as NumPy's arrays do", label);
  const auto version = static_cast<unsigned char>(text[6]);
  require(version >= 1 && version <= 3, unsupported, "{} has version {} of the format, expected 1",
          label, int{version});
  std::uint16_t short_length = 0;
  std::uint32_t length = 0;
  if (version == 1) {
    std::memcpy(&short_length, text.data() + 8, sizeof(short_length));
    length = short_length;
  } else {
    std::memcpy(&length, text.data() + 8, sizeof(length));
  }
  const std::size_t begin = version == 1 ? 10 : 12;
  require(length <= text.size() - begin, corrupt_data,
          "{} has a description of {} bytes in a file of {}", label, length, text.size());
  TensorEntry entry = HeaderReader(text.substr(begin, length), label).read();
  entry.name = name;
  entry.bytes = bytes.subspan(begin + length);
  const auto element = static_cast<std::uint64_t>(dtype_size(entry.dtype));
  require(entry.bytes.size() % element == 0 &&
              entry.bytes.size() / element == static_cast<std::uint64_t>(entry.shape.size()),
          corrupt_data, "{} has shape {} but {} bytes of {} each", label, entry.shape,
          entry.bytes.size(), element);
  return entry;
}

}  // namespace

NumpyFile NumpyFile::open(const std::filesystem::path& path) {
  MappedFile file(path);
  NumpyFile found = parse(file.bytes(), path.string());
  found.file_ = std::move(file);
  return found;
}

NumpyFile NumpyFile::parse(std::span<const std::byte> bytes, std::string source) {
  NumpyFile found;
  for (const auto& [name, content] : read_zip_directory(bytes, source)) {
    constexpr std::string_view ending = ".npy";
    require(name.ends_with(ending), corrupt_data,
            "{}: holds the file {}, expected arrays, whose names end in .npy", source,
            in_quotes(name));
    found.tensors_.push_back(
        read_array(name.substr(0, name.size() - ending.size()), content, source));
  }
  found.source_ = std::move(source);
  return found;
}

}  // namespace heed
