
# When all tasks have ended, in whatever way: puts their folders together, writes the
# reports, says what is missing. May be run again, by hand too.
#
# The tasks' folders may hold the only copy of hours of work. They are removed only after
# the merge has read every cell of the submission's list again, from the results, and
# found it sound: its exit code is then 0. In every other case they stay.
cd "$here" || exit 2

# Ends with this code, which `submit --wait` reads.
end() {
    echo "$1" > "$job/ended.new" && mv "$job/ended.new" "$job/ended"
    exit "$1"
}

[ -d "$job/tasks" ] || {
    echo "$job: is merged already" >&2
    exit 0
}
[ -f "$job/todo" ] || {
    echo "$job/todo, the list of the cells, is not there: nothing is merged and $job/tasks is kept" >&2
    end 2
}
set --
for folder in "$job"/tasks/*/; do
    [ -f "$folder/driftbench.toml" ] && set -- "$@" "${folder%/}"
done
if [ $# -eq 0 ]; then
    echo "no task has left results: see $job/task-*.log" >&2
    end 4
fi
code=0
"$job/driftbench" merge "$@" --out "$out" --manifest-of "$out" --expect "$job/todo" || code=$?
case $code in
0 | 4) ;;
*)
    echo "$job/tasks is kept; when that is put right: sh '$job/merge.sh'" >&2
    end "$code"
    ;;
esac
report=0
"$job/driftbench" report "$out" --out "$reports" || report=$?
if [ "$code" -ne 0 ]; then
    echo "not every cell of the submission is in $out: $job/tasks is kept, and holds what the tasks have left." >&2
    echo "What is missing may be submitted again. Remove the folder when you do not need it any more." >&2
    end "$code"
fi
# Every cell is in the results; logs and scripts stay.
rm -rf "$job/tasks" "$job/experiments" "$job/todo" "$job/driftbench"
end "$report"
