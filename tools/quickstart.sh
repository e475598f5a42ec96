#!/usr/bin/env bash
# Builds dc-sim without torch on Debian 12 or Ubuntu 24.04 and answers a first question: time and
# memory of one ZeRO-3 step of Qwen3-8B on 8 H200s, and by how much a schedule that a search finds
# beats DeepCompile's. A few minutes the first time, a minute afterwards.
set -euo pipefail
. "$(dirname "$0")/setup/common.sh"
cd "$(root_folder)"

say "checking the system"
require_supported_system
require_disk 2 build
install_packages "${BUILD_PACKAGES[@]}"

say "building dc-sim (preset release, build/release)"
build release

step=(traces/qwen3-8b --cluster configs/clusters/h200-8.yaml)
deepcompile=(--plan configs/plans/zero3-deepcompile.yaml)

say "Qwen3-8B, batch 1, sequence 4096, ZeRO-3 on 8 H200s, compiled by Inductor: each parameter gathered at its use"
build/release/bin/dc-sim simulate "${step[@]}" --plan configs/plans/zero3.yaml

say "the same as DeepSpeed's DeepCompile schedules it"
build/release/bin/dc-sim simulate "${step[@]}" "${deepcompile[@]}"

say "searching for the fastest schedule that reserves no more than DeepCompile's, beside that"
reserved=$(build/release/bin/dc-sim simulate "${step[@]}" "${deepcompile[@]}" --json - |
  sed -n 's/^ "peak_reserved_bytes": \([0-9]*\).*/\1/p')
build/release/bin/dc-sim search "${step[@]}" --memory-limit "$reserved B" --schedules 15000

say "next: build/release/bin/dc-sim --help, README.md, or a picture of the schedule:"
echo "build/release/bin/dc-sim dag traces/qwen3-8b --cluster configs/clusters/h200-8.yaml --plan configs/plans/zero3-ahead.yaml --out schedule.svg"
