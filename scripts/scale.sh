#!/usr/bin/env bash
# Prints the time and the memory of each command on a grid of many small cells (scripts/load.sh), as
# rows of the table in docs/notes/scale.md:
#
#   [PROGRAM=target/release/exactfed] scripts/scale.sh CELLS…
#
# It needs GNU time, and about 2 KB of disk for each cell.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$(realpath "${PROGRAM:-target/release/exactfed}")
load=$PWD/scripts/load.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
# measured COMMAND…: the seconds and the memory of a command, as a field of a row.
measured() {
  /usr/bin/time -o "$work/time" -f "%e %M" "$program" "$@" > "$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
  awk '{ printf " %.0f s, %.0f MB |", $1, $2 * 1.024e-3 }' "$work/time"
}
echo "| cells | plan | run | run again | digest | verify | merge | export | report | diff |"
echo "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
for cells in "$@"; do
  sh "$load" "$cells" > load.toml
  rm -rf a b c
  printf '| %s |' "$cells"
  measured plan load.toml
  measured run load.toml --out a --yes --quiet
  measured run load.toml --out a --yes --quiet
  measured digest a
  measured verify a
  cp -r a b
  measured merge a b --out c
  rm -rf c
  measured export a --out rows.parquet
  measured report a --out pages --quiet
  measured diff a b
  echo
done
