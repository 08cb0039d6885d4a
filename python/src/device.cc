// Arrays on a GPU, which other libraries share (DLPack).
#include "heed/device.h"

#include <algorithm>
#include <bit>

#include "dlpack.h"
#include "heed/weights.h"
#include "recorded.h"

namespace heed::python {
namespace {

// What heed.DeviceArray holds.
class DeviceMemory {
 public:
  enum class Kind { shared, copied };
  explicit DeviceMemory(DeviceView view, Kind kind = Kind::shared)
      : view_(std::move(view)), kind_(kind) {}

  const DeviceView& view() const { return view_; }
  bool is_copied() const { return kind_ == Kind::copied; }

  // Without the first dimension.
  DeviceMemory at(std::int64_t index) const {
    DeviceView part = view_;
    part.data += index * view_.strides.front();
    part.shape.erase(part.shape.begin());
    part.strides.erase(part.strides.begin());
    return DeviceMemory(std::move(part), kind_);
  }

 private:
  DeviceView view_;
  Kind kind_;
};

// A managed tensor, with what it points to and what keeps that.
template <class Managed>
struct Exported {
  Managed managed{};
  DeviceView view;
};

template <class Managed>
void release(Managed* managed) {
  delete static_cast<Exported<Managed>*>(managed->context);
}

// By who took the tensor: kernels of theirs may still read memory that heed would use again.
template <class Managed>
void release_after_use(Managed* managed) {
  try {
    wait_for_all_streams();
  } catch (const Error&) {
    // The GPU computes no more.
  }
  release(managed);
}

// Of a capsule that nobody took.
template <class Managed>
void release_capsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, dlpack::name<Managed>) == 0) return;
  release(static_cast<Managed*>(PyCapsule_GetPointer(capsule, dlpack::name<Managed>)));
}

template <class Managed>
py::object capsule_of(const DeviceMemory& memory) {
  auto exported = std::make_unique<Exported<Managed>>();
  exported->view = memory.view();
  DeviceView& view = exported->view;
  const bool is_empty = std::ranges::find(view.shape, 0) != view.shape.end();
  Managed& managed = exported->managed;
  managed.context = exported.get();
  managed.deleter = &release_after_use<Managed>;
  managed.tensor = {.data = is_empty ? nullptr : const_cast<float*>(view.data),
                    .device = {dlpack::cuda, cuda_device().value()},
                    .rank = static_cast<std::int32_t>(view.shape.size()),
                    .type = {dlpack::floating_point, 32, 1},
                    .shape = view.shape.data(),
                    .strides = view.strides.data(),
                    .byte_offset = 0};
  if constexpr (std::is_same_v<Managed, dlpack::VersionedTensor>) {
    managed.version = {1, 0};
    managed.flags = memory.is_copied() ? dlpack::is_copied : dlpack::read_only;
  }
  auto capsule = py::reinterpret_steal<py::object>(
      PyCapsule_New(&managed, dlpack::name<Managed>, &release_capsule<Managed>));
  if (!capsule) throw py::error_already_set();
  static_cast<void>(exported.release());
  return capsule;
}

// What NumPy calls a type; of bfloat16, which it does not have, the bits.
std::string type_name(const dlpack::DataType& type, const std::string& what) {
  const int bits = type.bits;
  const bool is_whole = bits == 8 || bits == 16 || bits == 32 || bits == 64;
  if (type.lanes == 1 && is_whole) {
    switch (type.code) {
      case dlpack::signed_integer: return "int" + std::to_string(bits);
      case dlpack::unsigned_integer: return "uint" + std::to_string(bits);
      case dlpack::floating_point:
        if (bits >= 16) return "float" + std::to_string(bits);
        break;
      case dlpack::bfloat:
        if (bits == 16) return "uint16";
        break;
      case dlpack::boolean:
        if (bits == 8) return "bool";
        break;
      default: break;
    }
  }
  throw Error(ErrorCode::invalid_argument,
              what + " have DLPack's type code " + std::to_string(type.code) + " of " +
                  std::to_string(bits) + " bits and " + std::to_string(type.lanes) +
                  " lanes, expected floats, bfloat16, integers or booleans");
}

void require_opened(const dlpack::Device& device, const std::string& what) {
  const std::optional<int> opened = cuda_device();
  if (device.kind == dlpack::cuda && opened == device.index) return;
  throw Error(ErrorCode::invalid_argument,
              what + " are on DLPack's device (" + std::to_string(device.kind) + ", " +
                  std::to_string(device.index) + "), expected " +
                  (opened ? "(2, " + std::to_string(*opened) + ")" : "the CPU"));
}

