# Run at build time: writes OUTPUT, a table of the files of DIRECTORY and their contents.
file(GLOB_RECURSE files RELATIVE ${DIRECTORY} ${DIRECTORY}/*)
list(SORT files)
set(embedded "")
set(rows "")
set(contents "")
set(index 0)
foreach(file IN LISTS files)
  string(APPEND embedded "HEED_EMBED(heed_recorded_${index}, \"${DIRECTORY}/${file}\")\n")
  string(APPEND rows "      {\"${file}\", {heed_recorded_${index}_begin, "
    "static_cast<std::size_t>(heed_recorded_${index}_end - heed_recorded_${index}_begin)}},\n")
  file(SHA256 ${DIRECTORY}/${file} hash)
  string(APPEND contents "${file} ${hash}\n")
  math(EXPR index "${index} + 1")
endforeach()
string(SHA256 key "${contents}")
string(SUBSTRING ${key} 0 16 key)
file(WRITE ${OUTPUT}
"// The recorded run's files, in the read-only data of the program.
#include \"base/embedded_file.h\"
#include \"engine/embedded_files.h\"

#include <vector>

${embedded}
namespace heed {

std::span<const RecordedFile> recorded_run_files() {
  static const std::vector<RecordedFile> files = {
${rows}  };
  return files;
}

std::string_view recorded_run_key() { return \"${key}\"; }

}  // namespace heed
")
