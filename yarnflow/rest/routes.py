"""Every path of the REST interface, one line each.

Flink counterparts: the ``…Headers`` classes of ``WebMonitorEndpoint``.
"""

from __future__ import annotations

from typing import Final

from yarnflow.rest.framework.route import Route
from yarnflow.rest.handlers import (
    applications,
    checkpoints,
    cluster,
    dashboard,
    events,
    jobs,
    metrics,
    programs,
    task_managers,
    vertices,
)
from yarnflow.rest.handlers import parameters as p
from yarnflow.rest.handlers.cluster import refuse

_J: Final = "/jobs/:jobid"
_V: Final = f"{_J}/vertices/:vertexid"
_S: Final = f"{_V}/subtasks/:subtaskindex"
_A: Final = f"{_S}/attempts/:attempt"
_P: Final = "/applications/:applicationid"
_T: Final = "/taskmanagers/:taskmanagerid"
_TASK_MANAGER: Final = (p.TASK_MANAGER_ID,)
_ATTEMPT: Final = (*p.SUBTASK, p.ATTEMPT)
_AGGREGATED: Final = (p.GET, p.AGG)
_CHECKPOINT: Final = (p.JOB_ID, p.CHECKPOINT_ID)
_TRIGGER: Final = (p.JOB_ID, p.TRIGGER_ID)

_CLUSTER: Final = (
    Route("GET", "/", dashboard.index, "The dashboard", blocks=True, public=True, ours=True),
    Route(
        "GET",
        "/dashboard/:file",
        dashboard.file,
        "A file of the dashboard",
        (p.DASHBOARD_FILE,),
        blocks=True,
        public=True,
        ours=True,
    ),
    Route(
        "GET",
        "/dashboard/:folder/:file",
        dashboard.file_in_folder,
        "A file of a part of the dashboard",
        (p.DASHBOARD_FOLDER, p.DASHBOARD_FILE),
        blocks=True,
        public=True,
        ours=True,
    ),
    Route("GET", "/overview", cluster.overview, "Counts of TaskManagers, slots and jobs"),
    Route("GET", "/config", cluster.dashboard_configuration, "What a dashboard needs to know"),
    Route("DELETE", "/cluster", cluster.shut_down, "Cancel every job and end the cluster", writes=True),
    Route("GET", "/jobmanager/config", cluster.configuration, "The cluster's options, secrets hidden"),
    Route("GET", "/jobmanager/environment", cluster.environment, "What runs the JobManager"),
    Route("GET", "/jobmanager/leadership", cluster.leadership, "Who leads, and who stands by", ours=True),
    Route("GET", "/jobmanager/logs", cluster.logs, "The JobManager's log files", blocks=True),
    Route(
        "GET",
        "/jobmanager/logs/:filename",
        cluster.log_file,
        "One of them, or a range of it",
        (p.FILE_NAME,),
        blocks=True,
    ),
    Route("GET", "/jobmanager/log", cluster.log, "The JobManager's own log", blocks=True),
    Route("GET", "/jobmanager/stdout", cluster.stdout, "What the JobManager has printed", blocks=True),
    Route(
        "GET", "/jobmanager/thread-dump", cluster.thread_dump, "What the JobManager's threads do", blocks=True
    ),
    Route("GET", "/jobmanager/metrics", metrics.of_job_manager, "Metrics of the JobManager", (p.GET,)),
)

