#!/bin/sh
# Checks that results have the same bits everywhere: runs experiments/smoke in several
# ways that must not change the results, and compares the digest of each cell with that
# of a run with one thread on this machine.
#
#   scripts/portability.sh            everything
#   scripts/portability.sh quick      threads, shards, kill, and SSE2, as .ci/run does
#   scripts/portability.sh x86        everything except the build for aarch64
#   scripts/portability.sh aarch64    only the build for aarch64, and one thread here
#
# It covers threads, shards and a run that was killed; x86-64 processors with SSE2, SSE4.2
# and AVX2, emulated by qemu-user, which run the program itself and whose reports are also
# compared byte for byte; aarch64, by a cross-build of the example `digests` of
# crates/runner; and problems of more dimensions, whose solves use other code paths in faer. The
# script writes only below target/. It exits with 1 if anything differs and with 2 if
# something could not be run.
set -eu

asked=${1:-all}
case $asked in
    all | quick | x86 | aarch64) ;;
    *) echo "usage: $0 [quick | x86 | aarch64]" >&2; exit 2 ;;
esac
cd "$(dirname "$0")/.." || exit 2
here=$(pwd)
work=$here/target/portability
log=$work/log
code=0
target=${CARGO_TARGET_DIR:-$here/target}
program=$target/release/exactfed
digests=$target/release/examples/digests
files=$(find experiments/smoke -name '*.toml' | LC_ALL=C sort)
cargo=${CARGO:-cargo}

fail() {
    echo "error: $*" >&2
    exit 2
}

# row WHERE PATH CELLS VERDICT BEGIN: prints one line of the table.
row() {
    printf '%-40s %-15s %5s  %-28s %4s s\n' "$1" "$2" "$3" "$4" "$(($(date +%s) - $5))"
}

lines() { wc -l < "$1" | tr -d ' '; }

# judge WHERE PATH FILE EXPECTED BEGIN [NOTE]: compares digests and prints the row.
judge() {
    if [ -s "$3" ] && cmp -s "$3" "$4"; then
        row "$1" "$2" "$(lines "$3")" "equal${6:-}" "$5"
    else
        row "$1" "$2" "$(lines "$3")" "DIFFERENT${6:-}" "$5"
        diff "$4" "$3" | head -n 6 || true
        code=1
    fi
}

# left_out WHERE REASON: prints the row of a case that could not be run.
left_out() {
    printf '%-40s not run: %s\n' "$1" "$2"
    [ "$code" -ne 0 ] || code=2
}

# Every program has a deadline: one that hangs is killed, which is a failure.
bounded() { timeout -k 10 1200 "$@"; }

# go NAME CPU ARGUMENTS...: runs exactfed on that processor with the manifests, and writes
# the digests to a file.
go() {
    name=$1 as=$2
    shift 2
    # Manifest paths contain no spaces, since they name the results.
    # shellcheck disable=SC2086
    by "$as" "$program" "$@" --quiet --out "$work/$name" $files 2>> "$log" ||
        fail "$name does not run; see $log"
    bounded "$program" digest "$work/$name" > "$work/$name.txt"
}

# by CPU COMMAND...: runs a command on that emulated processor, or on this one.
by() {
    cpu=$1
    shift
    case $cpu in
        native) bounded "$@" ;;
        aarch64) bounded qemu-aarch64 -L /usr/aarch64-linux-gnu "$@" ;;
        *) bounded qemu-x86_64 -cpu "$cpu" "$@" ;;
    esac
}

# path CPU DIGESTS: prints the code path that the kernels use there.
path() {
    by "$1" "$2" experiments/smoke/diverging.toml 2>&1 > /dev/null | tail -n 1
}

threads_and_shards() {
    for threads in 2 7; do
        begin=$(date +%s)
        go "threads-$threads" native run --threads "$threads"
        judge "$threads threads" "$taken" "$work/threads-$threads.txt" "$expected" "$begin"
    done
    for shards in 3 5; do
        begin=$(date +%s)
        for shard in $(seq "$shards"); do
            go "shards-$shards" native run --shard "$shard/$shards"
        done
        judge "$shards shards" "$taken" "$work/shards-$shards.txt" "$expected" "$begin"
    done
}

