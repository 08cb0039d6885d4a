#include "server/explorer/array_reply.h"

#include <bit>
#include <cstring>

#include "base/error.h"
#include "microscope/files/array_files.h"

namespace heed::server {
namespace {

static_assert(std::endian::native == std::endian::little, "arrays leave as they are in memory");

constexpr std::int64_t max_numbers = std::int64_t{1} << 27;  // 512 MiB

std::string bytes_of(std::span<const float> values) {
  std::string bytes(values.size_bytes(), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), values.size_bytes());
  return bytes;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t extent : shape) {
    text += (text.empty() ? "" : ",") + std::to_string(extent);
  }
  return text;
}

std::string json_text_of(const NumberArray& array) {
  std::string text = "{\"shape\":[" + shape_text(array.shape) + "],\"values\":[";
  for (std::size_t i = 0; i < array.values.size(); ++i) {
    if (i > 0) text += ',';
    append_json_number(text, array.values[i]);
  }
  return text + "]}\n";
}

// Rows of the last dimension, one a line.
std::string csv_text_of(const NumberArray& array) {
  const auto width = static_cast<std::size_t>(array.shape.empty() ? 1 : array.shape.back());
  std::string text;
  for (std::size_t i = 0; i < array.values.size(); ++i) {
    append_json_number(text, array.values[i]);
    text += (i + 1) % width == 0 ? '\n' : ',';
  }
  return text;
}

void add_file_name(Reply& reply, const std::string& name) {
  reply.headers.emplace_back("Content-Disposition", "attachment; filename=\"" + name + "\"");
}

}  // namespace

void require_sendable(std::int64_t numbers) {
  if (numbers > max_numbers) {
    throw HttpError(413, fmt::format("{} numbers are more than the {} of one reply: ask for a part "
                                     "of them, or pool them",
                                     numbers, max_numbers));
  }
}

Reply array_reply(const Request& request, const NumberArray& array) {
  const std::string format = request.parameter("format").value_or("binary");
  Reply reply;
  if (format == "json") {
    reply.body = json_text_of(array);
  } else if (format == "csv") {
    reply = text_reply(csv_text_of(array), "text/csv; charset=utf-8");
    add_file_name(reply, array.name + ".csv");
  } else if (format == "npy") {
    reply = text_reply(npy_header("<f4", array.shape) + bytes_of(array.values),
                       "application/octet-stream");
    add_file_name(reply, array.name + ".npy");
  } else {
    require(format == "binary", ErrorCode::invalid_argument,
            "format must be binary, json, npy or csv, not '{}'", format.substr(0, 40));
    reply = text_reply(bytes_of(array.values), "application/octet-stream");
    reply.headers.emplace_back("X-Heed-Dtype", "f32");
    reply.headers.emplace_back("X-Heed-Shape", shape_text(array.shape));
  }
  return reply;
}

Reply array_reply(const Request& request, const Tensor<float>& tensor, const std::string& name) {
  return array_reply(
      request, {.shape = {tensor.shape().begin(), tensor.shape().begin() + tensor.shape().rank()},
                .values = tensor.span(),
                .name = name});
}

}  // namespace heed::server
