#!/usr/bin/env bash
# Measures the times that README.md and docs/PERFORMANCE.md state, and prints them as a table:
#
#   scripts/times.sh [FOLDER]
#   scripts/times.sh --check [TIMES LOG]
#   scripts/times.sh --children FILE
#
# With --check it compares the processor time of building, testing and reproducing with the committed
# table, docs/notes/times.toml, and exits with 1 if their sum has grown by more than 5 %
# (scripts/check_times.py). The times are those that it measures, or those of TIMES, which has lines with a name, a tab
# and seconds, and of LOG, which is what `exactfed reproduce` wrote to standard error. With --children it
# prints the processor time of child processes, in seconds, from what bash's `times` wrote to FILE.
#
# The committed state is cloned into FOLDER (target/times by default), which is made anew, and built,
# run and tested there. Dependencies are downloaded before the clock starts. The tests in a browser
# are measured where chromium, chromedriver and npm are installed. Takes up to an hour on two cores,
# which should have nothing else to do: the last column is the load when a step began.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "${1:-}" = --children ]; then
    # The second line is that of children, such as "12m3.456s 0m1.234s".
    awk 'NR == 2 {
        seconds = 0
        for (i = 1; i <= 2; i++) {
            split($i, parts, /[ms]/)
            seconds += 60 * parts[1] + parts[2]
        }
        printf "%.3f\n", seconds
    }' "$2"
    exit
fi
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
# processor_time WHAT COMMAND: adds a line with the processor time of a command.
processor_time() {
    local before after
    times > "$folder/clock"
    before=$(scripts/times.sh --children "$folder/clock")
    eval "$2" > "$folder/log" 2>&1 || fail "$2"
    times > "$folder/clock"
    after=$(scripts/times.sh --children "$folder/clock")
    awk -v what="$1" -v a="$before" -v b="$after" \
        'BEGIN { printf "%s\t%.2f\n", what, b - a }' >> "$folder/times"
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
    unit() { processor_time unit "$folder/target/release/examples/reference_loop"; }
    processor_time "build from nothing" "cargo build --release --locked"
    processor_time "build tests from nothing" "cargo test --release --locked --no-run"
    unit
    processor_time tests "make test"
    unit
    processor_time reproduce "make reproduce"
    cp "$folder/log" "$folder/reproduce.log"
    unit
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
