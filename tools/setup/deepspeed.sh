#!/usr/bin/env bash
# Installs a release of DeepSpeed for tools/oracles/record_deepcompile.py, without a GPU and without
# building its kernels, unless it is there.
#
#   deepspeed.sh PYTHON RELEASE FOLDER
set -euo pipefail
python="$1"
release="$2"
folder="$3"
if [ -e "$folder/ready" ]; then
  exit 0
fi
rm -rf "$folder"
"$python" -m pip install --quiet --target "$folder" wheel einops hjson msgpack psutil py-cpuinfo \
  pydantic scipy tqdm
# The build imports torch from the environment of `python`, the rest from the folder.
PYTHONPATH="$folder" DS_BUILD_OPS=0 "$python" -m pip install --quiet --no-deps \
  --no-build-isolation --target "$folder" "deepspeed==$release"
touch "$folder/ready"
