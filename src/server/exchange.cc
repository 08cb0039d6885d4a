#include "server/exchange.h"

#include <charconv>
#include <new>

#include "base/error.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "server/fields.h"

namespace heed::server {
namespace {

int hexadecimal(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// %41 and, in a query, + for a space.
std::string decoded(std::string_view text, char space) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i] == space ? ' ' : text[i];
    if (c == '%') {
      const int high = i + 2 < text.size() ? hexadecimal(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hexadecimal(text[i + 2]) : -1;
      require(high >= 0 && low >= 0, ErrorCode::invalid_argument,
              "the address has a % that is not followed by two hexadecimal digits");
      c = static_cast<char>(high * 16 + low);
      i += 2;
    }
    require(c != '\0', ErrorCode::invalid_argument, "the address has a NUL byte");
    result += c;
  }
  return result;
}

// Whether a segment's name, which may hold an escaped /, stays in its folder.
bool is_inside(std::string_view segment) {
  if (segment.find('\\') != std::string_view::npos) return false;
  while (true) {
    const std::size_t slash = segment.find('/');
    const std::string_view part = segment.substr(0, slash);
    if (part == "." || part == "..") return false;
    if (slash == std::string_view::npos) return true;
    segment.remove_prefix(slash + 1);
  }
}

std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> segments;
  std::size_t begin = 1;  // after the leading slash
  while (begin <= path.size()) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    segments.push_back(decoded(path.substr(begin, end - begin), '\0'));
    require(is_inside(segments.back()), ErrorCode::invalid_argument,
            "the address leaves its folder");
    begin = end + 1;
  }
  return segments;
}

std::map<std::string, std::string> split_query(std::string_view query) {
  std::map<std::string, std::string> parameters;
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view item = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (item.empty()) continue;
    const std::size_t equals = std::min(item.find('='), item.size());
    const std::string name = decoded(item.substr(0, equals), '+');
    const std::string value = decoded(item.substr(std::min(equals + 1, item.size())), '+');
    require(parameters.emplace(name, value).second, ErrorCode::invalid_argument,
            "the parameter '{}' is given twice", name);
  }
  return parameters;
}

std::int64_t parse_integer(const std::string& text, const std::string& name) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  require(error == std::errc{} && end == text.data() + text.size(), ErrorCode::invalid_argument,
          "{} must be a whole number, not '{}'", name, text.substr(0, 40));
  return value;
}

// Default `type` and `code` of an error object for a status.
struct StatusNames {
  int status;
  const char* type;
  const char* code;  // null: none
};

StatusNames names_of(int status) {
  constexpr StatusNames known[] = {
      {401, "authentication_error", "invalid_api_key"},
      {403, "authentication_error", "forbidden"},
      {404, "not_found_error", "not_found"},
      {405, "invalid_request_error", "method_not_allowed"},
      {408, "invalid_request_error", "request_timeout"},
      {409, "conflict_error", "conflict"},
      {413, "invalid_request_error", "request_too_large"},
      {421, "authentication_error", "host_not_allowed"},
      {422, "unsupported_error", "unsupported"},
      {429, "rate_limit_error", "rate_limit_exceeded"},
      {503, "unavailable_error", "unavailable"},
  };
  for (const StatusNames& names : known) {
    if (names.status == status) return names;
  }
  if (status < 500) return {status, "invalid_request_error", nullptr};
  return {status, "server_error", nullptr};
}

int status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument: return 400;
    case ErrorCode::not_found: return 404;
    case ErrorCode::corrupt_data: return 422;
    case ErrorCode::input_output: return 500;
    case ErrorCode::unsupported: return 422;
    case ErrorCode::out_of_memory: return 503;
    case ErrorCode::conflict: return 409;
    case ErrorCode::diverged: return 422;
    case ErrorCode::interrupted: return 503;
    case ErrorCode::internal: return 500;
  }
  return 500;
}

std::string dumped(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace

std::string Request::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string() : found->second;
}

const std::string& Request::in_path(const std::string& name) const {
  const auto found = captured.find(name);
  check(found != captured.end(), "the route's pattern names what its handler asks for");
  return found->second;
}

