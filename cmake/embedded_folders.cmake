# Embeds folders below models/ in the engine's read-only data, each as a table of its files: the run that
# heed carries (scripts/record_run.sh) and the transcoders of its starter
# (scripts/train_transcoders.sh). NAME_files() of engine/embedded_files.h is the table.
function(heed_embed_folder target folder name)
  set(directory ${PROJECT_SOURCE_DIR}/models/${folder})
  set(source ${CMAKE_BINARY_DIR}/${name}/${name}_files.cc)
  set(script ${PROJECT_SOURCE_DIR}/cmake/embed_folder.cmake)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS ${directory}/*)
  add_custom_command(OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -DDIRECTORY=${directory} -DNAME=${name} -DOUTPUT=${source} -P ${script}
    DEPENDS ${files} ${script}
    COMMENT "Embedding models/${folder}" VERBATIM)
  set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS "${files}"
    SKIP_UNITY_BUILD_INCLUSION ON)
  target_sources(${target} PRIVATE ${source})
  add_custom_target(heed_${name} DEPENDS ${source})  # alone: linters read it
endfunction()
