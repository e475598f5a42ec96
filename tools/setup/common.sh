# Shared by quickstart.sh and test.sh: says what it does, fails with one clear sentence.

say() { printf '\n== %s\n' "$*"; }
fail() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; exit 3; }

root_folder() { cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd; }

# Debian 12 and Ubuntu 24.04 name these packages alike.
require_supported_system() {
  [ -r /etc/os-release ] || fail "this system has no /etc/os-release; Debian 12 and Ubuntu 24.04 are supported"
  # shellcheck disable=SC1091
  . /etc/os-release
  case "${ID:-} ${VERSION_ID:-}" in
    "debian 12"|"ubuntu 24.04") ;;
    *) fail "${PRETTY_NAME:-this system} is not supported: Debian 12 and Ubuntu 24.04 are; elsewhere install the packages named in this script and run cmake --preset release" ;;
  esac
}

# require_disk GIB FOLDER
require_disk() {
  mkdir -p "$2"
  local free_kib
  free_kib=$(df -Pk "$2" | awk 'NR == 2 {print $4}')
  [ "$free_kib" -ge $(($1 * 1024 * 1024)) ] ||
    fail "needs $1 GiB of free disk under $2, found $((free_kib / 1024 / 1024)) GiB"
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null 2>&1; then
    sudo "$@"
  else
    fail "must install packages and needs root for that: run as root, or install sudo"
  fi
}

# install_packages NAME...: only what is missing, so that a second run touches nothing.
install_packages() {
  local missing=() name
  for name in "$@"; do
    dpkg-query -W -f='${Status}' "$name" 2>/dev/null | grep -q 'ok installed' || missing+=("$name")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  say "installing ${missing[*]}"
  local log
  log=$(mktemp)
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq update >"$log" 2>&1 ||
    fail "apt-get update failed; is there a network? $(tail -n 1 "$log")"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${missing[@]}" >"$log" 2>&1 ||
    fail "apt-get install failed; is there a network? $(grep -E '^E:' "$log" | tail -n 1)"
  rm -f "$log"
}

configure() {  # PRESET CMAKE_ARGUMENTS...
  cmake --preset "$1" -G Ninja "${@:2}" >"/tmp/dcsim-configure-$$.log" 2>&1 || {
    cat "/tmp/dcsim-configure-$$.log" >&2
    fail "cmake --preset $1 failed"
  }
  rm -f "/tmp/dcsim-configure-$$.log"
}

# Configures when needed, and builds.
build() {  # PRESET CMAKE_ARGUMENTS...
  configure "$@"
  cmake --build "build/$1" || fail "the build of preset $1 failed"
}

BUILD_PACKAGES=(g++ cmake ninja-build pkg-config nlohmann-json3-dev libboost-dev libyaml-cpp-dev
                libcli11-dev libgraphviz-dev zlib1g-dev liblzma-dev)
