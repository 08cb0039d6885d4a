// The extension heed._heed: heed's public interface for the classes of python/heed.
#include <pthread.h>

#include "bindings.h"
#include "heed/version.h"

PYBIND11_MODULE(_heed, module) {
  using namespace heed::python;
  module.doc() = "heed's public interface; use the package heed.";
  module.attr("__version__") = heed::version;
  ::pthread_atfork(nullptr, nullptr, &forget_other_threads);
  bind_errors(module);
  bind_model(module);
  bind_activations(module);
  bind_device(module);
  bind_explanations(module);
  bind_features(module);
  bind_graphs(module);
  bind_training(module);
}
