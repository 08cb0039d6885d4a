// Memory of a device, copies, and what is said where there is none. The device is emulated unless
// HEED_CUDA_LIBRARY names another library.
#include "tensor/device.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/expect_error.h"
#include "cli/run_heed.h"
#include "heed/heed.h"
#include "kernels/elements.h"
#include "kernels/kernels.h"
#include "tensor/tensor.h"

namespace heed {
namespace {

using testing::expect_error;

TEST(Device, NamesThatAreNoneAreRefused) {
  for (const char* name : {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda1", "CUDA"}) {
    expect_error(
        ErrorCode::invalid_argument, [&] { open_device(name); }, "expected cpu, cuda");
  }
  EXPECT_EQ(device_name(open_device("cpu")), "cpu");
}

TEST(Device, TensorsLieWhereTheyWereMade) {
  const Device device = open_device("cuda");
  EXPECT_EQ(device_name(device), "cuda:0");
  const Tensor<float> here(Shape{3, 4}), there(Shape{3, 4}, device);
  EXPECT_TRUE(here.device().is_cpu());
  EXPECT_EQ(there.device(), device);
  EXPECT_EQ(there.view().slice(0, 1, 3).device(), device);
  EXPECT_FALSE(device_description(device).empty());
  expect_error(
      ErrorCode::unsupported, [] { open_device("cuda:1"); }, "this process computes on cuda:0");
}

// New memory is zero, and copies between any views of any places are exact.
TEST(Device, CopiesOfAnyViewsAreExact) {
  const Device device = open_device("cuda");
  Tensor<float> numbers(Shape{5, 7});
  for (std::int64_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i) + 0.25F;
  Tensor<float> there(Shape{7, 5}, device), back(Shape{7, 5}), zeros(Shape{7, 5});
  kernels::copy(there, back);
  EXPECT_TRUE(kernels::equal_bits(back, zeros));

  const View<const float> turned(numbers.data(), {7, 5}, {1, 7});  // rows are columns
  kernels::copy(turned, there);
  kernels::copy(there, back);
  EXPECT_TRUE(kernels::equal_bits(back, turned));

  const View<float> columns = there.view().slice(1, 1, 4);
  Tensor<float> part(Shape{7, 3});
  kernels::copy(columns, part);
  EXPECT_TRUE(kernels::equal_bits(part, turned.slice(1, 1, 4)));
  kernels::fill(columns, 2.0F);
  kernels::copy(there, back);
  for (std::int64_t row = 0; row < 7; ++row) {
    EXPECT_EQ(back.view()(row, 0), turned(row, 0));
    EXPECT_EQ(back.view()(row, 2), 2.0F);
    EXPECT_EQ(back.view()(row, 4), turned(row, 4));
  }
}

// A kernel takes operands of both places, and leaves its result where it is wanted.
TEST(Device, OperandsMayLieInSeveralPlaces) {
  const Device device = open_device("cuda");
  Tensor<float> x(Shape{4}), y(Shape{4}, device), sum(Shape{4});
  for (std::int64_t i = 0; i < 4; ++i) x[i] = static_cast<float>(i);
  kernels::fill(y, 10.0F);
  kernels::add(x, y, sum);
  for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(sum[i], 10.0F + static_cast<float>(i));
  kernels::accumulate(x, y, 2.0F);
  EXPECT_EQ(kernels::sum(y), 40.0 + 2 * 6.0);
}

TEST(Device, MemoryThatThereIsNotIsRefused) {
  const Device device = open_device("cuda");
  const std::size_t used = device_memory().used;
  expect_error(
      ErrorCode::out_of_memory, [&] { Tensor<float>(Shape{std::int64_t{1} << 40}, device); },
      "on cuda:0");
  EXPECT_EQ(device_memory().used, used);
}

TEST(Device, AllMemoryOfAThousandLoadsComesBack) {
  open_device("cuda");
  const DeviceMemoryUse before = device_memory();
  ASSERT_EQ(before.used, 0U);
  for (int load = 0; load < 1000; ++load) {
    const Model model = Model::load("starter", {.device = "cuda"});
    if (load % 100 == 0) model.logits(model.encode("the wizard"));
    EXPECT_GT(device_memory().used, before.used);
  }
  EXPECT_EQ(device_memory().used, 0U);
  EXPECT_EQ(device_memory().mapped, 0U);
}

// What the program says without a library, with one of another version, and without a device. Each
// in a process of its own: a device stays open.
class WithoutDevice : public ::testing::Test {
 protected:
  static testing::Outcome predict(const std::string& library, const std::string& device) {
    return testing::run_heed("predict 'the wizard' --device " + device,
                             "HEED_CUDA_LIBRARY=" + library);
  }
};

TEST_F(WithoutDevice, TheMessageSaysWhatIsMissing) {
  const auto missing = predict("/nowhere/heed_cuda.so", "cuda");
  EXPECT_EQ(missing.status, 1);
  EXPECT_EQ(missing.out, "");
  EXPECT_NE(missing.err.find("cuda cannot be used: this heed has no heed_cuda.so"),
            std::string::npos)
      << missing.err;

  const auto other = predict(HEED_OTHER_CUDA_LIBRARY, "cuda");
  EXPECT_EQ(other.status, 1);
  EXPECT_NE(other.err.find("has version 999, and this heed expects"), std::string::npos)
      << other.err;

  const std::string library = std::getenv("HEED_CUDA_LIBRARY");
  const auto none = predict(library, "cuda:5");
  EXPECT_EQ(none.status, 1);
  EXPECT_NE(none.err.find("there is no device 5"), std::string::npos) << none.err;

  const auto wrong = predict(library, "gpu");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_NE(wrong.err.find("expected cpu, cuda"), std::string::npos) << wrong.err;
}

TEST_F(WithoutDevice, AutoComputesOnTheProcessorAndSaysSo) {
  const auto found = predict("/nowhere/heed_cuda.so", "auto");
  EXPECT_EQ(found.status, 0);
  EXPECT_NE(found.err.find("computing on cpu"), std::string::npos) << found.err;
  const auto plain = testing::run_heed("predict 'the wizard'");
  EXPECT_EQ(found.out, plain.out);
  EXPECT_EQ(plain.err, "");
}

TEST_F(WithoutDevice, TheEnvironmentChoosesADevice) {
  const std::string library = std::getenv("HEED_CUDA_LIBRARY");
  const auto there =
      testing::run_heed("predict 'the wizard'", "HEED_DEVICE=cuda HEED_CUDA_LIBRARY=" + library);
  EXPECT_EQ(there.status, 0) << there.err;
  const auto bad = testing::run_heed("predict 'the wizard'", "HEED_DEVICE=gpu");
  EXPECT_NE(bad.status, 0);
  EXPECT_NE(bad.err.find("expected cpu, cuda"), std::string::npos) << bad.err;
}

// Benchmarks measure the device, and none of the processor's ceilings.
TEST(DeviceBenchmarks, AreReported) {
  const std::string library = std::getenv("HEED_CUDA_LIBRARY");
  for (const char* work : {"attention -c 16", "decode -n 2 --dtype int8", "train -c 8 --batch 1"}) {
    const auto found = testing::run_heed(std::string("bench ") + work +
                                             " --config shakespeare-char-cpu --repeats 1"
                                             " --device cuda",
                                         "HEED_CUDA_LIBRARY=" + library);
    EXPECT_EQ(found.status, 0) << work << found.err;
    EXPECT_NE(found.out.find("cuda:0 ("), std::string::npos) << found.out;
    EXPECT_EQ(found.out.find("of peak"), std::string::npos) << found.out;
  }
}

}  // namespace
}  // namespace heed
