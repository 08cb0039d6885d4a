# The engine as WebAssembly, for a page without a server: Debian's emscripten instead of a native compiler.
# What heed takes of other libraries are headers, of one folder each; what a browser has no use for is left
# out (heed_choose_sources). One thread (or several: HEED_WASM_THREADS), SIMD of 128 bits.

set(heed_wasm_include ${CMAKE_BINARY_DIR}/include)
foreach(library hwy fmt nlohmann boost eigen3 utf8proc.h)
  if(NOT EXISTS /usr/include/${library})
    message(FATAL_ERROR "/usr/include/${library} is missing: scripts/install-deps.sh --wasm installs it")
  endif()
  file(MAKE_DIRECTORY ${heed_wasm_include})
  file(CREATE_LINK /usr/include/${library} ${heed_wasm_include}/${library} SYMBOLIC)
endforeach()

set(CMAKE_CXX_FLAGS_RELEASE "-O3 -DNDEBUG")
set(heed_wasm_flags -msimd128 -fwasm-exceptions)
option(HEED_WASM_THREADS "Threads, for pages that are isolated from other origins (SharedArrayBuffer)" OFF)
if(HEED_WASM_THREADS)
  list(APPEND heed_wasm_flags -pthread)
endif()
add_compile_options(${heed_wasm_flags}
  "SHELL:-include ${PROJECT_SOURCE_DIR}/cmake/wasm/include/older_library.h")
add_compile_definitions(FMT_HEADER_ONLY HWY_COMPILE_ONLY_STATIC)
include_directories(SYSTEM ${heed_wasm_include} ${heed_wasm_include}/eigen3)
include_directories(BEFORE ${PROJECT_SOURCE_DIR}/cmake/wasm/include)
set(CMAKE_POSITION_INDEPENDENT_CODE OFF)

# By the names that folders link.
foreach(library fmt::fmt nlohmann_json::nlohmann_json ZLIB::ZLIB OpenSSL::Crypto PkgConfig::HWY
    PkgConfig::UTF8PROC PkgConfig::CAIRO Eigen3::Eigen CURL::libcurl Boost::headers Threads::Threads
    OpenMP::OpenMP_CXX)
  add_library(${library} INTERFACE IMPORTED GLOBAL)
endforeach()
set_target_properties(OpenMP::OpenMP_CXX PROPERTIES INTERFACE_COMPILE_OPTIONS -fopenmp-simd)

