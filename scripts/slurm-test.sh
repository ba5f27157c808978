#!/usr/bin/env bash
# Tests `exactfed submit` on a real Slurm of one node, on the loopback interface only:
#
#   scripts/slurm-test.sh [PROGRAM]        (target/release/exactfed)
#
# The test submits an array of 8 tasks, kills one, requeues another, and takes the node down,
# which affects all of them; in the end the digests must equal those of a local run. Then it
# cancels an array. It installs Debian's packages if they are missing, and takes about two
# minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$(realpath "${1:-${CARGO_TARGET_DIR:-target}/release/exactfed}")
[ -x "$program" ] || { echo "error: $program: build it first" >&2; exit 2; }

# Every program has a deadline: one that hangs is killed, which is a failure.
exactfed() {
    local code=0
    timeout -k 10 600 "$program" "$@" || code=$?
    [ $code != 124 ] || echo "exactfed $1: killed after 600 s" >&2
    return $code
}
say() { echo "slurm-test, second $SECONDS: $*"; }
fail() {
    say "FAILED: $*"
    tail -n 15 "$work"/*/results/.slurm/*/*.log "$work"/log/* 2> /dev/null || true
    exit 1
}

# --- the packages -------------------------------------------------------------------------

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }
install_slurm() {
    # The services of the packages must not start, since the test starts its own.
    local policy=/usr/sbin/policy-rc.d own=no
    if [ ! -e $policy ]; then
        own=yes
        printf '#!/bin/sh\nexit 101\n' | as_root tee $policy > /dev/null
        as_root chmod 755 $policy
    fi
    as_root timeout -k 10 600 apt-get update -q
    as_root timeout -k 10 600 env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
        slurmctld slurmd slurm-client munge
    if [ $own = yes ]; then as_root rm -f $policy; fi
}
PATH=$PATH:/usr/sbin:/sbin
for needed in slurmctld slurmd sbatch munged; do
    command -v $needed > /dev/null || { install_slurm; break; }
done

# --- a cluster of this machine ------------------------------------------------------------

work=$(mktemp -d)
chmod 755 "$work"
host=$(hostname -s)
# Slurm listens on the address of the machine's name. If that is not the loopback interface,
# it listens on all interfaces and answers only clients that have the key of this test.
listen=CommunicationParameters=NoInAddrAny,NoCtldInAddrAny,DisableIPv6
if ! getent ahostsv4 "$host" | grep -q '^127\.'; then listen=; fi
mkdir "$work"/{log,state,spool,munge}
(umask 077 && head -c 1024 /dev/urandom > "$work/key")
# Find two unused ports.
port=$((20000 + RANDOM % 20000))
while (exec 3<> "/dev/tcp/127.0.0.1/$port") 2> /dev/null ||
    (exec 3<> "/dev/tcp/127.0.0.1/$((port + 1))") 2> /dev/null; do
    port=$((port + 2))
done
export SLURM_CONF=$work/slurm.conf
cat > "$SLURM_CONF" << END
ClusterName=exactfed
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
$listen
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthInfo=socket=$work/munge/socket,cred_expire=5
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerParameters=batch_sched_delay=0,sched_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
KillWait=5
BatchStartTimeout=10
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc)
PartitionName=all Nodes=ALL Default=YES
END

# start NAME COMMAND...: starts a daemon and stores its process id.
declare -A daemon
start() {
    local name=$1
    shift
    "$@" > "$work/log/$name" 2>&1 < /dev/null &
    daemon[$name]=$!
}
# wait_for SECONDS WHAT COMMAND...: waits until the command succeeds.
wait_for() {
    local left=$(($1 * 5)) what=$2
    shift 2
    until "$@"; do
        left=$((left - 1))
        [ $left -gt 0 ] || fail "timed out waiting for $what"
        sleep 0.2
    done
}
# Prints the processes of this cluster's jobs only.
of_jobs() {
    local folder
    for folder in /proc/[0-9]*; do
        if tr '\0' '\n' 2> /dev/null < "$folder/environ" | grep -qx "SLURM_CONF=$SLURM_CONF"; then
            case $(cat "$folder/comm" 2> /dev/null) in
            slurmstepd) echo "${folder#/proc/}" ;;
            *) if tr '\0' '\n' 2> /dev/null < "$folder/environ" | grep -q '^SLURM_JOB_ID='; then
                echo "${folder#/proc/}"
            fi ;;
            esac
        fi
    done
}
clean() {
    local code=$? name
    trap - EXIT INT TERM
    timeout 20 scancel --user="$(id -un)" > /dev/null 2>&1 || true
    for name in slurmd slurmctld munged; do
        if [ -n "${daemon[$name]:-}" ] && kill "${daemon[$name]}" 2> /dev/null; then
            timeout 20 tail --pid="${daemon[$name]}" -f /dev/null || kill -9 "${daemon[$name]}"
            wait "${daemon[$name]}" 2> /dev/null || true
        fi
    done
    of_jobs | while read -r process; do kill -9 "$process" 2> /dev/null || true; done
    if [ $code = 0 ]; then rm -rf "$work"; else echo "files are in $work" >&2; fi
    exit $code
}
trap clean EXIT
trap 'exit 130' INT TERM

start munged munged --foreground --key-file="$work/key" --socket="$work/munge/socket" \
    --pid-file="$work/munge/pid" --seed-file="$work/munge/seed" --log-file="$work/log/munge"
wait_for 10 "munge's socket" test -S "$work/munge/socket"
start slurmctld slurmctld -D -f "$SLURM_CONF"
start slurmd slurmd -D -f "$SLURM_CONF" -N "$host"
idle() { [ "$(sinfo -h -o %T 2> /dev/null)" = idle ]; }
wait_for 30 "an idle node" idle
say "$(slurmctld -V) is up, $(nproc) processors"

# --- the experiment: 64 cells of about half a second ----------------------------------------

# The name of the folder has characters that are special in scripts and patterns.
place="$work/it's 100 % \$HOME"
mkdir -p "$place/experiments"
cd "$place"
cat > experiments/test.toml << 'END'
title = "What a cluster runs in its test"
seed = 7
replicates = 2
[problem.garnet]
states = 30
actions = 2
branching = 2
features = 8
discount = 0.95
clients = [10, 20]
heterogeneity = { independent = {} }
[start]
offset = 1.0
[budget]
local-steps = 1_500_000
[[algorithm.fedlsa]]
step-size = [0.01, 0.02, 0.03, 0.04]
local-steps = [100, 200, 400, 800]
[[algorithm.scafflsa]]
step-size = [0.01, 0.02, 0.03, 0.04]
local-steps = [100, 200, 400, 800]
END
exactfed run experiments/test.toml --out whole --quiet
exactfed digest whole > whole.txt
say "locally: $(wc -l < whole.txt) cells"

# --- an array of 8, a kill, a requeue, a node that goes down ---------------------------------

exactfed submit --slurm experiments/test.toml --tasks 8 --wait -- --time=10 > submit.txt 2>&1 &
submit=$!
folder=$place/results/.slurm/1
submitted() { [ -f "$folder/jobs" ]; }
wait_for 20 "the submission" submitted
array=$(sed -n 's/^cancel: *scancel \([0-9]*\) .*/\1/p' "$folder/jobs")

# running_task TASKS...: sets found to a running task that has finished a cell, other than these.
running_task() {
    for found in $(squeue -h -r -j "$array" -t R -o %K 2> /dev/null); do
        case " $* " in *" $found "*) continue ;; esac
        if [ -n "$(find "$folder/tasks/$found" -name "*.parquet" 2> /dev/null)" ]; then
            return
        fi
    done
    return 1
}
begun() { grep -c ' begins on ' "$folder/task-$1.log"; }
# begun_again TASK TIMES: whether the task has started more often than this.
begun_again() { [ "$(begun "$1")" -gt "$2" ]; }

