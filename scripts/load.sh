#!/bin/sh
# Writes a manifest of many small cells, to measure the cost of many cells:
#
#   scripts/load.sh CELLS > load.toml
#
# CELLS is a multiple of 200, at least 1000, such as 100000. The cells are as small as
# possible: two clients in two dimensions, four rounds, two replicates, three recorded
# rounds. 200 cells are FedAvg's, which the figure and the claims use; the others are
# Scaffold's.
set -eu

cells=${1:?"CELLS, a multiple of 200, is missing"}
case $cells in
    *[!0-9]* | '') echo "error: CELLS must be a number, not $cells" >&2 && exit 2 ;;
esac
if [ "$cells" -lt 1000 ] || [ $((cells % 200)) -ne 0 ]; then
    echo "error: CELLS must be a multiple of 200 and at least 1000, not $cells" >&2
    exit 2
fi

# values COUNT STEP: prints STEP, 2 STEP, ... as a TOML array.
values() {
    awk -v count="$1" -v step="$2" 'BEGIN {
        for (i = 1; i <= count; i++) printf "%s%.6g", (i > 1 ? ", " : "["), i * step
        print "]"
    }'
}

# For each of two noise levels: 100 cells of FedAvg and 100 times $sizes of Scaffold.
sizes=$((cells / 200 - 1))
cat << END
title = "$cells small cells"
source = "Our choice: written by scripts/load.sh"
seed = 11
replicates = 2

[problem.quadratic]
dimension = 2
clients = 2
spectrum = { from = 0.5, to = 1.0 }
gradient-heterogeneity = 1.0
noise = [0.1, 0.2]

[start]
offset = 1.0

[budget]
rounds = 4

[record]
points = 2

[[algorithm.fedavg]]
step-size = $(values 10 0.05)
local-steps = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]

[[algorithm.scaffold]]
step-size = $(awk -v n="$sizes" 'BEGIN { print 0.5 / n }' | { read -r step; values "$sizes" "$step"; })
local-steps = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
server-step = $(values 10 0.1)

[[figure.scaling]]
id = "steps"
x = "step-size"
labels = ["FedAvg"]
panels = ["noise", "local-steps"]
columns = 5

[[claim.less]]
id = "further"
statement = "More local steps go further: FedAvg at γ = 0.1, σ = 0.1"
figure = "steps"
left = { label = "FedAvg", noise = 0.1, step-size = 0.1, local-steps = 10 }
right = { label = "FedAvg", noise = 0.1, step-size = 0.1, local-steps = 1 }
END
