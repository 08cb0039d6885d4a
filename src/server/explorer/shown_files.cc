#include "server/explorer/shown_files.h"

namespace heed::server {
namespace {

void replace_all(std::string& text, const std::string& part, const std::string& with) {
  for (std::size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + with.size())) {
    text.replace(at, part.size(), with);
  }
}

}  // namespace

std::string without_directory(std::string message, const std::filesystem::path& directory) {
  if (!directory.has_filename()) return message;
  replace_all(message, directory.string() + "/", "");
  replace_all(message, directory.string(), directory.filename().string());
  return message;
}

}  // namespace heed::server
