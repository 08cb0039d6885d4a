#include "download/url.h"

#include <curl/curl.h>

#include <memory>

#include "base/error.h"
#include "base/json_fields.h"

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

std::string lower_case(std::string text) {
  for (char& letter : text) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return text;
}

}  // namespace

std::string url_origin(const std::string& url) {
  const ParsedUrl parsed = parse_url(url);
  if (parsed == nullptr) return {};
  return url_part(parsed, CURLUPART_SCHEME) + "://" + lower_case(url_part(parsed, CURLUPART_HOST)) +
         ":" + url_part(parsed, CURLUPART_PORT);
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

}  // namespace heed
