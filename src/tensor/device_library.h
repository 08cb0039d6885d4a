/* What heed_cuda.so and the program know of each other: functions of C, which the program finds by
   their names, and plain structs. This is all that the library's sources include of the project,
   but for arithmetic that needs no types of it. */
#pragma once

#include <stddef.h>

/* Changes with any function or struct here and in src/kernels/cuda. */
#define HEED_CUDA_VERSION 3

/* Shapes of up to five dimensions. */
#define HEED_CUDA_MAX_RANK 5

/* A view of memory of the device: strides in elements. Where there is none, data is null. */
struct HeedView {
  void* data;
  long long extent[HEED_CUDA_MAX_RANK];
  long long stride[HEED_CUDA_MAX_RANK];
  int rank;
};

/* A device, once it is open. */
struct HeedCudaDevice {
  void* begin;      /* of the addresses that its memory gets */
  size_t addresses; /* bytes of them */
  size_t chunk;     /* memory is mapped in multiples of so many bytes */
  size_t total;     /* bytes of memory that it has */
  int multiprocessors;
  int index; /* of those that CUDA finds */
  char name[256];
};

/* All functions return null, or what failed, in words that stay. They may be called by any thread;
   what they launch is done in the order of the calls. */
typedef const char* HeedCudaResult;

#ifdef __cplusplus
extern "C" {
#endif

int heed_cuda_version(void);
/* The device of this number, or, of −1 − rank, one for each of several processes, in turns. */
HeedCudaResult heed_cuda_open(int index, struct HeedCudaDevice* device);
/* Sets out_of_memory to 1 where the device has too little. */
HeedCudaResult heed_cuda_map(size_t offset, size_t bytes, int* out_of_memory);
HeedCudaResult heed_cuda_unmap(size_t offset, size_t bytes);
/* To the processor: done when it returns. From it: `from` may change then. */
HeedCudaResult heed_cuda_copy_bytes(void* to, const void* from, size_t bytes);
HeedCudaResult heed_cuda_clear_bytes(void* memory, size_t bytes);
HeedCudaResult heed_cuda_synchronize(void);
/* For what any library of the process launched, on whatever stream. */
HeedCudaResult heed_cuda_wait_for_all(void);

/* From here on, what the calling thread launches is not done but recorded, by one thread at a time.
   What it copies from the processor is copied at once; copies to it, and waiting, fail. */
HeedCudaResult heed_cuda_begin_recording(void);
/* Ends it. A repetition does all that was recorded, and then adds one to `counter`, an int of the
   device. Where `recording` is null, what was recorded is forgotten. */
HeedCudaResult heed_cuda_end_recording(int* counter, void** recording);
HeedCudaResult heed_cuda_repeat_recording(void* recording);
HeedCudaResult heed_cuda_forget_recording(void* recording);

#ifdef __cplusplus
}
#endif
