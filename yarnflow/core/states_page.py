"""``docs/states.md``, made from the state machines.

``scripts/gen-docs`` writes it and a test compares it, so that the page cannot differ from
the tables the runtime works with.
"""

from __future__ import annotations

from typing import Final

from yarnflow.core.ha import leadership
from yarnflow.core.job import execution, job
from yarnflow.core.job_run import spare_life
from yarnflow.core.monitoring import alerts

_HEAD: Final = """\
<!-- Written by scripts/gen-docs from the machines in yarnflow/core; do not edit. -->
# States

The states of jobs and executions are Flink's, but for one of a job. In Flink, leadership is a flag; here
it has states. The hot spare and alerts have states, too; Flink has neither. An event that the table of a
machine does not contain is illegal: it is refused and nothing changes. Each row is one line of a table in the
code, with its reason.
"""
_JOB: Final = """
## Job

`yarnflow/core/job/job.py`. A job is RUNNING only while all its executions run; without slots it is CREATED or
RESTARTING. Flink's SUSPENDED does not occur: a master that is not the leader any more ends, and the next
leader continues the job. RECOVERY_FAILED is not one of Flink's: a new leader cannot read what the job is to
run. The REST interface shows such a job as RECONCILING, with the reason.
"""
_EXECUTION: Final = """
## Execution

`yarnflow/core/job/execution.py`. An execution is one attempt of one subtask. A restart makes a new attempt,
which begins in CREATED.
"""
_HOT_SPARE: Final = """
## Hot spare

`yarnflow/core/job_run/spare_life.py`. A second driver of a job, with executors on slots of its own, if
`high-availability.standby-mode` is `hot`. When it takes over the job (SpareStepped), its states start again,
and the next hot spare is prepared.
"""
_ALERT: Final = """
## Alert

`yarnflow/core/monitoring/alerts.py`. One [alert](metrics.md#alerts) rule and one job, or the cluster.
"""
_LEADERSHIP: Final = """
## Leadership

`yarnflow/core/ha/leadership.py`. The role of a master, as its own connection to ZooKeeper shows it. The
process of a REVOKED master ends and is started again as a FOLLOWER.
"""


def states_markdown() -> str:
    """``docs/states.md``."""
    parts = [_HEAD]
    for text, diagram, table in (
        (_JOB, job.MACHINE.mermaid(), job.MACHINE.markdown()),
        (_EXECUTION, execution.MACHINE.mermaid(), execution.MACHINE.markdown()),
        (_HOT_SPARE, spare_life.MACHINE.mermaid(), spare_life.MACHINE.markdown()),
        (_LEADERSHIP, leadership.MACHINE.mermaid(), leadership.MACHINE.markdown()),
        (_ALERT, alerts.MACHINE.mermaid(), alerts.MACHINE.markdown()),
    ):
        parts.append(f"{text}\n```mermaid\n{diagram}\n```\n\n{table}\n")
    return "".join(parts)
