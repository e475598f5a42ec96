#!/usr/bin/env bash
# Builds the fuzzers (preset asan: clang, address and undefined-behaviour sanitizers) and runs each, as
# many at once as there are processors.
#
#   run_fuzzers.sh SECONDS [TARGET...]   TARGETs default to all: cluster graph gzip numbers plan profile schedule space trace
#
# Replays the committed corpus first, then mutates it, and the files of configs/, for SECONDS; every
# dictionary knows the keys of its reader (dictionary.sh). New inputs go to
# build/asan/fuzz/corpus/TARGET; an input that crashes, leaks, hangs for 10 s or takes 2 GB is kept as
# build/asan/fuzz/crash-… and fails the run.
set -euo pipefail
. "$(dirname "$0")/../../tools/setup/common.sh"
cd "$(root_folder)"

[ $# -ge 1 ] || { echo "usage: $0 SECONDS [TARGET...]" >&2; exit 2; }
seconds="$1"
shift
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(cluster graph gzip numbers plan profile schedule space trace)

configure asan
cmake --build build/asan --target fuzzers || fail "the build of preset asan failed"

# Inputs longer than this find nothing that shorter ones do not, and are slow. The replay is of whole files.
longest() { case "$1" in graph) echo 2048 ;; cluster) echo 32768 ;; schedule) echo 1024 ;; numbers) echo 64 ;; *) echo 4096 ;; esac; }

# TARGET FOLDER: the committed files that its reader takes; clusters with their GPU files inside.
seed() {
  local file gpu
  mkdir -p "$2"
  case "$1" in
    plan) cp configs/plans/*.yaml "$2" ;;
    space) cp configs/spaces/*.yaml "$2" ;;
    cluster)
      for file in configs/clusters/*.yaml; do
        gpu="$(sed -n 's/^gpu: *\([^ #]*\).*/\1/p' "$file")"
        { grep -v '^gpu:' "$file"; echo 'gpu:'; sed 's/^/  /' "configs/clusters/$gpu"; } >"$2/${file##*/}"
      done ;;
  esac
}

# What a sanitizer wrote first (what went wrong and where), and the input that did it.
show_crash() {
  { sed -n '/ERROR: \|runtime error: /,$p' "$1" | head -n 30; tail -n 5 "$1"; } >&2
}

# TARGET: replays, then mutates; says how many executions it had.
run() {
  local target="$1" corpus="build/asan/fuzz/corpus/$1" program="build/asan/bin/fuzz-$1"
  local seeds="build/asan/fuzz/seeds/$1" dictionary="build/asan/fuzz/$1.dict"
  local log="build/asan/fuzz/$1.log"
  local limits=(-rss_limit_mb=2048 -timeout=10 -artifact_prefix="build/asan/fuzz/crash-$1-")
  mkdir -p "$corpus"
  rm -rf "$seeds"
  seed "$target" "$seeds"
  tests/fuzz/dictionary.sh "$target" >"$dictionary"
  "$program" "${limits[@]}" -runs=0 "tests/fuzz/corpus/$target" "$seeds" >"$log" 2>&1 ||
    { show_crash "$log"; fail "$target fails on its committed corpus"; }
  echo "$target: replayed $(find "tests/fuzz/corpus/$target" "$seeds" -type f | wc -l) inputs"
  [ "$seconds" -gt 0 ] || return 0
  "$program" "${limits[@]}" -max_total_time="$seconds" -max_len="$(longest "$target")" \
    -dict="$dictionary" -print_final_stats=1 "$corpus" "tests/fuzz/corpus/$target" "$seeds" \
    >"$log" 2>&1 || { show_crash "$log"; fail "$target found a crash"; }
  echo "$target: $(sed -n 's/^stat::number_of_executed_units: //p' "$log") executions"
}

export seconds
export -f run longest seed show_crash fail
printf '%s\n' "${targets[@]}" |
  xargs -P "$(nproc)" -I{} bash -c 'set -euo pipefail; run {}' run_fuzzers.sh ||
  fail "a reader fails; its input is build/asan/fuzz/crash-..."
