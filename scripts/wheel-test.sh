#!/usr/bin/env bash
# Installs the wheel of a folder into a new environment of each Python named, and runs the tests.
set -euo pipefail
cd "$(dirname "$0")/.."
wheel=$(ls "$1"/*.whl)
shift
environment=$(mktemp -d)
trap 'rm -rf "$environment"' EXIT
for python in "$@"; do
  echo "== $("$python" --version)"
  "$python" -m venv --clear "$environment"
  "$environment/bin/pip" install -q --disable-pip-version-check "$wheel[test]"
  "$environment/bin/python" -m pytest -q python/tests
  # The program as pip installs it.
  "$environment/bin/exactfed" --version
done