std::int64_t Request::integer_in_path(const std::string& name) const {
  const std::int64_t value = parse_integer(in_path(name), name);
  require(value >= 0, ErrorCode::invalid_argument, "{} must be 0 or more, not {}", name, value);
  return value;
}

std::optional<std::string> Request::parameter(const std::string& name) const {
  const auto found = query.find(name);
  if (found == query.end()) return std::nullopt;
  return found->second;
}

std::int64_t Request::integer(const std::string& name, std::int64_t fallback) const {
  const auto text = parameter(name);
  return text && !text->empty() ? parse_integer(*text, name) : fallback;
}

double Request::number(const std::string& name, double fallback) const {
  const auto text = parameter(name);
  if (!text || text->empty()) return fallback;
  double value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  require(error == std::errc{} && end == text->data() + text->size() && std::isfinite(value),
          ErrorCode::invalid_argument, "{} must be a number, not '{}'", name, text->substr(0, 40));
  return value;
}

Json Request::json() const {
  if (body.empty()) return Json::object();
  try {
    Json parsed = parse_json(body, "the request's body");
    require(parsed.is_object(), ErrorCode::invalid_argument,
            "the request's body must be a JSON object, not {}", parsed.type_name());
    return parsed;
  } catch (const Error& error) {
    throw Error(ErrorCode::invalid_argument, error.what());
  }
}

Request parse_request(std::string method, std::string_view target) {
  Request request;
  request.method = std::move(method);
  for (const char c : target) {
    require(static_cast<unsigned char>(c) > ' ' && c != '\x7F', ErrorCode::invalid_argument,
            "the address has a control character or a space");
  }
  const std::size_t fragment = target.find('#');
  target = target.substr(0, fragment);
  const std::size_t question = std::min(target.find('?'), target.size());
  request.path = std::string(target.substr(0, question));
  require(request.path.starts_with('/'), ErrorCode::invalid_argument,
          "the address must be a path that begins with /");
  request.segments = split_path(request.path);
  request.query = split_query(target.substr(std::min(question + 1, target.size())));
  return request;
}

void write_stream(const Reply& reply, StreamWriter& writer) {
  while (reply.stream(writer)) {
  }
}

Reply json_reply(const OrderedJson& json) {
  Reply reply;
  reply.body = dumped(json) + "\n";
  return reply;
}

Reply text_reply(std::string text, std::string content_type) {
  Reply reply;
  reply.body = std::move(text);
  reply.content_type = std::move(content_type);
  return reply;
}

Reply error_reply(int status, const ErrorDetails& details) {
  const StatusNames names = names_of(status);
  OrderedJson error{{"message", escape_controls(details.message)},
                    {"type", names.type},
                    {"param", nullptr},
                    {"code", nullptr}};
  if (!details.param.empty()) error["param"] = escape_controls(details.param);
  if (names.code != nullptr) error["code"] = names.code;
  if (!details.code.empty()) error["code"] = details.code;
  Reply reply = json_reply({{"error", std::move(error)}});
  reply.status = status;
  return reply;
}

Reply error_reply(int status, const std::string& message) {
  return error_reply(status, ErrorDetails{.message = message});
}

Reply reply_to_exception() {
  try {
    throw;
  } catch (const HttpError& error) {
    return error_reply(error.status(), error.what());
  } catch (const FieldError& error) {
    return error_reply(
        status_of(error.code()),
        ErrorDetails{.message = error.what(), .param = error.field(), .code = error.field_code()});
  } catch (const Error& error) {
    return error_reply(status_of(error.code()), error.what());
  } catch (const std::bad_alloc&) {
    reserve_memory_for_unwinding();
    return error_reply(503, "there is not enough memory for this request");
  } catch (const std::exception& error) {
    return error_reply(500, std::string("unexpected failure: ") + error.what());
  }
}

std::string server_sent_event(const OrderedJson& data, const std::string& name) {
  return (name.empty() ? "" : "event: " + name + "\n") + "data: " + dumped(data) + "\n\n";
}

}  // namespace heed::server
