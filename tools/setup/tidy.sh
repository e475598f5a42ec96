#!/usr/bin/env bash
# clang-tidy on the sources that changed since a commit, and on those that include a changed header.
#
#   tidy.sh [BASE]   BASE defaults to the commit before this one; without any, all sources
set -euo pipefail
. "$(dirname "$0")/common.sh"
cd "$(root_folder)"

base="${1:-$(git rev-parse --verify --quiet HEAD~1 || true)}"
build_log=$(mktemp)
build tidy >"$build_log" 2>&1 || { cat "$build_log"; exit 1; }
rm -f "$build_log"

changed=$(mktemp)
if [ -n "$base" ]; then
  git diff --name-only --diff-filter=d "$base" -- '*.cpp' '*.h' >"$changed"
else
  git ls-files '*.cpp' '*.h' >"$changed"
fi
# A changed header is seen through the sources that ninja rebuilds for it.
sources=$(python3 - "$changed" <<'PYTHON'
import json, pathlib, subprocess, sys
changed = set(pathlib.Path(sys.argv[1]).read_text().split())
root = pathlib.Path.cwd()
units = [pathlib.Path(unit["file"]).relative_to(root) for unit in json.load(open("build/tidy/compile_commands.json"))
         if pathlib.Path(unit["file"]).is_relative_to(root)]
deps = subprocess.run(["ninja", "-C", "build/tidy", "-t", "deps"], capture_output=True, text=True, check=True).stdout
wanted = set()
block = []
for line in deps.splitlines() + [""]:
    if line.strip():
        block.append(line.strip())
        continue
    files = {str(pathlib.Path(f).resolve().relative_to(root)) for f in block[1:] if pathlib.Path(f).is_absolute() and pathlib.Path(f).resolve().is_relative_to(root)}
    source = next((f for f in files if f.endswith(".cpp")), None)
    if source and files & changed:
        wanted.add(source)
    block = []
wanted |= {str(unit) for unit in units if str(unit) in changed}
print("\n".join(sorted(wanted)))
PYTHON
)
rm -f "$changed"
[ -n "$sources" ] || { echo "nothing to check"; exit 0; }
echo "$sources" | xargs -P 2 -n 4 clang-tidy --quiet -p build/tidy
