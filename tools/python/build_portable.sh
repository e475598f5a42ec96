#!/usr/bin/env bash
# Builds the compiled module of wheels against the glibc of manylinux_2_28, on a system with a newer one: with clang and
# old glibc headers of ziglang, from PyPI. zlib, xz and yaml-cpp are built from Debian's source archives and linked in,
# Boost, nlohmann-json and CLI11 are headers of the system's packages. Graphviz is left out.
#
#   build_portable.sh BUILD PYTHON [TARGET...]
#
#   PYTHON   has ziglang and nanobind; the module is for it
#   TARGET   what is built (dcsim_native)
set -euo pipefail
. "$(dirname "$0")/../setup/common.sh"
build=$(realpath -m "${1:?build_portable.sh BUILD PYTHON}")
python="${2:?build_portable.sh BUILD PYTHON}"
targets=("${@:3}")
cd "$(root_folder)"
install_packages "${BUILD_PACKAGES[@]}" curl make xz-utils bzip2

GLIBC=2.28
ARCHIVE=http://deb.debian.org/debian/pool/main
SOURCES=(  # path in the archive, SHA-256
  z/zlib/zlib_1.2.13.dfsg.orig.tar.bz2 71feb7947e3c00ef125f83b79a4e529bde31171e5babe48b391f06758d1ab0a1
  x/xz-utils/xz-utils_5.4.1.orig.tar.xz 5d9827aa1875b21c288f78864bb26d2650b436ea8d2cad364e4921eb6266a5a5
  y/yaml-cpp/yaml-cpp_0.7.0+dfsg.orig.tar.xz dc63708605404e0b963e0ca3a9619d1c8270eda2839603e6fa0384e5e51e5312
)
compilers="$build/compilers"
prefix="$build/libraries"
mkdir -p "$compilers" "$prefix/include" "$prefix/share/cmake"

zig=$("$python" -c 'import os, ziglang; print(os.path.join(os.path.dirname(ziglang.__file__), "zig"))') ||
  fail "$python has no ziglang: $python -m pip install ziglang"
compiler() {  # NAME ZIG_ARGUMENTS...
  printf '#!/bin/sh\nexec "%s" %s "$@"\n' "$zig" "${*:2}" >"$compilers/$1"
  chmod +x "$compilers/$1"
}
compiler cc cc -target "x86_64-linux-gnu.$GLIBC"
compiler c++ c++ -target "x86_64-linux-gnu.$GLIBC"
compiler ar ar
compiler ranlib ranlib
# Headers of Boost 1.74 derive from std::unary_function and name std::auto_ptr, which libc++ has on request alone.
flags="-D_LIBCPP_ENABLE_CXX17_REMOVED_UNARY_BINARY_FUNCTION -D_LIBCPP_ENABLE_CXX17_REMOVED_AUTO_PTR"
configure_portable() {  # SOURCE BUILD CMAKE_ARGUMENTS...
  cmake -S "$1" -B "$2" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER="$compilers/cc" \
    -DCMAKE_CXX_COMPILER="$compilers/c++" -DCMAKE_AR="$compilers/ar" -DCMAKE_RANLIB="$compilers/ranlib" \
    -DCMAKE_CXX_FLAGS="$flags" -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DBUILD_SHARED_LIBS=OFF \
    -DCMAKE_PREFIX_PATH="$prefix" "${@:3}" >"$build/configure.log" 2>&1 ||
    { tail -n 20 "$build/configure.log" >&2; fail "cmake failed for $1"; }
}

library() {  # PATH SHA256 COMMAND...: builds and installs a library by a command that gets the folder of its sources
  local name file="$build/$(basename "$1")"
  name=$(basename "$1" | cut -d_ -f1)
  [ ! -e "$prefix/$name.built" ] || return 0
  say "building $name for glibc $GLIBC"
  curl -sSfL --retry 3 --max-time 120 -o "$file" "$ARCHIVE/$1" || fail "cannot fetch $ARCHIVE/$1; is there a network?"
  echo "$2  $file" | sha256sum --check --quiet || fail "$file is not the file that was expected"
  rm -rf "${build:?}/$name"
  mkdir "$build/$name"
  tar -xf "$file" -C "$build/$name" --strip-components 1
  ("$3" "$build/$name" "${@:4}") >"$build/$name.log" 2>&1 ||
    { tail -n 20 "$build/$name.log" >&2; fail "the build of $name failed"; }
  touch "$prefix/$name.built"
}
with_cmake() {  # SOURCE CMAKE_ARGUMENTS...
  configure_portable "$1" "$1/build" -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib "${@:2}" &&
    cmake --build "$1/build" && cmake --install "$1/build"
}
with_make() {  # SOURCE CONFIGURE_ARGUMENTS...
  cd "$1" && CC="$compilers/cc" AR="$compilers/ar" RANLIB="$compilers/ranlib" CFLAGS="-O3 -fPIC" \
    ./configure --prefix="$prefix" "${@:2}" && make && make install
}
library "${SOURCES[0]}" "${SOURCES[1]}" with_make --static
library "${SOURCES[2]}" "${SOURCES[3]}" with_make --disable-shared --disable-xz --disable-xzdec --disable-lzmadec \
  --disable-lzmainfo --disable-scripts --disable-doc --disable-nls
library "${SOURCES[4]}" "${SOURCES[5]}" with_cmake -DYAML_CPP_BUILD_TESTS=OFF -DYAML_CPP_BUILD_TOOLS=OFF

# Links to what is needed of /usr/include, which itself would bring the headers of the system's glibc.
for headers in boost nlohmann CLI; do
  ln -sfn "/usr/include/$headers" "$prefix/include/$headers"
done
cp -r /usr/share/cmake/nlohmann_json "$prefix/share/cmake"

say "building the module for glibc $GLIBC"
configure_portable . "$build/module" -DDCSIM_TESTS=OFF -DDCSIM_BENCHMARKS=OFF -DDCSIM_EXEC=OFF -DDCSIM_PICTURES=OFF \
  -DDCSIM_PYTHON_MODULE=ON -DDCSIM_PYTHON="$python" -DCMAKE_UNITY_BUILD=ON -DBoost_NO_BOOST_CMAKE=ON \
  -DBoost_INCLUDE_DIR="$prefix/include" -DCLI11_INCLUDE="$prefix/include"
cmake --build "$build/module" --target "${targets[@]:-dcsim_native}" || fail "the build of the module failed"
