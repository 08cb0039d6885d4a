// A library of another version: what the program says of it.
extern "C" int heed_cuda_version() { return 999; }
