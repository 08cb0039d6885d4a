#include "download/http_client.h"

#include <curl/curl.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "heed/version.h"

namespace heed {
namespace {

struct FreeUrl {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};
using ParsedUrl = std::unique_ptr<CURLU, FreeUrl>;

struct FreeText {
  void operator()(char* text) const { curl_free(text); }
};
using CurlText = std::unique_ptr<char, FreeText>;

// Empty where the URL has no such part.
std::string url_part(const ParsedUrl& url, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(url.get(), part, &text, CURLU_DEFAULT_PORT) != CURLUE_OK) return {};
  return CurlText(text).get();
}

// Null if it cannot be read or is neither http nor https.
ParsedUrl parse_url(const std::string& text) {
  ParsedUrl url(curl_url());
  check(url != nullptr, "libcurl has memory for a URL");
  // A zero byte would hide what follows it.
  const bool whole = text.find('\0') == std::string::npos;
  if (!whole || curl_url_set(url.get(), CURLUPART_URL, text.c_str(), 0) != CURLUE_OK) return {};
  const std::string scheme = url_part(url, CURLUPART_SCHEME);
  return scheme == "http" || scheme == "https" ? std::move(url) : nullptr;
}

constexpr int milliseconds_between_stops = 100;
constexpr long buffer_bytes = 256 * 1024;
constexpr int too_large = 100;  // CURLE_TOO_LARGE, which libcurl has since 8.6
constexpr std::int64_t max_header = 256 << 10;
constexpr std::int64_t max_ignored_body = 1 << 20;  // of a redirect or an error

void start_libcurl() {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  require(started == CURLE_OK, ErrorCode::internal, "libcurl cannot start: {}",
          curl_easy_strerror(started));
}

template <class Value>
void set_curl_option(CURL* handle, CURLoption option, Value value) {
  const CURLcode result = curl_easy_setopt(handle, option, value);
  require(result == CURLE_OK, ErrorCode::internal, "libcurl refuses its option {}: {}",
          static_cast<int>(option), curl_easy_strerror(result));
}

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

bool has_wanted_body(int status) { return status == 200 || status == 206; }

// Failures that another try may not meet.
bool is_passing(CURLcode result) {
  switch (result) {
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR: return true;
    default: return false;
  }
}

std::string header_value(CURL* handle, const char* name) {
  curl_header* header = nullptr;
  const bool found = curl_easy_header(handle, name, 0, CURLH_HEADER, -1, &header) == CURLHE_OK;
  return found ? header->value : "";
}

// Takes a whole number off the front of `text`.
std::optional<std::int64_t> take_number(std::string_view& text) {
  std::int64_t number = 0;
  const auto [next, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(next - text.data()));
  return number;
}

// "bytes 100-999/1000".
std::optional<ContentRange> parse_content_range(std::string_view text) {
  constexpr std::string_view unit = "bytes ";
  if (!text.starts_with(unit)) return std::nullopt;
  text.remove_prefix(unit.size());
  const auto first = take_number(text);
  if (!first || !text.starts_with('-')) return std::nullopt;
  text.remove_prefix(1);
  const auto last = take_number(text);
  if (!last || !text.starts_with('/')) return std::nullopt;
  text.remove_prefix(1);
  const auto total = take_number(text);
  if (!total || !text.empty() || *first > *last || *last >= *total) return std::nullopt;
  return ContentRange{.first = *first, .total = *total};
}

void read_reply_header(CURL* handle, HttpReply& reply) {
  long status = 0;
  curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
  reply.status = static_cast<int>(status);
  curl_off_t length = -1;
  curl_easy_getinfo(handle, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
  if (length >= 0) reply.length = length;
  reply.etag = header_value(handle, "ETag");
  if (reply.status == 206) reply.range = parse_content_range(header_value(handle, "Content-Range"));
  // libcurl gives zero for no header.
  curl_off_t retry_after = 0;
  curl_easy_getinfo(handle, CURLINFO_RETRY_AFTER, &retry_after);
  if (retry_after > 0) reply.retry_after = std::chrono::seconds(retry_after);
}

}  // namespace

std::string url_origin(const std::string& url) {
  const ParsedUrl parsed = parse_url(url);
  if (parsed == nullptr) return {};
  return url_part(parsed, CURLUPART_SCHEME) + "://" +
         ascii_lower(url_part(parsed, CURLUPART_HOST)) + ":" + url_part(parsed, CURLUPART_PORT);
}

std::string checked_endpoint(const std::string& url, std::string_view source) {
  const ParsedUrl parsed = parse_url(url);
  require(parsed != nullptr, ErrorCode::invalid_argument,
          "{} must be an address such as https://huggingface.co, not {}", source, shown_json(url));
  for (const CURLUPart part :
       {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_QUERY, CURLUPART_FRAGMENT}) {
    require(url_part(parsed, part).empty(), ErrorCode::invalid_argument,
            "{} must be an address without a user, a password, a query or a fragment", source);
  }
  return url.substr(0, url.find_last_not_of('/') + 1);
}

std::string without_query(const std::string& url) { return url.substr(0, url.find('?')); }

void check_redirect(const std::string& from, const std::string& to) {
  require(!to.empty(), ErrorCode::input_output, "'{}' redirects without an address",
          without_query(from));
  const std::string target = url_origin(to);
  require(!target.empty(), ErrorCode::input_output,
          "'{}' redirects to '{}', which is neither https nor http", without_query(from),
          without_query(to));
  require(!url_origin(from).starts_with("https:") || target.starts_with("https:"),
          ErrorCode::input_output,
          "'{}' redirects from https to '{}': refused, because that is not encrypted",
          without_query(from), without_query(to));
}

std::string escape_url_segment(std::string_view text) {
  if (text.empty()) return {};
  const CurlText escaped(curl_easy_escape(nullptr, text.data(), static_cast<int>(text.size())));
  check(escaped != nullptr, "libcurl has memory for a segment of a URL");
  return escaped.get();
}

struct HttpClient::Transfer {
  struct CloseEasy {
    void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
  };
  struct CloseMulti {
    void operator()(CURLM* handle) const { curl_multi_cleanup(handle); }
  };
  struct FreeList {
    void operator()(curl_slist* list) const { curl_slist_free_all(list); }
  };

