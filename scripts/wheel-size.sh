#!/usr/bin/env bash
# Checks that no wheel of a folder has more than so many MB.
#   scripts/wheel-size.sh FOLDER MB
set -euo pipefail
for wheel in "$1"/*.whl; do
  bytes=$(wc -c < "$wheel")
  echo "$(basename "$wheel"): $bytes bytes"
  [ "$bytes" -le $(($2 * 1000000)) ] || { echo "error: $wheel has more than $2 MB" >&2; exit 1; }
done
