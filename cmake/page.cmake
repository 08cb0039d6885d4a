# The page becomes part of the server: web/ is built with npm, and every file of it, compressed,
# copied into the program's read-only data by the assembler.
find_program(HEED_NODE node)
find_program(HEED_NPM npm)
set(page_directory ${PROJECT_SOURCE_DIR}/web)
set(page_can_be_built OFF)
if(HEED_NODE AND HEED_NPM AND EXISTS ${page_directory}/package.json)
  set(page_can_be_built ON)
endif()
option(HEED_BUILD_PAGE "Build the explorer's page (needs Node.js and npm)" ${page_can_be_built})

function(heed_embed_page target)
  set(output ${CMAKE_BINARY_DIR}/page)
  set(source ${output}/page_files.cc)
  if(NOT HEED_BUILD_PAGE)
    file(MAKE_DIRECTORY ${output}/none)
    execute_process(COMMAND ${CMAKE_COMMAND} -DDIST=${output}/none -DOUTPUT=${output}
      -P ${PROJECT_SOURCE_DIR}/cmake/embed_page.cmake)
    target_sources(${target} PRIVATE ${source})
    return()
  endif()
  if(NOT page_can_be_built)
    message(FATAL_ERROR "the page needs node and npm: install them, or set HEED_BUILD_PAGE=OFF")
  endif()
  file(GLOB_RECURSE inputs CONFIGURE_DEPENDS ${page_directory}/src/* ${page_directory}/public/*)
  file(GLOB settings CONFIGURE_DEPENDS ${page_directory}/*.html ${page_directory}/*.json
    ${page_directory}/*.ts ${page_directory}/*.js)
  # The stamp lies with what it stands for: npm ci removes both.
  set(installed ${page_directory}/node_modules/.installed)
  add_custom_command(OUTPUT ${installed}
    COMMAND ${HEED_NPM} ci --no-audit --no-fund --loglevel=error
    COMMAND ${CMAKE_COMMAND} -E touch ${installed}
    DEPENDS ${page_directory}/package-lock.json
    WORKING_DIRECTORY ${page_directory}
    COMMENT "Installing what the page is built with" VERBATIM)
  add_custom_command(OUTPUT ${source}
    COMMAND ${HEED_NPM} run build --silent -- --outDir ${output}/dist --emptyOutDir
      --logLevel error
    COMMAND ${CMAKE_COMMAND} -DDIST=${output}/dist -DOUTPUT=${output}
      -P ${PROJECT_SOURCE_DIR}/cmake/embed_page.cmake
    DEPENDS ${installed} ${inputs} ${settings} ${PROJECT_SOURCE_DIR}/cmake/embed_page.cmake
    WORKING_DIRECTORY ${page_directory}
    COMMENT "Building the page" VERBATIM)
  target_sources(${target} PRIVATE ${source})
endfunction()
