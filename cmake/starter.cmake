# The starter model becomes part of the engine: models/starter/{config.json, model.safetensors,
# tokenizer.json, examples.json} are copied into its read-only data by the assembler.
function(heed_embed_starter target)
  set(directory ${PROJECT_SOURCE_DIR}/models/starter)
  file(GLOB present CONFIGURE_DEPENDS ${directory}/*)
  set(HEED_STARTER_CONFIG ${directory}/config.json)
  set(HEED_STARTER_WEIGHTS ${directory}/model.safetensors)
  set(HEED_STARTER_TOKENIZER ${directory}/tokenizer.json)
  set(HEED_STARTER_EXAMPLES ${directory}/examples.json)
  set(files ${HEED_STARTER_CONFIG} ${HEED_STARTER_WEIGHTS} ${HEED_STARTER_TOKENIZER}
    ${HEED_STARTER_EXAMPLES})
  set(source ${CMAKE_CURRENT_BINARY_DIR}/starter_files.cc)
  set(template embedded)
  foreach(file ${files})
    if(NOT file IN_LIST present)
      set(template absent)
    endif()
  endforeach()
  configure_file(${PROJECT_SOURCE_DIR}/cmake/starter_${template}.cc.in ${source} @ONLY)
  if(template STREQUAL "embedded")
    # Compiled alone: CMake forgets what sources that are compiled together depend on.
    set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS "${files}"
      SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
  target_sources(${target} PRIVATE ${source})
endfunction()
