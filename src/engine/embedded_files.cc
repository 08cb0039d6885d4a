#include "engine/embedded_files.h"

#include <unistd.h>

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/files.h"

namespace heed {
namespace {

bool is_complete(const std::filesystem::path& directory) {
  return std::ranges::all_of(recorded_run_files(), [&](const EmbeddedFile& file) {
    std::error_code error;
    return std::filesystem::file_size(directory / file.path, error) == file.contents.size() &&
           !error;
  });
}

void write_files(const std::filesystem::path& directory) {
  std::error_code error;
  for (const EmbeddedFile& file : recorded_run_files()) {
    std::filesystem::create_directories((directory / file.path).parent_path(), error);
    require(!error, ErrorCode::input_output, "cannot make '{}': {}", directory.string(),
            error.message());
    write_text_file(directory / file.path, std::string(file.contents));
  }
}

}  // namespace

bool is_embedded_decoder(std::string_view name) {
  return std::ranges::find(embedded_decoder_names, name) != embedded_decoder_names.end();
}

bool is_embedded_name(std::string_view name) {
  return is_embedded_decoder(name) || name == embedded_translator_name;
}

std::optional<EmbeddedModel> find_embedded_model(std::string_view name) {
  if (name == starter_name) return starter_files();
  if (name == english_name) return english_files();
  return name == embedded_translator_name ? translator_files() : std::nullopt;
}

std::optional<EmbeddedModel> embedded_model(std::string_view name) {
  if (!is_embedded_name(name)) return std::nullopt;
  std::optional<EmbeddedModel> files = find_embedded_model(name);
  require(
      files.has_value(), ErrorCode::not_found,
      "this build of heed has no model '{0}' (models/{0} was missing when it was built); name a "
      "model directory instead",
      name);
  return files;
}

std::filesystem::path unpack_recorded_run(const std::filesystem::path& cache) {
  if (recorded_run_files().empty()) return {};
  const std::filesystem::path home = cache / recorded_run_key();
  std::filesystem::path directory = home / "recorded";
  if (is_complete(directory)) return directory;
  // Beside it, then renamed: another process may do the same.
  const std::filesystem::path partial = home / fmt::format("partial-{}", ::getpid());
  std::error_code error;
  try {
    write_files(partial);
    std::filesystem::remove_all(directory, error);  // what is left of a damaged one
    std::filesystem::rename(partial, directory, error);
  } catch (...) {
    std::filesystem::remove_all(partial, error);
    throw;
  }
  if (error) {
    std::error_code ignored;
    std::filesystem::remove_all(partial, ignored);
    require(is_complete(directory), ErrorCode::input_output, "cannot make '{}': {}",
            directory.string(), error.message());
  }
  return directory;
}

}  // namespace heed
