"""Programs uploaded to a real standalone cluster: run to their end, refused, and never left behind."""

from __future__ import annotations

import io
import threading
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from integration.conftest import wait_until
from integration.processes import JOB_MANAGER, none_is_left, processes
from integration.shared_cluster import SharedCluster
from tests.patience import PATIENCE

PROGRAM = """
import sys
from yarnflow.api import FileSink, StreamExecutionEnvironment

{more}
env = StreamExecutionEnvironment.get_execution_environment()
stream = env.from_collection([*sys.argv[2:], *WORDS])
stream.sink_to(FileSink.for_path(sys.argv[1]).format("csv").build())
env.execute({name!r})
"""
#: never comes to its job
ENDLESS = "import time\nimport yarnflow.api\nprint('it waits')\ntime.sleep(3600)\n"


@dataclass
class Cluster:
    """The cluster that tests share, and a client with its token."""

    shared: SharedCluster

    @property
    def url(self) -> str:
        return self.shared.rest.url

    @property
    def mark(self) -> str:
        return self.shared.mark

    def ask(self, method: str, path: str, **how: Any) -> requests.Response:
        headers = {"Authorization": f"Bearer {self.shared.rest.token}"}
        return requests.request(method, self.url + path, headers=headers, timeout=PATIENCE.command_s, **how)

    def upload(self, name: str, content: bytes) -> str:
        answer = self.ask("POST", "/jars/upload", files={"jarfile": (name, content)})
        assert answer.status_code == 200, answer.text
        return Path(answer.json()["filename"]).name

    def run(self, program: str, **body: Any) -> str:
        answer = self.ask("POST", f"/jars/{program}/run", json=body)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["jobid"])

    def ends(self, job: str) -> str:
        """The state it ends in."""

        def state() -> str | None:
            details = self.ask("GET", f"/jobs/{job}").json()
            return str(details["state"]) if details["end-time"] >= 0 else None

        return wait_until(state, "the job to end", pause_s=0.5)


@pytest.fixture
def cluster(shared_cluster: SharedCluster) -> Cluster:
    """A cluster that takes programs; a test may kill it."""
    return Cluster(shared_cluster)


def lines(directory: Path) -> list[str]:
    return sorted(line for part in directory.glob("part-*") for line in part.read_text().splitlines())


def test_a_file_and_an_archive_run_to_their_end(cluster: Cluster, tmp_path: Path) -> None:
    assert requests.post(f"{cluster.url}/jars/upload", timeout=PATIENCE.answer_s).status_code == 401
    assert cluster.ask("GET", "/config").json()["features"]["web-submit"]
    file = cluster.upload("words.py", PROGRAM.format(more="WORDS = ['one']", name="words").encode())
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("__main__.py", PROGRAM.format(more="from lib.words import WORDS", name="packed"))
        archive.writestr("lib/__init__.py", "")
        archive.writestr("lib/words.py", "WORDS = ['packed']\n")
    archived = cluster.upload("words.zip", packed.getvalue())
    listed = {each["id"]: each["entry"][0]["name"] for each in cluster.ask("GET", "/jars").json()["files"]}
    assert listed == {file: "words", archived: "__main__"}

    plan = cluster.ask("POST", f"/jars/{file}/plan", json={"programArgsList": [str(tmp_path / "o")]}).json()
    assert [node["parallelism"] for node in plan["plan"]["nodes"]] == [1]
    jobs = [
        cluster.run(program, programArgsList=[str(tmp_path / program), "a b"]) for program in (file, archived)
    ]
    assert [cluster.ends(job) for job in jobs] == ["FINISHED", "FINISHED"]
    assert [lines(tmp_path / program) for program in (file, archived)] == [["a b", "one"], ["a b", "packed"]]
    for program in (file, archived):
        assert cluster.ask("DELETE", f"/jars/{program}").status_code == 200
    assert cluster.ask("GET", "/jars").json()["files"] == []


def test_the_end_of_a_program_that_fails_is_told_with_its_traceback(cluster: Cluster) -> None:
    code = b"import yarnflow.api\n\ndef f():\n    raise ValueError('no')\n\nf()\n"
    program = cluster.upload("fails.py", code)
    answer = cluster.ask("POST", f"/jars/{program}/run", json={})
    assert answer.status_code == 400
    message, traceback = answer.json()["errors"]
    assert "ValueError: no" in message and 'fails.py", line 4, in f' in traceback
    answer = cluster.ask("POST", f"/jars/{program}/run", json={"flinkConfiguration": {"no": "x"}})
    assert answer.status_code == 400


def test_no_program_outlives_the_job_manager(cluster: Cluster) -> None:
    program = cluster.upload("waits.py", ENDLESS.encode())

    def kill() -> None:
        wait_until(lambda: processes(cluster.mark, "waits.py"), "the program to run")
        (master,) = processes(cluster.mark, JOB_MANAGER)
        master.kill()

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(requests.ConnectionError):
        cluster.ask("POST", f"/jars/{program}/run", json={})
    killer.join()
    wait_until(lambda: none_is_left(cluster.mark, "waits.py"), "the program to end", PATIENCE.process_s)
