#!/usr/bin/env bash
# Stop what start-cluster.sh started; no process is left behind.
set -euo pipefail

pids=${YARNFLOW_PID_DIR:-${TMPDIR:-/tmp}/yarnflow-$(id -u)-pids}
grace_s=${YARNFLOW_STOP_TIMEOUT:-20}

# a pid file may be older than the process that has its number now
ours() { tr '\0' ' ' <"/proc/$1/cmdline" 2>/dev/null | grep -q "yarnflow.cli"; }

stop() {
    local file=$1 name pid
    name=$(basename "$file" .pid)
    pid=$(cat "$file")
    if ours "$pid"; then
        kill -TERM "$pid" 2>/dev/null || true
        for _ in $(seq $((grace_s * 10))); do
            ours "$pid" || break
            sleep 0.1
        done
        if ours "$pid"; then
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

shopt -s nullglob
found=0
# TaskManagers first: they can still say goodbye to the JobManager
for file in "$pids"/taskmanager-*.pid "$pids"/jobmanager.pid; do
    found=1
    stop "$file"
done
[ "$found" = 1 ] || echo "No cluster of this user was started by start-cluster.sh (no pid files in $pids)."
