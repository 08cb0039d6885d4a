# The target heed::onednn. Debian's own dnnl package file insists on OpenCL, which the CPU library
# does not need, so the library is looked up directly.
if(NOT TARGET heed::onednn)
  find_library(HEED_ONEDNN_LIBRARY dnnl REQUIRED)
  find_path(HEED_ONEDNN_INCLUDE oneapi/dnnl/dnnl.hpp REQUIRED)
  add_library(heed::onednn UNKNOWN IMPORTED)
  set_target_properties(heed::onednn PROPERTIES
    IMPORTED_LOCATION ${HEED_ONEDNN_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${HEED_ONEDNN_INCLUDE})
endif()
