
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
#
# A signal may come before the program runs, or before its number is known. A process that
# was just forked still has the traps of this shell and forgets what it is sent. So each
# signal is noted in a variable and in a file before it is passed on, and whoever could not
# be told looks there.
run=
signals=0
stop=$job/tasks/$task.stop
tell() {
    signals=$((signals + 1))
    echo > "$stop"
    [ -z "$run" ] || kill -TERM "$run" 2> /dev/null
}
trap tell USR1
trap 'sleep 5; tell' TERM INT
rm -f "$stop"
[ "$signals" -eq 0 ] || echo > "$stop"

before=$(finished)
say "begins on $(uname -n), $before cells finished, queued again ${SLURM_RESTART_COUNT:-0} times"
(
    # Here the traps are gone: what comes from now on ends this process or reaches the program.
    [ ! -e "$stop" ] || exit 130
    exec "$job/driftbench" run --yes --only "$job/todo" --shard "$task/$tasks" --out "$mine" \
        --threads "${SLURM_CPUS_PER_TASK:-$threads}" "$@"
) &
run=$!
[ "$signals" -eq 0 ] || kill -TERM "$run" 2> /dev/null

# A signal ends `wait` too, with a code that is not the program's; waiting again for what
# was waited for gives 127.
code=127
while :; do
    seen=$signals
    now=0
    wait "$run" || now=$?
    [ "$now" -eq 127 ] || code=$now
    [ "$signals" -ne "$seen" ] || break
done
run=
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
