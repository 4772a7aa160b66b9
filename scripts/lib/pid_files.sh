# shellcheck shell=bash
# Processes that scripts start in the background, by their pid files.  Sourced, never run.
#
#   YARNFLOW_STOP_TIMEOUT   seconds that a process has to end

# runs PID WORDS: whether the process has these words in its command line; a pid file may be older than the
# process that has its number now
runs() { { tr '\0' ' ' <"/proc/$1/cmdline"; } 2>/dev/null | grep -q "$2"; }

# stop_process FILE WORDS: end the process of a pid file, and say how it went
stop_process() {
    local file=$1 words=$2 grace_s=${YARNFLOW_STOP_TIMEOUT:-20} name pid
    name=$(basename "$file" .pid)
    pid=$(cat "$file")
    if runs "$pid" "$words"; then
        kill -TERM "$pid" 2>/dev/null || true
        for _ in $(seq $((grace_s * 10))); do
            runs "$pid" "$words" || break
            sleep 0.1
        done
        if runs "$pid" "$words"; then
            # its children end with it: the kernel sees to that
            kill -KILL "$pid" 2>/dev/null || true
            echo "$name (pid $pid) killed"
        else
            echo "$name (pid $pid) stopped"
        fi
    else
        echo "$name was not running"
    fi
    rm -f "$file"
}
