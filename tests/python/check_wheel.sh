#!/usr/bin/env bash
# Makes a wheel of a build, installs it into an empty environment, and compares a step, asked from Python and on the
# command line, with dc-sim's, in a folder
# from which the source folder's configs are not seen.
#
#   check_wheel.sh BUILD   with bin/dc-sim and the Python module
set -euo pipefail
. "$(dirname "$0")/../../tools/setup/common.sh"
build=$(realpath "${1:?check_wheel.sh BUILD}")
cd "$(root_folder)"
traces="$PWD/traces"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

tools/python/build_wheel.sh "$work/wheel" "$build"
"$build/bin/dc-sim" simulate traces/tiny-llama --cluster h200-4 --plan zero3-deepcompile --json "$work/expected.json" >/dev/null
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-index "$work"/wheel/*.whl || fail "pip cannot install the wheel alone"
cd "$work"
"$work/venv/bin/python" - "$traces/tiny-llama" expected.json <<'PYTHON' || fail "the wheel answers something else"
import json, sys
import dcsim

step = dcsim.simulate(sys.argv[1], cluster="h200-4", plan="zero3-deepcompile")
assert step.to_dict() == json.load(open(sys.argv[2]))
assert "torch" not in sys.modules and "venv" in dcsim.__file__
print(f"{dcsim.__file__}: {step.verdict}, {step.step_time_ns} ns")
PYTHON
"$work/venv/bin/dc-sim" simulate "$traces/tiny-llama" --cluster h200-4 --plan zero3-deepcompile --json told.json >/dev/null
cmp expected.json told.json || fail "dc-sim of the wheel answers something else"
drawn=$("$work/venv/bin/dc-sim" dag "$traces/tiny-llama" --cluster h200-4 --plan zero3 --out dag.svg 2>&1) && fail "the wheel draws"
[[ "$drawn" == *"built without Graphviz"* ]] || fail "the wheel does not say that it cannot draw: $drawn"
