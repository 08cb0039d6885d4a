# Run at build time: compresses every file of BUILT into OUTPUT and writes OUTPUT/page_files.cc, a
# table of these files.
file(GLOB_RECURSE files RELATIVE ${BUILT} ${BUILT}/*)
list(SORT files)
file(MAKE_DIRECTORY ${OUTPUT}/compressed)

set(types_html "text/html; charset=utf-8")
set(types_js "text/javascript; charset=utf-8")
set(types_css "text/css; charset=utf-8")
set(types_svg "image/svg+xml")
set(types_png "image/png")
set(types_json "application/json")
set(types_txt "text/plain; charset=utf-8")
set(types_woff2 "font/woff2")

set(embedded "")
set(rows "")
set(index 0)
foreach(file IN LISTS files)
  string(REGEX REPLACE ".*\\." "" extension ${file})
  if(NOT DEFINED types_${extension})
    message(FATAL_ERROR "${file}: no content type is known for .${extension}")
  endif()
  set(compressed ${OUTPUT}/compressed/${index}.gz)
  execute_process(COMMAND gzip -9 -n -c ${BUILT}/${file} OUTPUT_FILE ${compressed}
    RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "gzip cannot compress ${file}")
  endif()
  file(SHA256 ${compressed} hash)
  string(SUBSTRING ${hash} 0 16 hash)
  set(path "/${file}")
  if(file STREQUAL "index.html")
    set(path "/")
  endif()
  string(APPEND embedded "HEED_EMBED(heed_page_${index}, \"${compressed}\")\n")
  string(APPEND rows "    {\"${path}\", \"${types_${extension}}\", \"\\\"${hash}\\\"\",\n"
    "     {heed_page_${index}_begin, static_cast<std::size_t>(heed_page_${index}_end - "
    "heed_page_${index}_begin)}},\n")
  math(EXPR index "${index} + 1")
endforeach()

if(index EQUAL 0)
  message(FATAL_ERROR "${BUILT} has no files; \"make page\" builds them")
endif()

file(WRITE ${OUTPUT}/page_files.cc
"// The page's files, compressed, in the read-only data of the program.
#include \"base/embedded_file.h\"
#include \"server/explorer/page.h\"

${embedded}
namespace heed::server {

std::span<const PageFile> page_files() {
  static const PageFile files[] = {
${rows}  };
  return files;
}

}  // namespace heed::server
")