  HttpOptions options;
  std::unique_ptr<CURLM, CloseMulti> multi;  // destroyed after the handle
  std::unique_ptr<CURL, CloseEasy> easy;
  std::unique_ptr<curl_slist, FreeList> headers;
  std::array<char, CURL_ERROR_SIZE> message{};

  // Of the request in progress.
  HttpReply reply;
  HttpBody* body = nullptr;
  bool has_begun = false;
  std::int64_t header_bytes = 0;
  std::int64_t ignored = 0;
  std::exception_ptr thrown;

  // Returns whether the body is wanted.
  bool begin_body() {
    has_begun = true;
    read_reply_header(easy.get(), reply);
    if (!has_wanted_body(reply.status) || body->begin(reply)) return true;
    reply.failure = "the server has another version of the file";
    return false;
  }

  // Returns whether the transfer goes on.
  bool receive(std::string_view bytes) {
    if (!has_begun && !begin_body()) return false;
    if (has_wanted_body(reply.status)) {
      body->write(bytes);
      return true;
    }
    ignored += static_cast<std::int64_t>(bytes.size());
    return ignored <= max_ignored_body;
  }

  static std::size_t on_bytes(char* data, std::size_t /*one*/, std::size_t size, void* self) {
    auto& transfer = *static_cast<Transfer*>(self);
    try {
      if (transfer.receive({data, size})) return size;
    } catch (...) {
      transfer.thrown = std::current_exception();
    }
    return CURL_WRITEFUNC_ERROR;
  }

  // Called for each line of the header.
  static std::size_t on_header(char* /*line*/, std::size_t /*one*/, std::size_t size, void* self) {
    auto& transfer = *static_cast<Transfer*>(self);
    transfer.header_bytes += static_cast<std::int64_t>(size);
    return transfer.header_bytes <= max_header ? size : CURL_WRITEFUNC_ERROR;
  }

