# quiet COMMAND...: without the lines of progress that a slow machine adds to stderr.
quiet() {
  "$@" 2>"$OUT/said"
  code=$?
  grep -v -e ' steps predicted' -e '^fit: recording, ' "$OUT/said" >&2
  rm "$OUT/said"
  return $code
}
