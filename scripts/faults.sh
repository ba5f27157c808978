#!/usr/bin/env bash
# Faults that need rights: a disk that is full and one that can only be read, on a small
# file system in memory. Prints a line a fault; exits 1 at the first that is not borne.
#   scripts/faults.sh [PROGRAM]
set -euo pipefail
cd "$(dirname "$0")/.."
program=$(realpath "${1:-${CARGO_TARGET_DIR:-target}/release/driftbench}")
manifest=$(realpath experiments/smoke/garnet.toml)
[ "$(id -u)" = 0 ] || { echo "needs root, to mount a file system"; exit 2; }
place=$(mktemp -d)
trap 'umount "$place/disk" 2>/dev/null || true; rm -rf "$place"' EXIT
mkdir "$place/disk"
mount -t tmpfs -o size=256k tmpfs "$place/disk"
cd "$place"

# Nothing is waited for without end: a program that hangs is killed, which is a failure.
driftbench() {
  local code=0
  timeout -k 10 600 "$program" "$@" || code=$?
  [ $code != 124 ] || echo "driftbench $1: killed after 600 s" >&2
  return $code
}
fail() { echo "NOT BORNE: $*"; exit 1; }
run() { # CODE WORDS arguments...: runs, and sees code and message
  local want=$1 words=$2 code=0; shift 2
  driftbench "$@" >out 2>err || code=$?
  [ "$code" = "$want" ] || fail "exit $code, not $want: $(cat err)"
  [ -z "$words" ] || grep -q -- "$words" err out || fail "no word of \"$words\": $(cat err)"
}

run 0 "" run "$manifest" --out calm --quiet
driftbench digest calm >calm.txt
all=$(wc -l <calm.txt)

# A disk that fills up while cells are kept.
run 4 "No space left on device" run "$manifest" --out disk/results
stored=$(driftbench digest disk/results | wc -l)
[ "$stored" -gt 0 ] && [ "$stored" -lt "$all" ] || fail "$stored of $all cells on the full disk"
left=$(find disk -name '.writing-*' | wc -l)
[ "$left" = 0 ] || fail "$left folders are half-written"
echo "full disk: $stored of $all cells stored, exit 4: $(grep -m1 error err)"

# Room again: the rest is run, nothing twice.
mount -o remount,size=64m "$place/disk"
run 0 "$((all - stored)) cells" run "$manifest" --out disk/results
driftbench digest disk/results | cmp -s - calm.txt || fail "other digests after the disk was full"
echo "room again: the other $((all - stored)) cells run, digests equal"

# A folder that can only be read: runs refuse, reports are written elsewhere, verify works.
mount -o remount,ro "$place/disk"
run 2 "Read-only file system" run "$manifest" --out disk/results
echo "read-only, run: exit 2: $(grep -m1 error err)"
run 2 "Read-only file system" report disk/results --out disk/reports --quiet
echo "read-only, report into it: exit 2: $(grep -m1 error err)"
run 0 "" report disk/results --out reports --quiet
run 0 "bit-identical" verify disk/results --sample 3
run 0 "bit-identical" diff disk/results calm
echo "read-only: report elsewhere, verify, diff: exit 0"
