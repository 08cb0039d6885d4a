#!/usr/bin/env bash
# The tests that an emulated device runs, on a GPU: on_a_gpu.sh BUILD. HEED_CUDA_LIBRARY names the library.
# What compares bits with the reference is left out: a GPU's exp() is not the processor's.
set -euo pipefail
bin=$1/bin
HEED_TEST_DEVICE=cuda "$bin/kernels_tests" --gtest_brief=1 \
  --gtest_filter='-*Product*:MachinePeak*:*InstructionSet*:SoftmaxRows.*'
HEED_TEST_DEVICE=cuda "$bin/formats_tests" --gtest_brief=1 --gtest_filter='*Family*/*:*Pair*/*:-*IsReadAsItWasWritten*'
HEED_TEST_DEVICE=cuda "$bin/model_tests" --gtest_brief=1 --gtest_filter='*AgainstPyTorch*:*LossCurve*'
"$bin/device_tests" --gtest_brief=1
if command -v compute-sanitizer >/dev/null; then
  for tool in memcheck racecheck; do
    compute-sanitizer --tool "$tool" --error-exitcode 1 "$bin/device_tests" --gtest_brief=1 \
      --gtest_filter='Device.CopiesOfAnyViewsAreExact:PlacedModels.AStepOfTrainingIsTheProcessors'
  done
else
  echo 'not run: compute-sanitizer, which comes with CUDA'
fi
