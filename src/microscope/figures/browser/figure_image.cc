#include "base/error.h"
#include "microscope/figures/figure.h"

namespace heed {

std::string png_bytes(const Figure&) {
  fail(ErrorCode::unsupported, "heed in a browser draws no PNG: ask for SVG");
}

}  // namespace heed