_JOBS: Final = (
    Route("GET", "/jobs", jobs.job_ids, "All jobs with their status"),
    Route("GET", "/jobs/overview", jobs.overview, "All jobs, newest first"),
    Route("GET", "/jobs/metrics", metrics.of_jobs, "Metrics of jobs, put together", (*_AGGREGATED, p.JOBS)),
    Route("GET", _J, jobs.details, "Everything about one job", p.JOB),
    Route("PATCH", _J, jobs.cancel, "Begin to cancel a job", (p.JOB_ID, p.MODE), status=202, writes=True),
    Route("GET", f"{_J}/status", jobs.status, "Status of a job", p.JOB),
    Route("GET", f"{_J}/plan", jobs.plan, "What a job does", p.JOB),
    Route("GET", f"{_J}/config", jobs.configuration, "How a job is run", p.JOB),
    Route(
        "GET",
        f"{_J}/exceptions",
        jobs.exceptions,
        "What went wrong, newest first",
        (p.JOB_ID, p.MAX_EXCEPTIONS, p.FAILURE_LABEL_FILTER),
    ),
    Route("GET", f"{_J}/logs", jobs.logs, "Where its logs are, and Spark's event log", p.JOB, ours=True),
    Route("GET", f"{_J}/execution-result", jobs.execution_result, "How a job ended", p.JOB),
    Route(
        "GET",
        f"{_J}/accumulators",
        jobs.accumulators,
        "Accumulators: there are none",
        (p.JOB_ID, p.INCLUDE_SERIALIZED),
    ),
    Route("GET", f"{_J}/metrics", metrics.of_job, "Metrics of a job", (p.JOB_ID, p.GET)),
    Route(
        "GET",
        f"{_J}/events",
        events.follow,
        "States, checkpoints and progress, as they happen",
        p.JOB,
        ours=True,
    ),
    Route(
        "GET",
        f"{_J}/driver/thread-dump",
        jobs.driver_thread_dump,
        "What the threads of its driver and of the driver's JVM do",
        p.JOB,
        remote=True,
        ours=True,
    ),
    Route("GET", f"{_J}/jobmanager/config", cluster.job_configuration, "The cluster's options", p.JOB),
    Route("GET", f"{_J}/jobmanager/environment", cluster.job_environment, "What runs the JobManager", p.JOB),
    Route(
        "GET",
        f"{_J}/resource-requirements",
        jobs.resource_requirements,
        "How many subtasks each vertex may have",
        p.JOB,
    ),
    Route(
        "PUT",
        f"{_J}/resource-requirements",
        jobs.change_resource_requirements,
        "Refused: the parallelism of a job is fixed",
        p.JOB,
        writes=True,
    ),
    Route(
        "GET",
        f"{_J}/yarn-cancel",
        jobs.yarn_cancel,
        "Cancel a job through YARN's web proxy",
        p.JOB,
        status=202,
        writes=True,
        token_in_request=True,
    ),
    Route(
        "PUT",
        f"{_J}/yarn-cancel",
        jobs.yarn_cancel_with_token,
        "The same, with the token in the body",
        p.JOB,
        status=202,
        writes=True,
        token_in_request=True,
        ours=True,
    ),
    Route(
        "GET",
        f"{_J}/yarn-stop",
        checkpoints.yarn_stop,
        "Stop a job with a savepoint through YARN's web proxy",
        p.JOB,
        status=202,
        writes=True,
        token_in_request=True,
    ),
    Route(
        "PUT",
        f"{_J}/yarn-stop",
        checkpoints.yarn_stop_with_token,
        "End a job with a savepoint, with the token in the body",
        p.JOB,
        status=202,
        writes=True,
        token_in_request=True,
        ours=True,
    ),
)

_APPLICATIONS: Final = (
    Route("GET", "/applications/overview", applications.overview, "All applications, newest first"),
    Route("GET", _P, applications.details, "One application", p.APPLICATION),
    Route(
        "POST", f"{_P}/cancel", applications.cancel, "Cancel its job", p.APPLICATION, status=202, writes=True
    ),
    Route("GET", f"{_P}/exceptions", applications.exceptions, "What went wrong, newest first", p.APPLICATION),
    Route(
        "GET", f"{_P}/jobmanager/config", applications.configuration, "The cluster's options", p.APPLICATION
    ),
)

_CHECKPOINTS: Final = (
    Route("GET", f"{_J}/checkpoints", checkpoints.history, "Checkpoints of a job, newest first", p.JOB),
    Route(
        "POST",
        f"{_J}/checkpoints",
        checkpoints.trigger_checkpoint,
        "Begin a checkpoint",
        p.JOB,
        status=202,
        writes=True,
    ),
    Route("GET", f"{_J}/checkpoints/config", checkpoints.configuration, "When they are begun", p.JOB),
    Route(
        "GET",
        f"{_J}/checkpoints/:triggerid",
        checkpoints.checkpoint_status,
        "What became of one",
        _TRIGGER,
        blocks=True,
    ),
    Route("GET", f"{_J}/checkpoints/details/:checkpointid", checkpoints.details, "One of them", _CHECKPOINT),
    Route(
        "GET",
        f"{_J}/checkpoints/details/:checkpointid/subtasks/:vertexid",
        checkpoints.subtasks,
        "Refused: a checkpoint is of whole queries",
        (*_CHECKPOINT, p.VERTEX_ID),
    ),
    Route(
        "POST",
        f"{_J}/savepoints",
        checkpoints.trigger_savepoint,
        "Begin a savepoint",
        p.JOB,
        status=202,
        writes=True,
    ),
    Route(
        "GET",
        f"{_J}/savepoints/:triggerid",
        checkpoints.savepoint_status,
        "What became of one",
        _TRIGGER,
        blocks=True,
    ),
    Route(
        "POST", f"{_J}/stop", checkpoints.stop, "End a job with a savepoint", p.JOB, status=202, writes=True
    ),
    Route(
        "POST", "/savepoint-disposal", checkpoints.dispose, "Delete a savepoint of the cluster's", writes=True
    ),
    Route(
        "GET",
        "/savepoint-disposal/:triggerid",
        checkpoints.disposal_status,
        "Whether it is deleted",
        (p.TRIGGER_ID,),
        blocks=True,
    ),
)

