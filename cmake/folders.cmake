# A folder of src/ is a static library; its sources are all its .cc files but main.cc.

# The headers that most sources include are parsed once, for all targets that share a compiler's
# flags. Kernels do without: Highway compiles each of them once for every instruction set.
option(HEED_PRECOMPILE_HEADERS "Parse the most common headers once" ON)

# With CMAKE_UNITY_BUILD, which the presets set, up to this many sources of a folder are compiled as
# one, and templates that they share are instantiated once: half of the time of a build. Names in
# anonymous namespaces of these folders are therefore unique in their folder; small folders are
# compiled file by file, and theirs need not be.
set(CMAKE_UNITY_BUILD_BATCH_SIZE 24)
set(heed_folders_of_single_files base tokenizer chat checkpoint comm scoring download)

# A face, or a test: what it computes takes no time, so it is compiled quickly instead of well; for a browser,
# which downloads it, as small as possible.
set(heed_little_optimisation -O1)
if(EMSCRIPTEN)
  set(heed_little_optimisation -Oz)
endif()
function(heed_optimise_little target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:${heed_little_optimisation}>)
endfunction()

# What `library` is made of: itself and the folders that it stands on.
function(heed_folders_below library result)
  set(found ${${result}})
  get_target_property(type ${library} TYPE)
  if(NOT library IN_LIST found AND type STREQUAL "STATIC_LIBRARY")
    list(APPEND found ${library})
    get_target_property(below ${library} LINK_LIBRARIES)
    foreach(name ${below})
      if(name MATCHES "^heed_" AND TARGET ${name})
        heed_folders_below(${name} found)
      endif()
    endforeach()
  endif()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

# Under sanitizers, to compile a test without optimisation takes a third of the time, and none of its checks
# away. The libraries then come before the test's own objects, since of an inline function that both hold a
# linker keeps the first: what is tested runs as fast as ever.
option(HEED_TESTS_UNOPTIMISED "Compile most tests, but not what they test, without optimisation" OFF)
function(heed_leave_unoptimised target)
  target_compile_options(${target} PRIVATE -O0)
  get_target_property(libraries ${target} LINK_LIBRARIES)
  set(folders "")
  foreach(library ${libraries})
    if(library MATCHES "^heed_" AND TARGET ${library})
      heed_folders_below(${library} folders)
    endif()
  endforeach()
  list(TRANSFORM folders REPLACE "(.+)" "$<TARGET_FILE:\\1>")
  target_link_options(${target} PRIVATE LINKER:--whole-archive ${folders} LINKER:--no-whole-archive)
endfunction()

# `target` shares the precompiled `header` of the targets named so before. Compilers ask for the same
# optimisation in both: those that are optimised little share another one.
function(heed_precompile target name header)
  if(NOT HEED_PRECOMPILE_HEADERS)
    return()
  endif()
  if(NOT TARGET ${name})
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/${name}.cc CONTENT "")
    add_library(${name} OBJECT ${CMAKE_BINARY_DIR}/${name}.cc)
    target_link_libraries(${name} PRIVATE fmt::fmt nlohmann_json::nlohmann_json
      OpenMP::OpenMP_CXX ${ARGN})
    heed_options(${name})
    target_precompile_headers(${name} PRIVATE ${header})
    get_target_property(options ${target} COMPILE_OPTIONS)
    target_compile_options(${name} PRIVATE ${options})
  endif()
  target_precompile_headers(${target} REUSE_FROM ${name})
  if(NOT EMSCRIPTEN)
    target_compile_options(${target} PRIVATE -fPIC)  # as it was precompiled; programs have -fPIE
  endif()
endfunction()

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

# FOLDER/browser/NAME.cc is what a browser has instead of FOLDER/NAME.cc, with the same header; some sources it
# has no use for at all. All others leave browser/ out.
function(heed_choose_sources list)
  set(sources ${${list}})
  if(EMSCRIPTEN)
    set(instead ${sources})
    list(FILTER instead INCLUDE REGEX "/browser/")
    list(TRANSFORM instead REPLACE "/browser/" "/")
    list(REMOVE_ITEM sources ${instead})
    list(TRANSFORM heed_unused_in_browsers PREPEND "${PROJECT_SOURCE_DIR}/src/" OUTPUT_VARIABLE unused)
    list(REMOVE_ITEM sources ${unused})
  else()
    list(FILTER sources EXCLUDE REGEX "/browser/")
  endif()
  set(${list} ${sources} PARENT_SCOPE)
endfunction()

function(heed_folder folder)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${folder}/*.cc)
  list(FILTER sources EXCLUDE REGEX "/main\\.cc$|/comm/mpi/")
  heed_choose_sources(sources)
  if(folder STREQUAL "microworld")  # its checks stand above the microscope
    list(FILTER sources EXCLUDE REGEX "/microworld/checks/")
  endif()
  string(REPLACE "/" "_" name ${folder})
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
  if(name IN_LIST heed_folders_of_single_files)
    set_target_properties(heed_${name} PROPERTIES UNITY_BUILD OFF)
  endif()
  set(header ${PROJECT_SOURCE_DIR}/src/base/precompiled.h)
  if(name STREQUAL "server" OR name STREQUAL "cli" OR name IN_LIST heed_small_in_browsers)
    heed_optimise_little(heed_${name})
    heed_precompile(heed_${name} heed_faces_precompiled ${header})
  elseif(NOT name STREQUAL "kernels")
    heed_precompile(heed_${name} heed_precompiled ${header})
  endif()
endfunction()
