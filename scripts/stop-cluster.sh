#!/usr/bin/env bash
# Stop what start-cluster.sh started; no process is left behind.
set -euo pipefail

# shellcheck source=scripts/lib/background.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/background.sh"

# TaskManagers first: they can still say goodbye to the JobManager
background stop cluster start-cluster.sh 'taskmanager-*' jobmanager
