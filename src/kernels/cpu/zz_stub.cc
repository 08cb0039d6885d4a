#include "base/error.h"
#include "kernels/cpu/prepared_formats.h"

namespace heed::kernels {

PreparedFormat int8_format() { fail(ErrorCode::unsupported, "int8 weights are not built yet"); }
PreparedFormat int4_format() { fail(ErrorCode::unsupported, "int4 weights are not built yet"); }

}  // namespace heed::kernels