_VERTICES: Final = (
    Route("GET", _V, vertices.details, "A vertex and its subtasks", p.VERTEX),
    Route("GET", f"{_V}/accumulators", vertices.accumulators, "Accumulators: there are none", p.VERTEX),
    Route(
        "GET", f"{_V}/backpressure", vertices.back_pressure, "How the time of subtasks is divided", p.VERTEX
    ),
    Route(
        "GET", f"{_V}/subtasktimes", vertices.subtask_times, "When subtasks entered their states", p.VERTEX
    ),
    Route("GET", f"{_V}/taskmanagers", vertices.task_managers, "The subtasks by TaskManager", p.VERTEX),
    Route("GET", f"{_V}/watermarks", vertices.watermarks, "Where subtasks stand in event time", p.VERTEX),
    Route("GET", f"{_V}/metrics", metrics.of_vertex, "Metrics of its subtasks", (*p.VERTEX, p.GET)),
    Route(
        "GET",
        f"{_V}/jm-operator-metrics",
        metrics.of_vertex_as_a_whole,
        "Metrics of the vertex as a whole",
        (*p.VERTEX, p.GET),
    ),
    Route("GET", f"{_V}/subtasks/accumulators", vertices.subtasks_accumulators, "There are none", p.VERTEX),
    Route(
        "GET",
        f"{_V}/subtasks/metrics",
        metrics.of_subtasks,
        "Metrics of subtasks, put together",
        (*p.VERTEX, *_AGGREGATED, p.SUBTASKS),
    ),
    Route("GET", _S, vertices.subtask, "The current attempt of a subtask", p.SUBTASK),
    Route("GET", f"{_S}/metrics", metrics.of_subtask, "Metrics of a subtask", (*p.SUBTASK, p.GET)),
    Route("GET", _A, vertices.attempt, "An attempt of a subtask: the current one is known", _ATTEMPT),
    Route("GET", f"{_A}/accumulators", vertices.attempt_accumulators, "There are none", _ATTEMPT),
)

_TASK_MANAGERS: Final = (
    Route("GET", "/taskmanagers", task_managers.overview, "The registered TaskManagers"),
    Route(
        "GET",
        "/taskmanagers/metrics",
        metrics.of_task_managers,
        "Metrics of TaskManagers, put together",
        (*_AGGREGATED, p.TASK_MANAGERS),
    ),
    Route("GET", _T, task_managers.details, "One TaskManager", _TASK_MANAGER),
    Route("GET", f"{_T}/logs", task_managers.logs, "Its log files", _TASK_MANAGER, remote=True),
    Route(
        "GET",
        f"{_T}/logs/:filename",
        task_managers.log_file,
        "One of them, or a range of it",
        (p.TASK_MANAGER_ID, p.FILE_NAME),
        remote=True,
    ),
    Route("GET", f"{_T}/log", task_managers.log, "Its own log", _TASK_MANAGER, remote=True),
    Route("GET", f"{_T}/stdout", task_managers.stdout, "What it has printed", _TASK_MANAGER, remote=True),
    Route(
        "GET",
        f"{_T}/thread-dump",
        task_managers.thread_dump,
        "What its threads do",
        _TASK_MANAGER,
        remote=True,
    ),
    Route("GET", f"{_T}/metrics", metrics.of_task_manager, "Its metrics", (p.TASK_MANAGER_ID, p.GET)),
)

_PROGRAMS: Final = (
    Route("GET", "/jars", programs.overview, "Uploaded programs, newest first", blocks=True),
    Route("POST", "/jars/upload", programs.upload, "Upload a program: .py, or .zip", writes=True),
    Route("DELETE", "/jars/:jarid", programs.delete, "Delete one; its jobs go on", p.PROGRAM, writes=True),
    Route(
        "POST",
        "/jars/:jarid/run",
        programs.run,
        "Run one, and answer its first job",
        p.RUN_OF_PROGRAM,
        writes=True,
        long=True,
    ),
    Route(
        "POST",
        "/jars/:jarid/run-application",
        programs.run_application,
        "The same, with the application of that job",
        p.RUN_OF_PROGRAM,
        writes=True,
        long=True,
    ),
    # these run main(), too
    Route(
        "GET",
        "/jars/:jarid/plan",
        programs.plan,
        "What one would do",
        p.PLAN_OF_PROGRAM,
        writes=True,
        long=True,
    ),
    Route(
        "POST",
        "/jars/:jarid/plan",
        programs.plan_of_body,
        "The same, asked for in a body",
        p.PLAN_OF_PROGRAM,
        writes=True,
        long=True,
    ),
)