  void prepare(const HttpRequest& request);
  void add_header(const std::string& line);
  CURLcode run();
  CURLcode wait();
};

void HttpClient::Transfer::add_header(const std::string& line) {
  curl_slist* const longer = curl_slist_append(headers.get(), line.c_str());
  check(longer != nullptr, "libcurl has memory for a header");
  (void)headers.release();
  headers.reset(longer);
}

void HttpClient::Transfer::prepare(const HttpRequest& request) {
  CURL* const handle = easy.get();
  curl_easy_reset(handle);  // connections stay
  set_curl_option(handle, CURLOPT_URL, request.url.c_str());
  set_curl_option(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  set_curl_option(handle, CURLOPT_NOSIGNAL, 1L);
  set_curl_option(handle, CURLOPT_USERAGENT, fmt::format("heed/{}", version).c_str());
  // A hint, which a handle refuses as long as it has the buffer of a failed transfer.
  curl_easy_setopt(handle, CURLOPT_BUFFERSIZE, buffer_bytes);
  set_curl_option(handle, CURLOPT_ERRORBUFFER, message.data());
  set_curl_option(handle, CURLOPT_CONNECTTIMEOUT,
                  static_cast<long>(options.connect_timeout.count()));
  set_curl_option(handle, CURLOPT_LOW_SPEED_LIMIT, static_cast<long>(options.min_speed));
  set_curl_option(handle, CURLOPT_LOW_SPEED_TIME, static_cast<long>(options.stall_timeout.count()));
  set_curl_option(handle, CURLOPT_WRITEFUNCTION, &Transfer::on_bytes);
  set_curl_option(handle, CURLOPT_WRITEDATA, static_cast<void*>(this));
  set_curl_option(handle, CURLOPT_HEADERFUNCTION, &Transfer::on_header);
  set_curl_option(handle, CURLOPT_HEADERDATA, static_cast<void*>(this));
  for (const char* variable : {"SSL_CERT_FILE", "CURL_CA_BUNDLE"}) {
    const char* const file = std::getenv(variable);
    if (file != nullptr && *file != '\0') set_curl_option(handle, CURLOPT_CAINFO, file);
  }
  headers.reset();
  if (!options.token.empty() && url_origin(request.url) == options.token_origin) {
    add_header("Authorization: Bearer " + options.token);
  }
  if (request.begin > 0) {
    add_header(fmt::format("Range: bytes={}-", request.begin));
    if (!request.if_range.empty()) add_header("If-Range: " + request.if_range);
  }
  set_curl_option(handle, CURLOPT_HTTPHEADER, headers.get());
}

// Runs the prepared transfer, and looks at the stop flag meanwhile.
CURLcode HttpClient::Transfer::wait() {
  for (;;) {
    int running = 0;
    CURLMcode state = curl_multi_perform(multi.get(), &running);
    if (state == CURLM_OK && running > 0) {
      state = curl_multi_poll(multi.get(), nullptr, 0, milliseconds_between_stops, nullptr);
    }
    require(state == CURLM_OK, ErrorCode::input_output, "libcurl cannot transfer: {}",
            curl_multi_strerror(state));
    int queued = 0;
    while (const CURLMsg* const done = curl_multi_info_read(multi.get(), &queued)) {
      if (done->msg == CURLMSG_DONE) return done->data.result;
    }
    if (stop_requested(options.stop)) {
      // Do not wait for a name that is being resolved.
      curl_easy_setopt(easy.get(), CURLOPT_QUICK_EXIT, 1L);
      fail(ErrorCode::interrupted, "stopped while downloading");
    }
  }
}

CURLcode HttpClient::Transfer::run() {
  reply = {};
  has_begun = false;
  header_bytes = 0;
  ignored = 0;
  thrown = nullptr;
  message[0] = '\0';
  struct Added {
    CURLM* multi;
    CURL* easy;
    ~Added() { curl_multi_remove_handle(multi, easy); }
  };
  const CURLMcode added = curl_multi_add_handle(multi.get(), easy.get());
  require(added == CURLM_OK, ErrorCode::internal, "libcurl refuses a transfer: {}",
          curl_multi_strerror(added));
  const Added removed_later{multi.get(), easy.get()};
  return wait();
}

HttpClient::HttpClient(HttpOptions options) : transfer_(std::make_unique<Transfer>()) {
  start_libcurl();
  transfer_->options = std::move(options);
  transfer_->multi.reset(curl_multi_init());
  transfer_->easy.reset(curl_easy_init());
  check(transfer_->multi != nullptr && transfer_->easy != nullptr, "libcurl has its handles");
}

HttpClient::~HttpClient() = default;

const HttpOptions& HttpClient::options() const { return transfer_->options; }

HttpReply HttpClient::get_once(const HttpRequest& request, HttpBody& body, std::string& redirect) {
  Transfer& transfer = *transfer_;
  transfer.body = &body;
  transfer.prepare(request);
  const CURLcode result = transfer.run();
  if (transfer.thrown) std::rethrow_exception(transfer.thrown);
  CURL* const handle = transfer.easy.get();
  long status = 0;
  curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
  // There may have been no body.
  if (result == CURLE_OK && status > 0 && !transfer.has_begun) transfer.begin_body();
  HttpReply reply = transfer.reply;
  reply.url = request.url;
  // Of redirects and errors, the header is enough.
  const bool is_answered = reply.status > 0 && !has_wanted_body(reply.status);
  // libcurl calls a line without end "out of memory".
  const bool has_endless_header =
      !transfer.has_begun && (transfer.header_bytes > max_header || result == CURLE_OUT_OF_MEMORY ||
                              static_cast<int>(result) == too_large);
  require(!has_endless_header, ErrorCode::input_output,
          "cannot download '{}': the header of the reply has more than {} bytes, or a line of more "
          "than 100 kB",
          without_query(request.url), max_header);
  if (result != CURLE_OK && !is_answered && reply.failure.empty()) {
    reply.failure =
        transfer.message[0] != '\0' ? transfer.message.data() : curl_easy_strerror(result);
    require(is_passing(result), ErrorCode::input_output, "cannot download '{}': {}",
            without_query(request.url), reply.failure);
  }
  char* location = nullptr;
  curl_easy_getinfo(handle, CURLINFO_REDIRECT_URL, &location);
  redirect = location != nullptr ? location : "";
  return reply;
}

HttpReply HttpClient::get(const HttpRequest& request, HttpBody& body) {
  const HttpOptions& options = transfer_->options;
  require(!options.offline, ErrorCode::unsupported,
          "HEED_OFFLINE is set, so heed makes no connections; unset it to download");
  HttpRequest current = request;
  for (int redirects = 0;; ++redirects) {
    require(!stop_requested(options.stop), ErrorCode::interrupted, "stopped while downloading");
    std::string next;
    HttpReply reply = get_once(current, body, next);
    if (!reply.failure.empty() || !is_redirect(reply.status)) return reply;
    require(redirects < options.max_redirects, ErrorCode::input_output,
            "'{}' is redirected more than {} times", request.url, options.max_redirects);
    check_redirect(current.url, next);
    current.url = next;
  }
}

}  // namespace heed
