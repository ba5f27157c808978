#!/usr/bin/env bash
# Measures the times that README.md and docs/PERFORMANCE.md state, and prints them as a table:
#
#   scripts/times.sh [FOLDER]
#   scripts/times.sh --check [TIMES LOG]
#
# With --check it compares the processor time of building, testing and reproducing with the committed
# table, docs/notes/times.toml, and exits with 1 if their sum has grown by more than
# scripts/check_times.py allows. The times are those that it measures, or those of TIMES, which scripts/measure.py
# wrote, and of LOG, which is what `exactfed reproduce` wrote to standard error.
#
# The committed state is cloned into FOLDER (target/times by default), which is made anew, and built,
# run and tested there. Dependencies are downloaded before the clock starts. The tests in a browser
# are measured where chromium, chromedriver and npm are installed. Takes up to an hour on two cores,
# which should have nothing else to do: the last column is the load when a step began.
set -euo pipefail
cd "$(dirname "$0")/.."
check=
if [ "${1:-}" = --check ]; then
    [ $# -lt 3 ] || exec python3 scripts/check_times.py docs/notes/times.toml "$2" "$3"
    check=1
    shift
fi
folder=${1:-target/times}
rm -rf "$folder"
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
git clone --quiet --no-hardlinks . "$folder/clone"
cd "$folder/clone"
export CARGO_TARGET_DIR="$folder/target" CARGO_TERM_COLOR=never
cargo fetch --quiet --locked

now() { date +%s%N; }
# words MILLISECONDS: a duration as in "4 min 26 s".
words() {
    local seconds=$((($1 + 500) / 1000))
    if [ "$1" -lt 10000 ]; then
        printf '%d.%d s' $(($1 / 1000)) $(($1 % 1000 / 100))
    elif [ $seconds -lt 60 ]; then
        printf '%d s' $seconds
    else
        printf '%d min %d s' $((seconds / 60)) $((seconds % 60))
    fi
}
row() { # row WHAT COMMAND MILLISECONDS LOAD
    echo "| $1 | \`$2\` | $(words "$3") | $4 |" | tee -a "$folder/table.md" >&2
}
load() { cut -d ' ' -f 1 /proc/loadavg; }
fail() {
    echo "error: $1 failed; its output is in $folder/log" >&2
    exit 1
}
# processor_time WHAT COMMAND...: adds a line with the processor time of a command.
processor_time() {
    python3 scripts/measure.py "$folder/reference_loop" "$folder/times" "$@" > "$folder/log" 2>&1 || fail "$*"
}
# step WHAT COMMAND: runs a command and adds a row.
step() {
    local begin before
    before=$(load)
    begin=$(now)
    eval "$2" > "$folder/log" 2>&1 || fail "$2"
    row "$1" "$2" $((($(now) - begin) / 1000000)) "$before"
}
if [ -n "$check" ]; then
    rustc -O --edition 2024 examples/reference_loop.rs -o "$folder/reference_loop"
    processor_time "build from nothing" cargo build --release --locked
    processor_time "build tests from nothing" cargo test --release --locked --no-run
    processor_time tests make test
    processor_time reproduce make reproduce
    cp "$folder/log" "$folder/reproduce.log"
    exec python3 scripts/check_times.py docs/notes/times.toml "$folder/times" "$folder/reproduce.log"
fi

processor=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
wide=$(grep -qw avx512f /proc/cpuinfo && echo "with AVX-512" || echo "without AVX-512")
{
    echo "$(nproc) cores of: $processor, $wide; $(rustc --version); commit $(git rev-parse --short HEAD)"
    echo
    echo "| what | command | time | load |"
    echo "| --- | --- | --- | --- |"
} | tee "$folder/table.md" >&2

step "build, from nothing" "make build"
# All experiments, and when the first page could be read.
before=$(load)
begin=$(now)
make reproduce > "$folder/log" 2>&1 &
run=$!
page=
while kill -0 $run 2> /dev/null; do
    if [ -z "$page" ]; then
        page=$(find reports -name report.html -print -quit)
        [ -z "$page" ] || first=$(now)
    fi
    sleep 0.1
done
wait $run || fail "make reproduce"
row "all experiments and reports, from nothing" "make reproduce" $((($(now) - begin) / 1000000)) "$before"
row "of these, until the first page is written" "make reproduce" $(((${first:-$(now)} - begin) / 1000000)) "$before"
step "the same again: nothing is left to compute" "make reproduce"
step "all reports" "cargo run --quiet --release --locked -- report"
step "tests, their build from nothing" "cargo test --release --locked --no-run"
step "tests" "make test"
touch src/lib.rs
step "program and tests, after a change of src/lib.rs" "cargo build --release --locked && cargo test --release --locked --no-run"
if command -v chromium > /dev/null && command -v chromedriver > /dev/null && command -v npm > /dev/null; then
    step "tests in a browser, with their build" "make browser"
fi
cat "$folder/table.md"
