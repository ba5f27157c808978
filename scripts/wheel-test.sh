#!/usr/bin/env bash
# Installs the wheel of a folder into a new environment of each Python named, and runs the tests: of as
# many at once as there are processors, since tests have deadlines. The wheel has one engine for all versions of
# Python, whose numbers are tested with the first one alone.
set -euo pipefail
cd "$(dirname "$0")/.."
wheel=$(ls "$1"/*.whl)
shift
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2> /dev/null || true; rm -rf "$folder"' EXIT
check() { # check PYTHON ENVIRONMENT [OPTION OF PYTEST...]
  "$1" --version
  "$1" -m venv "$2"
  "$2/bin/pip" install -q --disable-pip-version-check "${wheel}[test]"
  "$2/bin/python" -m pytest -q -p no:cacheprovider "${@:3}" python/tests
  # The program as pip installs it.
  "$2/bin/exactfed" --version
}
running=() options=()
for python in "$@"; do
  while [ "$(jobs -rp | wc -l)" -ge "$(getconf _NPROCESSORS_ONLN)" ]; do sleep 1; done
  environment="$folder/${#running[@]}"
  (check "$python" "$environment" "${options[@]}") > "$environment.log" 2>&1 &
  running+=($!) options=(-m "not engine")
done
# What failed is printed last, where a reader of the end finds it.
failed=()
for k in "${!running[@]}"; do
  if wait "${running[$k]}"; then echo "== $(cat "$folder/$k.log")"; else failed+=("$k"); fi
done
for k in "${failed[@]}"; do
  echo "== FAILED: $(cat "$folder/$k.log")"
done
[ ${#failed[@]} -eq 0 ]
