# A folder of src/ is a static library; its sources are all its .cc files.

function(heed_options target)
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:include>)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wno-missing-field-initializers
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
  # The oldest machine that the binary runs on; faster instructions are chosen at run time.
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    target_compile_options(${target} PRIVATE -march=x86-64-v2)
  endif()
  if(HEED_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

function(heed_folder name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cc)
  if(NOT sources)
    add_library(heed_${name} INTERFACE)
    string(REPLACE "PUBLIC" "INTERFACE" links "${ARGN}")
    string(REPLACE "PRIVATE" "INTERFACE" links "${links}")
    target_link_libraries(heed_${name} ${links})
    return()
  endif()
  add_library(heed_${name} STATIC ${sources})
  target_link_libraries(heed_${name} ${ARGN})
  heed_options(heed_${name})
endfunction()

function(heed_program folder program)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${folder}/*.cc)
  if(NOT sources)
    return()
  endif()
  add_executable(${program} ${sources})
  target_link_libraries(${program} ${ARGN})
  heed_options(${program})
endfunction()
