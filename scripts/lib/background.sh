# shellcheck shell=bash
# What scripts that have processes in the background share: this checkout, its Python, its configuration.
# Sourced, never run.
#
#   YARNFLOW_PYTHON         the interpreter; by default .venv of the checkout, else python3
#   YARNFLOW_PID_DIR        where pid files and output are; by default below the user's own directory in /tmp
#   YARNFLOW_START_TIMEOUT  seconds that a process has until it serves
#   YARNFLOW_STOP_TIMEOUT   seconds that a process has to end

home=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
python=${YARNFLOW_PYTHON:-$([ -x "$home/.venv/bin/python" ] && echo "$home/.venv/bin/python" || echo python3)}
if [ -z "${YARNFLOW_CONF_DIR:-}" ] && [ -f "$home/conf/yarnflow-conf.yaml" ]; then
    export YARNFLOW_CONF_DIR=$home/conf
fi
# an empty part would be the folder of the shell
PYTHONPATH=$(printf '%s' "$home:${PYTHONPATH:-}" | tr -s : | sed 's/:$//')
export PYTHONPATH

# background start|stop ...: see the module
background() { "$python" -P -m yarnflow.entrypoint.standalone.background "$@"; }
