// A step of training takes no memory beside what the first one took: all is planned before.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "model/transformer.h"
#include "train/optimizer.h"

namespace {

std::atomic<std::int64_t> allocations{0};

void* counted(void* memory) {
  ++allocations;
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

// All that C++ allocates in this program, and the blocks of tensors.
void* operator new(std::size_t size) { return counted(std::malloc(size == 0 ? 1 : size)); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size == 0 ? 1 : size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  ++allocations;
  void* memory = nullptr;
  return ::posix_memalign(&memory, alignment, size) == 0 ? memory : nullptr;
}

namespace heed {
namespace {

struct StepCase {
  const char* name;
  kernels::Precision precision;
  Keep keep;
};

class StepMemory : public ::testing::TestWithParam<StepCase> {};

TEST_P(StepMemory, IsTakenByTheFirstStepAlone) {
  TrainSettings settings;
  settings.model = make_gpt_config(2, 2, 64, 32, 300);
  settings.model.residual_dropout = settings.model.attention_dropout = 0.1F;
  const std::int64_t batch = 3, positions = 32;
  Transformer transformer({.stacks = {settings.model}});
  transformer.parameters().initialize(1);
  transformer.parameters().set_precision(GetParam().precision);
  Optimizer optimizer(settings.model, settings);
  Gradients gradients({.stacks = {settings.model}});
  TrainingBuffers buffers(settings.model, batch, positions, GetParam().keep);
  const Tensor<std::int32_t> tokens(Shape{batch, positions}), targets(Shape{batch, positions});
  const auto step = [&](std::int64_t index) {
    gradients.clear();
    transformer.loss_and_gradients(
        tokens, targets,
        {.scale = 1.0F / (3 * 32), .dropout = {.active = true, .seed = 1, .pass = 1}}, buffers,
        gradients);
    optimizer.update(index, gradients, transformer.parameters());
  };
  step(0);
  const std::int64_t before = allocations;
  EXPECT_GT(before, 0);  // they are counted
  step(1);
  step(2);
  EXPECT_EQ(allocations - before, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Steps, StepMemory,
    ::testing::Values(StepCase{"f32", kernels::Precision::f32, Keep::every_block},
                      StepCase{"bf16", kernels::Precision::bf16, Keep::every_block},
                      StepCase{"recomputed", kernels::Precision::f32, Keep::residuals}),
    [](const auto& step) { return step.param.name; });

}  // namespace
}  // namespace heed
