#!/usr/bin/env bash
# Every test that needs GPUs, on two of them, in at most seven minutes.
#
#   tests/gpu/run.sh DC_RUN [LOSSES.json]     from the source folder; python3 with torch and transformers
set -uo pipefail
run=$1
failed=0
started=$SECONDS
export PYTHONPATH=$PWD/tools/dcrecord/src

part() {  # NAME COMMAND...
  local name=$1 from=$SECONDS
  shift
  "$@" || failed=1
  echo "== $name: $((SECONDS - from)) s"
}

# The interpreter, op by op: the bits of PyTorch itself on this machine.
exact() {
  local copy
  copy=$(mktemp -d)
  cp -r "traces/$1" "$copy/"
  python3 -m dcrecord reference "$copy/$1" --device cuda --steps 1 >"$copy/log" 2>&1 &&
    "$run" check "$copy/$1" --exact
  local code=$?
  [ $code = 0 ] || tail -n 3 "$copy/log"
  rm -rf "$copy"
  return $code
}

# Triton's kernels in place of operators, as Inductor compiles for either kind of stage.
compiled() {
  local stage
  for stage in 1 3; do
    "$run" check "traces/$1" --backend inductor --stage "$stage" || return 1
  done
}

part "tiny-llama against PyTorch" exact tiny-llama
part "tiny-llama, compiled" compiled tiny-llama
part "losses and peaks" python3 tests/gpu/steps.py "$run" ${2:+-o "$2"}
part "memory limits" python3 tests/gpu/limits.py "$run"
part "failures" tests/gpu/failures.sh "$run"
echo "== all: $((SECONDS - started)) s"
exit $failed
