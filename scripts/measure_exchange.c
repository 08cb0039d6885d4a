/* What MPI gets out of a link: the latency of small messages; the bandwidth of collective exchanges in
   which every process sends to every other; and what they cost a core that computes meanwhile, as the
   bytes a second that would take all of it. For scripts/measure_scaling.py; build with mpicc -O2. */
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { small_rounds = 200, most_rounds = 60, cost_rounds = 5 };
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

/* Computes for about `seconds` on numbers that fit in a core's cache: a turn's worth, and how often. */
enum { cached = 1 << 16 };
static float numbers[cached];

static void compute_once(void) {
  for (int i = 0; i < cached; ++i) numbers[i] = numbers[i] * 0.999F + 0.001F;
}

/* Seconds that an exchange takes from computing, for each byte that is sent and received. */
static double seconds_per_byte(int bytes, int size, char* sent, char* received) {
  int sizes[64], offsets[64], in_order[64];
  const int part = bytes / size;
  for (int r = 0; r < size; ++r) {
    sizes[r] = part;
    offsets[r] = in_order[r] = r * part;
  }
  double alone = 1e9, lost[cost_rounds];
  for (int round = 0; round < cost_rounds; ++round) {
    for (int k = 0; k < 50; ++k) {
      const double start = MPI_Wtime();
      for (int i = 0; i < 20; ++i) compute_once();
      const double each = (MPI_Wtime() - start) / 20;
      if (each < alone) alone = each;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Request request;
    int done = 0;
    long computed = 0;
    const double start = MPI_Wtime();
    MPI_Ialltoallv(sent, sizes, offsets, MPI_BYTE, received, sizes, in_order, MPI_BYTE, MPI_COMM_WORLD, &request);
    while (!done) {
      for (int i = 0; i < 20; ++i) compute_once();
      computed += 20;
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    }
    lost[round] = MPI_Wtime() - start - (double)computed * alone;
  }
  qsort(lost, cost_rounds, sizeof *lost, compare);
  const double most = 1.0 * part * (size - 1);
  return (lost[cost_rounds / 2] > 0 ? lost[cost_rounds / 2] : 0) / most;
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
  const double cost = seconds_per_byte(large, size, sent, received);
  if (rank == 0) {
    printf("{\"latency\": %.9f, \"bandwidth\": %.1f, \"copies\": %.1f}\n", times[small_rounds / 2],
           moved / difference, cost > 0 ? 1 / cost : 0);
  }
  free(sent);
  free(received);
  MPI_Finalize();
  return 0;
}
