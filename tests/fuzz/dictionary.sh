#!/usr/bin/env bash
# Prints the dictionary of a fuzzer: TARGET.dict (syntax and edge numbers), and every name that the
# reader of its files knows, from the reader's sources.
#
#   dictionary.sh TARGET
set -euo pipefail
cd "$(dirname "$0")/../.."

plans=(model/ir/option_table.cpp model/ir/plan_options.cpp model/ir/plan_reader.cpp model/ir/plan_spec_reader.cpp model/passes/pass_list.cpp)
values=(model/ir/schedule.cpp model/ir/dtype.cpp)
case "$1" in
  cluster) sources=(model/machine/*.h model/machine/*.cpp model/cost/*.h model/cost/*.cpp "${values[@]}") ;;
  plan) sources=("${plans[@]}" "${values[@]}") ;;
  space) sources=(sim/search/space.cpp "${plans[@]}" "${values[@]}") ;;
  graph) sources=(model/ir/graph_reader.cpp model/ir/argument_reader.cpp model/ir/graph.cpp "${values[@]}") ;;
  profile) sources=(model/ir/profile_reader.cpp "${values[@]}") ;;
  schedule) sources=(model/ir/schedule_text.cpp model/ir/graph_text.cpp "${values[@]}") ;;
  *) sources=() ;;
esac
cat "tests/fuzz/$1.dict"
[ ${#sources[@]} -gt 0 ] || exit 0
quote=''  # JSON's, around each name
case "$1" in graph | profile) quote='\\x22' ;; esac
grep -ohE '"[A-Za-z][A-Za-z0-9_]*"' "${sources[@]}" | sed "s/^\"\(.*\)\"$/\"$quote\1$quote\"/" | LC_ALL=C sort -u
