#!/bin/sh
# Builds and runs two versions of exactfed and compares their results:
#
#   scripts/diff-runs.sh BASE [EXPERIMENTS [ARGUMENTS OF diff ...]]
#
# "Before" is the git revision BASE, in a separate worktree; "after" is the working
# tree as it is. Each version runs its own manifests below EXPERIMENTS (by default
# experiments/smoke) with its own program. The exit code is that of diff, or 2 if an
# earlier step fails. The worktree is always removed; the results stay in target/diff/.
set -eu

base=${1:?"BASE, a git revision, is missing"}
experiments=${2:-experiments/smoke}
shift
[ $# -eq 0 ] || shift

fail() {
    echo "error: $*" >&2
    exit 2
}

command -v git > /dev/null || fail "running another revision needs git"
cd "$(dirname "$0")/.." || exit 2
here=$(pwd)
commit=$(git rev-parse --verify --quiet --end-of-options "$base^{commit}") ||
    fail "$base is not a git revision"
work=$here/target/diff
tree=$work/tree
# Both builds use one target folder, so that dependencies are compiled once.
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$here/target}"

clean() {
    git worktree remove --force "$tree" > /dev/null 2>&1 || rm -rf "$tree"
    git worktree prune
}
trap clean EXIT
trap 'exit 130' INT TERM

mkdir -p "$work"
clean
rm -rf "$work/before" "$work/after"
echo "before: $base, commit $commit" >&2
if [ -n "$(git status --porcelain)" ]; then
    echo "after: the working tree as it is, with uncommitted changes" >&2
else
    echo "after: the working tree, commit $(git rev-parse HEAD)" >&2
fi
git worktree add --quiet --detach "$tree" "$commit" || fail "$base cannot be checked out"

# build FOLDER PROGRAM: builds the sources in FOLDER and copies the program to PROGRAM. To cargo the
# packages of both folders are the same, and files older than the other build are unchanged.
build() {
    (cd "$1" && ${CARGO:-cargo} clean --quiet --release --workspace && ${CARGO:-cargo} build --quiet --release --locked) ||
        fail "$1 does not build"
    cp "$CARGO_TARGET_DIR/release/exactfed" "$2"
}

# results FOLDER PROGRAM OUT: runs the manifests of FOLDER.
results() {
    files=$(cd "$1" && [ -e "$experiments" ] && find "$experiments" -name '*.toml' | sort) || files=
    if [ -z "$files" ]; then
        echo "$1 has no manifests in $experiments" >&2
        return
    fi
    code=0
    # Manifest paths contain no spaces, since they name the results.
    # shellcheck disable=SC2086
    (cd "$1" && "$2" run --quiet --out "$3" $files) || code=$?
    # The comparison reports failed cells (exit code 4).
    [ "$code" -eq 0 ] || [ "$code" -eq 4 ] || fail "$1 does not run ($code)"
}

build "$tree" "$work/exactfed-before"
build "$here" "$work/exactfed-after"
results "$tree" "$work/exactfed-before" "$work/before"
results "$here" "$work/exactfed-after" "$work/after"
[ -d "$work/before" ] || fail "there is nothing to run in $experiments at $base"
[ -d "$work/after" ] || fail "there is nothing to run in $experiments"
code=0
"$work/exactfed-after" diff target/diff/before target/diff/after "$@" || code=$?
exit "$code"
