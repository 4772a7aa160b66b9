#!/usr/bin/env bash
# Start a standalone cluster on this machine in the background: a JobManager and TaskManagers.
#
#   scripts/start-cluster.sh [NUMBER_OF_TASKMANAGERS] [-Dkey=value ...]
#
# Options are read from $YARNFLOW_CONF_DIR, or conf/ beside this script's directory when it has a
# yarnflow-conf.yaml.  Pid files are in $YARNFLOW_PID_DIR; stop-cluster.sh uses them.
set -euo pipefail

home=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
pids=${YARNFLOW_PID_DIR:-${TMPDIR:-/tmp}/yarnflow-$(id -u)-pids}
python=${YARNFLOW_PYTHON:-$([ -x "$home/.venv/bin/python" ] && echo "$home/.venv/bin/python" || echo python3)}
wait_s=${YARNFLOW_START_TIMEOUT:-60}

count=1
if [[ ${1:-} =~ ^[0-9]+$ ]]; then
    count=$1
    shift
fi
if [ -z "${YARNFLOW_CONF_DIR:-}" ] && [ -f "$home/conf/yarnflow-conf.yaml" ]; then
    export YARNFLOW_CONF_DIR=$home/conf
fi
export PYTHONPATH=$home${PYTHONPATH:+:$PYTHONPATH}

mkdir -p -m 700 "$pids"

# start NAME VERB SENTENCE ARGS...: returns when the process has said SENTENCE
start() {
    local name=$1 verb=$2 sentence=$3 pid out="$pids/$1.out"
    shift 3
    if [ -f "$pids/$name.pid" ] && kill -0 "$(cat "$pids/$name.pid")" 2>/dev/null; then
        echo "error: $name runs already (pid $(cat "$pids/$name.pid")); stop it with stop-cluster.sh" >&2
        return 1
    fi
    # not what an earlier process has said
    : >"$out"
    setsid nohup "$python" -P -m yarnflow.cli "$verb" "$@" >"$out" 2>&1 </dev/null &
    pid=$!
    echo "$pid" >"$pids/$name.pid"
    for _ in $(seq $((wait_s * 10))); do
        if grep -q "$sentence" "$out"; then
            grep "$sentence" "$out"
            return 0
        fi
        if ! kill -0 "$pid" 2>/dev/null; then
            rm -f "$pids/$name.pid"
            echo "error: $name ended at once:" >&2
            cat "$out" >&2
            return 1
        fi
        sleep 0.1
    done
    echo "error: $name did not start within $wait_s s; see $out" >&2
    return 1
}

start jobmanager jobmanager "JobManager serves at" "$@" || exit 1
for number in $(seq "$count"); do
    start "taskmanager-$number" taskmanager "TaskManager started" "$@" || {
        "$home/scripts/stop-cluster.sh" || true
        exit 1
    }
done
# with the options of this command the port may be another one than a client's configuration says
address=$(sed -n 's/^JobManager serves at \([^ ]*\) .*/\1/p' "$pids/jobmanager.out" | tail -n 1)
echo "Dashboard: yarnflow dashboard -m ${address:-HOST:PORT} prints a link"
echo "Submit with: yarnflow submit -m ${address:-HOST:PORT} PROGRAM    Stop with: scripts/stop-cluster.sh"
