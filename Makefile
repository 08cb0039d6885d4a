# Short names for the usual commands; CMake and CTest do the work.
jobs := $(shell nproc)
cmake_flags := $(if $(shell command -v ccache),-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
fuzz_seconds ?= 60

# All test programs run under the sanitizers, except the comparisons with other programs, which only repeat
# some of them. The quick ones are those of .ci/run: the folders that read what others wrote, and below.
quick_tests = base tensor kernels tokenizer chat checkpoint scoring download comm model formats generate
sanitized_tests ?= $(quick_tests) train microscope engine microworld server cli

# What runs under emulation, where tests take many times as long: what depends on the processor most.
# Tests of cli cannot: they start the program themselves.
emulated_tests ?= ^(base|tensor|kernels|tokenizer|checkpoint|model)$$

.PHONY: run test python-test test-aarch64 test-wasm install-wasm-deps page page-test static-page static-page-test static-page-check build bench test-cuda bench-cuda nightly \
  fuzz sanitize sanitize-quick \
  sanitize-threads format format-check lint layers package install-deps install-test-deps install-check-deps \
  install-page-deps install-aarch64-deps

run: install-deps
	cmake --preset release -DHEED_BUILD_TESTS=OFF $(cmake_flags)
	cmake --build --preset release --target heed -j $(jobs)
	build/release/bin/heed tour
	@if [ -t 1 ] || [ "$$HEED_SERVE" = 1 ]; then exec build/release/bin/heed explore; fi

build:
	cmake --preset release -DHEED_BUILD_TESTS=ON $(python_flags) $(cmake_flags)
	cmake --build --preset release -j $(jobs)

test: python_flags = -DHEED_PYTHON=ON
test: install-test-deps build
	ctest --test-dir build/release --output-on-failure -j2 --timeout 1200 --repeat after-timeout:2

# The Python module alone; `make test` runs these tests too.
python-test: install-test-deps
	cmake --preset release -DHEED_BUILD_TESTS=ON -DHEED_PYTHON=ON $(cmake_flags)
	cmake --build --preset release --target heed --target heed_python -j $(jobs)
	ctest --test-dir build/release --output-on-failure -R '^python'

# For 64-bit ARM: cross-built, tested under emulation, and compared with this machine's own build.
# Threads sleep while they wait, since emulated ones that spin stop the others.
test-aarch64: export OMP_WAIT_POLICY = passive
test-aarch64: install-deps install-aarch64-deps
	cmake --preset aarch64 $(cmake_flags)
	cmake --build --preset aarch64 -j $(jobs)
	ctest --test-dir build/aarch64 --output-on-failure --timeout 7200 -R '$(emulated_tests)'
	cmake --preset release -DHEED_BUILD_TESTS=OFF $(cmake_flags)
	cmake --build --preset release --target heed -j $(jobs)
	scripts/same_greedy_text.py build/release/bin/heed \
	  qemu-aarch64 -L build/aarch64-root build/aarch64/bin/heed

# Builds web/built, which is committed. Run it after every change in web/.
page: install-page-deps
	cd web && npm ci && npm run build

# The page as files for any web server, with the engine as WebAssembly: build/static-page (docs/static-page.md).
# Of two engines: one thread for all browsers, and threads for pages that are isolated from other origins.
engines = wasm wasm-threads
static-page: install-page-deps install-wasm-deps
	for engine in $(engines); do \
	  cmake --preset $$engine $(cmake_flags) && cmake --build --preset $$engine -j $(jobs) || exit 1; done
	cd web && npm ci && npm run build:static && node tools/static_page.mjs $(engines:%=--engine ../build/%/bin)

# The end-to-end tests on that page; its numbers are compared with the native program's.
static-page-test: install-test-deps static-page
	cmake --preset release -DHEED_BUILD_TESTS=OFF $(cmake_flags)
	cmake --build --preset release --target heed -j $(jobs)
	cd web && npm run e2e -- --static ../build/static-page

# The same page, with one engine, and a few of these tests.
static-page-check: engines = wasm
static-page-check: install-test-deps static-page
	cd web && npx vitest run src/static src/lib/load.test.ts
	cmake --preset release -DHEED_BUILD_TESTS=OFF $(cmake_flags)
	cmake --build --preset release --target heed -j $(jobs)
	cd web && npm run e2e -- --static ../build/static-page e2e/static.test.mjs e2e/static_training.test.mjs e2e/static_app.test.mjs e2e/follow.test.mjs

# Tests of the page alone, then end-to-end tests in a browser.
page-test: install-test-deps install-page-deps
	cd web && npm ci && npm test && npm run check && npm run check-built
	cmake --preset release -DHEED_BUILD_TESTS=OFF $(cmake_flags)
	cmake --build --preset release --target heed -j $(jobs)
	cd web && npm run e2e

# The engine as WebAssembly beside the native program: the same numbers.
test-wasm: install-wasm-deps
	cmake --preset release -DHEED_BUILD_TESTS=OFF $(cmake_flags)
	cmake --build --preset release --target heed -j $(jobs)
	for engine in $(engines); do \
	  cmake --preset $$engine $(cmake_flags) && cmake --build --preset $$engine -j $(jobs) || exit 1; done
	tests/wasm/unicode.sh
	tests/wasm/run.sh build/wasm/bin/heed.js build/release/bin/heed
	node tests/wasm/same_numbers.test.mjs build/wasm-threads/bin/heed.js build/release/bin/heed 3

# What .ci/run has no time for: run it by hand.
nightly:
	fuzz_seconds=$(fuzz_seconds) .ci/run sanitize fuzz lint sanitize-threads

# One build for the tests and the fuzzers, of what is asked for. Tests run side by side, with threads that sleep
# while they wait. The quarantine is small, since tests check that memory is given back.
# Without programs of several processes (Processes): the tests of train and model share the same code among threads.
sanitize: install-check-deps
	cmake --preset asan $(cmake_flags)
	cmake --build --preset asan -j $(jobs) --target $(addsuffix _tests,$(sanitized_tests))
	OMP_WAIT_POLICY=passive ASAN_OPTIONS=quarantine_size_mb=16 GTEST_FILTER='-Processes.*' \
	LSAN_OPTIONS=suppressions=$(CURDIR)/tests/known_leaks.txt:print_suppressions=0 \
	  ctest --test-dir build/asan --output-on-failure -j $(jobs) -R "^($$(echo $(sanitized_tests) | tr ' ' '|'))$$"

sanitize-quick: sanitized_tests = $(quick_tests)
sanitize-quick: sanitize

# Only the server creates threads. Left out is what asks no server, and takes minutes. Clang's OpenMP
# reports its barriers to ThreadSanitizer through Archer; GNU's does not, so every parallel loop would be
# reported as a race.
sanitize-threads: install-check-deps
	cmake --preset tsan $(cmake_flags)
	cmake --build --preset tsan --target server_tests -j $(jobs)
	OMP_TOOL_LIBRARIES="$$(dirname "$$(realpath "$$(ldd build/tsan/bin/server_tests | awk '/libomp/ {print $$3}')")")/libarcher.so" \
	  TSAN_OPTIONS="ignore_noninstrumented_modules=1 halt_on_error=0" \
	  build/tsan/bin/server_tests --gtest_filter='-StarterExamples.*:OpenApi.*'

bench: install-test-deps
	cmake --preset release -DHEED_BUILD_BENCHMARKS=ON $(cmake_flags)
	cmake --build --preset release -j $(jobs)
	for program in build/release/bin/*_benchmark; do "$$program" || exit 1; done

# With a GPU: the tests of make test that an emulated device runs, on it; and a part of them under compute-sanitizer.
cuda_library = build/release/bin/heed_cuda.so
test-cuda: export HEED_CUDA_LIBRARY = $(CURDIR)/$(cuda_library)
test-cuda: install-test-deps
	cmake --preset release -DHEED_CUDA=ON $(cmake_flags)
	cmake --build --preset release -j $(jobs) --target heed heed_cuda heed_cuda_other kernels_tests formats_tests model_tests device_tests
	tests/device/on_a_gpu.sh build/release

# What a GPU does with a model of GPT-2's size, beside PyTorch where that has CUDA.
bench-cuda: install-deps
	cmake --preset release -DHEED_CUDA=ON $(cmake_flags)
	cmake --build --preset release -j $(jobs) --target heed heed_cuda
	benchmarks/on_a_gpu.sh build/release/bin/heed

fuzz: install-check-deps
	cmake --preset asan $(cmake_flags)
	cmake --build --preset asan -j $(jobs) --target fuzzers
	ls build/asan/bin/*_fuzz | OMP_NUM_THREADS=1 xargs -P $(jobs) -I PROGRAM sh -c \
	  'echo PROGRAM && PROGRAM -max_total_time=$(fuzz_seconds) -timeout=10 -verbosity=0 \
	    -artifact_prefix=build/asan/'

sources = $(shell git ls-files '*.cc' '*.h' '*.cu')

format: install-check-deps
	clang-format -i $(sources)

format-check: install-check-deps
	clang-format --dry-run -Werror $(sources)

layers:
	/usr/bin/python3 scripts/check_layers.py
	/usr/bin/python3 scripts/check_booleans.py
	/usr/bin/python3 scripts/check_elements.py
	/usr/bin/python3 scripts/check_locale.py
	/usr/bin/python3 -m unittest discover -s tests/scripts -p '*_test.py'

# All of src/, as it is compiled, for one instruction set.
lint: install-check-deps format-check layers
	cmake --preset lint
	cmake --build --preset lint -j $(jobs) --target heed_precompiled --target heed_faces_precompiled \
	  --target heed_page --target heed_recorded_run
	run-clang-tidy -p build/lint -quiet -j $(jobs)

# A .deb and a tarball, in build/release/packages.
package: install-deps
	cmake --preset release -DHEED_BUILD_TESTS=OFF $(cmake_flags)
	cmake --build --preset release --target heed -j $(jobs)
	cpack --config build/release/CPackConfig.cmake

install-deps:
	scripts/install-deps.sh

install-test-deps:
	scripts/install-deps.sh --test

install-check-deps:
	scripts/install-deps.sh --check

install-page-deps:
	scripts/install-deps.sh --page

install-wasm-deps:
	scripts/install-deps.sh --wasm

install-aarch64-deps:
	scripts/install-deps.sh --aarch64
