#!/usr/bin/env bash
# Tests faults that need root: a full disk and a read-only one, on a small file system in
# memory. Prints one line per fault; exits with 1 at the first one that exactfed handles
# wrongly.
#   scripts/faults.sh [PROGRAM]
set -euo pipefail
cd "$(dirname "$0")/.."
program=$(realpath "${1:-${CARGO_TARGET_DIR:-target}/release/exactfed}")
manifest=$(realpath experiments/smoke/garnet.toml)
[ "$(id -u)" = 0 ] || { echo "root is needed to mount a file system"; exit 2; }
place=$(mktemp -d)
trap 'umount "$place/disk" 2>/dev/null || true; rm -rf "$place"' EXIT
mkdir "$place/disk"
mount -t tmpfs -o size=256k tmpfs "$place/disk"
cd "$place"

# Every program has a deadline: one that hangs is killed, which is a failure.
exactfed() {
  local code=0
  timeout -k 10 600 "$program" "$@" || code=$?
  [ $code != 124 ] || echo "exactfed $1: killed after 600 s" >&2
  return $code
}
fail() { echo "FAILED: $*"; exit 1; }
run() { # run CODE WORDS ARGUMENTS...: runs exactfed and checks its exit code and message
  local want=$1 words=$2 code=0; shift 2
  exactfed "$@" >out 2>err || code=$?
  [ "$code" = "$want" ] || fail "exit code $code instead of $want: $(cat err)"
  [ -z "$words" ] || grep -q -- "$words" err out || fail "the output does not contain \"$words\": $(cat err)"
}

run 0 "" run "$manifest" --out calm --quiet
exactfed digest calm >calm.txt
all=$(wc -l <calm.txt)

# A disk that fills up while cells are stored.
run 4 "No space left on device" run "$manifest" --out disk/results
stored=$(exactfed digest disk/results | wc -l)
[ "$stored" -gt 0 ] && [ "$stored" -lt "$all" ] || fail "$stored of $all cells on the full disk"
left=$(find disk -name '.writing-*' | wc -l)
[ "$left" = 0 ] || fail "$left partly written folders"
echo "full disk: $stored of $all cells stored, exit 4: $(grep -m1 error err)"

# Space again: the remaining cells are run, and none twice.
mount -o remount,size=64m "$place/disk"
run 0 "$((all - stored)) cells" run "$manifest" --out disk/results
exactfed digest disk/results | cmp -s - calm.txt || fail "the digests differ after the disk was full"
echo "space again: the other $((all - stored)) cells run, digests equal"

# A read-only folder: run refuses, reports can be written elsewhere, verify works.
mount -o remount,ro "$place/disk"
run 2 "Read-only file system" run "$manifest" --out disk/results
echo "read-only, run: exit 2: $(grep -m1 error err)"
run 2 "Read-only file system" report disk/results --out disk/reports --quiet
echo "read-only, report into it: exit 2: $(grep -m1 error err)"
run 0 "" report disk/results --out reports --quiet
run 0 "bit-identical" verify disk/results --sample 3
run 0 "bit-identical" diff disk/results calm
echo "read-only: report elsewhere, verify, diff: exit 0"
