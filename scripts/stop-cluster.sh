#!/usr/bin/env bash
# Stop what start-cluster.sh started; no process is left behind.
set -euo pipefail

pids=${YARNFLOW_PID_DIR:-${TMPDIR:-/tmp}/yarnflow-$(id -u)-pids}
# shellcheck source=scripts/lib/pid_files.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/pid_files.sh"

found=0
# TaskManagers first: they can still say goodbye to the JobManager
for file in "$pids"/taskmanager-*.pid "$pids"/jobmanager.pid; do
    [ -e "$file" ] || continue
    found=1
    stop_process "$file" yarnflow.cli
done
[ "$found" = 1 ] || echo "No cluster of this user was started by start-cluster.sh (no pid files in $pids)."
