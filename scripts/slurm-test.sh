#!/usr/bin/env bash
# Tests `exactfed submit` on a real Slurm of three virtual nodes, on the loopback interface only:
#
#   scripts/slurm-test.sh [PROGRAM]        (target/release/exactfed)
#
# The test submits an array of 8 tasks. The disk of one node is full, and so is that of the
# last task's results; one task is killed, one requeued, one preempted, and one is on a node that
# goes down. What the full disk left is submitted again; in the end the digests must equal those
# of a local run. Then an array is cancelled. Debian's packages are installed if they are missing.
# Mounting needs root or sudo. The test takes two to four minutes.
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
mkdir -p "$work"/{log,state,spool/n{1,2,3},munge}
(umask 077 && head -c 1024 /dev/urandom > "$work/key")
# Find four unused ports.
port=$((20000 + RANDOM % 10000))
while for used in 0 1 2 3; do (exec 3<> "/dev/tcp/127.0.0.1/$((port + used))") 2> /dev/null && break; done; do
    port=$((port + 4))
done
export SLURM_CONF=$work/slurm.conf
cat > "$SLURM_CONF" << END
ClusterName=exactfed
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
$listen
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthInfo=socket=$work/munge/socket,cred_expire=5
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool/%n
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/%n.pid
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
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
NodeName=n[1-3] NodeHostname=$host NodeAddr=127.0.0.1 Port=[$((port + 1))-$((port + 3))] CPUs=1
PartitionName=all Nodes=ALL Default=YES PriorityTier=1
PartitionName=urgent Nodes=ALL PriorityTier=2 PreemptMode=OFF
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
# processes [JOB]: prints the processes that this test has started, or those of one job.
processes() {
    local process
    for process in $({ grep -lzsFx "SLURM_CONF=$SLURM_CONF" /proc/[0-9]*/environ || true; } | cut -d / -f 3); do
        if [ $# = 0 ] || grep -qzsFx "SLURM_JOB_ID=$1" "/proc/$process/environ" ||
            grep -qzs "^slurmstepd: \[$1\." "/proc/$process/cmdline"; then
            echo "$process"
        fi
    done
}
# small_disk SIZE FOLDER: makes the folder a disk of this size.
disks=()
small_disk() {
    as_root mount -t tmpfs -o "size=$1,uid=$(id -u)" tmpfs "$2"
    disks+=("$2")
}
clean() {
    local code=$? name
    trap - EXIT INT TERM
    timeout 20 scancel --user="$(id -un)" > /dev/null 2>&1 || true
    for name in n1 n2 n3 slurmctld munged; do
        if [ -n "${daemon[$name]:-}" ] && kill "${daemon[$name]}" 2> /dev/null; then
            timeout 20 tail --pid="${daemon[$name]}" -f /dev/null || kill -9 "${daemon[$name]}"
            wait "${daemon[$name]}" 2> /dev/null || true
        fi
    done
    # Identifiers of processes are separate words.
    # shellcheck disable=SC2046
    kill -9 $(processes) 2> /dev/null || true
    for name in "${disks[@]}"; do as_root umount -l "$name" || true; done
    if [ $code = 0 ]; then rm -rf "$work"; else echo "files are in $work" >&2; fi
    exit $code
}
trap clean EXIT
trap 'exit 130' INT TERM

start munged munged --foreground --key-file="$work/key" --socket="$work/munge/socket" \
    --pid-file="$work/munge/pid" --seed-file="$work/munge/seed" --log-file="$work/log/munge"
wait_for 10 "munge's socket" test -S "$work/munge/socket"
start slurmctld slurmctld -D -f "$SLURM_CONF"
small_disk 1m "$work/spool/n3"
ulimit -c 0 # slurmstepd dies of SIGBUS on a full disk
for node in n1 n2 n3; do start $node slurmd -D -f "$SLURM_CONF" -N $node; done
idle() { [ "$(sinfo -h -p all -o %T:%D 2> /dev/null)" = idle:3 ]; }
wait_for 30 "three idle nodes" idle
say "$(slurmctld -V) is up: 3 nodes on $(nproc) processors"

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
local-steps = 2_000_000
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

# --- an array of 8: full disks, a kill, a requeue, a preemption, a node that goes down ----------

cat /dev/zero > "$work/spool/n3/full" 2> /dev/null || true
exactfed submit --slurm experiments/test.toml --tasks 8 --wait -- --time=10 > submit.txt 2>&1 &
submit=$!
folder=$place/results/.slurm/1
submitted() { [ -f "$folder/jobs" ]; }
wait_for 20 "the submission" submitted
mkdir "$folder/tasks/8"
small_disk 128k "$folder/tasks/8"
[ ! -e "$folder/task-8.log" ] || fail "task 8 began before its disk was small"
array() { sed -n 's/^cancel: *scancel \([0-9]*\) .*/\1/p' "$folder/jobs"; }
array=$(array)

# running_task: sets found to a running task that has finished a cell and was not yet found, job
# and node to where it runs.
found=8 all=
running_task() {
    all="$all $found "
    while read -r found job node; do
        case $all in *" $found "*) continue ;; esac
        [ -z "$(find "$folder/tasks/$found" -name "*.parquet" 2> /dev/null)" ] || return 0
    done < <(squeue -h -r -j "$array" -t R -o '%K %A %N' 2> /dev/null)
    return 1
}
begun() { grep -c ' begins on ' "$folder/task-$1.log"; }