# A run that is killed when some cells are stored, and then run again.
killed() {
    begin=$(date +%s)
    out=$work/killed
    # shellcheck disable=SC2086
    "$program" run --quiet --threads 1 --out "$out" $files 2>> "$log" &
    pid=$!
    looks=0
    while kill -0 "$pid" 2> /dev/null && [ "$looks" -lt 10000 ] &&
        [ "$(find "$out" -type f 2> /dev/null | wc -l)" -lt 100 ]; do
        sleep 0.02
        looks=$((looks + 1))
    done
    kill -9 "$pid" 2> /dev/null || true
    wait "$pid" 2> /dev/null || true
    before=$(bounded "$program" digest "$out" | wc -l | tr -d ' ')
    go killed native run
    if [ "$before" -lt "$(lines "$expected")" ]; then
        judge "killed, and run again" "$taken" "$work/killed.txt" "$expected" "$begin" \
            " ($before before)"
    else
        left_out "killed, and run again" "it finished before it could be killed"
    fi
}

# Runs the program itself on an emulated x86-64 processor: its cells and its reports.
emulated() {
    begin=$(date +%s)
    path=$(path "$1" "$digests")
    go "$1" "$1" run --threads 2
    judge "$2 (qemu $1)" "$path" "$work/$1.txt" "$expected" "$begin"
    begin=$(date +%s)
    by "$1" "$program" report --quiet "$work/$1" --out "$work/$1-reports" 2>> "$log" ||
        fail "no reports as $1; see $log"
    count=$(find "$work/$1-reports" -type f ! -name provenance.md | wc -l | tr -d ' ')
    if diff -rq -x provenance.md "$work/native-reports" "$work/$1-reports" > "$work/$1.diff"; then
        row "  its reports, files" "$path" "$count" equal "$begin"
    else
        row "  its reports, files" "$path" "$count" DIFFERENT "$begin"
        head -n 6 "$work/$1.diff"
        code=1
    fi
}

# larger CPU DIGESTS OUT: runs the problems of experiments/smoke in more dimensions.
larger() {
    : > "$3"
    for problem in "lms problem.lms.dimension=40" "logistic problem.logistic.dimension=130" \
        "garnet problem.garnet.states=200 --set problem.garnet.features=130" \
        "quadratic problem.quadratic.dimension=12"; do
        # The manifest and its settings are separate words.
        # shellcheck disable=SC2086
        set -- "$1" "$2" "$3" $problem
        manifest=experiments/smoke/all-$4.toml
        cpu=$1 bin=$2 out=$3
        shift 4
        by "$cpu" "$bin" --threads 2 --set "$@" "$manifest" >> "$out" 2>> "$log" ||
            fail "$manifest does not run as $cpu; see $log"
        set -- "$cpu" "$bin" "$out"
    done
}

more_dimensions() {
    begin=$(date +%s)
    larger "$1" "$2" "$work/$1-larger.txt"
    judge "  more dimensions" "$(path "$1" "$2")" "$work/$1-larger.txt" \
        "$work/native-larger.txt" "$begin"
}