// bfloat16 is the upper half of a float.
py::array floats_of(const py::array& halves) {
  py::array_t<float> all(std::vector<py::ssize_t>(halves.shape(), halves.shape() + halves.ndim()));
  const auto* const from = static_cast<const std::uint16_t*>(halves.data());
  std::transform(from, from + halves.size(), all.mutable_data(), [](std::uint16_t bits) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  });
  return all;
}

py::array copy_of(const dlpack::Tensor& tensor, const std::string& what) {
  require_opened(tensor.device, what);
  ForeignArray array{
      .data = static_cast<const std::byte*>(tensor.data) + tensor.byte_offset,
      .element_bytes = tensor.type.bits / 8,
      .shape = {tensor.shape, tensor.shape + tensor.rank},
      .strides = std::vector<std::int64_t>(static_cast<std::size_t>(tensor.rank), 1)};
  if (tensor.strides != nullptr) {
    std::copy_n(tensor.strides, tensor.rank, array.strides.begin());
  } else {
    for (std::size_t i = array.shape.size(); i-- > 1;) {
      array.strides[i - 1] = array.strides[i] * array.shape[i];
    }
  }
  py::array copy(py::dtype(type_name(tensor.type, what)),
                 std::vector<py::ssize_t>(array.shape.begin(), array.shape.end()));
  void* const to = copy.mutable_data();
  unlocked([&] { copy_here(array, to); });
  return tensor.type.code == dlpack::bfloat ? floats_of(copy) : copy;
}

// Takes the capsule, and gives its memory back at once.
template <class Managed>
py::array taken(const py::object& capsule, const std::string& what) {
  auto* const managed =
      static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), dlpack::name<Managed>));
  if constexpr (std::is_same_v<Managed, dlpack::VersionedTensor>) {
    if (managed->version.major != 1) {
      throw Error(ErrorCode::unsupported, what + " come by version " +
                                              std::to_string(managed->version.major) +
                                              " of DLPack, expected 1");
    }
  }
  py::array copy = copy_of(managed->tensor, what);
  if (PyCapsule_SetName(capsule.ptr(), dlpack::used_name<Managed>) != 0) {
    throw py::error_already_set();
  }
  if (managed->deleter != nullptr) managed->deleter(managed);
  return copy;
}

// A NumPy array of what a producer's capsule holds.
py::array copy_from_device(const py::object& capsule, const std::string& what) {
  if (PyCapsule_IsValid(capsule.ptr(), dlpack::name<dlpack::VersionedTensor>) != 0) {
    return taken<dlpack::VersionedTensor>(capsule, what);
  }
  if (PyCapsule_IsValid(capsule.ptr(), dlpack::name<dlpack::ManagedTensor>) != 0) {
    return taken<dlpack::ManagedTensor>(capsule, what);
  }
  throw Error(ErrorCode::invalid_argument,
              what + " came as no capsule of DLPack, or as one that was taken before");
}

}  // namespace

void bind_device(py::module_& module) {
  py::class_<DeviceMemory>(module, "DeviceMemory")
      .def_property_readonly("shape",
                             [](const DeviceMemory& memory) { return memory.view().shape; })
      .def_property_readonly("strides",
                             [](const DeviceMemory& memory) { return memory.view().strides; })
      .def_property_readonly("is_copied", &DeviceMemory::is_copied)
      // By CUDA's number.
      .def_property_readonly("device", [](const DeviceMemory&) { return cuda_device().value(); })
      .def("at", &DeviceMemory::at)
      .def("here",
           [](const DeviceMemory& memory) {
             return array_of(unlocked([&] { return copied_here(memory.view()); }));
           })
      .def("copied",
           [](const DeviceMemory& memory) {
             return DeviceMemory(unlocked([&] { return copied_on_device(memory.view()); }),
                                 DeviceMemory::Kind::copied);
           })
      .def("capsule", &capsule_of<dlpack::ManagedTensor>)
      .def("versioned_capsule", &capsule_of<dlpack::VersionedTensor>);
  module.def("activation_on_device", [](const Recorded& recorded, const std::string& name) {
    return DeviceMemory(unlocked([&] { return on_device(recorded.activations(), name); }));
  });
  module.def("weight_on_device", [](const ModelHandle& handle, const std::string& name) {
    const auto model = handle.get();
    DeviceView view = weight_on_device(*model, name);
    view.owner = model;
    return DeviceMemory(std::move(view));
  });
  module.def("cuda_device", &cuda_device);
  module.def("device_bytes_in_use", &device_bytes_in_use);
  module.def("wait_for_device", [] { unlocked([] { wait_for_device(); }); });
  module.def("copy_from_device", &copy_from_device);
}

}  // namespace heed::python
