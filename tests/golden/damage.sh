# damage.sh KIND FILE: writes a FILE that no reader takes, whatever it looks for.
set -eu
case "$1" in
  cut) head -c 1000 traces/tiny-llama/graph.json.gz >"$2" ;;
  garbage) printf '\037\213 garbage behind the two magic bytes of gzip' >"$2" ;;
  zeros) truncate -s 1G "$2" ;; # no bytes on disk
  bomb) head -c 300M /dev/zero | gzip -1 >"$2" ;; # 1.3 MB on disk
esac
