# src/server/openapi.json becomes part of the server, copied into its read-only data by the assembler; of a page's
# engine, what it reads of it.
function(heed_embed_openapi target)
  set(HEED_OPENAPI ${PROJECT_SOURCE_DIR}/src/server/openapi.json)
  if(EMSCRIPTEN)
    heed_wasm_openapi(HEED_OPENAPI)
  endif()
  set(source ${CMAKE_CURRENT_BINARY_DIR}/openapi.cc)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/openapi.cc.in ${source} @ONLY)
  set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS ${HEED_OPENAPI}
    SKIP_UNITY_BUILD_INCLUSION ON)  # or the dependency is forgotten
  target_sources(${target} PRIVATE ${source})
endfunction()
