# The transport of MPI, a library that the program loads where mpirun or srun started it: the program
# itself does not need MPI. Of MPI its C interface is used: Debian's choice of it, Open MPI, or MPICH.
if(HEED_MPI STREQUAL "AUTO")
  pkg_search_module(MPI QUIET IMPORTED_TARGET mpi-c ompi-c mpich)
elseif(HEED_MPI)
  pkg_search_module(MPI REQUIRED IMPORTED_TARGET mpi-c ompi-c mpich)
endif()
if(HEED_MPI AND MPI_FOUND)
  add_library(heed_mpi MODULE src/comm/mpi/transport.cc)
  heed_options(heed_mpi)
  set_target_properties(heed_mpi PROPERTIES PREFIX "" CXX_VISIBILITY_PRESET hidden
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  target_compile_definitions(heed_mpi PRIVATE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
  target_link_libraries(heed_mpi PRIVATE PkgConfig::MPI)
endif()
