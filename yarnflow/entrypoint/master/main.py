"""Composition root of a JobManager process.

Started by a supervisor (local target, ``yarnflow jobmanager``, the ApplicationMaster on YARN),
which owns the drivers.  Serves Dispatcher, ResourceManager and JobMaster on one port, the web
page on another, and writes both addresses to the cluster directory (``jobmanager.json``) once it
does; what it is and does is :mod:`yarnflow.entrypoint.master.job_manager`'s business.

On YARN (``--mode``) it ends by itself when what it lives for has ended
(:mod:`yarnflow.entrypoint.master.lifetime`), and leaves ``result.json`` in the cluster directory.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from yarnflow.config.configuration import Configuration
from yarnflow.config.options import security as security_options
from yarnflow.core.json_codec import from_json
from yarnflow.core.messages import JobSubmission
from yarnflow.core.ports import ResourceProvider
from yarnflow.core.yarn import DeploymentMode
from yarnflow.entrypoint.ha_services import services_of
from yarnflow.entrypoint.master.job_manager import JobManager
from yarnflow.errors import ConfigError, YarnflowError
from yarnflow.process.channel.job_manager_end import JobManagerEnd
from yarnflow.process.logs import log_settings, set_up_logging
from yarnflow.process.no_workers import NoResourceProvider
from yarnflow.process.secret import read_secret
from yarnflow.rpc import descriptors

logger = logging.getLogger(__name__)


def read_submission(path: Path) -> JobSubmission:
    """The job a cluster was started for.

    Raises
    ------
    ConfigError
        The file cannot be read.
    RpcProtocolError
        It is not a submission.
    """
    try:
        return from_json(JobSubmission, path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the job in {path} cannot be read: {error} (--submission)") from error


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a JobManager; returns the exit status."""
    parser = argparse.ArgumentParser(prog="yarnflow.entrypoint.master.main")
    parser.add_argument("--cluster-dir", type=Path, required=True)
    parser.add_argument("--conf-json", type=Path, required=True)
    parser.add_argument("--channel-fd", type=int, required=True)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--mode", type=DeploymentMode.of_target, default=None)
    parser.add_argument("--submission", type=Path, default=None)
    parser.add_argument("--drivers", type=int, default=0)
    parser.add_argument("--expected-workers", type=int, default=0)
    parsed = parser.parse_args(arguments)
    if (parsed.submission is not None) != (parsed.mode is DeploymentMode.PER_JOB):
        parser.error("--submission goes with --mode yarn-per-job, and nothing else")
    try:
        values = json.loads(parsed.conf_json.read_text())
        configuration = Configuration.from_dict(values, str(parsed.conf_json))
        set_up_logging(None, log_settings(configuration))
        descriptors.raise_limit()
        secret = read_secret(Path(configuration.get(security_options.CLUSTER_SECRET_FILE))).encode("ascii")
        submission = None if parsed.submission is None else read_submission(parsed.submission)
        on_yarn = parsed.mode is not None
        channel = JobManagerEnd(
            parsed.channel_fd,
            max_workers=None if on_yarn else parsed.workers,
            replaces_workers=not on_yarn,
        )
        provider: ResourceProvider = NoResourceProvider()
        if on_yarn or parsed.workers:
            provider = channel.resource_provider
        container_id = os.environ.get("CONTAINER_ID", "")
        job_manager = JobManager(
            configuration,
            parsed.cluster_dir,
            secret,
            channel.driver_launcher,
            provider,
            services_of(configuration, secret, parsed.cluster_dir, container_id=container_id),
            ask_supervisor=channel.ask,
            mode=parsed.mode,
            max_jobs=parsed.drivers,
            # a supervisor on this machine has started all of its workers, or is about to
            workers_expected=parsed.expected_workers or parsed.workers,
            container_id=container_id,
        )
        channel.on_program_ended(job_manager.program_ended)
        channel.on_running_drivers(job_manager.running_drivers)
        signal.signal(signal.SIGTERM, lambda _signal, _frame: job_manager.ended.set())
        channel.start()
        job_manager.run(submission)
    except YarnflowError as error:
        logger.error("%s", error)
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