# Slurm drains a node whose disk is full, and holds the task that could not start there.
held() { held=$(squeue -h -r -j "$array" -o '%i %r' | sed -n 's/ .*requeued held.*//p') && [ -n "$held" ]; }
wait_for 30 "a task that the full disk of n3 holds" held
[ "$(sinfo -h -p all -n n3 -o %T)" = drained ] || fail "n3 is not drained"
wait_for 60 "a task's first cell" running_task
killed=$found
victim=
for process in $(processes "$job"); do
    words=$(tr '\0' ' ' 2> /dev/null < "/proc/$process/cmdline" || true)
    case $words in "$folder/exactfed run"*) victim=$process ;; esac
done
[ -n "$victim" ] || fail "the program of task $killed was not found"
kill -9 "$victim"
say "task $killed: its program, process $victim, was killed on $node while the disk of n3 was full"
rm -rf "$work"/spool/n3/{full,job*}
scontrol update nodename=n3 state=resume
scontrol release "$held"

wait_for 60 "another task's first cell" running_task
requeued=$found
scontrol requeue "${array}_$requeued"
say "task $requeued: requeued"

wait_for 60 "a third task's first cell" running_task
preempted=$found
sbatch -Q -p urgent -w "$node" -o urgent.txt --wrap 'echo done'
wait_for 60 "the urgent job" grep -qs "done" urgent.txt
grep -q 'DUE TO PREEMPTION' "$folder/task-$preempted.log" || fail "task $preempted was not preempted"
say "task $preempted: preempted on $node"

wait_for 60 "a fourth task's first cell" running_task
lost=$found
# Identifiers of processes are separate words.
# shellcheck disable=SC2046
{ kill -9 "${daemon[$node]}" $(processes "$job") && wait "${daemon[$node]}"; } 2> /dev/null || true
# Slurm would notice this without help only after SlurmdTimeout.
scontrol update "nodename=$node" state=down reason=gone
say "$node went down, and task $lost with it"
resumed() { [ "$(begun "$lost")" = 2 ]; }
wait_for 120 "task $lost on another node" resumed
say "task $lost resumes on another node"
start "$node" slurmd -D -b -f "$SLURM_CONF" -N "$node"
back() { sinfo -h -p all -n "$node" -o %T | grep -Eqx 'idle|mixed|allocated' || { scontrol update "nodename=$node" state=resume 2> /dev/null; false; } }
wait_for 30 "$node" back
say "$node is back"

code=0
wait "$submit" || code=$?
[ $code = 4 ] || { cat submit.txt; fail "submit --wait ended with exit code $code, not 4"; }
grep -q 'No space left on device' "$folder/task-8.log" || fail "the full disk is not named"
stored=$(sed -n 's/.*ends with exit code 4, \(.*\) cells finished/\1/p' "$folder/task-8.log")
exactfed digest results > first.txt
[ "${stored:-0}" -gt 0 ] && [ "$(wc -l < first.txt)" = $((56 + stored)) ] ||
    fail "not all cells are there that tasks had finished"
if grep -vxFf whole.txt first.txt; then fail "these digests are not those of the local run"; fi
grep -q 'early with exit code 137.*queued again' "$folder/task-$killed.log" || fail "the kill was not noticed"
grep -q 'interrupted: .* stored' "$folder/task-$preempted.log" || fail "the preempted program got no signal"
for task in "$killed" "$requeued" "$preempted" "$lost"; do
    [ "$(begun "$task")" -ge 2 ] || fail "task $task was not queued again"
    if grep ' begins on ' "$folder/task-$task.log" | tail -n +2 | grep -q ' 0 cells finished'; then
        fail "task $task started from nothing"
    fi
done
[ "$(cat "$folder"/task-*.log | grep -c ' begins on ')" = 12 ] || fail "other tasks were disturbed"
say "only these 4 tasks started twice; task 8 stored $stored of 8 cells before its disk was full"

exactfed submit --slurm experiments/test.toml --tasks 2 --wait -- --time=10 > more.txt 2>&1 ||
    { cat more.txt; fail "the remaining cells were not run"; }
exactfed digest results | diff whole.txt - || fail "the digests are not those of the local run"
[ -f reports/test/report.html ] || fail "there is no report"
[ ! -e results/.slurm/2/tasks ] || fail "the tasks' folders are still there"
say "the other cells were submitted again: digests equal to the local run, report written"
exactfed submit --slurm experiments/test.toml > again.txt 2>&1
grep -q 'nothing is submitted' again.txt || fail "finished cells were submitted"

# --- a cancelled array: finished cells are merged, and no task comes back -------------------

exactfed submit --slurm experiments/test.toml --set seed=8 --tasks 8 --wait -- --time=10 \
    > cancel.txt 2>&1 &
submit=$!
folder=$place/results/.slurm/3
wait_for 20 "the submission" submitted
array=$(array) found=0 all=
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
