// The transport of MPI: the only source that knows it, compiled to a library of its own, which is
// loaded in processes that mpirun or srun started.
#include "comm/transport.h"

#include <mpi.h>

#include <string>

namespace {

MPI_Comm group[HEED_TRANSPORT_LANES];  // the same processes, each of its own order
std::string last_error;

bool succeeded(int code) {
  if (code == MPI_SUCCESS) return true;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  last_error.assign(text, static_cast<std::size_t>(length));
  return false;
}

int start(int* rank, int* size, int* neighbours) {
  int provided = MPI_THREAD_SINGLE;
  if (!succeeded(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided))) return 1;
  if (provided < MPI_THREAD_SERIALIZED) {
    last_error = "this MPI does not support programs with threads";
    return 1;
  }
  for (MPI_Comm& lane : group) {
    if (!succeeded(MPI_Comm_dup(MPI_COMM_WORLD, &lane))) return 1;
    MPI_Comm_set_errhandler(lane, MPI_ERRORS_RETURN);
  }
  MPI_Comm machine = MPI_COMM_NULL;
  const bool counted = succeeded(MPI_Comm_rank(group[0], rank)) &&
                       succeeded(MPI_Comm_size(group[0], size)) &&
                       succeeded(MPI_Comm_split_type(group[0], MPI_COMM_TYPE_SHARED, *rank,
                                                     MPI_INFO_NULL, &machine)) &&
                       succeeded(MPI_Comm_size(machine, neighbours));
  if (machine != MPI_COMM_NULL) MPI_Comm_free(&machine);
  return counted ? 0 : 1;
}

// `begin` starts a request and returns MPI's code.
template <class Begin>
void* begun(Begin&& begin) {
  auto* const request = new MPI_Request(MPI_REQUEST_NULL);
  if (succeeded(begin(request))) return request;
  delete request;
  return nullptr;
}

void* begin_exchange(int lane, const void* sent, const int* sent_sizes, const int* sent_offsets,
                     void* received, const int* received_sizes, const int* received_offsets) {
  return begun([&](MPI_Request* request) {
    return MPI_Ialltoallv(sent, sent_sizes, sent_offsets, MPI_BYTE, received, received_sizes,
                          received_offsets, MPI_BYTE, group[lane], request);
  });
}

void* begin_gather(int lane, void* whole, const int* sizes, const int* offsets) {
  return begun([&](MPI_Request* request) {
    return MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, whole, sizes, offsets, MPI_BYTE,
                           group[lane], request);
  });
}

void* begin_broadcast(int lane, void* bytes, int size, int root) {
  return begun([&](MPI_Request* request) {
    return MPI_Ibcast(bytes, size, MPI_BYTE, root, group[lane], request);
  });
}

void* begin_send(const void* bytes, int size, int to) {
  return begun([&](MPI_Request* request) {
    return MPI_Isend(bytes, size, MPI_BYTE, to, 0, group[0], request);
  });
}

void* begin_receive(void* bytes, int size, int from) {
  return begun([&](MPI_Request* request) {
    return MPI_Irecv(bytes, size, MPI_BYTE, from, 0, group[0], request);
  });
}

int test(void* pending) {
  auto* const request = static_cast<MPI_Request*>(pending);
  int done = 0;
  if (!succeeded(MPI_Test(request, &done, MPI_STATUS_IGNORE))) return -1;
  if (done == 0) return 0;
  delete request;
  return 1;
}

// MPI moves everything on in any of its calls.
void progress() {
  int found = 0;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, group[0], &found, MPI_STATUS_IGNORE);
}

const char* error() { return last_error.c_str(); }

void abort_all(int status) { MPI_Abort(MPI_COMM_WORLD, status); }

void finish() {
  for (MPI_Comm& lane : group) MPI_Comm_free(&lane);
  MPI_Finalize();
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const HeedTransport* heed_transport() {
  static const HeedTransport table{
      HEED_TRANSPORT_VERSION, &start, &begin_exchange, &begin_gather, &begin_broadcast, &begin_send,
      &begin_receive,         &test,  &progress,       &error,        &abort_all,       &finish};
  return &table;
}
