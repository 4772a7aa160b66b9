#!/usr/bin/env bash
# Client command of the cluster that scripts/hadoop started: hadoop, hdfs or yarn, by the name it is called with.
set -euo pipefail

JAVA_HOME='@JAVA_HOME@'
conf=${HADOOP_CONF_DIR:-@CONF@}
jars='@JARS@'
archive='@ARCHIVE@'
export JAVA_HOME HADOOP_CONF_DIR=$conf

tool=$(basename -- "${BASH_SOURCE[0]}")
command=${1:-}
[ $# -eq 0 ] || shift

hdfs=org.apache.hadoop.hdfs.tools
yarn=org.apache.hadoop.yarn.client.cli

case "$tool $command" in
  *' classpath')
    if [ "${1:-}" = --glob ]; then
      list=$(printf ':%s' "$jars"/lib/*.jar)
    else
      list=:$jars/lib/*
    fi
    printf '%s%s\n' "$conf" "$list"
    exit
    ;;
  *' version') class=org.apache.hadoop.util.VersionInfo ;;
  *' jar') class=org.apache.hadoop.util.RunJar ;;
  *' daemonlog') class=org.apache.hadoop.log.LogLevel ;;
  'hadoop fs' | 'hadoop dfs' | 'hdfs dfs') class=org.apache.hadoop.fs.FsShell ;;
  'hdfs dfsadmin') class=$hdfs.DFSAdmin ;;
  'hdfs fsck') class=$hdfs.DFSck ;;
  'hdfs getconf') class=$hdfs.GetConf ;;
  'yarn application' | 'yarn applicationattempt' | 'yarn container')
    class=$yarn.ApplicationCLI
    set -- "$command" "$@"
    ;;
  'yarn app')
    class=$yarn.ApplicationCLI
    set -- application "$@"
    ;;
  'yarn logs') class=$yarn.LogsCLI ;;
  'yarn node') class=$yarn.NodeCLI ;;
  'yarn queue') class=$yarn.QueueCLI ;;
  'yarn cluster') class=$yarn.ClusterCLI ;;
  'yarn rmadmin') class=$yarn.RMAdminCLI ;;
  'yarn top') class=$yarn.TopCLI ;;
  *' '*.*) class=$command ;;
  *)
    printf '%s: no command %s here; there are: classpath version jar daemonlog, ' "$tool" "${command:-given}" >&2
    case "$tool" in
      hadoop) echo 'fs, or the name of a class' >&2 ;;
      hdfs) echo 'dfs dfsadmin fsck getconf, or the name of a class' >&2 ;;
      yarn) echo 'application applicationattempt container logs node queue cluster rmadmin top, or the name of a class' >&2 ;;
    esac
    exit 2
    ;;
esac

options=(-Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData)
options+=(-Djava.net.preferIPv4Stack=true -Dhadoop.root.logger="${HADOOP_ROOT_LOGGER:-WARN,console}")
options+=(--add-opens=java.base/java.lang=ALL-UNNAMED)
[ -z "$archive" ] || options+=(-XX:SharedArchiveFile="$archive" -Xlog:disable -Xlog:all=error:stderr)

# the archive asks for the jars in its own order, folders last
# shellcheck disable=SC2086  # options, split at blanks on purpose
exec "$JAVA_HOME/bin/java" "${options[@]}" ${HADOOP_CLIENT_OPTS:-} \
  -cp "$(LC_ALL=C && printf '%s:' "$jars"/lib/*.jar)$conf" "$class" "$@"
