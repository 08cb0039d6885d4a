// Arrays on the GPU, of the public facade.
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/error.h"
#include "engine/activations.h"
#include "engine/facade.h"
#include "heed/device.h"
#include "kernels/elements.h"
#include "kernels/sharing.h"

namespace heed {
namespace {

DeviceView device_view(View<const float> values, std::shared_ptr<const void> owner) {
  return {.data = values.data(),
          .shape = {values.shape().begin(), values.shape().end()},
          .strides = {values.strides().begin(), values.strides().begin() + values.rank()},
          .owner = std::move(owner)};
}

DeviceView device_view(Tensor<float> values) {
  const auto owner = std::make_shared<const Tensor<float>>(std::move(values));
  return device_view(owner->view(), owner);
}

Shape shape_of(const std::vector<std::int64_t>& extents) {
  return {extents.data(), static_cast<int>(extents.size())};
}

View<const float> view_of(const DeviceView& view) {
  View<const float>::Strides strides{};
  std::ranges::copy(view.strides, strides.begin());
  return {view.data, shape_of(view.shape), strides};
}

DeviceView copied_there(View<const float> values, Device device) {
  Tensor<float> there(values.shape(), device);
  kernels::copy(values, there);
  return device_view(std::move(there));
}

}  // namespace

std::optional<int> cuda_device() {
  const Device device = opened_device();
  return device.is_cpu() ? std::nullopt : std::optional(device.index);
}

std::int64_t device_bytes_in_use() { return static_cast<std::int64_t>(device_memory().used); }

void wait_for_device() { synchronize_accelerator(); }

void wait_for_all_streams() { kernels::wait_for_all_streams(); }

DeviceView on_device(const Activations& found, std::string_view name) {
  const std::shared_ptr<const ActivationsAccess::Parts> parts = ActivationsAccess::owner(found);
  const Device device = parts->device;
  require(!device.is_cpu(), ErrorCode::invalid_argument,
          "the model of this pass is on the processor, and so is '{}': a model that is loaded with "
          "device=\"cuda\" computes on a GPU",
          name);
  if (const auto kept = parts->kept.find(name); kept != parts->kept.end()) {
    return copied_there({kept->second.data(), shape_of(kept->second.shape())}, device);
  }
  const Point point = parts->point(name);
  if (is_plane(point.kind)) {
    const std::vector<std::int64_t> extents = found.shape(name);
    return device_view(
        parts->tiles(point, {.query_end = extents[2], .key_end = extents[3]}, device));
  }
  if (!parts->pass) return copied_there(parts->values(point), device);
  if (point.kind == PointKind::logits) return device_view(parts->pass->logits(device));
  const View<const float> stored = parts->pass->stored(point, RecordedPass::Place::of_pass);
  if (!stored.present()) return copied_there(parts->values(point), device);
  if (parts->rows_of(point).is_ragged()) {
    Tensor<float> texts = padded(parts->rows_of(point), stored);
    if (texts.device() == device) return device_view(std::move(texts));
    return copied_there(texts, device);
  }
  if (stored.device() != device) return copied_there(stored, device);
  return device_view(stored, parts);
}

Array copied_here(const DeviceView& view) {
  Tensor<float> here(shape_of(view.shape));
  kernels::copy(view_of(view), here);
  return make_array(std::move(here));
}

DeviceView copied_on_device(const DeviceView& view) {
  return copied_there(view_of(view), opened_device());
}

void copy_here(const ForeignArray& array, void* to) {
  const Device device = opened_device();
  require(!device.is_cpu(), ErrorCode::invalid_argument,
          "memory of a GPU, where no model was loaded on one");
  constexpr std::size_t max_rank = Shape::max_rank - 1;  // and the bytes of an element
  require(array.shape.size() <= max_rank && array.strides.size() == array.shape.size(),
          ErrorCode::invalid_argument,
          "an array of the shape ({}) and {} strides: expected at most {} dimensions",
          fmt::join(array.shape, ", "), array.strides.size(), max_rank);
  std::vector<std::int64_t> extents = array.shape;
  extents.push_back(array.element_bytes);
  View<const std::byte>::Strides strides{};
  for (std::size_t i = 0; i < array.strides.size(); ++i) {
    strides[i] = array.strides[i] * array.element_bytes;
  }
  strides[array.strides.size()] = 1;
  Tensor<std::byte> copied(shape_of(extents), device);
  if (copied.size() == 0) return;
  wait_for_all_streams();
  kernels::copy_shared({static_cast<const std::byte*>(array.data), copied.shape(), strides},
                       copied);
  copy_bytes(to, copied.data(), static_cast<std::size_t>(copied.size()));
}

}  // namespace heed
