
# A task runs one shard of the cells and writes into its own folder, so that no task waits
# for another. A task that ends before its shard is done is queued again and continues from
# its folder: it loses only the cells that were unfinished.
cd "$here" || exit 2
task=$SLURM_ARRAY_TASK_ID
me=${SLURM_ARRAY_JOB_ID}_$task
mine=$job/tasks/$task

say() {
    echo "$(date '+%F %T') task $task of $tasks: $*"
}

# Prints the number of finished cells.
finished() {
    if [ -f "$mine/exactfed.toml" ]; then
        "$job/exactfed" digest "$mine" | wc -l
    else
        echo 0
    fi
}

# A minute before the time limit, Slurm sends USR1 to this script alone, which forwards it to
# the program. Before cancelling, preempting or requeueing, Slurm sends TERM to every process
# of the task. A second signal would end the program before it has stored its finished cells,
# so this script forwards TERM only after the program had time to receive it.
#
# A signal may arrive before the program runs or before its process id is known. A process
# that was just forked still has the traps of this shell and loses signals. Each signal is
# therefore recorded in a variable and in a file before it is forwarded, and the code that
# starts the program checks both.
run=
signals=0
stop=$job/tasks/$task.stop
forward() {
    signals=$((signals + 1))
    echo > "$stop"
    [ -z "$run" ] || kill -TERM "$run" 2> /dev/null
}
trap forward USR1
trap 'sleep 5; forward' TERM INT
rm -f "$stop"
[ "$signals" -eq 0 ] || echo > "$stop"

before=$(finished)
say "begins on $(uname -n), $before cells finished, queued again ${SLURM_RESTART_COUNT:-0} times"
(
    # The traps are reset here: later signals end this process or reach the program.
    [ ! -e "$stop" ] || exit 130
    exec "$job/exactfed" run --yes --only "$job/todo" --shard "$task/$tasks" --out "$mine" \
        --threads "${SLURM_CPUS_PER_TASK:-$threads}" "$@"
) &
run=$!
[ "$signals" -eq 0 ] || kill -TERM "$run" 2> /dev/null

# A signal also ends `wait`, with a code that is not the program's; waiting again for a
# process that was already waited for gives 127.
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

# Failed cells (4) would fail again.
case $code in
0 | 4)
    say "ends with exit code $code, $after cells finished"
    exit "$code"
    ;;
esac

# A task that was cancelled or that Slurm itself requeues is not in state RUNNING.
state=$(squeue -h -j "$me" -o %T 2> /dev/null)
if [ "$state" != RUNNING ]; then
    say "stopped with exit code $code, $after cells finished; state in Slurm: ${state:-gone}"
    exit "$code"
fi
vain=0
if [ "$after" -le "$before" ]; then
    vain=$(($(cat "$job/tasks/$task.vain" 2> /dev/null || echo 0) + 1))
fi
echo "$vain" > "$job/tasks/$task.vain" || {
    say "gave up with exit code $code: $job/tasks cannot be written to"
    exit "$code"
}
if [ "$vain" -ge "$tries" ]; then
    say "gave up after $vain attempts in a row that finished no cell; see above, or allow more time or memory"
    exit "$code"
fi
say "ended early with exit code $code, $after cells finished; queued again"
scontrol requeue "$me"
exit "$code"
