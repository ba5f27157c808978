
# When all tasks have ended, in whatever way: puts their folders together, writes the
# reports, says what is missing. May be run again, by hand too.
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
set --
for folder in "$job"/tasks/*/; do
    [ -f "$folder/driftbench.toml" ] && set -- "$@" "${folder%/}"
done
if [ $# -eq 0 ]; then
    echo "no task has left results: see $job/task-*.log" >&2
    rm -rf "$job/tasks"
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
# What was merged is in the results; logs and scripts stay.
rm -rf "$job/tasks" "$job/experiments" "$job/todo" "$job/driftbench"
[ "$code" -ne 0 ] || code=$report
end "$code"
