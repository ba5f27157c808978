#!/bin/sh
# Fuzzes the code that reads input (fuzz/README.md):
#
#   scripts/fuzz.sh TARGET [SECONDS [ARGUMENTS OF libFuzzer ...]]
#
# TARGET is one of fuzz/targets; SECONDS is 600 by default. The seeds are the manifests,
# data files and reports of the repository, and fuzz/seeds. Findings are written to
# fuzz/artifacts/TARGET and the corpus to fuzz/corpus/TARGET; neither is committed.
# The script needs the nightly toolchain and `cargo install cargo-fuzz --locked`.
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
[ -f "targets/$target.rs" ] || fail "there is no target $target; the targets are $all"

corpus=$PWD/corpus/$target
seeds=$PWD/target/seeds/$target
words=$PWD/target/words-$target
rm -rf "$seeds"
mkdir -p "$corpus" "$seeds" "artifacts/$target"

# Writes standard input as a libFuzzer dictionary: one word per line.
dictionary() {
    sed 's/[\\"]/\\&/g; s/.*/"&"/' | LC_ALL=C sort -u > "$words"
}

most=4096
case $target in
manifest)
    # Every key and name that a manifest may contain. The backticks are those of Markdown.
    # shellcheck disable=SC2016
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
# Each input of this target covers much of the program, so that counting rare features would
# take longer than running the inputs.
[ "$target" != results ] || set -- -entropic=0 "$@"
case $target in
results | parquet)
    # The seeds are files that the program writes, so the target generates them.
    EXACTFED_SEEDS=$PWD/target/seeds timeout -k 30 3600 cargo +nightly fuzz run -O results -- -runs=1
    most=16384
    ;;
esac
[ ! -d "seeds/$target" ] || cp "seeds/$target"/* "$seeds"

# The extra hour is for the build; the fuzzer itself stops in time.
exec timeout -k 30 $((seconds + 3600)) cargo +nightly fuzz run -O "$target" "$corpus" "$seeds" -- \
    -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -malloc_limit_mb=2048 \
    -max_len="$most" -dict="$words" -print_final_stats=1 "$@"
