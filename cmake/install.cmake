# What `cmake --install` puts in place: the program, the installed headers, the static libraries
# and the CMake package `heed`, whose target heed::heed is the engine with all that it stands on.
include(CMakePackageConfigHelpers)

add_library(heed::heed ALIAS heed_engine)

# Appends `target` and every heed_ library below it to the list named `collected`.
function(heed_collect_libraries target collected)
  if(target IN_LIST ${collected})
    return()
  endif()
  list(APPEND ${collected} ${target})
  get_target_property(type ${target} TYPE)
  set(property LINK_LIBRARIES)
  if(type STREQUAL "INTERFACE_LIBRARY")
    set(property INTERFACE_LINK_LIBRARIES)
  endif()
  get_target_property(links ${target} ${property})
  foreach(link ${links})
    if(link MATCHES "^heed_" AND TARGET ${link})
      heed_collect_libraries(${link} ${collected})
    endif()
  endforeach()
  set(${collected} ${${collected}} PARENT_SCOPE)
endfunction()

heed_collect_libraries(heed_engine heed_installed_libraries)
set_target_properties(heed_engine PROPERTIES EXPORT_NAME heed)

set(heed_package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/heed)
# Components: the program; what programs are compiled with; and, for a package that is to run where
# nothing is installed, the shared libraries that the program needs, beside it.
set(heed_library_folder lib/heed)
install(TARGETS ${heed_installed_libraries} EXPORT heedTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(EXPORT heedTargets NAMESPACE heed:: DESTINATION ${heed_package_folder}
  COMPONENT development)
install(DIRECTORY include/heed DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
  FILES_MATCHING PATTERN "*.h")
# The old tag holds for libraries of libraries too.
set_target_properties(heed PROPERTIES INSTALL_RPATH "$ORIGIN/../${heed_library_folder}")
target_link_options(heed PRIVATE LINKER:--disable-new-dtags)
# pkg-config names more libraries than are used.
target_link_options(heed PRIVATE LINKER:--as-needed)
install(TARGETS heed RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
if(TARGET heed_mpi)  # the program looks for it there
  # In no package: it would depend on MPI.
  install(TARGETS heed_mpi LIBRARY DESTINATION ${heed_library_folder} COMPONENT mpi)
  add_dependencies(heed heed_mpi)
endif()
if(TARGET heed_cuda)  # likewise, of CUDA
  install(TARGETS heed_cuda LIBRARY DESTINATION ${heed_library_folder} COMPONENT cuda)
  add_dependencies(heed heed_cuda)
endif()
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(CODE "set(program \"$<TARGET_FILE:heed>\")\nset(folder ${heed_library_folder})"
  COMPONENT libraries EXCLUDE_FROM_ALL)
install(SCRIPT cmake/install_libraries.cmake COMPONENT libraries EXCLUDE_FROM_ALL)

configure_package_config_file(cmake/heedConfig.cmake.in ${CMAKE_BINARY_DIR}/heedConfig.cmake
  INSTALL_DESTINATION ${heed_package_folder})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/heedConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/heedConfig.cmake ${CMAKE_BINARY_DIR}/heedConfigVersion.cmake
  DESTINATION ${heed_package_folder} COMPONENT development)

if(HEED_BUILD_TESTS)
  add_test(NAME install COMMAND ${PROJECT_SOURCE_DIR}/tests/install/install_test.sh
    ${CMAKE_COMMAND} ${CMAKE_BINARY_DIR} ${PROJECT_SOURCE_DIR} ${PROJECT_VERSION}
    ${CMAKE_CXX_COMPILER} "${CMAKE_CXX_FLAGS}")
endif()
