// What libraries exchange arrays by: DLPack 1.0's structs, laid out as in its dlpack.h
// (https://github.com/dmlc/dlpack/blob/main/include/dlpack/dlpack.h). Capsules of Python hold a
// pointer to one of the two managed tensors, under a name that says which, and whether it was
// taken (https://dmlc.github.io/dlpack/latest/python_spec.html).
#pragma once

#include <cstddef>
#include <cstdint>

namespace heed::python::dlpack {

constexpr std::int32_t cuda = 2;  // a kind of device

struct Device {
  std::int32_t kind;
  std::int32_t index;
};

enum Code : std::uint8_t {
  signed_integer = 0,
  unsigned_integer = 1,
  floating_point = 2,
  bfloat = 4,
  boolean = 6
};

struct DataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;  // 1 but of vectors
};

struct Tensor {
  void* data;
  Device device;
  std::int32_t rank;
  DataType type;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; before version 1.2 null for C order
  std::uint64_t byte_offset;
};

struct ManagedTensor {
  Tensor tensor;
  void* context;
  void (*deleter)(ManagedTensor* self);  // may be null
};

struct Version {
  std::uint32_t major, minor;
};

constexpr std::uint64_t read_only = 1, is_copied = 2;  // flags

struct VersionedTensor {
  Version version;
  void* context;
  void (*deleter)(VersionedTensor* self);  // may be null
  std::uint64_t flags;
  Tensor tensor;
};

static_assert(sizeof(void*) != 8 ||
              (sizeof(Tensor) == 48 && offsetof(Tensor, device) == 8 &&
               offsetof(Tensor, shape) == 24 && offsetof(Tensor, byte_offset) == 40 &&
               sizeof(ManagedTensor) == 64 && offsetof(VersionedTensor, flags) == 24 &&
               offsetof(VersionedTensor, tensor) == 32));

// Names of capsules, and those under which they were taken.
template <class Managed>
constexpr const char* name = "dltensor";
template <>
constexpr inline const char* name<VersionedTensor> = "dltensor_versioned";
template <class Managed>
constexpr const char* used_name = "used_dltensor";
template <>
constexpr inline const char* used_name<VersionedTensor> = "used_dltensor_versioned";

}  // namespace heed::python::dlpack
