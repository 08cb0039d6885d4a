// HTTP downloads with libcurl: one GET at a time, redirects followed, stopped on request.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/progress.h"

namespace heed {

// Scheme, host and port, such as "https://huggingface.co:443": where a secret may be sent that is
// meant for one server. Empty for a URL that cannot be read or is neither http nor https.
std::string url_origin(const std::string& url);

// Checks the address of a server, such as "https://huggingface.co" or "http://127.0.0.1:8080/hub",
// and returns it without a slash at its end. Throws Error{invalid_argument} naming `source` for
// other schemes, and for URLs with a user, a password, a query or a fragment.
std::string checked_endpoint(const std::string& url, std::string_view source);

// For messages: the query of a signed address is a secret, and long.
std::string without_query(const std::string& url);

// Throws Error{input_output} unless a client that is at `from` may go on to `to`: to an address
// with https or http, but never from https to http.
void check_redirect(const std::string& from, const std::string& to);

// A segment of a path: every byte but letters, digits and -._~ as %XX.
std::string escape_url_segment(std::string_view text);

struct HttpOptions {
  // Sent as a bearer token to `token_origin` alone (see url_origin); empty: none.
  std::string token;
  std::string token_origin;
  bool offline = false;                      // refuse every request
  std::chrono::seconds connect_timeout{30};  // until the connection stands
  std::chrono::seconds stall_timeout{30};    // with fewer than `min_speed` bytes a second
  int min_speed = 1024;                      // a tenth of what a modem of 1998 brings
  int max_redirects = 10;
  StopFlag stop = nullptr;  // looked at ten times a second
};

struct HttpRequest {
  std::string url;
  std::int64_t begin = 0;  // the first byte that is wanted
  std::string if_range;    // ETag for which `begin` holds; empty: any
};

// The bytes "first-last/total" of a reply with status 206.
struct ContentRange {
  std::int64_t first = 0;
  std::int64_t total = 0;
};

struct HttpReply {
  int status = 0;                      // 0: there was no reply
  std::string failure;                 // why the transfer ended early; empty: it did not
  std::string url;                     // after redirects
  std::string etag;                    // as sent, in quotes
  std::optional<std::int64_t> length;  // Content-Length
  std::optional<ContentRange> range;
  std::optional<std::chrono::seconds> retry_after;
};

// Receives the body of a reply with status 200 or 206. What it throws ends the transfer, and is
// thrown by HttpClient::get.
class HttpBody {
 public:
  virtual ~HttpBody() = default;
  // The header is complete; returns whether the body is wanted. If not, the reply is a failure.
  virtual bool begin(const HttpReply& reply) = 0;
  virtual void write(std::string_view bytes) = 0;
};

// Connections are kept from one request to the next. Proxies are those that libcurl takes from the
// environment (https_proxy, …); certificates are checked, against the file that CURL_CA_BUNDLE or
// SSL_CERT_FILE names instead of the system's. Not thread-safe.
class HttpClient {
 public:
  explicit HttpClient(HttpOptions options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  const HttpOptions& options() const;

  // A failure that may pass, such as a dropped connection, is part of the reply. Throws
  // Error{unsupported} where the client is offline, Error{interrupted} when it is stopped, and
  // Error{input_output} for what another try would not mend: an untrusted certificate, more
  // redirects than allowed, one without an address, or one from https to http, and an endless
  // header.
  HttpReply get(const HttpRequest& request, HttpBody& body);

 private:
  struct Transfer;
  HttpReply get_once(const HttpRequest& request, HttpBody& body, std::string& redirect);

  std::unique_ptr<Transfer> transfer_;
};

}  // namespace heed
