#!/usr/bin/env bash
# Installs what the tests need (torch included), builds everything, and runs every test that needs no
# GPU. On Debian 12 or Ubuntu 24.04, as root or with sudo.
#
#   DCSIM_VENV           Python environment to use or make (~/.cache/dcsim/venv-torch-2.11.0)
#   DCSIM_FUZZ_SECONDS   time for each fuzzer (30)
#   DCSIM_BASE           commit that clang-tidy compares with (the one before this; all files when
#                        there is none)
set -euo pipefail
. "$(dirname "$0")/setup/common.sh"
cd "$(root_folder)"

VENV="${DCSIM_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/dcsim/venv-torch-2.11.0}"
FUZZ_SECONDS="${DCSIM_FUZZ_SECONDS:-30}"
started=$(date +%s)
minutes() { echo "$(( ($(date +%s) - started) / 60 ))"; }
stages=""
stage() {  # NAME: says it, and when it began
  stages+="$(printf '%4s  %s' "$(minutes)" "$1")"$'\n'
  say "$1 ($(minutes) min)"
}
trap 'printf "\nminute  stage\n%s" "$stages"' EXIT

stage "checking the system"
require_supported_system
require_disk 4 build
install_packages "${BUILD_PACKAGES[@]}" libgtest-dev libgmock-dev libbenchmark-dev clang clang-tidy xz-utils \
  clang-format libclang-rt-dev python3-venv python3-dev git chromium

# The environment lies outside the build folder, so that no later run downloads torch again.
if [ ! -e "$VENV/ready" ]; then
  require_disk 8 "$(dirname "$VENV")"
  stage "making $VENV with torch 2.11.0 (4.6 GB from PyPI)"
  rm -rf "$VENV"
  python3 -m venv "$VENV" || fail "python3 -m venv failed"
  # Headers that otherwise come with a toolkit, and that torch's own requirements leave out.
  "$VENV/bin/pip" install --quiet torch==2.11.0 'cuda-toolkit[cccl,crt]==13.0.2' ||
    fail "pip cannot install torch==2.11.0; is there a network?"
  "$VENV/bin/pip" install --quiet -e "./tools/python[test]" || fail "pip cannot install the recorder's requirements"
  touch "$VENV/ready"
fi
"$VENV/bin/pip" install --quiet -e "./tools/python[test]" || fail "pip cannot install the recorder"

stage "formatting"
git ls-files '*.cpp' '*.h' | xargs clang-format --dry-run --Werror || fail "run clang-format -i on the files above"

# What runs with sanitizers below is not built twice: `cmake --build build/dev` does that.
stage "building the programs, and tests of optimised ones"
export DCSIM_VENV="$VENV"
configure dev -DDCSIM_EXEC=ON -DDCSIM_PYTHON_MODULE=ON
cmake --build build/dev --target dc-sim dcsim_native dc-run make-cluster simulate-benchmark search-benchmark optimised-tests ||
  fail "the build of preset dev failed"
stage "tests of optimised programs"
ctest --preset dev -L optimised -j 2 --progress || fail "tests failed"

stage "dc-sim from Python"
PYTHONPATH="$PWD/build/dev/python" "$VENV/bin/python" -m pytest -q tests/python || fail "tests of the Python module failed"

stage "report pages in a browser"
"$VENV/bin/python" -m pytest -q -rs tests/pages || fail "report pages failed"

stage "a wheel in an empty environment"
tests/python/check_wheel.sh build/dev || fail "the wheel failed"

stage "recorder tests"
"$VENV/bin/python" -m pytest -q -n auto tests/recorder || fail "recorder tests failed"

stage "formats against their schemas"
"$VENV/bin/python" -m pytest -q tests/formats || fail "a file does not fit the schema of its format"

for release in 0.17.1 0.19.6 0.19.8; do
  stage "what DeepSpeed $release decides"
  tools/setup/deepspeed.sh "$VENV/bin/python" "$release" "$VENV-deepspeed-$release" ||
    fail "pip cannot install deepspeed==$release"
  PYTHONPATH="$VENV-deepspeed-$release" "$VENV/bin/python" tools/oracles/record_deepcompile.py \
    --check tests/data/deepcompile >/dev/null || fail "DeepSpeed's passes decide something else"
done

stage "schedules inside DeepSpeed"
PYTHONPATH="$VENV-deepspeed-0.19.6" "$VENV/bin/python" -m pytest -q tests/deepspeed/test_placing.py ||
  fail "schedules inside DeepSpeed 0.19.6 failed"
PYTHONPATH="$VENV-deepspeed-0.19.8" "$VENV/bin/python" -m pytest -q tests/deepspeed ||
  fail "schedules inside DeepSpeed 0.19.8 failed"

stage "building the tests with address and undefined-behaviour sanitizers"
build asan
stage "tests with sanitizers"
ctest --preset asan -j 2 --progress || fail "tests failed under sanitizers"

stage "clang-tidy on what changed"
tools/setup/tidy.sh "${DCSIM_BASE:-}" || fail "clang-tidy found faults"

stage "fuzzers, ${FUZZ_SECONDS} s each"
tests/fuzz/run_fuzzers.sh "$FUZZ_SECONDS" || fail "a fuzzer found a crash"

say "all tests passed in $(minutes) min"
