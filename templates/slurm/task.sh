
# A task: its share of the cells, into a folder of its own, so that no task waits for
# another. If it ends before its share is done it is queued again and goes on where its
# folder stands: what it loses is what it was computing.
cd "$here" || exit 2
task=$SLURM_ARRAY_TASK_ID
me=${SLURM_ARRAY_JOB_ID}_$task
mine=$job/tasks/$task

say() {
    echo "$(date '+%F %T') task $task of $tasks: $*"
}

# How many cells are finished.
finished() {
    if [ -f "$mine/driftbench.toml" ]; then
        "$job/driftbench" digest "$mine" | wc -l
    else
        echo 0
    fi
}

# A minute before the time limit Slurm tells this script alone, by USR1, and it tells its
# program. Before it is cancelled, preempted or queued again it tells all of it, by TERM; a
# second signal would end the program before it has kept what is finished, so that
# this script tells it only if it seems not to know.
run=
tell() {
    [ -z "$run" ] || kill -TERM "$run" 2> /dev/null
}
trap tell USR1
trap 'sleep 5; tell' TERM INT

before=$(finished)
say "begins on $(uname -n), $before cells finished, queued again ${SLURM_RESTART_COUNT:-0} times"
"$job/driftbench" run --yes --only "$job/todo" --shard "$task/$tasks" --out "$mine" \
    --threads "${SLURM_CPUS_PER_TASK:-$threads}" "$@" &
run=$!
wait "$run"
code=$?
while kill -0 "$run" 2> /dev/null; do
    wait "$run"
    code=$?
done
after=$(finished)

# Cells that failed (4) would fail again.
case $code in
0 | 4)
    say "ends with exit code $code, $after cells finished"
    exit "$code"
    ;;
esac

# What was cancelled, or is queued again by Slurm itself, is not running any more.
state=$(squeue -h -j "$me" -o %T 2> /dev/null)
if [ "$state" != RUNNING ]; then
    say "stopped with exit code $code, $after cells finished; Slurm calls it ${state:-gone}"
    exit "$code"
fi
vain=0
if [ "$after" -le "$before" ]; then
    vain=$(($(cat "$job/tasks/$task.vain" 2> /dev/null || echo 0) + 1))
fi
echo "$vain" > "$job/tasks/$task.vain"
if [ "$vain" -ge "$tries" ]; then
    say "given up: $vain times in a row without a cell finished; see above, or allow more time or memory"
    exit "$code"
fi
say "ended early with exit code $code, $after cells finished; queued again"
scontrol requeue "$me"
exit "$code"
