#!/bin/sh
# Compares exactfed's estimate of the memory of a run with the memory that it takes:
#
#   scripts/memory.sh [PROGRAM]
#
# Prints one line per case: the estimate, the peak of the process minus that of a
# minimal run, and their ratio. Needs GNU time.
set -eu

program=${1:-target/release/exactfed}
time=/usr/bin/time
command -v "$time" > /dev/null || { echo "error: $time, GNU time, is missing" >&2 && exit 2; }
[ -x "$program" ] || { echo "error: $program does not exist: run make build" >&2 && exit 2; }
program=$(cd "$(dirname "$program")" && pwd)/$(basename "$program")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# manifest KIND SETTINGS RECORD ROUNDS REPLICATES ALGORITHM: writes case.toml.
manifest() {
    printf 'title = "memory"\nseed = 1\nreplicates = %s\n\n[problem.%s]\n%b\n' "$5" "$1" "$2" > case.toml
    printf '\n[start]\noffset = 1.0\n\n[budget]\nrounds = %s\n\n[record]\n%b\n' "$4" "$3" >> case.toml
    printf '\n[[algorithm.%s]]\nstep-size = 0.01\nlocal-steps = 1\n' "$6" >> case.toml
}

# peak: prints the peak memory of running case.toml, in kilobytes.
peak() {
    rm -rf results
    timeout -k 10 1200 "$time" -f %M -o peak "$program" run case.toml --quiet --yes --threads 2
    cat peak
}

# case_of NAME ARGUMENTS...: measures one case; the arguments are those of manifest.
case_of() {
    name=$1
    shift
    manifest "$@"
    # One byte is never enough, so the message states the estimate.
    said=$(timeout -k 10 300 "$program" run case.toml --memory 1 --threads 2 2>&1) || true
    estimate=$(printf '%s\n' "$said" | sed -n 's/.*needs about \([0-9.]*\) \([kMGT]*\)B of.*/\1 \2/p')
    printf '%s %s %s\n' "$estimate" "$(peak)" "$name"
}

spectrum='spectrum = { from = 0.5, to = 1.0 }'
small="dimension = 2\nclients = 2\nnoise = 0.1\n$spectrum"
manifest quadratic "$small" 'points = 2' 2 1 fedavg
base=$(peak)
{
    case_of 'quadratic, 300 clients, d = 300' \
        quadratic "dimension = 300\nclients = 300\nnoise = 0.1\n$spectrum" 'points = 2' 2 1 fedavg
    case_of 'least mean squares, 300 clients, d = 300' \
        lms "dimension = 300\nclients = 300\nnoise = 0.1\n$spectrum" 'points = 2' 2 1 fedavg
    case_of 'Garnet, 40 clients, 600 states' \
        garnet 'states = 600\nactions = 2\nbranching = 2\nfeatures = 8\ndiscount = 0.9\nclients = 40\nheterogeneity = "independent"' \
        'points = 2' 2 1 fedavg
    case_of 'Garnet, 200 clients, 30 states, dense' \
        garnet 'states = 100\nactions = 20\nbranching = 50\nfeatures = 8\ndiscount = 0.9\nclients = 200\nheterogeneity = "independent"' \
        'points = 2' 2 1 fedavg
    case_of 'logistic, 20 clients, 10 000 records each, d = 50' \
        logistic 'dimension = 50\nrecords = 10000\nclients = 20\nsplit = "own"\nl2 = 0.1\ndata = { noisy = { spread = 1.0 } }' \
        'points = 2' 2 1 fedavg
    case_of 'states of Scaffold, 200 000 clients, d = 2' \
        quadratic "dimension = 2\nclients = 200000\nnoise = 0.1\n$spectrum" 'points = 2' 2 4 scaffold
    case_of 'traces of 2 replicates, a million rounds' quadratic "$small" 'every = 1' 1000000 2 fedavg
    case_of 'iterates of 10 replicates, 1000 rounds, d = 1000' \
        quadratic "dimension = 1000\nclients = 1\nnoise = 0.1\n$spectrum" \
        'every = 1\niterates = true' 1000 10 fedavg
} | awk -v base="$base" '
    BEGIN { unit["k"] = 1e3; unit["M"] = 1e6; unit["G"] = 1e9; unit["T"] = 1e12
            print "estimate MB, peak MB, peak / estimate" }
    { estimate = $1 * unit[$2]; peak = ($3 - base) * 1024
      name = $0; sub(/^[^ ]+ [^ ]+ [^ ]+ /, "", name)
      printf "%8.1f %8.1f %6.2f  %s\n", estimate / 1e6, peak / 1e6, peak / estimate, name }'