# Unpacks Debian's compiler and its standard library for aarch64 below target/, without
# installing them. Used if rustup cannot fetch the target.
debian_compiler() {
    command -v apt-get > /dev/null && command -v dpkg > /dev/null || return 1
    apt=$work/apt
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/packages"
    set -- -q -o Dir::State::lists="$apt/lists" -o Dir::Cache="$apt/cache" \
        -o APT::Architectures::=amd64 -o APT::Architectures::=arm64 -o Debug::NoLocking=1
    needs() { apt-cache "$@" | grep -m 1 '^Depends:'; }
    if [ ! -x "$apt/root/usr/bin/rustc" ]; then
        bounded apt-get "$@" update >> "$log" 2>&1 || return 1
        std=$(needs "$@" --no-all-versions show libstd-rust-web-dev:arm64 |
            sed -n 's/.*\(libstd-rust-web-[0-9.]*\).*/\1/p')
        llvm=$(needs "$@" --no-all-versions show "$std:amd64" |
            sed -n 's/.*\(libllvm[0-9]*\).*/\1/p')
        [ -n "$std" ] && [ -n "$llvm" ] || return 1
        (cd "$apt/packages" && bounded apt-get "$@" download rustc-web:amd64 libstd-rust-web-dev:amd64 \
            "$std:amd64" "$llvm:amd64" libstd-rust-web-dev:arm64 >> "$log" 2>&1) || return 1
        for package in "$apt"/packages/*.deb; do
            dpkg -x "$package" "$apt/root" || return 1
        done
    fi
    RUSTC=$apt/root/usr/bin/rustc
    LD_LIBRARY_PATH=$apt/root/usr/lib/x86_64-linux-gnu
    export RUSTC LD_LIBRARY_PATH
    "$RUSTC" --version >> "$log" 2>&1
}

# Builds the example digests for aarch64.
cross_build() (
    CARGO_TARGET_DIR=$work/cross
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
    export CARGO_TARGET_DIR CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER
    command -v rustup > /dev/null &&
        timeout 60 rustup target add aarch64-unknown-linux-gnu >> "$log" 2>&1 ||
        debian_compiler || exit 1
    timeout -k 10 7200 "$cargo" build --quiet --release --locked --target aarch64-unknown-linux-gnu \
        -p exactfed-runner --example digests >> "$log" 2>&1
)

aarch64() {
    for needed in qemu-aarch64:qemu-user aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu; do
        if ! command -v "${needed%%:*}" > /dev/null; then
            left_out aarch64 "${needed%%:*} is missing (Debian: ${needed##*:}, libc6-dev-arm64-cross)"
            return
        fi
    done
    if ! cross_build; then
        left_out aarch64 "the example digests does not build for it; see $log"
        return
    fi
    begin=$(date +%s)
    bin=$work/cross/aarch64-unknown-linux-gnu/release/examples/digests
    # shellcheck disable=SC2086
    by aarch64 "$bin" --threads 2 $files > "$work/aarch64.txt" 2>> "$log" ||
        fail "aarch64 does not run; see $log"
    judge "aarch64 (qemu)" "$(path aarch64 "$bin")" "$work/aarch64.txt" "$expected" "$begin"
    more_dimensions aarch64 "$bin"
}

# The cases in which the program itself can run here.
x86() {
    threads_and_shards
    killed
    if [ "$(uname -m)" != x86_64 ]; then
        left_out "x86-64" "the program is built for $(uname -m)"
    elif command -v qemu-x86_64 > /dev/null; then
        emulated qemu64 "SSE2"
        [ "$asked" != quick ] || return 0
        more_dimensions qemu64 "$digests"
        emulated Nehalem "SSE4.2"
        emulated Haswell "AVX2"
        more_dimensions Haswell "$digests"
    else
        left_out "x86-64" "qemu-x86_64 is missing (Debian: qemu-user)"
    fi
}

mkdir -p "$work"
# The products of earlier builds are kept.
find "$work" -mindepth 1 -maxdepth 1 ! -name cross ! -name apt -exec rm -rf {} +
: > "$log"
timeout -k 10 7200 "$cargo" build --release --locked --bin exactfed --example digests
taken=$(path native "$digests")

printf '%-40s %-15s %5s  %-28s %s\n' where path cells digests time
begin=$(date +%s)
go native native run --threads 1
expected=$work/native.txt
row "1 thread: reference for the others" "$taken" "$(lines "$expected")" "" "$begin"
bounded "$program" report --quiet "$work/native" --out "$work/native-reports" 2>> "$log"
[ "$asked" = quick ] || larger native "$digests" "$work/native-larger.txt"
[ "$asked" = aarch64 ] || x86
case $asked in all | aarch64) aarch64 ;; esac
case $code in
    0) echo "All results are equal." ;;
    1) echo "Some results differ: results and log are in target/portability." ;;
    2) echo "All results are equal, but some cases could not be run." ;;
esac
exit "$code"
