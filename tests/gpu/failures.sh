#!/usr/bin/env bash
# What goes wrong on GPUs ends on every rank within 10 seconds, with one message that names rank and
# cause, the right exit code, and no process left over.
#
#   tests/gpu/failures.sh DC_RUN     from the source folder, on a machine with two GPUs or more
set -uo pipefail
run=$1
workload=traces/llama-3.2-1b
plan=configs/plans/zero3.yaml
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

verdict() {  # NAME WHETHER DETAIL
  if [ "$2" = 0 ]; then echo "ok      $1: $3"; else echo "FAILED  $1: $3"; failed=1; fi
}

left_over() { pgrep -f -c "^$run step" || true; }

# NAME EXIT PATTERN: of the run that left $work/err and $code, $seconds after its cause.
expect() {
  local name=$1 exit=$2 pattern=$3
  local line
  line=$(grep -E -m1 "^dc-run: " "$work/err" | cut -c1-160)
  [ "$code" = "$exit" ]; verdict "$name, exit code" $? "$code"
  grep -qE "$pattern" "$work/err" "$work/out"; verdict "$name, message" $? "$line"
  [ "$seconds" -le 10 ]; verdict "$name, time" $? "$seconds s"
  sleep 0.5
  [ "$(left_over)" = 0 ]; verdict "$name, processes left" $? "$(left_over)"
}

simply() {  # NAME EXIT PATTERN ARGUMENTS: a run that fails by itself
  local name=$1 exit=$2 pattern=$3
  shift 3
  local start=$SECONDS
  timeout 60 "$run" "$@" >"$work/out" 2>"$work/err"
  code=$?
  seconds=$((SECONDS - start))
  expect "$name" "$exit" "$pattern"
}

killed_rank() {
  "$run" step $workload --plan $plan --gpus 2 --steps 2000 --no-trace >"$work/out" 2>"$work/err" &
  local job=$!
  for _ in $(seq 60); do
    grep -q measuring "$work/err" && break
    sleep 0.5
  done
  sleep 1
  kill -9 "$(pgrep -P $job | tail -1)"
  local start=$SECONDS
  wait $job
  code=$?
  seconds=$((SECONDS - start))
  expect "a killed rank" 3 "rank 1 was ended by signal 9"
}

out_of_memory() {  # 8B parameters on two GPUs, with buffers and temporaries for a third one
  "$run" step traces/qwen3-8b --plan configs/plans/zero1.yaml --gpus 2 --set optimizer=for_loop \
    --set buffer_lifetime=permanent --set "reduce_bucket=8.2e9 elements" \
    --out "$work" >"$work/out" 2>"$work/err"
  code=$?
  seconds=0  # its start and first step are not part of the failure
  expect "out of memory" 1 "out_of_memory|out of memory"
  grep -q '"outcome": "out_of_memory"' "$work"/*.json
  verdict "out of memory, result" $? "$(grep -h -m1 '"task"' "$work"/*.json | cut -c1-120)"
  rm -f "$work"/*.json
}

full_disk() {
  mkdir -p "$work/small"
  if ! mount -t tmpfs -o size=4k tmpfs "$work/small" 2>/dev/null; then
    echo "skipped a full disk: cannot mount a small file system"
    return
  fi
  head -c 4096 /dev/zero >"$work/small/fill"
  local start=$SECONDS
  timeout 60 "$run" step traces/mlp-8x4096 --plan $plan --gpus 2 --steps 1 --warmup 1 --no-trace \
    --out "$work/small" >"$work/out" 2>"$work/err"
  code=$?
  seconds=$((SECONDS - start))
  umount "$work/small"
  expect "a full disk" 3 "No space left"
}

port_in_use() {
  python3 -c 'import socket, time
s = socket.socket(); s.bind(("127.0.0.1", 29677)); s.listen(); time.sleep(60)' &
  local holder=$!
  sleep 1
  local start=$SECONDS
  RANK=0 LOCAL_RANK=0 WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=29677 timeout 60 \
    "$run" step traces/mlp-8x4096 --plan $plan --gpus 1 --steps 1 >"$work/out" 2>"$work/err"
  code=$?
  seconds=$((SECONDS - start))
  kill $holder
  expect "a port in use" 3 "rank 0: cannot serve the store at 127.0.0.1:29677"
}

killed_rank
out_of_memory
full_disk
port_in_use
simply "a missing GPU" 3 "rank [0-9]+ needs GPU [0-9]+, this machine has" \
  step traces/mlp-8x4096 --plan $plan --gpus $(($(nvidia-smi -L | wc -l) + 1))
simply "a wrong plan" 2 "unknown key|expected" \
  step traces/mlp-8x4096 --plan $plan --gpus 2 --set gather_ahed=3
exit $failed