wait_for 60 "a task's first cell" running_task
killed=$found
victim=
for process in $(of_jobs); do
    words=$(tr '\0' ' ' 2> /dev/null < "/proc/$process/cmdline" || true)
    case $words in "$folder/exactfed run"*"--shard $killed/8 "*) victim=$process ;; esac
done
[ -n "$victim" ] || fail "the program of task $killed was not found"
kill -9 "$victim"
say "task $killed: its program, process $victim, was killed"

wait_for 60 "another task's first cell" running_task "$killed"
requeued=$found
scontrol requeue "${array}_$requeued"
say "task $requeued: requeued"

wait_for 60 "a third task's first cell" running_task "$killed" "$requeued"
lost=$found
times=$(begun "$lost")
{ kill -9 "${daemon[slurmd]}" && wait "${daemon[slurmd]}"; } 2> /dev/null || true
of_jobs | while read -r process; do
    [ "$process" = $$ ] || [ "$process" = "$submit" ] || kill -9 "$process" 2> /dev/null || true
done
# Slurm would notice this without help only after SlurmdTimeout.
scontrol update "nodename=$host" state=down reason=gone
say "the node went down, and task $lost with it"
start slurmd slurmd -D -b -f "$SLURM_CONF" -N "$host"
back() { sinfo -h -o %T | grep -Eqx 'idle|mixed|allocated' || { scontrol update "nodename=$host" state=resume 2> /dev/null; false; } }
wait_for 30 "the node" back
wait_for 60 "task $lost again" begun_again "$lost" "$times"
say "the node is back, and task $lost resumes"

