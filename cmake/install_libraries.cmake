# Run at installation: copies the shared libraries that `program` needs to `folder`. Those of the C
# library stay the system's: they must fit its kernel and its loader. Each comes with its licence.
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${program}
  RESOLVED_DEPENDENCIES_VAR libraries
  PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread|resolv|util)\\.so"
  POST_EXCLUDE_REGEXES "/ld-linux")
file(INSTALL ${libraries} DESTINATION "${CMAKE_INSTALL_PREFIX}/${folder}" FOLLOW_SYMLINK_CHAIN)

# The licences of the packages that own the libraries, as Debian and Ubuntu keep them.
find_program(dpkg_query dpkg-query)
foreach(library ${libraries})
  if(NOT dpkg_query)
    break()
  endif()
  get_filename_component(name ${library} NAME)
  execute_process(COMMAND ${dpkg_query} --search "*/${name}" OUTPUT_VARIABLE owner ERROR_QUIET)
  string(REGEX MATCH "^[^:\n]+" package "${owner}")
  set(licence /usr/share/doc/${package}/copyright)
  if(package AND EXISTS ${licence})
    file(INSTALL ${licence} RENAME ${package}
      DESTINATION "${CMAKE_INSTALL_PREFIX}/share/doc/heed/licences")
  endif()
endforeach()
