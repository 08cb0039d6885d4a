#include "download/hub_name.h"

#include <algorithm>

#include "base/error.h"
#include "base/json_fields.h"
#include "download/url.h"

namespace heed {
namespace {

constexpr std::size_t longest_repository = 96;  // bytes, as on huggingface.co
constexpr std::size_t longest_revision = 64;    // a directory's name has at most 255

bool is_word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

bool is_word(std::string_view text) {
  const auto at_end = [](char c) { return c == '-' || c == '.'; };
  return !text.empty() && std::ranges::all_of(text, is_word_character) && !at_end(text.front()) &&
         !at_end(text.back()) && text.find("--") == std::string_view::npos &&
         text.find("..") == std::string_view::npos;
}

bool is_repository(std::string_view text) {
  if (text.size() > longest_repository) return false;
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return is_word(text);
  return is_word(text.substr(0, slash)) && is_word(text.substr(slash + 1));
}

bool is_revision(std::string_view text) {
  return text.size() <= longest_revision && is_safe_repository_path(text) &&
         std::ranges::all_of(text, [](char c) { return is_word_character(c) || c == '/'; });
}

}  // namespace

std::string HubName::directory_name() const {
  std::string name = repository;
  if (const std::size_t slash = name.find('/'); slash != std::string::npos) {
    name.replace(slash, 1, "--");
  }
  return revision == HubName().revision ? name : name + "@" + escape_url_segment(revision);
}

std::optional<HubName> find_hub_name(std::string_view text) {
  HubName name;
  const std::size_t at = text.find('@');
  if (at != std::string_view::npos) {
    if (!is_revision(text.substr(at + 1))) return std::nullopt;
    name.revision = text.substr(at + 1);
  }
  if (!is_repository(text.substr(0, at))) return std::nullopt;
  name.repository = text.substr(0, at);
  return name;
}

HubName parse_hub_name(std::string_view text) {
  auto name = find_hub_name(text);
  require(name.has_value(), ErrorCode::invalid_argument,
          "{} is not the name of a model on a hub; expected NAME, ORG/NAME or ORG/NAME@REVISION, "
          "such as gpt2",
          shown_json(std::string(text)));
  return *std::move(name);
}

bool is_safe_repository_path(std::string_view path) {
  const auto is_unsafe = [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7F || c == '\\';
  };
  if (std::ranges::any_of(path, is_unsafe)) return false;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return false;
    begin = end + 1;
  }
  return true;
}

}  // namespace heed