code=0
wait "$submit" || code=$?
[ $code = 0 ] || { cat submit.txt; fail "submit --wait ended with exit code $code"; }
exactfed digest results | diff whole.txt - || fail "the digests are not those of the local run"
[ -f reports/test/report.html ] || fail "there is no report"
[ ! -e "$folder/tasks" ] || fail "the tasks' folders are still there"
grep -q 'early with exit code 137.*queued again' "$folder/task-$killed.log" || fail "the kill was not noticed"
for task in "$killed" "$requeued" "$lost"; do
    [ "$(begun "$task")" -ge 2 ] || fail "task $task was not queued again"
    if grep ' begins on ' "$folder/task-$task.log" | tail -n +2 | grep -q ' 0 cells finished'; then
        fail "task $task started from nothing"
    fi
done
begun=$(cat "$folder"/task-*.log | grep -c ' begins on ')
say "8 tasks started $begun times: digests equal to the local run, report written"
exactfed submit --slurm experiments/test.toml > again.txt 2>&1
grep -q 'nothing is submitted' again.txt || fail "finished cells were submitted"

# --- a cancelled array: finished cells are merged, and no task comes back -------------------

exactfed submit --slurm experiments/test.toml --set seed=8 --tasks 8 --wait -- --time=10 \
    > cancel.txt 2>&1 &
submit=$!
folder=$place/results/.slurm/2
wait_for 20 "the submission" submitted
array=$(sed -n 's/^cancel: *scancel \([0-9]*\) .*/\1/p' "$folder/jobs")
wait_for 60 "a task's first cell" running_task
scancel "$array"
code=0
wait "$submit" || code=$?
[ $code = 4 ] || { cat cancel.txt; fail "submit --wait ended with exit code $code, not 4"; }
grep -q 'of the 64 cells' cancel.txt || { cat cancel.txt; fail "the missing cells are not reported"; }
merged=$(exactfed digest results | wc -l)
[ "$merged" -gt 64 ] || fail "the finished cells are not merged"
[ -z "$(squeue -h -j "$array" 2> /dev/null)" ] || fail "a cancelled task came back"
say "cancelled: $((merged - 64)) finished cells are merged, no task came back"
say "passed"
