# Embeds the explorer's page, the files of web/built, in the server: compressed, in the program's
# read-only data. They are committed, so that the build needs no Node.js; web/README.md tells how
# they are made.
function(heed_embed_page target)
  set(built ${PROJECT_SOURCE_DIR}/web/built)
  set(output ${CMAKE_BINARY_DIR}/page)
  set(source ${output}/page_files.cc)
  set(script ${PROJECT_SOURCE_DIR}/cmake/embed_page.cmake)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS ${built}/*)
  add_custom_command(OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -DBUILT=${built} -DOUTPUT=${output} -P ${script}
    DEPENDS ${files} ${script}
    COMMENT "Embedding the page" VERBATIM)
  set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  target_sources(${target} PRIVATE ${source})
  add_custom_target(heed_page DEPENDS ${source})  # alone: linters read it
endfunction()
