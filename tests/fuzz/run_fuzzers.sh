#!/usr/bin/env bash
# Builds the fuzzers (preset asan: clang, address and undefined-behaviour sanitizers) and runs each.
#
#   run_fuzzers.sh SECONDS [TARGET...]   TARGETs default to all: cluster graph gzip plan profile schedule space
#
# Replays the committed corpus first, then mutates it for SECONDS. New inputs go to
# build/asan/fuzz/corpus/TARGET; an input that crashes, leaks, hangs for 10 s or takes 2 GB is kept as
# build/asan/fuzz/crash-… and fails the run.
set -euo pipefail
. "$(dirname "$0")/../../tools/setup/common.sh"
cd "$(root_folder)"

[ $# -ge 1 ] || { echo "usage: $0 SECONDS [TARGET...]" >&2; exit 2; }
seconds="$1"
shift
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(cluster graph gzip plan profile schedule space)

configure asan
cmake --build build/asan --target fuzzers || fail "the build of preset asan failed"

# Inputs longer than this find nothing that shorter ones do not, and are slow. The replay is of whole files.
longest() { case "$1" in graph) echo 2048 ;; cluster | schedule) echo 1024 ;; *) echo 512 ;; esac; }

# What a sanitizer wrote first (what went wrong and where), and the input that did it.
show_crash() {
  { sed -n '/ERROR: \|runtime error: /,$p' "$1" | head -n 30; tail -n 5 "$1"; } >&2
}

for target in "${targets[@]}"; do
  corpus="build/asan/fuzz/corpus/$target"
  mkdir -p "$corpus"
  program="build/asan/bin/fuzz-$target"
  limits=(-rss_limit_mb=2048 -timeout=10 -artifact_prefix="build/asan/fuzz/crash-$target-")
  log="build/asan/fuzz/$target.log"
  say "$target: replaying $(find "tests/fuzz/corpus/$target" -type f | wc -l) inputs"
  "$program" "${limits[@]}" -runs=0 "tests/fuzz/corpus/$target" >"$log" 2>&1 ||
    { show_crash "$log"; fail "$target fails on its committed corpus"; }
  if [ "$seconds" -gt 0 ]; then
    "$program" "${limits[@]}" -max_total_time="$seconds" -max_len="$(longest "$target")" \
      -dict="tests/fuzz/$target.dict" -print_final_stats=1 "$corpus" "tests/fuzz/corpus/$target" \
      >"$log" 2>&1 || { show_crash "$log"; fail "$target found a crash"; }
    echo "$target: $(sed -n 's/^stat::number_of_executed_units: //p' "$log") executions"
  fi
done
