#!/bin/sh
# Compiles the worked examples of CONTRIBUTING.md, docs/adding/*.patch, all at once:
#
#   scripts/adding.sh
#
# The patches are applied to a copy of the tracked files, with a target folder of its own: cargo would
# take what it compiles of the copy for what it would compile here. The exit code is 0, or 2 if a patch does not apply or the copy does not compile. Needs git.
set -eu
cd "$(dirname "$0")/.."
root=$PWD
target=${CARGO_TARGET_DIR:-$root/target}
work=$target/adding/tree
rm -rf "$work"
mkdir -p "$work"
# Everything that is compiled or included.
git ls-files -z -- ':!reports' ':!docs' | tar -c --null -T - -f - | tar -x -C "$work" -f -
for patch in "$root"/docs/adding/*.patch; do
    # Inside a work tree git would look for the files of its index; the copy is none of them.
    (cd "$work" && GIT_CEILING_DIRECTORIES=$target git apply -C1 "$patch") || {
        echo "error: $patch does not apply: make it again" >&2
        exit 2
    }
done
cd "$work"
CARGO_TARGET_DIR=$target/adding/target "${CARGO:-cargo}" check --release --locked --all-targets \
    -p exactfed-core -p exactfed-runner -p exactfed-evidence || exit 2
echo "the examples of docs/adding compile"
