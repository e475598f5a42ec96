#!/usr/bin/env bash
# Makes a wheel, installs it into an empty environment, and compares a step, asked from Python and on the command line,
# with dc-sim's, in a folder from which the source folder's configs are not seen.
#
#   check_wheel.sh BUILD              of the Python module in BUILD, which also has bin/dc-sim
#   check_wheel.sh BUILD --portable   of a build for manylinux_2_28, which takes some ten minutes on two cores
set -euo pipefail
. "$(dirname "$0")/../../tools/setup/common.sh"
build=$(realpath "${1:?check_wheel.sh BUILD [--portable]}")
module=("$build")
case "${2:-}" in
  "") ;;
  --portable) module=() ;;
  *) fail "unknown argument $2, expected --portable" ;;
esac
cd "$(root_folder)"
traces="$PWD/traces"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

tools/python/build_wheel.sh "$work/wheel" "${module[@]}"
"$build/bin/dc-sim" simulate traces/tiny-llama --cluster h200-4 --plan zero3-deepcompile --json "$work/expected.json" >/dev/null
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-index "$work"/wheel/*.whl || fail "pip cannot install the wheel alone"
cd "$work"
"$work/venv/bin/python" - "$traces/tiny-llama" <<'PYTHON' || fail "the wheel cannot be used"
import json, sys
import dcsim

step = dcsim.simulate(sys.argv[1], cluster="h200-4", plan="zero3-deepcompile")
json.dump(step.to_dict(), open("python.json", "w"))
assert "torch" not in sys.modules and "venv" in dcsim.__file__
print(f"{dcsim.__file__}: {step.verdict}, {step.step_time_ns} ns")
PYTHON
"$work/venv/bin/dc-sim" simulate "$traces/tiny-llama" --cluster h200-4 --plan zero3-deepcompile --json told.json >/dev/null
"$work/venv/bin/python" - expected.json python.json told.json <<'PYTHON' || fail "the wheel answers something else"
import json, sys

answers = [json.load(open(name)) for name in sys.argv[1:]]
for answer in answers:
    del answer["versions"]  # a portable build may be of another commit
assert answers[1] == answers[0], "from Python"
assert answers[2] == answers[0], "on the command line"
PYTHON
drawn=$("$work/venv/bin/dc-sim" dag "$traces/tiny-llama" --cluster h200-4 --plan zero3 --out dag.svg 2>&1) && fail "the wheel draws"
[[ "$drawn" == *"built without Graphviz"* ]] || fail "the wheel does not say that it cannot draw: $drawn"
