// How a GPU multiplies matrices of f32.
#pragma once

#include <string_view>

namespace heed {

// tf32: tensor cores round what they multiply to TF32, 10 bits of mantissa beside the exponent of
// f32, and sum in f32. So are computed products of linear layers for sequences of more than 32
// positions and for training's losses, and all products of backward passes, except for layers in
// bf16. Products for fewer positions, attention and all else are in f32, and so is the processor.
enum class F32Products { f32, tf32 };

// Of this process: what was set last, or HEED_F32_PRODUCTS ("f32" or "tf32"), or f32. Must not be
// set while another thread computes. Throws Error{invalid_argument} where the variable holds
// another word.
void set_f32_products(F32Products products);
F32Products f32_products();

const char* f32_products_name(F32Products products) noexcept;  // "f32", "tf32"
// The products of this name. Throws Error{invalid_argument} for other names.
F32Products parse_f32_products(std::string_view name);

}  // namespace heed
