#!/usr/bin/env bash
# Run the history server of this machine, which shows jobs that have ended.
#
#   scripts/historyserver.sh start|start-foreground|stop [-Dkey=value ...]
#
# Options and pid files are where start-cluster.sh has them.
set -euo pipefail

home=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
pids=${YARNFLOW_PID_DIR:-${TMPDIR:-/tmp}/yarnflow-$(id -u)-pids}
python=${YARNFLOW_PYTHON:-$([ -x "$home/.venv/bin/python" ] && echo "$home/.venv/bin/python" || echo python3)}
wait_s=${YARNFLOW_START_TIMEOUT:-60}
words='yarnflow.cli historyserver'
file=$pids/historyserver.pid
out=$pids/historyserver.out

if [ -z "${YARNFLOW_CONF_DIR:-}" ] && [ -f "$home/conf/yarnflow-conf.yaml" ]; then
    export YARNFLOW_CONF_DIR=$home/conf
fi
export PYTHONPATH=$home${PYTHONPATH:+:$PYTHONPATH}

# shellcheck source=scripts/lib/pid_files.sh
. "$home/scripts/lib/pid_files.sh"

start() {
    if [ -f "$file" ] && runs "$(cat "$file")" "$words"; then
        echo "error: the history server runs already (pid $(cat "$file")); stop it with: $0 stop" >&2
        return 1
    fi
    mkdir -p -m 700 "$pids"
    : >"$out"
    setsid nohup "$python" -P -m yarnflow.cli historyserver "$@" >"$out" 2>&1 </dev/null &
    echo $! >"$file"
    for _ in $(seq $((wait_s * 10))); do
        if grep "History server serves at" "$out"; then
            return 0
        fi
        if ! kill -0 "$(cat "$file")" 2>/dev/null; then
            rm -f "$file"
            echo "error: the history server ended at once:" >&2
            cat "$out" >&2
            return 1
        fi
        sleep 0.1
    done
    echo "error: the history server did not start within $wait_s s; see $out" >&2
    return 1
}

stop() {
    if ! [ -f "$file" ]; then
        echo "No history server of this user was started by $0 (no $file)."
        return 0
    fi
    stop_process "$file" "$words"
}

verb=${1:-}
[ $# -gt 0 ] && shift
case $verb in
start) start "$@" ;;
start-foreground) exec "$python" -P -m yarnflow.cli historyserver "$@" ;;
stop) stop ;;
*)
    echo "usage: $0 start|start-foreground|stop [-Dkey=value ...]" >&2
    exit 2
    ;;
esac
