#!/usr/bin/env bash
# Installs what heed is built with, on Debian and Ubuntu. Does nothing, offline, when all is there.
#
#   scripts/install-deps.sh           what the program needs
#   scripts/install-deps.sh --test    also what the tests need
#   scripts/install-deps.sh --python  what `pip install .` needs
#   scripts/install-deps.sh --check   also the linters, the sanitizers and the fuzzers
#   scripts/install-deps.sh --page    also what building and testing the page, web/, needs
#   scripts/install-deps.sh --wasm    what the engine as WebAssembly and its test need
#   scripts/install-deps.sh --aarch64 what a build for 64-bit ARM needs, to be tested under emulation: a
#                                     cross-compiler, an emulator, and libraries in build/aarch64-root (Debian)
set -euo pipefail

build=(build-essential g++ cmake ninja-build pkg-config git make
       libhwy-dev nlohmann-json3-dev libcli11-dev libspdlog-dev libfmt-dev
       libutf8proc-dev libboost-dev zlib1g-dev libeigen3-dev
       libcairo2-dev fonts-dejavu-core
       libcurl4-openssl-dev libssl-dev ca-certificates)
python=(python3 python3-dev python3-numpy python3-pip python3-setuptools python3-wheel pybind11-dev)
tests=(libgtest-dev libgmock-dev libbenchmark-dev libcpp-httplib-dev libboost-context-dev python3 python3-jinja2 python3-numpy
       python3-torch python3-sentencepiece mypy libopenmpi-dev openmpi-bin)
# Of the libraries, their headers; utf8proc itself is asked during the build.
wasm=(emscripten g++ cmake ninja-build make libhwy-dev nlohmann-json3-dev libfmt-dev libutf8proc-dev
      libboost-dev libeigen3-dev)
# To cross-build for 64-bit ARM. The libraries of that architecture are only unpacked.
cross=(g++-aarch64-linux-gnu cmake ninja-build pkg-config git make qemu-user)
cross_libraries=(libhwy-dev nlohmann-json3-dev libcli11-dev libspdlog-dev libfmt-dev
                 libutf8proc-dev libboost-dev zlib1g-dev libeigen3-dev
                 libcairo2-dev libcurl4-openssl-dev libssl-dev libgtest-dev libgmock-dev libcpp-httplib-dev libboost-context-dev)
# Clang's own OpenMP and sanitizer runtimes are packages apart.
analysis=(clang clang-format clang-tidy libomp-dev lld)

wanted=("${build[@]}")
case "${1:-}" in
  "") ;;
  --test)
    wanted+=("${tests[@]}" "${python[@]}")
    ;;
  --python)
    wanted+=("${python[@]}")
    ;;
  --check)
    wanted+=("${tests[@]}" "${python[@]}" "${analysis[@]}")
    ;;
  --page)
    # Those that are there will do, packaged or not.
    command -v node >/dev/null || wanted+=(nodejs)
    command -v npm >/dev/null || wanted+=(npm)
    # The page's tests drive a browser; its shell without windows takes half of the time. Ubuntu has none as a package: set
    # CHROMIUM to one there.
    if ! grep -q '^ID=ubuntu' /etc/os-release; then wanted+=(chromium-headless-shell); fi
    ;;
  --wasm)
    wanted=("${wasm[@]}")
    command -v node >/dev/null || wanted+=(nodejs)
    ;;
  --aarch64)
    wanted=("${cross[@]}")
    ;;
  *)
    echo "usage: $0 [--test | --python | --check | --page | --wasm | --aarch64]" >&2
    exit 2
    ;;
esac

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "This is not Debian or Ubuntu; install the equivalents of: ${wanted[*]}" >&2
  exit 1
fi

installed() {
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

missing_of() {
  local package
  for package in "$@"; do
    installed "$package" || echo "$package"
  done
}

apt() {
  if [ "$(id -u)" -eq 0 ]; then
    DEBIAN_FRONTEND=noninteractive apt-get -y -q "$@" </dev/null
  else
    sudo env DEBIAN_FRONTEND=noninteractive apt-get -y -q "$@" </dev/null
  fi
}

# Says what comes, and how large it is, before anything is installed.
install_all() {
  echo "heed needs $# packages that are not installed: $*"
  apt update
  LC_ALL=C apt-get install --assume-no --no-install-recommends "$@" 2>/dev/null |
    sed -n 's/^\(.*newly installed\).*/apt: \1,/p; s/^Need to get/to download:/p; s/^After this operation, /on disk: /p' || true
  if [ -t 1 ]; then
    echo "Installing in 5 seconds; Ctrl-C stops."
    sleep 5
  fi
  apt install --no-install-recommends "$@"
}

mapfile -t missing < <(missing_of "${wanted[@]}")
if [ "${#missing[@]}" -gt 0 ]; then
  install_all "${missing[@]}"
fi

# Clang 14's sanitizer runtimes are in libclang-rt-14-dev, named after Clang's own version.
if [ "${1:-}" = --check ]; then
  version=$(clang -dumpversion | cut -d. -f1)
  mapfile -t missing < <(missing_of "libclang-rt-$version-dev")
  if [ "${#missing[@]}" -gt 0 ]; then
    install_all "${missing[@]}"
  fi
fi

if [ "${1:-}" = --aarch64 ]; then
  cd "$(dirname "$0")/.."
  scripts/aarch64_root.sh build/aarch64-root "${cross_libraries[@]}"
fi