# Sockets, processes of a group, figures in files; the library's own interface and its benchmarks, and the training of
# sparse dictionaries, which only it and the command line have; kernels as plain loops, which tests compare with.
file(GLOB heed_reference_kernels RELATIVE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/src/kernels/reference/*.cc)
file(GLOB heed_cuda_kernels RELATIVE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/src/kernels/cuda/*.cc)
set(heed_unused_in_browsers
  ${heed_reference_kernels}
  ${heed_cuda_kernels}
  tensor/device_pool.cc
  comm/exchange_queue.cc comm/launch.cc comm/transport_group.cc comm/watch.cc
  engine/activations.cc engine/attention_reader.cc engine/evaluate.cc engine/explain.cc engine/feature_training.cc
  engine/generations.cc engine/hooked_runs.cc engine/hooks.cc engine/model.cc
  engine/model_passes.cc engine/point_keeper.cc engine/read_texts.cc engine/splice.cc engine/stacks.cc engine/train_model.cc engine/translator.cc engine/weights.cc
  engine/bench/model_suites.cc engine/bench/part_suites.cc engine/bench/translator_suite.cc
  microscope/features/activation_stream.cc microscope/features/dictionary_run.cc microscope/features/dictionary_saving.cc
  microscope/features/dictionary_training.cc microscope/features/feature_contexts.cc microscope/files/array_files.cc
  server/connection.cc server/gate.cc server/http_parser.cc server/http_server.cc server/http_session.cc
  server/listener.cc server/serve.cc)

if(HEED_WASM_THREADS)
  list(APPEND heed_unused_in_browsers base/browser/threads.cc)
else()
  list(APPEND heed_unused_in_browsers base/thread_pool.cc base/browser/thread_system.cc base/browser/several_threads.cc)
endif()

# Folders that compute little: compiled for size, like the server.
set(heed_small_in_browsers model tokenizer chat comm microworld scoring download formats train microworld_checks engine)

set_source_files_properties(${PROJECT_SOURCE_DIR}/src/microscope/figures/figure_files.cc
  ${PROJECT_SOURCE_DIR}/src/microscope/figures/browser/figure_image.cc PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)

# Characters, by the answers of this machine's utf8proc: a native program writes them during the build.
find_program(HEED_NATIVE_COMPILER NAMES c++ g++ clang++ REQUIRED NO_CMAKE_FIND_ROOT_PATH)
set(heed_unicode ${CMAKE_BINARY_DIR}/unicode)
file(MAKE_DIRECTORY ${heed_unicode})
add_custom_command(OUTPUT ${heed_unicode}/unicode_tables.inc
  COMMAND ${HEED_NATIVE_COMPILER} -std=c++20 -O1 ${PROJECT_SOURCE_DIR}/cmake/wasm/unicode_tables.cc -lutf8proc
    -o ${heed_unicode}/unicode_tables
  COMMAND ${heed_unicode}/unicode_tables ${heed_unicode}/unicode_tables.inc
  DEPENDS ${PROJECT_SOURCE_DIR}/cmake/wasm/unicode_tables.cc
  COMMENT "Asking utf8proc about every character" VERBATIM)
set_source_files_properties(${PROJECT_SOURCE_DIR}/cmake/wasm/unicode.cc PROPERTIES
  OBJECT_DEPENDS ${heed_unicode}/unicode_tables.inc)

# Replaces the path of openapi.json by that of its part which the engine reads.
find_program(HEED_NODE NAMES node nodejs REQUIRED NO_CMAKE_FIND_ROOT_PATH)
function(heed_wasm_openapi path)
  set(script ${PROJECT_SOURCE_DIR}/cmake/wasm/openapi.mjs)
  set(part ${CMAKE_BINARY_DIR}/openapi.json)
  add_custom_command(OUTPUT ${part} COMMAND ${HEED_NODE} ${script} ${${path}} ${part}
    DEPENDS ${script} ${${path}} VERBATIM)
  set(${path} ${part} PARENT_SCOPE)
endfunction()

# What other libraries would be linked for, and older C++ libraries lack.
function(heed_wasm_support)
  add_library(heed_wasm_support STATIC ${PROJECT_SOURCE_DIR}/cmake/wasm/unicode.cc
    ${PROJECT_SOURCE_DIR}/cmake/wasm/older_library.cc ${PROJECT_SOURCE_DIR}/cmake/wasm/highway.cc)
  if(HEED_WASM_THREADS)  # does code keep a landing pad's context for each thread?
    set(probe ${CMAKE_BINARY_DIR}/landing_pad.cc)
    file(WRITE ${probe} "void run();\nint code() { try { run(); } catch (int thrown) { return thrown; } return 0; }\n")
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -O1 -fwasm-exceptions -pthread -S ${probe} -o ${probe}.s
      COMMAND_ERROR_IS_FATAL ANY)
    file(STRINGS ${probe}.s of_thread REGEX "__wasm_lpad_context@TLSREL")
    if(NOT of_thread)
      target_sources(heed_wasm_support PRIVATE ${PROJECT_SOURCE_DIR}/cmake/wasm/unwind.cc)
    endif()
  endif()
  target_include_directories(heed_wasm_support PRIVATE ${heed_unicode})
  target_compile_features(heed_wasm_support PUBLIC cxx_std_20)
  set_target_properties(heed_wasm_support PROPERTIES UNITY_BUILD OFF)
endfunction()

# heed.js and heed.wasm of src/wasm.
function(heed_wasm_module)
  heed_wasm_support()
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/wasm/*.cc)
  set(api ${PROJECT_SOURCE_DIR}/src/wasm/heed_api.js)
  add_executable(heed_wasm ${sources})
  set_target_properties(heed_wasm PROPERTIES OUTPUT_NAME heed UNITY_BUILD OFF LINK_DEPENDS ${api})
  # Emscripten's own scripts need Debian's packages of Node.js, whichever Node.js runs them.
  set_target_properties(heed_wasm PROPERTIES
    RULE_LAUNCH_LINK "${CMAKE_COMMAND} -E env NODE_PATH=/usr/share/nodejs")
  target_link_libraries(heed_wasm PRIVATE heed_server heed_wasm_support)
  heed_options(heed_wasm)
  # A call of a function by another type than its own is a trap, of which the linker only warns.
  target_link_options(heed_wasm PRIVATE -Wl,--fatal-warnings ${heed_wasm_flags} --no-entry --post-js ${api} -lworkerfs.js
    -sMODULARIZE=1 -sEXPORT_ES6=1 -sEXPORT_NAME=createHeed -sENVIRONMENT=web,worker,node
    -sALLOW_MEMORY_GROWTH=1 -sMAXIMUM_MEMORY=4GB -sINITIAL_MEMORY=32MB -sTOTAL_STACK=2MB
    -sFORCE_FILESYSTEM=1 -sEXPORTED_RUNTIME_METHODS=FS,WORKERFS
    -sEXPORTED_FUNCTIONS=_heed_open,_heed_convert,_heed_error,_heed_request,_heed_stop,_heed_work,_heed_threads,_malloc,_free)
  if(HEED_WASM_THREADS)  # workers that are there before the first loop: Module.heedThreads (heed_api.js)
    target_link_options(heed_wasm PRIVATE -sPTHREAD_POOL_SIZE=Module.heedThreads)
  endif()
endfunction()
