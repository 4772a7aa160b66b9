"""A history server over archives in memory, and what makes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp

from tests.rest.asgi import Answer, ask
from tests.rest.bench import HOSTS, Bench
from yarnflow.core.files import FileSystem
from yarnflow.core.ids import JobId
from yarnflow.rest.framework.application import HandlerPool
from yarnflow.rest.framework.authentication import OneToken
from yarnflow.rest.framework.server import Guarded
from yarnflow.rest.history.fetcher import ArchiveFetcher, Retention
from yarnflow.rest.history.form import Owner
from yarnflow.rest.history.recorder import Recorder
from yarnflow.rest.history.server import History, application
from yarnflow.rest.history.store import ArchiveStore
from yarnflow.testing.file_system import MemoryFileSystem
from yarnflow.testing.runtime import ManualClock

ARCHIVES = "/archives"


def recorder(bench: Bench) -> Recorder:
    return Recorder(bench.cluster)


def archive(owner: Owner, answers: Mapping[str, Any] | None = None, **summary: Any) -> bytes:
    """A small one, as another program may have written it."""
    jobs = owner.kind == "jobs"
    of_kind = {"jid": owner.id, "state": "FINISHED"} if jobs else {"id": owner.id, "status": "FINISHED"}
    entry = {"name": "small", "start-time": 1_000, **of_kind, **summary}
    overview = {f"/{owner.kind}/overview": {owner.kind: [entry]}}
    entries = {**overview, owner.root: {"name": "small"}, **(answers or {})}
    listed = [{"path": path, "json": json.dumps(answer)} for path, answer in entries.items()]
    return json.dumps({"archive": listed}).encode()


def ended(job: str) -> dict[str, Any]:
    """``GET /jobs/:jobid``, with no more than pages need."""
    return {
        "jid": job, "name": "small", "state": "FINISHED", "start-time": 1_000, "end-time": 2_000,
        "duration": 1_000, "now": 2_000, "timestamps": {}, "vertices": [], "status-counts": {},
        "plan": {"jid": job, "name": "small", "nodes": []},
    }  # fmt: skip


def job_id(number: int) -> JobId:
    return JobId(f"{number:032x}")


class HistoryBench:
    """One history server; this object has all parts of it."""

    def __init__(
        self,
        directory: Path,
        retention: Retention = Retention(),
        sources: tuple[str, ...] = (ARCHIVES,),
        token: str = "",
        files: MemoryFileSystem | None = None,
    ) -> None:
        self.clock = ManualClock()
        self.files = files or MemoryFileSystem(self.clock)
        for source in sources:
            self.files.make_directory(source)
        self.store = ArchiveStore(directory)
        self.fetcher = ArchiveFetcher(sources, self._file_system, self.store, retention, self.clock)
        self.history = History(self.store, "9.9", 10_000, "http://logs/<jobid>", "http://logs/<jobid>/<tmid>")
        self.app: ASGIApp = Guarded(application(self.history, OneToken(token), HandlerPool(2)), HOSTS)

    def _file_system(self, uri: str) -> tuple[FileSystem, str]:
        return self.files, uri

    def put(self, owner: Owner, content: bytes | None = None, source: str = ARCHIVES) -> None:
        """A job's archive as the JobManager names it, or whatever is in its place."""
        self.files.write(f"{source}/{owner.id}", archive(owner) if content is None else content)

    def ask(self, target: str, method: str = "GET", token: str = "") -> Answer:
        return ask(self.app, method, target, headers={"authorization": f"Bearer {token}"} if token else {})

    def get(self, target: str, status: int = 200) -> Any:
        answer = self.ask(target)
        assert answer.status == status, (target, answer.body)
        return answer.json

    def names(self) -> list[str]:
        return [each["jid"] for each in self.get("/jobs/overview")["jobs"]]
