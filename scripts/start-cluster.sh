#!/usr/bin/env bash
# Start a standalone cluster on this machine in the background: a JobManager and TaskManagers.
#
#   scripts/start-cluster.sh [NUMBER_OF_TASKMANAGERS] [-Dkey=value ...]
#
# Options are read from $YARNFLOW_CONF_DIR, or conf/ beside this script's directory when it has a
# yarnflow-conf.yaml.  Pid files are in $YARNFLOW_PID_DIR; stop-cluster.sh uses them.
set -euo pipefail

# shellcheck source=scripts/lib/background.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/background.sh"

count=1
if [[ ${1:-} =~ ^[0-9]+$ ]]; then
    count=$1
    shift
fi

# start NAME VERB SENTENCE ARGS...: returns when the process has said SENTENCE
start() {
    local name=$1 verb=$2 sentence=$3
    shift 3
    background start "$name" "$sentence" "$python" -P -m yarnflow.cli "$verb" "$@"
}

said=$(start jobmanager jobmanager "JobManager serves at" "$@") || exit 1
echo "$said"
for number in $(seq "$count"); do
    start "taskmanager-$number" taskmanager "TaskManager started" "$@" || {
        "$home/scripts/stop-cluster.sh" || true
        exit 1
    }
done
# with the options of this command the port may be another one than a client's configuration says
address=$(sed -n 's/^JobManager serves at \([^ ]*\) .*/\1/p' <<<"$said")
echo "Dashboard: yarnflow dashboard -m ${address:-HOST:PORT} prints a link"
echo "Submit with: yarnflow submit -m ${address:-HOST:PORT} PROGRAM    Stop with: scripts/stop-cluster.sh"
