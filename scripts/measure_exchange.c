/* What MPI gets out of a link: the latency of small messages, and the bandwidth of collective exchanges in
   which every process sends to every other. For scripts/measure_scaling.py; build with mpicc. */
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { small_rounds = 200, most_rounds = 60 };
static const double enough_seconds = 0.7;

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void finish(MPI_Request* request) {
  int done = 0;
  while (!done) {
    MPI_Test(request, &done, MPI_STATUS_IGNORE);
    if (!done) sched_yield();
  }
}

/* The median seconds of a reduce-scatter's exchange and of an all-gather of `bytes`, together. */
static double seconds_of(int bytes, int rank, int size, char* sent, char* received) {
  int sizes[64], offsets[64], own[64], in_order[64];
  const int part = bytes / size;
  for (int r = 0; r < size; ++r) {
    sizes[r] = own[r] = part;
    offsets[r] = in_order[r] = r * part;
  }
  (void)rank;
  double seconds[most_rounds];
  int rounds = 0, go_on = 1;
  const double begin = MPI_Wtime();
  while (go_on && rounds < most_rounds) {
    const double start = MPI_Wtime();
    MPI_Request request;
    MPI_Ialltoallv(sent, sizes, offsets, MPI_BYTE, received, own, in_order, MPI_BYTE, MPI_COMM_WORLD, &request);
    finish(&request);
    MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, sent, sizes, offsets, MPI_BYTE, MPI_COMM_WORLD,
                    &request);
    finish(&request);
    seconds[rounds++] = MPI_Wtime() - start;
    go_on = rounds < 5 || MPI_Wtime() - begin < enough_seconds;
    MPI_Bcast(&go_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  qsort(seconds, (size_t)rounds, sizeof *seconds, compare);
  return seconds[rounds / 2];
}

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  double times[small_rounds];
  for (int i = 0; i < small_rounds; ++i) {
    char byte = 0;
    const double start = MPI_Wtime();
    if (rank == 0) {
      MPI_Send(&byte, 1, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
      MPI_Recv(&byte, 1, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
      MPI_Recv(&byte, 1, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(&byte, 1, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
    times[i] = (MPI_Wtime() - start) / 2;
  }
  qsort(times, small_rounds, sizeof *times, compare);

  /* What is left of the difference between two sizes has no latency in it. */
  const int large = 12 << 20, small = 4 << 20;
  char* const sent = calloc(1, large);
  char* const received = calloc(1, large);
  const double difference =
      seconds_of(large, rank, size, sent, received) - seconds_of(small, rank, size, sent, received);
  const double moved = 2.0 * (large - small) / size * (size - 1);
  if (rank == 0) {
    printf("{\"latency\": %.9f, \"bandwidth\": %.1f}\n", times[small_rounds / 2], moved / difference);
  }
  free(sent);
  free(received);
  MPI_Finalize();
  return 0;
}
