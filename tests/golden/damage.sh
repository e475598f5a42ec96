# damage.sh KIND FILE: writes a FILE that no reader takes, whatever it looks for.
set -eu
case "$2" in
  *.xz) compress="xz -0" magic='\3757zXZ\000' ;;
  *) compress="gzip -1" magic='\037\213' ;;
esac
case "$1" in
  cut) $compress <docs/reference/formats.md | head -c 1000 >"$2" ;;
  garbage) printf "$magic garbage behind the magic bytes" >"$2" ;;
  zeros) truncate -s 1G "$2" ;; # no bytes on disk
  bomb) head -c 300M /dev/zero | $compress >"$2" ;; # 1.3 MB on disk
esac
