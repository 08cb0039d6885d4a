# A model becomes part of the engine: models/NAME/{config.json, model.safetensors, tokenizer.json,
# examples.json, reading.json} are copied into its read-only data by the assembler. Builds without
# these files work, and say that they have no such model.
function(heed_embed_model target name)
  set(directory ${PROJECT_SOURCE_DIR}/models/${name})
  file(GLOB present CONFIGURE_DEPENDS ${directory}/*)
  set(HEED_MODEL ${name})
  set(HEED_MODEL_CONFIG ${directory}/config.json)
  set(HEED_MODEL_WEIGHTS ${directory}/model.safetensors)
  set(HEED_MODEL_TOKENIZER ${directory}/tokenizer.json)
  set(HEED_MODEL_EXAMPLES ${directory}/examples.json)
  set(HEED_MODEL_READING ${directory}/reading.json)
  set(files ${HEED_MODEL_CONFIG} ${HEED_MODEL_WEIGHTS} ${HEED_MODEL_TOKENIZER}
    ${HEED_MODEL_EXAMPLES} ${HEED_MODEL_READING})
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${name}_files.cc)
  set(template embedded)
  foreach(file ${files})
    if(NOT file IN_LIST present)
      set(template absent)
    endif()
  endforeach()
  configure_file(${PROJECT_SOURCE_DIR}/cmake/model_${template}.cc.in ${source} @ONLY)
  if(template STREQUAL "embedded")
    # Compiled alone: CMake forgets what sources that are compiled together depend on.
    set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS "${files}"
      SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
  target_sources(${target} PRIVATE ${source})
endfunction()

# The tables of words of the microworld, which the source that reads them has in its read-only data.
function(heed_embed_words target)
  set(stories ${PROJECT_SOURCE_DIR}/src/microworld/stories.tsv)
  set(words ${PROJECT_SOURCE_DIR}/src/microworld/bilingual/words.tsv)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/microworld/tables.cc PROPERTIES
    COMPILE_DEFINITIONS "HEED_STORY_TABLES=\"${stories}\";HEED_BILINGUAL_TABLES=\"${words}\""
    OBJECT_DEPENDS "${stories};${words}" SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# Sentences of words with several senses, likewise.
function(heed_embed_senses target)
  set(senses ${PROJECT_SOURCE_DIR}/src/engine/senses.tsv)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/engine/sense_sentences.cc PROPERTIES
    COMPILE_DEFINITIONS "HEED_SENSES=\"${senses}\"" OBJECT_DEPENDS "${senses}"
    SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
