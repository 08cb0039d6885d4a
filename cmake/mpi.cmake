# The transport of MPI, a library that the program loads where mpirun or srun started it: the program
# itself does not need MPI.
set(MPI_CXX_SKIP_MPICXX ON)  # MPI's C interface, from C++
if(HEED_MPI STREQUAL "AUTO" AND CMAKE_CROSSCOMPILING)
  set(MPI_CXX_FOUND FALSE)  # what is found is this machine's
elseif(HEED_MPI STREQUAL "AUTO")
  find_package(MPI QUIET COMPONENTS CXX)
elseif(HEED_MPI)
  find_package(MPI REQUIRED COMPONENTS CXX)
endif()
if(HEED_MPI AND MPI_CXX_FOUND)
  add_library(heed_mpi MODULE src/comm/mpi/transport.cc)
  heed_options(heed_mpi)
  set_target_properties(heed_mpi PROPERTIES PREFIX "" CXX_VISIBILITY_PRESET hidden
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  target_link_libraries(heed_mpi PRIVATE MPI::MPI_CXX)
endif()
