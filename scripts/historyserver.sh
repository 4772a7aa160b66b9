#!/usr/bin/env bash
# Run the history server of this machine, which shows jobs that have ended.
#
#   scripts/historyserver.sh start|start-foreground|stop [-Dkey=value ...]
#
# Options and pid files are where start-cluster.sh has them.
set -euo pipefail

# shellcheck source=scripts/lib/background.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/background.sh"

command=("$python" -P -m yarnflow.cli historyserver)
verb=${1:-}
[ $# -gt 0 ] && shift
case $verb in
start) background start historyserver "History server serves at" "${command[@]}" "$@" ;;
start-foreground) exec "${command[@]}" "$@" ;;
stop) background stop "history server" historyserver.sh historyserver ;;
*)
    echo "usage: $0 start|start-foreground|stop [-Dkey=value ...]" >&2
    exit 2
    ;;
esac
