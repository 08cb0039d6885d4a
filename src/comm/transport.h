/* What moves bytes between the processes of a group: a table of C functions, so that the library
   that provides it can be loaded when it is needed, and is not needed where it is missing. */
#pragma once

#include <stddef.h>

#define HEED_TRANSPORT_VERSION 3

/* Requests of one lane begin in the same order in every member; those of different lanes in any. */
#define HEED_TRANSPORT_LANES 3

/* Any thread may call functions, one at a time. Sizes and offsets are in bytes. A `begin_` function
   returns a request, or null when it failed; its buffers stay untouched until test() has said that
   the request is done. */
struct HeedTransport {
  int version; /* HEED_TRANSPORT_VERSION */

  /* Joins the group that this process was started in. 0: done. */
  int (*start)(int* rank, int* size, int* neighbours);

  /* Member r receives what every member sends it, in the order of ranks: (size) numbers each. */
  void* (*begin_exchange)(int lane, const void* sent, const int* sent_sizes,
                          const int* sent_offsets, void* received, const int* received_sizes,
                          const int* received_offsets);
  /* In place: each member's part goes to all. */
  void* (*begin_gather)(int lane, void* whole, const int* sizes, const int* offsets);
  void* (*begin_broadcast)(int lane, void* bytes, int size, int root);

  /* From one member to another: what is received is what was sent first and not received yet. */
  void* (*begin_send)(const void* bytes, int size, int to);
  void* (*begin_receive)(void* bytes, int size, int from);

  /* 1: done, and the request is freed. 0: not yet. Negative: failed. */
  int (*test)(void* request);

  /* Moves on what is under way. */
  void (*progress)(void);

  /* What failed last, in words. */
  const char* (*error)(void);

  void (*abort)(int status);
  void (*finish)(void);
};

/* The one function of such a library. */
#define HEED_TRANSPORT_FUNCTION "heed_transport"
