# Run at installation: copies the shared libraries that `program` needs to `folder`. Those of the C
# library stay the system's: they must fit its kernel and its loader.
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${program}
  RESOLVED_DEPENDENCIES_VAR libraries
  PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread|resolv|util)\\.so"
  POST_EXCLUDE_REGEXES "/ld-linux")
file(INSTALL ${libraries} DESTINATION "${CMAKE_INSTALL_PREFIX}/${folder}" FOLLOW_SYMLINK_CHAIN)
