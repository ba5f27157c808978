
# Runs when all tasks have ended, whether or not they succeeded: merges their folders,
# writes the reports and lists the missing cells. It may be run again, also by a user.
#
# The tasks' folders may contain the only copy of hours of computation. They are removed
# only if the merge exits with 0: it has then read every cell of the submission's list
# from the results and found it sound. Otherwise they stay.
cd "$here" || exit 2

# Exits with this code, which `submit --wait` reads.
end() {
    echo "$1" > "$job/ended.new" && mv "$job/ended.new" "$job/ended"
    exit "$1"
}

[ -d "$job/tasks" ] || {
    echo "$job is merged already" >&2
    exit 0
}
[ -f "$job/todo" ] || {
    echo "$job/todo, the list of cells, is missing: nothing is merged and $job/tasks stays" >&2
    end 2
}
set --
for folder in "$job"/tasks/*/; do
    [ -f "$folder/exactfed.toml" ] && set -- "$@" "${folder%/}"
done
if [ $# -eq 0 ]; then
    echo "no task has left results: see $job/task-*.log" >&2
    end 4
fi
code=0
"$job/exactfed" merge "$@" --out "$out" --manifest-of "$out" --expect "$job/todo" || code=$?
case $code in
0 | 4) ;;
*)
    echo "$job/tasks stays; to merge again after correcting this: sh '$job/merge.sh'" >&2
    end "$code"
    ;;
esac
report=0
"$job/exactfed" report "$out" --out "$reports" || report=$?
if [ "$code" -ne 0 ]; then
    echo "some cells of the submission are not in $out: $job/tasks stays, with the results of the tasks." >&2
    echo "The missing cells may be submitted again. Remove the folder when you no longer need it." >&2
    end "$code"
fi
# Every cell is in the results; logs and scripts stay.
rm -rf "$job/tasks" "$job/experiments" "$job/todo" "$job/exactfed"
end "$report"