_NO_DATASETS: Final = refuse("yarnflow keeps no cluster datasets.")
_NO_PROFILER: Final = refuse("yarnflow has no built-in profiler; see the thread dump.")
_NO_FLAME_GRAPH: Final = refuse("yarnflow takes no samples of threads; see the thread dumps of TaskManagers.")
_NO_RESCALES: Final = refuse("The parallelism of a running job does not change, so it has no history.")
_NO_RESCALING: Final = refuse(
    "The parallelism of a running job cannot be changed: stop it with a savepoint and submit it again."
)
_NO_LOG_URL: Final = refuse(
    "This JobManager has its logs itself: see /jobmanager/logs and /taskmanagers/:id/logs."
)
_NO_GRAPHS: Final = refuse("Flink's JobGraph cannot run here; submit a program with `yarnflow submit`.")
_NO_COORDINATORS: Final = refuse("yarnflow has no operator coordinators that could be called.")
_NO_HEARTBEATS: Final = refuse("yarnflow's client watches its job by the JobManager's own protocol.")

#: what Flink has and yarnflow has not, with the reason
_REFUSED: Final = (
    Route("GET", "/datasets", _NO_DATASETS, "Refused: there are none"),
    Route(
        "DELETE",
        "/datasets/:datasetid",
        _NO_DATASETS,
        "Refused: there are none",
        (p.DATASET_ID,),
        writes=True,
    ),
    Route("GET", "/datasets/delete/:triggerid", _NO_DATASETS, "Refused: there are none", (p.TRIGGER_ID,)),
    Route("GET", "/jobmanager/profiler", _NO_PROFILER, "Refused: there is none"),
    Route("POST", "/jobmanager/profiler", _NO_PROFILER, "Refused: there is none", writes=True),
    Route("GET", "/jobmanager/profiler/:filename", _NO_PROFILER, "Refused: there is none", (p.FILE_NAME,)),
    Route("GET", f"{_T}/profiler", _NO_PROFILER, "Refused: there is none", _TASK_MANAGER),
    Route("POST", f"{_T}/profiler", _NO_PROFILER, "Refused: there is none", _TASK_MANAGER, writes=True),
    Route(
        "GET",
        f"{_T}/profiler/:filename",
        _NO_PROFILER,
        "Refused: there is none",
        (p.TASK_MANAGER_ID, p.FILE_NAME),
    ),
    Route("POST", "/jobs", _NO_GRAPHS, "Refused: Flink's job graphs cannot run here", writes=True),
    Route("GET", f"{_V}/flamegraph", _NO_FLAME_GRAPH, "Refused: no samples are taken", p.VERTEX),
    Route("PATCH", f"{_J}/clientHeartbeat", _NO_HEARTBEATS, "Refused: not needed", p.JOB, writes=True),
    Route(
        "POST",
        f"{_J}/coordinators/:operatorUid",
        _NO_COORDINATORS,
        "Refused: there are none",
        (p.JOB_ID, p.OPERATOR_UID),
        writes=True,
    ),
    Route("GET", f"{_J}/jobmanager/log-url", _NO_LOG_URL, "Refused: it has the logs itself", p.JOB),
    Route(
        "GET",
        f"{_J}/taskmanagers/:taskmanagerid/log-url",
        _NO_LOG_URL,
        "Refused: it has the logs itself",
        (p.JOB_ID, p.TASK_MANAGER_ID),
    ),
    Route("PATCH", f"{_J}/rescaling", _NO_RESCALING, "Refused: the parallelism is fixed", p.JOB, writes=True),
    Route("GET", f"{_J}/rescaling/:triggerid", _NO_RESCALING, "Refused: the parallelism is fixed", _TRIGGER),
    Route("GET", f"{_J}/rescales/config", _NO_RESCALES, "Refused: there are none", p.JOB),
    Route("GET", f"{_J}/rescales/overview", _NO_RESCALES, "Refused: there are none", p.JOB),
    Route("GET", f"{_J}/rescales/history", _NO_RESCALES, "Refused: there are none", p.JOB),
    Route("GET", f"{_J}/rescales/summary", _NO_RESCALES, "Refused: there are none", p.JOB),
    Route(
        "GET",
        f"{_J}/rescales/details/:rescaleuuid",
        _NO_RESCALES,
        "Refused: there are none",
        (p.JOB_ID, p.RESCALE_ID),
    ),
)

#: heading → its routes; the order of the documents
SECTIONS: Final[dict[str, tuple[Route, ...]]] = {
    "Cluster and JobManager": _CLUSTER,
    "Jobs": _JOBS,
    "Applications": _APPLICATIONS,
    "Checkpoints and savepoints": _CHECKPOINTS,
    "Vertices and subtasks": _VERTICES,
    "TaskManagers": _TASK_MANAGERS,
    "Programs": _PROGRAMS,
    "Without a counterpart": _REFUSED,
}
