#!/usr/bin/env bash
# clang-tidy on the sources that changed since a commit, and on those that include a changed header.
# Nothing is built for it: the preprocessor says which headers a source includes.
#
#   tidy.sh [BASE]   BASE defaults to the commit before this one; without any, all sources
set -euo pipefail
. "$(dirname "$0")/common.sh"
cd "$(root_folder)"

configure tidy

base="${1:-$(git rev-parse --verify --quiet HEAD~1 || true)}"
sources=$(python3 tools/setup/changed_sources.py build/tidy/compile_commands.json $base)
[ -n "$sources" ] || { echo "nothing to check"; exit 0; }
echo "$(echo "$sources" | wc -l) sources"
echo "$sources" | xargs -P 2 -n 4 clang-tidy --quiet -p build/tidy
