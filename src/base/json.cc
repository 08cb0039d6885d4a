#include "base/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/numbers.h"

namespace heed {
namespace {

constexpr std::size_t deepest_nesting = 64;

// Builds a document from the parser's events, in time that grows with its length: nlohmann's own
// builder with a callback goes through a container again for every container in it.
class DocumentBuilder final : public nlohmann::json_sax<Json> {
 public:
  explicit DocumentBuilder(std::string_view source) : source_(source) {}

  Json take() { return std::move(document_); }
  const std::string& problem() const { return problem_; }

  bool null() override { return add(nullptr) != nullptr; }
  bool boolean(bool value) override { return add(value) != nullptr; }
  bool number_integer(Json::number_integer_t value) override { return add(value) != nullptr; }
  bool number_unsigned(Json::number_unsigned_t value) override { return add(value) != nullptr; }
  bool number_float(Json::number_float_t value, const std::string&) override {
    return add(value) != nullptr;
  }
  bool string(std::string& value) override { return add(std::move(value)) != nullptr; }
  bool binary(Json::binary_t&) override { return false; }  // not in text

  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(std::string& name) override {
    const auto [member, is_new] = open_.back()->emplace(name, nullptr);
    require(is_new, ErrorCode::corrupt_data, "{}: the JSON key '{}' appears twice", source_, name);
    member_ = &*member;
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const Json::exception& error) override {
    problem_ = error.what();
    return false;
  }

 private:
  // Places a value where it belongs: at the top, as the member of the last key, after the last
  // element.
  Json* add(Json value) {
    Json* place = &document_;
    if (!open_.empty() && open_.back()->is_array()) {
      open_.back()->push_back(std::move(value));
      return &open_.back()->back();
    }
    if (!open_.empty()) place = member_;
    *place = std::move(value);
    return place;
  }

  bool open(Json container) {
    require(open_.size() < deepest_nesting, ErrorCode::corrupt_data,
            "{}: JSON nested deeper than {} levels", source_, deepest_nesting);
    open_.push_back(add(std::move(container)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  std::string_view source_;
  Json document_;
  std::vector<Json*> open_;  // containers, the innermost last
  Json* member_ = nullptr;   // of the innermost object: that of the last key
  std::string problem_;
};

[[noreturn]] void refuse(const JsonLabel& label, const std::string& expected, const Json& value) {
  fail(label.code, "{} must be {}, not {}", label.text, expected, shown_json(value));
}

template <class Number>
std::string within(const std::string& kind, Number least, Number most) {
  using Limits = std::numeric_limits<Number>;
  const bool bounded = least != Limits::lowest() || most != Limits::max();
  return bounded ? fmt::format("{} from {} to {}", kind, least, most) : kind;
}

}  // namespace

Json parse_json(std::string_view text, std::string_view source) {
  // The parser treats a NUL byte as the end and would ignore the rest.
  const std::size_t nul = text.find('\0');
  require(nul == std::string_view::npos, ErrorCode::corrupt_data,
          "{}: not valid JSON (byte {} is NUL)", source, nul);
  DocumentBuilder builder(source);
  if (Json::sax_parse(text.begin(), text.end(), &builder)) return builder.take();
  std::string_view problem = builder.problem();  // "[json.exception.parse_error.101] parse error …"
  if (problem.starts_with('[')) {
    problem.remove_prefix(std::min(problem.find(' ') + 1, problem.size()));
  }
  fail(ErrorCode::corrupt_data, "{}: not valid JSON ({})", source, problem);
}

OrderedJson json_number(float value) {
  if (!std::isfinite(value)) return nullptr;
  return shortest_decimal(value);
}

OrderedJson json_number(double value) {
  if (!std::isfinite(value)) return nullptr;
  return value;
}

void append_json_number(std::string& text, float value) {
  if (!std::isfinite(value)) {
    text += "null";
    return;
  }
  char digits[32];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value);
  text.append(digits, end);
}

std::string json_text(const OrderedJson& document) {
  return document.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

const Json* find_json_member(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::int64_t json_integer(const Json& value, const JsonLabel& label, std::int64_t least,
                          std::int64_t most) {
  // get<int64>() of an unsigned number from 2^63 on would wrap around.
  const bool fits = value.is_number_integer() &&
                    (!value.is_number_unsigned() || value.get<std::uint64_t>() <= INT64_MAX);
  if (!fits || value.get<std::int64_t>() < least || value.get<std::int64_t>() > most) {
    refuse(label, within("a whole number", least, most), value);
  }
  return value.get<std::int64_t>();
}

double json_real(const Json& value, const JsonLabel& label, double least, double most) {
  if (!value.is_number() || value.get<double>() < least || value.get<double>() > most) {
    refuse(label, within("a number", least, most), value);
  }
  return value.get<double>();
}

bool json_boolean(const Json& value, const JsonLabel& label) {
  if (!value.is_boolean()) refuse(label, "true or false", value);
  return value.get<bool>();
}

const std::string& json_string(const Json& value, const JsonLabel& label) {
  if (!value.is_string()) refuse(label, "a string", value);
  return value.get_ref<const std::string&>();
}

std::string shown_json(const Json& value) {
  if (value.is_object() || value.is_array()) return std::string("an ") + value.type_name();
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() <= 40) return text;
  std::size_t end = 40;
  while ((static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // whole characters only
  return text.substr(0, end) + "…";
}

}  // namespace heed
