#!/bin/sh
# Compares the reports of a fresh run with the committed ones, byte for byte:
#
#   scripts/fresh.sh FOLDER
#
# FOLDER/reports contains what `exactfed reproduce` wrote, beside results in a new folder. Every file
# below reports/ that git tracks must be there with the same bytes, and nothing else that git would
# track. Prints what differs; the exit code is 0, 1 if anything differs, or 2 if it cannot compare.
set -eu

# Lines of a difference that are printed, and characters of each.
MOST=100
WIDE=160

fail() {
    echo "error: $*" >&2
    exit 2
}

fresh=${1:?"FOLDER, which contains the reports of a fresh run, is missing"}
[ -d "$fresh/reports" ] || fail "$fresh/reports is not a folder"
fresh=$(cd "$fresh" && pwd)
cd "$(dirname "$0")/.."
git rev-parse --verify --quiet HEAD > /dev/null || fail "comparing with committed reports needs git"

# git compares the commit with the folder as if it were the work tree: an index of its own knows
# nothing of the files' times, so that all of them are read.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
GIT_DIR=$(git rev-parse --absolute-git-dir)
GIT_INDEX_FILE=$work/index
GIT_WORK_TREE=$work/tree
export GIT_DIR GIT_INDEX_FILE GIT_WORK_TREE
mkdir "$GIT_WORK_TREE"
cp -R "$fresh/reports" "$GIT_WORK_TREE/reports"
cp .gitignore "$GIT_WORK_TREE/"
git read-tree HEAD
cd "$GIT_WORK_TREE"
compare() {
    git -c core.fileMode=false -c core.autocrlf=false -c core.quotePath=false \
        diff -U0 --no-ext-diff --no-textconv --no-renames --no-color "$@" HEAD -- reports
}
extra=$(git -c core.quotePath=false ls-files --others --exclude-standard -- reports)
if [ -z "$extra" ] && compare --quiet; then
    echo "the reports of a fresh run are the committed ones: $(git ls-files reports | wc -l) files"
    exit 0
fi
{
    compare --name-status | sed -e 's/^D\t/missing  /' -e 's/^[A-Z]\t/changed  /'
    [ -z "$extra" ] || echo "$extra" | sed 's/^/extra    /'
    echo
    compare | cut -c "1-$WIDE" | head -n "$MOST"
    echo
    echo "error: the reports of a fresh run are not the committed ones (of the differences $MOST lines are"
    echo "printed at most): a manifest or the program was changed after they were written. Run"
    echo "\`make reproduce\`, read what changes, and commit it."
} >&2
exit 1
