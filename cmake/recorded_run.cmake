# Embeds the run that heed carries, models/recorded-run, in the engine's read-only data.
# scripts/record_run.sh makes it.
function(heed_embed_recorded_run target)
  set(directory ${PROJECT_SOURCE_DIR}/models/recorded-run)
  set(source ${CMAKE_BINARY_DIR}/recorded_run/recorded_run_files.cc)
  set(script ${PROJECT_SOURCE_DIR}/cmake/embed_recorded_run.cmake)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS ${directory}/*)
  add_custom_command(OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -DDIRECTORY=${directory} -DOUTPUT=${source} -P ${script}
    DEPENDS ${files} ${script}
    COMMENT "Embedding the recorded run" VERBATIM)
  set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS "${files}"
    SKIP_UNITY_BUILD_INCLUSION ON)
  target_sources(${target} PRIVATE ${source})
  add_custom_target(heed_recorded_run DEPENDS ${source})  # alone: linters read it
endfunction()
