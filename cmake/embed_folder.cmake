# Run at build time: writes OUTPUT, a table NAME_files() of the files of DIRECTORY and their contents, and
# NAME_key(), which changes with them.
file(GLOB_RECURSE files RELATIVE ${DIRECTORY} ${DIRECTORY}/*)
list(SORT files)
set(embedded "")
set(rows "")
set(contents "")
set(index 0)
foreach(file IN LISTS files)
  set(symbol "heed_${NAME}_${index}")
  string(APPEND embedded "HEED_EMBED(${symbol}, \"${DIRECTORY}/${file}\")\n")
  string(APPEND rows "      {\"${file}\", {${symbol}_begin, "
    "static_cast<std::size_t>(${symbol}_end - ${symbol}_begin)}},\n")
  file(SHA256 ${DIRECTORY}/${file} hash)
  string(APPEND contents "${file} ${hash}\n")
  math(EXPR index "${index} + 1")
endforeach()
string(SHA256 key "${contents}")
string(SUBSTRING ${key} 0 16 key)
file(WRITE ${OUTPUT}
"// The files of ${DIRECTORY}, in the read-only data of the program.
#include \"base/embedded_file.h\"
#include \"engine/embedded_files.h\"

#include <vector>

${embedded}
namespace heed {

std::span<const EmbeddedFile> ${NAME}_files() {
  static const std::vector<EmbeddedFile> files = {
${rows}  };
  return files;
}

std::string_view ${NAME}_key() { return \"${key}\"; }

}  // namespace heed
")
