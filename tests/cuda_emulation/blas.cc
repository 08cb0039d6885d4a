// Matrix products of cuBLASLt. Sums are in f32 in the order of the summed index.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

#include "cublasLt.h"
#include "cuda_bf16.h"
#include "internal.h"

namespace heed::emulation {
namespace {

struct Layout {
  cudaDataType type;
  std::uint64_t rows, columns;
  std::int64_t leading_dimension;
  std::int64_t batch_stride;  // in elements
  std::int32_t batches;
  std::int32_t order;
};

struct Description {
  cublasComputeType_t compute_type;
  cudaDataType scale_type;
  std::int32_t pointer_mode;
  std::int32_t transpose_a, transpose_b;  // cublasOperation_t
  std::uint32_t epilogue;
  const void* bias;
  std::int64_t bias_stride;
  std::int32_t bias_type;  // cudaDataType, or −1: that of d
};

struct Preference {
  std::uint64_t max_workspace;
};

// The opaque types hold these from their first byte on.
template <class T, class Opaque>
T& inside(Opaque* opaque) {
  static_assert(sizeof(T) <= sizeof(Opaque));
  return *reinterpret_cast<T*>(opaque);
}

template <class Opaque, class T>
cublasStatus_t create(Opaque** opaque, const T& value) {
  if (opaque == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *opaque = new Opaque{};
  ::new (static_cast<void*>(*opaque)) T(value);
  return CUBLAS_STATUS_SUCCESS;
}

// Sets a member to the attribute's value, which must be of the member's size.
template <class T>
cublasStatus_t assign(T& member, const void* value, std::size_t size) {
  if (value == nullptr || size != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&member, value, size);
  return CUBLAS_STATUS_SUCCESS;
}

bool is_float(cudaDataType type) { return type == CUDA_R_32F || type == CUDA_R_16BF; }
std::size_t size_of(cudaDataType type) { return type == CUDA_R_16BF ? 2 : 4; }

float load(const void* data, cudaDataType type, std::int64_t i) {
  if (type == CUDA_R_32F) return static_cast<const float*>(data)[i];
  return bf16_value(static_cast<const unsigned short*>(data)[i]);
}
void store(void* data, cudaDataType type, std::int64_t i, float value) {
  if (type == CUDA_R_32F) {
    static_cast<float*>(data)[i] = value;
  } else {
    static_cast<unsigned short*>(data)[i] = bf16_bits(value);
  }
}

// To TF32: 10 bits of mantissa, to nearest, and away from zero in between, as cvt.rna.tf32.f32.
float rounded_to_tf32(float value) {
  if (!std::isfinite(value)) return value;
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  bits = (bits + 0x1000U) & ~0x1fffU;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// A matrix of one batch, as if it were column-major and not transposed.
struct Matrix {
  const void* data;
  cudaDataType type;
  std::int64_t row_step, column_step;
  bool rounds_to_tf32 = false;

  float operator()(std::int64_t row, std::int64_t column) const {
    const float value = load(data, type, row * row_step + column * column_step);
    return rounds_to_tf32 ? rounded_to_tf32(value) : value;
  }
};

Matrix batch_of(const void* data, const Layout& layout, std::int64_t batch, bool transposed) {
  const auto* begin = static_cast<const std::byte*>(data) +
                      static_cast<std::size_t>(batch * layout.batch_stride) * size_of(layout.type);
  const std::int64_t step = layout.leading_dimension;
  return transposed ? Matrix{begin, layout.type, step, 1} : Matrix{begin, layout.type, 1, step};
}

// The product of a block of rows and of columns, whose sizes are constants so that compilers use
// vector instructions.
constexpr std::int64_t block_rows = 16;
constexpr std::int64_t block_columns = 4;

// Copies `count` rows (or, of the transposed, columns) from `first` on as [summed index][block],
// with zeros after the last one.
template <std::int64_t block, class Element>
void pack(std::int64_t first, std::int64_t count, std::int64_t depth, std::vector<float>& packed,
          const Element& element) {
  packed.assign(static_cast<std::size_t>(depth * block), 0.0F);
  const std::int64_t rows = std::min(block, count - first);
  for (std::int64_t k = 0; k < depth; ++k) {
    for (std::int64_t i = 0; i < rows; ++i) {
      packed[static_cast<std::size_t>(k * block + i)] = element(first + i, k);
    }
  }
}

void multiply_block(const float* a, const float* b, std::int64_t depth,
                    float (&sums)[block_columns][block_rows]) {
  for (auto& column : sums) {
    for (float& sum : column) sum = 0.0F;
  }
  for (std::int64_t k = 0; k < depth; ++k, a += block_rows, b += block_columns) {
    for (std::int64_t j = 0; j < block_columns; ++j) {
      for (std::int64_t i = 0; i < block_rows; ++i) sums[j][i] += a[i] * b[j];
    }
  }
}

float activate(std::uint32_t epilogue, float x) {
  if ((epilogue & CUBLASLT_EPILOGUE_RELU) != 0) return std::fmax(x, 0.0F);
  if ((epilogue & CUBLASLT_EPILOGUE_GELU) != 0) {
    return 0.5F * x * (1.0F + std::tanh(0.797884561F * (x + 0.044715F * x * x * x)));
  }
  return x;
}

// One call of cublasLtMatmul, whose descriptions may be destroyed before it runs.
struct Product {
  Description description;
  float alpha, beta;
  const void *a, *b, *c;
  void* d;
  Layout a_layout, b_layout, c_layout, d_layout;

  bool transposes_a() const { return description.transpose_a != CUBLAS_OP_N; }
  bool transposes_b() const { return description.transpose_b != CUBLAS_OP_N; }
  bool rounds_to_tf32() const {
    return description.compute_type == CUBLAS_COMPUTE_32F_FAST_TF32 && a_layout.type == CUDA_R_32F;
  }
  bool adds_bias() const { return (description.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0; }

  std::uint64_t depth() const { return transposes_a() ? a_layout.rows : a_layout.columns; }

  cublasStatus_t check() const {
    const Layout* const layouts[] = {&a_layout, &b_layout, &c_layout, &d_layout};
    for (const Layout* layout : layouts) {
      if (!is_float(layout->type) || layout->order != CUBLASLT_ORDER_COL) {
        return CUBLAS_STATUS_NOT_SUPPORTED;
      }
      if (layout->leading_dimension < static_cast<std::int64_t>(layout->rows) ||
          layout->batches != d_layout.batches) {
        return CUBLAS_STATUS_INVALID_VALUE;
      }
    }
    const auto compute = description.compute_type;
    const bool is_f32 = compute == CUBLAS_COMPUTE_32F || compute == CUBLAS_COMPUTE_32F_PEDANTIC ||
                        compute == CUBLAS_COMPUTE_32F_FAST_TF32;
    constexpr std::uint32_t epilogues =
        CUBLASLT_EPILOGUE_DEFAULT | CUBLASLT_EPILOGUE_RELU_BIAS | CUBLASLT_EPILOGUE_GELU_BIAS;
    // cuBLASLt has no product of f32 whose result is bf16, nor one of two types.
    if (!is_f32 || description.scale_type != CUDA_R_32F ||
        description.pointer_mode != CUBLASLT_POINTER_MODE_HOST ||
        (description.epilogue & ~epilogues) != 0 || a_layout.type != b_layout.type ||
        c_layout.type != d_layout.type ||
        (a_layout.type == CUDA_R_32F && d_layout.type != CUDA_R_32F)) {
      return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    const std::uint64_t a_rows = transposes_a() ? a_layout.columns : a_layout.rows;
    const std::uint64_t b_rows = transposes_b() ? b_layout.columns : b_layout.rows;
    const std::uint64_t b_columns = transposes_b() ? b_layout.rows : b_layout.columns;
    if (a_rows != d_layout.rows || b_columns != d_layout.columns || b_rows != depth() ||
        c_layout.rows != d_layout.rows || c_layout.columns != d_layout.columns) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    return CUBLAS_STATUS_SUCCESS;
  }

  // Whether all that it reads and writes is memory of a device.
  bool is_on_device() const {
    const auto on_device = [](const void* data, const Layout& layout) {
      if (layout.rows == 0 || layout.columns == 0) return true;
      const auto columns = static_cast<std::int64_t>(layout.columns);
      const std::int64_t elements = (layout.batches - 1) * layout.batch_stride +
                                    (columns - 1) * layout.leading_dimension +
                                    static_cast<std::int64_t>(layout.rows);
      const std::size_t bytes = static_cast<std::size_t>(elements) * size_of(layout.type);
      return place_of(data, bytes) == Place::device;
    };
    return on_device(a, a_layout) && on_device(b, b_layout) && on_device(d, d_layout) &&
           (beta == 0.0F || on_device(c, c_layout)) &&
           (!adds_bias() || place_of(description.bias, 1) == Place::device);
  }

  void run() const {
    for (std::int32_t batch = 0; batch < d_layout.batches; ++batch) run(batch);
  }

  void run(std::int64_t batch) const {
    Matrix a_of = batch_of(a, a_layout, batch, transposes_a());
    Matrix b_of = batch_of(b, b_layout, batch, transposes_b());
    a_of.rounds_to_tf32 = b_of.rounds_to_tf32 = rounds_to_tf32();
    const auto rows = static_cast<std::int64_t>(d_layout.rows);
    const auto columns = static_cast<std::int64_t>(d_layout.columns);
    const auto k_count = static_cast<std::int64_t>(depth());
    std::vector<std::vector<float>> packed_b(
        static_cast<std::size_t>((columns + block_columns - 1) / block_columns));
    for (std::int64_t j = 0; j < columns; j += block_columns) {
      pack<block_columns>(j, columns, k_count,
                          packed_b[static_cast<std::size_t>(j / block_columns)],
                          [&](std::int64_t column, std::int64_t k) { return b_of(k, column); });
    }
    std::vector<float> packed_a;
    float sums[block_columns][block_rows];
    for (std::int64_t i = 0; i < rows; i += block_rows) {
      pack<block_rows>(i, rows, k_count, packed_a, a_of);
      for (std::int64_t j = 0; j < columns; j += block_columns) {
        multiply_block(packed_a.data(),
                       packed_b[static_cast<std::size_t>(j / block_columns)].data(), k_count, sums);
        finish_block(batch, i, j, sums);
      }
    }
  }

  void finish_block(std::int64_t batch, std::int64_t first_row, std::int64_t first_column,
                    const float (&sums)[block_columns][block_rows]) const {
    const auto bias_type = description.bias_type < 0
                               ? d_layout.type
                               : static_cast<cudaDataType>(description.bias_type);
    const Matrix c_of = batch_of(c, c_layout, batch, false);
    const auto rows = std::min(block_rows, static_cast<std::int64_t>(d_layout.rows) - first_row);
    const auto columns =
        std::min(block_columns, static_cast<std::int64_t>(d_layout.columns) - first_column);
    for (std::int64_t j = 0; j < columns; ++j) {
      for (std::int64_t i = 0; i < rows; ++i) {
        const std::int64_t row = first_row + i, column = first_column + j;
        float value = alpha * sums[j][i];
        if (beta != 0.0F) value += beta * c_of(row, column);
        if (adds_bias()) {
          value += load(description.bias, bias_type, batch * description.bias_stride + row);
        }
        store(d, d_layout.type,
              batch * d_layout.batch_stride + column * d_layout.leading_dimension + row,
              activate(description.epilogue, value));
      }
    }
  }
};

const char* status_name(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
    default: return "CUBLAS_STATUS_INTERNAL_ERROR";
  }
}

}  // namespace

}  // namespace heed::emulation

using namespace heed::emulation;

struct cublasLtContext {};

std::size_t cublasLtGetVersion() { return 120000; }
const char* cublasLtGetStatusName(cublasStatus_t status) { return status_name(status); }
const char* cublasLtGetStatusString(cublasStatus_t status) { return status_name(status); }
const char* cublasGetStatusName(cublasStatus_t status) { return status_name(status); }
const char* cublasGetStatusString(cublasStatus_t status) { return status_name(status); }

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *handle = new cublasLtContext;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* description,
                                        cublasComputeType_t compute_type,
                                        cudaDataType_t scale_type) {
  return create(description,
                Description{compute_type, scale_type, CUBLASLT_POINTER_MODE_HOST, CUBLAS_OP_N,
                            CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT, nullptr, 0, -1});
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) {
  delete description;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t opaque,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t size) {
  if (opaque == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  auto& description = inside<Description>(opaque);
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_COMPUTE_TYPE: return assign(description.compute_type, value, size);
    case CUBLASLT_MATMUL_DESC_SCALE_TYPE: return assign(description.scale_type, value, size);
    case CUBLASLT_MATMUL_DESC_POINTER_MODE: return assign(description.pointer_mode, value, size);
    case CUBLASLT_MATMUL_DESC_TRANSA: return assign(description.transpose_a, value, size);
    case CUBLASLT_MATMUL_DESC_TRANSB: return assign(description.transpose_b, value, size);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return assign(description.epilogue, value, size);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return assign(description.bias, value, size);
    case CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE:
      return assign(description.bias_stride, value, size);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE: return assign(description.bias_type, value, size);
  }
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          std::uint64_t rows, std::uint64_t columns,
                                          std::int64_t leading_dimension) {
  return create(layout, Layout{type, rows, columns, leading_dimension, 0, 1, CUBLASLT_ORDER_COL});
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t opaque,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void* value, std::size_t size) {
  if (opaque == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  auto& layout = inside<Layout>(opaque);
  switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_TYPE: return assign(layout.type, value, size);
    case CUBLASLT_MATRIX_LAYOUT_ORDER: return assign(layout.order, value, size);
    case CUBLASLT_MATRIX_LAYOUT_ROWS: return assign(layout.rows, value, size);
    case CUBLASLT_MATRIX_LAYOUT_COLS: return assign(layout.columns, value, size);
    case CUBLASLT_MATRIX_LAYOUT_LD: return assign(layout.leading_dimension, value, size);
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT: return assign(layout.batches, value, size);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
      return assign(layout.batch_stride, value, size);
  }
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return create(preference, Preference{0});
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}

// No preference changes anything: there is one algorithm, without a workspace.
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, std::size_t size) {
  if (preference == nullptr || value == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (attribute != CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) return CUBLAS_STATUS_SUCCESS;
  return assign(inside<Preference>(preference).max_workspace, value, size);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle,
                                              cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int* returned) {
  if (handle == nullptr || preference == nullptr || requested < 1 || results == nullptr ||
      returned == nullptr || description == nullptr || a == nullptr || b == nullptr ||
      c == nullptr || d == nullptr) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  *returned = 0;
  const Product product{inside<Description>(description),
                        1,
                        0,
                        nullptr,
                        nullptr,
                        nullptr,
                        nullptr,
                        inside<Layout>(a),
                        inside<Layout>(b),
                        inside<Layout>(c),
                        inside<Layout>(d)};
  if (const cublasStatus_t status = product.check(); status != CUBLAS_STATUS_SUCCESS) return status;
  results[0] = {};
  results[0].state = CUBLAS_STATUS_SUCCESS;
  results[0].wavesCount = 1.0F;
  *returned = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t description,
                              const void* alpha, const void* a, cublasLtMatrixLayout_t a_layout,
                              const void* b, cublasLtMatrixLayout_t b_layout, const void* beta,
                              const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t*, void*,
                              std::size_t, cudaStream_t stream) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (description == nullptr || alpha == nullptr || beta == nullptr || a_layout == nullptr ||
      b_layout == nullptr || c_layout == nullptr || d_layout == nullptr) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const Product product{inside<Description>(description),
                        *static_cast<const float*>(alpha),
                        *static_cast<const float*>(beta),
                        a,
                        b,
                        c,
                        d,
                        inside<Layout>(a_layout),
                        inside<Layout>(b_layout),
                        inside<Layout>(c_layout),
                        inside<Layout>(d_layout)};
  if (const cublasStatus_t status = product.check(); status != CUBLAS_STATUS_SUCCESS) return status;
  if (!product.is_on_device()) return CUBLAS_STATUS_INVALID_VALUE;
  const cudaError_t error = enqueue(stream, [product, device = current_device()] {
    const MemoryAccess access(device);
    product.run();
  });
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
