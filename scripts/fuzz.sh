#!/bin/sh
# Fuzzes what reads input (fuzz/README.md):
#
#   scripts/fuzz.sh TARGET [SECONDS [ARGUMENTS OF libFuzzer ...]]
#
# TARGET is one of fuzz/targets, SECONDS 600 by default. Seeds are the manifests, data
# files and reports that are here anyway, and fuzz/seeds. What is found goes to
# fuzz/artifacts/TARGET, the corpus to fuzz/corpus/TARGET; neither is committed.
# Needs the nightly toolchain and `cargo install cargo-fuzz --locked`.
set -eu

fail() {
    echo "error: $*" >&2
    exit 2
}

cd "$(dirname "$0")/../fuzz"
all=$(cd targets && echo *.rs | sed 's/\.rs//g')
target=${1:?"TARGET is missing: one of $all"}
seconds=${2:-600}
shift
[ $# -eq 0 ] || shift
[ -f "targets/$target.rs" ] || fail "there is no target $target, only $all"

corpus=$PWD/corpus/$target
seeds=$PWD/target/seeds/$target
words=$PWD/target/words-$target
rm -rf "$seeds"
mkdir -p "$corpus" "$seeds" "artifacts/$target"

# A dictionary of libFuzzer: each line a word.
dictionary() {
    sed 's/[\\"]/\\&/g; s/.*/"&"/' | LC_ALL=C sort -u > "$words"
}

most=4096
case $target in
manifest)
    # Every key and name that a manifest may hold.
    grep -oE '`\[*[a-z][a-z0-9.-]*\]*( = "[a-z-]+")?`' ../docs/MANIFEST.md | tr -d '`' | dictionary
    for file in ../experiments/smoke/*.toml; do
        cp "$file" "$seeds"
    done
    ;;
npz | csv | libsvm | parquet)
    for file in ../experiments/smoke/data/*."$target"; do
        [ ! -f "$file" ] || cp "$file" "$seeds"
    done
    printf '%s\n' label client x y A b p phi P r mu gamma '<f8' '>i4' "'descr': '" \
        "'fortran_order': True" "'shape': (" nan inf -0 1e308 PAR1 | dictionary
    ;;
records)
    for report in ../reports/smoke/*/; do
        { cat "$report/record.toml"; printf '\n%%%%%%\n'; cat "$report/finals.csv"; } \
            > "$seeds/$(basename "$report")"
    done
    ;;
esac
case $target in
results | records)
    printf '%s\n' schema version id experiment label digest bytes sha256 seconds provenance \
        cell name manifest overrides text files finals settings claim seed diverged PAR1 %%% |
        dictionary
    ;;
esac
# Of a target whose inputs each light much of the program, rare features are counted for
# longer than the inputs run.
[ "$target" != results ] || set -- -entropic=0 "$@"
case $target in
results | parquet)
    # These are files that the program writes: the target makes them.
    DRIFTBENCH_SEEDS=$PWD/target/seeds timeout -k 30 3600 cargo +nightly fuzz run -O results -- -runs=1
    most=16384
    ;;
esac
[ ! -d "seeds/$target" ] || cp "seeds/$target"/* "$seeds"

# An hour is for the build; the fuzzer itself ends in time.
exec timeout -k 30 $((seconds + 3600)) cargo +nightly fuzz run -O "$target" "$corpus" "$seeds" -- \
    -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -malloc_limit_mb=2048 \
    -max_len="$most" -dict="$words" -print_final_stats=1 "$@"
