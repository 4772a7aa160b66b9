"""A JobMaster and executors for tests of a real driver process."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import time
from pathlib import Path

from tests.patience import PATIENCE
from yarnflow.config.options.cluster import CLUSTER_ID
from yarnflow.core.ids import DriverId, ExecutorId, JobId, VertexId
from yarnflow.core.json_codec import to_json
from yarnflow.core.messages import (
    DriverAssignment,
    DriverDeployment,
    DriverRegistration,
    ExecutorDescriptor,
    Fence,
    JobSubmission,
    ProgramKind,
)
from yarnflow.core.ports import DriverGateway
from yarnflow.graph.codec import job_graph_to_json
from yarnflow.graph.job_graph import JobGraph, JobVertex
from yarnflow.process.spawn import wrap_command
from yarnflow.rpc.gateways import ThriftGatewayFactory
from yarnflow.rpc.member import Member, Role
from yarnflow.rpc.methods import JOB_MASTER, Service
from yarnflow.rpc.server import RpcServer
from yarnflow.spark.launch.class_data_sharing import Role as JvmRole
from yarnflow.spark.launch.class_data_sharing import default_cache_dir, jvm_flags
from yarnflow.spark.launch.driver_secret import spark_secret
from yarnflow.spark.launch.executor_command import ExecutorSettings, executor_command
from yarnflow.spark.launch.java import find_java
from yarnflow.testing.gateways.job_master import FakeJobMaster

FENCE = Fence("leader", 1)
JOB_ID = JobId("5" * 32)
DRIVER_ID = DriverId("driver-1")


class DriverProcess:
    """A driver process with its JobMaster; ends everything on exit."""

    def __init__(self, directory: Path, configuration: dict[str, str] | None = None) -> None:
        self.directory = directory
        self.configuration = {"heartbeat.interval": "1 s", **(configuration or {})}
        self.secret = secrets.token_hex(32)
        self.job_master = FakeJobMaster(limit_s=PATIENCE.condition_s)
        self._executors: list[subprocess.Popen[bytes]] = []
        member = Member(Role.JOB_MANAGER, self.secret.encode(), CLUSTER_ID.default)
        self._server = RpcServer(
            "127.0.0.1",
            "0",
            {"JobMaster": Service(JOB_MASTER, self.job_master)},
            member,
            lambda: FENCE,
        )
        self._gateways = ThriftGatewayFactory(member, identity="jm", fence=lambda: FENCE)

    @property
    def spark_secret(self) -> str:
        """What a TaskManager derives as well."""
        return spark_secret(self.secret.encode(), DRIVER_ID)

    def __enter__(self) -> DriverProcess:
        self._server.start()
        secret_file = self.directory / "secret"
        secret_file.write_text(self.secret)
        secret_file.chmod(0o600)
        conf = self.directory / "conf.json"
        conf.write_text(json.dumps(self.configuration))
        self.log = self.directory / "driver.log"
        self.output = self.directory / "driver.out"
        self.started = time.monotonic()
        with open(self.output, "wb") as out:
            self.process = subprocess.Popen(
                wrap_command(
                    [
                        *(sys.executable, "-m", "yarnflow.entrypoint.driver.main", "--memory-mib", "1600"),
                        *("--secret-file", str(secret_file), "--cluster-dir", str(self.directory)),
                        *("--log-file", str(self.log), "--conf-json", str(conf)),
                        *("--scratch-dir", str(self.directory)),
                    ]
                ),
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=out,
                env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
            )
        return self

    def __exit__(self, *_: object) -> None:
        for executor in self._executors:
            executor.kill()
            executor.wait()
        self.process.kill()
        self.process.wait()
        if self.process.stdin is not None:
            try:
                self.process.stdin.close()
            except BrokenPipeError:
                pass
        self._gateways.close()
        self._server.stop()

    def assign(self) -> None:
        assignment = DriverAssignment(
            job_id=JOB_ID,
            driver_id=DRIVER_ID,
            job_master_address=f"127.0.0.1:{self._server.port}",
            fence=FENCE,
            checkpoint_dir=f"file:{self.directory}/checkpoints",
            work_dir=str(self.directory / "work"),
            job_name="test job",
        )
        assert self.process.stdin is not None
        self.process.stdin.write(to_json(assignment).encode() + b"\n")
        self.process.stdin.flush()

    def await_registration(self) -> DriverRegistration:
        registrations = self.job_master.registrations
        try:
            self.job_master.wait(lambda: registrations, PATIENCE.condition_s)
        except AssertionError:
            raise AssertionError(self.log_text() + self.output_text()) from None
        return registrations[-1]

    @property
    def gateway(self) -> DriverGateway:
        return self._gateways.driver(self.await_registration().address)

    def start_executor(self, number: int, cores: int = 2) -> subprocess.Popen[bytes]:
        registration = self.await_registration()
        descriptor = ExecutorDescriptor(
            job_id=registration.job_id,
            driver_id=registration.driver_id,
            executor_id=ExecutorId(str(number)),
            driver_url=registration.driver_url,
            app_id=registration.app_id,
            cores=cores,
            java_options=registration.java_options,
            environment=registration.environment,
        )
        java = find_java()
        command = executor_command(
            descriptor,
            ExecutorSettings(
                java,
                "127.0.0.1",
                600,
                class_data_sharing=tuple(jvm_flags(JvmRole.EXECUTOR, java, default_cache_dir())),
                local_dirs=(str(self.directory),),
            ),
            self.spark_secret,
        )
        with open(self.directory / f"executor-{number}.log", "wb") as log:
            process = subprocess.Popen(
                wrap_command(list(command.command)),
                env=command.environment,
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._executors.append(process)
        return process

    def script(self, attempt: int, source: str, argv: tuple[str, ...] = (), **files: bytes) -> None:
        """Deploy a program for the one executor."""
        vertex = JobVertex(VertexId("a" * 32), "script", (), 2, 128, "default")
        graph = JobGraph(JOB_ID, "job", ProgramKind.SCRIPT, vertices=(vertex,))
        submission = JobSubmission(
            job_id=JOB_ID,
            name="job",
            kind=ProgramKind.SCRIPT,
            job_graph_json=job_graph_to_json(graph),
            configuration={},
            files={"job.py": source.encode(), **{f"{k}.py": v for k, v in files.items()}},
            script_argv=("job.py", *argv),
        )
        self.gateway.deploy(DriverDeployment(attempt, submission, (ExecutorId("0"),)))

    def log_text(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def output_text(self) -> str:
        return self.output.read_text(errors="replace")
