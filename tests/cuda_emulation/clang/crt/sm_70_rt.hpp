// Clang's header of intrinsics includes this file of NVIDIA's for __match_any_sync and the like,
// which the project does not use.
