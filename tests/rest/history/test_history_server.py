"""The history server: which archives it takes, and what it answers of them and of all else."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from tests.rest.history.bench import ARCHIVES, HistoryBench, archive, job_id
from yarnflow.errors import StorageDenied, StorageUnavailable
from yarnflow.rest.history.fetcher import Retention
from yarnflow.rest.history.form import MAX_ARCHIVE_BYTES, BadArchive, Owner, cluster_folder, decode
from yarnflow.rest.history.server import HISTORY_ROUTES
from yarnflow.rest.web import ROUTES

#: what there is without any job
LISTED = ("/openapi.json", "/config", "/overview", "/jobs", "/jobs/overview", "/applications/overview")
ONE, TWO, THREE = (Owner("jobs", job_id(number)) for number in (1, 2, 3))


def _text(entries: object) -> bytes:
    return json.dumps(entries).encode()


def _overview(job: str) -> dict[str, str]:
    summary = {"jid": job, "name": "n", "state": "FAILED", "start-time": 1}
    return {"path": "/jobs/overview", "json": json.dumps({"jobs": [summary]})}


@pytest.mark.parametrize(
    "content, said",
    [
        (b"", "it is not"),
        (b"{", "it is not"),
        (archive(ONE)[:-20], "it is not"),
        (b"[" * 100_000, "it is not"),
        (b"\xff\xfe", "it is not"),
        (_text([]), "it is not"),
        (_text({"archive": {}}), "it is not"),
        (_text({"archive": [{"path": "/jobs/overview"}]}), "it is not"),
        (_text({"archive": [{"path": "/jobs/overview", "json": {}}]}), "it is not"),
        (_text({"archive": []}), "no /jobs/overview"),
        (_text({"archive": [_overview(TWO.id)]}), "not of"),
        (_text({"archive": [{"path": "/jobs/overview", "json": "{"}]}), "overview is not"),
        (_text({"archive": [{"path": "/jobs/overview", "json": '{"jobs":[]}'}]}), "overview is not"),
        (_text({"archive": [{"path": "/jobs/overview", "json": '{"jobs":[7]}'}]}), "overview is not"),
        (archive(ONE, name=7), "no name"),
        (archive(ONE, None, **{"start-time": "x"}), "no start-time"),
        (archive(ONE, None, **{"start-time": 2**70}), "no start-time"),
        (archive(ONE, {"/jobs/../../etc/passwd": 1}), "no path of"),
        (archive(ONE, {TWO.root: 1}), "no path of"),
        (archive(ONE, {f"{ONE.root}{'x' * 5}": 1}), "no path of"),
        (archive(ONE, {"/": 1}), "no path of"),
        (archive(ONE, {"/config": 1}), "no path of"),
        (archive(ONE, {f"{ONE.root}/{'x' * 2000}": 1}), "no path of"),
        (_text({"archive": [_overview(ONE.id), {"path": ONE.root, "json": "no"}]}), "no JSON"),
        (_text({"archive": [_overview(ONE.id), {"path": ONE.root, "json": "[" * 100_000}]}), "no JSON"),
        (_text({"archive": [_overview(ONE.id), {"path": ONE.root, "json": "\ud800"}]}), "it is not"),
    ],
)
def test_what_is_no_archive_is_said_once_and_hurts_no_other(
    content: bytes, said: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(BadArchive, match=said):
        decode(content, ONE)
    bench = HistoryBench(tmp_path)
    bench.put(ONE, content)
    bench.put(TWO)
    for _ in range(3):
        bench.fetcher.refresh()
    assert bench.names() == [TWO.id]
    (warning,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert ONE.id in warning and "said once" in warning
    bench.get(ONE.root, 404)


def test_one_that_is_mended_is_shown(tmp_path: Path) -> None:
    bench = HistoryBench(tmp_path)
    bench.put(ONE, b"half")
    bench.fetcher.refresh()
    bench.put(ONE)
    bench.fetcher.refresh()
    assert bench.names() == [ONE.id]


def test_one_that_is_too_long_is_not_even_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = HistoryBench(tmp_path)
    monkeypatch.setattr("yarnflow.rest.history.fetcher.MAX_ARCHIVE_BYTES", 100)
    bench.put(ONE)
    read: list[str] = []
    bench.files.before = lambda operation, path: read.append(path) if operation == "read" else None
    bench.fetcher.refresh()
    assert (bench.names(), read) == ([], [])
    with pytest.raises(BadArchive, match="bytes"):
        decode(bytes(MAX_ARCHIVE_BYTES + 1), ONE)


@pytest.mark.parametrize(
    "name", ["readme", "A" * 32, "..", f".{job_id(1)}.tmp", "0" * 31, "0" * 33, "é" * 32]
)
def test_files_of_other_names_are_left_alone(name: str, tmp_path: Path) -> None:
    bench = HistoryBench(tmp_path)
    bench.files.write(f"{ARCHIVES}/{name}", b"x")
    read: list[str] = []
    bench.files.before = lambda operation, path: read.append(path) if operation == "read" else None
    bench.fetcher.refresh()
    assert (bench.names(), read) == ([], [])


def test_archives_of_flinks_newer_layout_are_read(tmp_path: Path) -> None:
    bench = HistoryBench(tmp_path)
    application = Owner("applications", job_id(9))
    folder = f"{ARCHIVES}/{'c' * 32}/applications/{application.id}"
    bench.files.make_directory(f"{folder}/jobs")
    bench.files.write(f"{folder}/jobs/{ONE.id}", archive(ONE))
    bench.fetcher.refresh()
    assert bench.names() == [], "it comes with the summary, which is written last"
    bench.clock.advance(1)
    bench.files.write(f"{folder}/application-summary", archive(application))
    bench.fetcher.refresh()
    assert bench.names() == [ONE.id]
    assert bench.get("/applications/overview")["applications"][0]["id"] == application.id
    assert bench.get(application.root) == {"name": "small"}
    seen: list[str] = []
    bench.files.before = lambda operation, path: seen.append(f"{operation} {path}")
    bench.fetcher.refresh()
    assert not [each for each in seen if folder in each], "a folder that has not changed is not looked into"


def test_what_flink_alone_keeps_is_answered(tmp_path: Path) -> None:
    bench = HistoryBench(tmp_path)
    path = f"{ONE.root}/rescales/history"
    bench.put(ONE, archive(ONE, {path: {"rescales": []}}))
    bench.put(TWO)
    bench.fetcher.refresh()
    assert bench.get(path) == {"rescales": []}
    assert "does not have" in bench.get(f"{TWO.root}/rescales/history", 404)["errors"][0]


def test_copies_are_there_after_a_restart(tmp_path: Path) -> None:
    bench = HistoryBench(tmp_path)
    bench.put(ONE)
    bench.fetcher.refresh()
    bench.store.close()
    again = HistoryBench(tmp_path, files=bench.files)
    read: list[str] = []
    bench.files.before = lambda operation, path: read.append(path) if operation == "read" else None
    again.fetcher.refresh()
    assert (again.names(), read) == ([ONE.id], [])
    assert (tmp_path / "history.db").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("content", [b"no database " * 1000, b""])
def test_copies_that_cannot_be_read_are_made_anew(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "history.db").write_bytes(content)
    bench = HistoryBench(tmp_path)
    bench.put(ONE)
    bench.fetcher.refresh()
    assert bench.names() == [ONE.id]


def test_a_changed_archive_is_copied_again(tmp_path: Path) -> None:
    bench = HistoryBench(tmp_path)
    bench.put(ONE, archive(ONE, {f"{ONE.root}/old": 1}))
    bench.fetcher.refresh()
    bench.clock.advance(5)
    bench.put(ONE, archive(ONE, {f"{ONE.root}/plan": {"new": 1}}))
    bench.fetcher.refresh()
    assert bench.get(f"{ONE.root}/plan") == {"new": 1}
    assert bench.store.answer(f"{ONE.root}/old") is None


@pytest.mark.parametrize("clean, left", [(False, [ONE.id]), (True, [])])
def test_a_job_whose_archive_is_gone(clean: bool, left: list[str], tmp_path: Path) -> None:
    bench = HistoryBench(tmp_path, Retention(clean_expired=clean))
    bench.put(ONE)
    bench.fetcher.refresh()
    bench.files.delete(f"{ARCHIVES}/{ONE.id}")
    bench.fetcher.refresh()
    assert bench.names() == left
    bench.get(ONE.root, 200 if left else 404)


@pytest.mark.parametrize("fault", ["gone", "down"])
def test_a_directory_that_cannot_be_read_takes_nothing_away(
    fault: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bench = HistoryBench(tmp_path, Retention(clean_expired=True), sources=(ARCHIVES, "/other"))
    bench.put(ONE)
    bench.fetcher.refresh()
    bench.put(TWO, source="/other")

    def down(operation: str, path: str) -> None:
        if fault == "down" and path.startswith(ARCHIVES):
            raise StorageUnavailable("no answer")

    bench.files.before = down
    if fault == "gone":
        bench.files.delete(ARCHIVES)
    for _ in range(2):
        bench.fetcher.refresh()
    assert sorted(bench.names()) == [ONE.id, TWO.id]
    said = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(said) == 1 and ARCHIVES in said[0].getMessage()


@pytest.mark.parametrize("hidden", ["", f"/{job_id(9)}", f"/{job_id(9)}/jobs"], ids=["all", "one", "jobs"])
def test_what_others_keep_to_themselves_hides_nothing_and_takes_nothing_away(
    hidden: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """1. all may be read  2. some may not  3. all may again."""
    bench = HistoryBench(tmp_path, Retention(clean_expired=True))
    applications = f"{ARCHIVES}/{'c' * 32}/applications"
    application = Owner("applications", job_id(9))

    def write(job: Owner) -> None:
        folder = f"{applications}/{application.id}"
        bench.files.make_directory(f"{folder}/jobs")
        bench.files.write(f"{folder}/jobs/{job.id}", archive(job))
        bench.clock.advance(1)
        bench.files.write(f"{folder}/application-summary", archive(application))

    write(ONE)
    bench.fetcher.refresh()

    def denied(operation: str, path: str) -> None:
        if operation == "list" and path == f"{applications}{hidden}":
            raise StorageDenied("not yours")

    bench.files.before = denied
    bench.put(TWO)
    write(THREE)
    for _ in range(2):
        bench.fetcher.refresh()
    assert set(bench.names()) == {ONE.id, TWO.id}
    assert caplog.text.count("is passed over (said once): not yours") == 1
    bench.files.before = lambda operation, path: None
    bench.fetcher.refresh()
    assert set(bench.names()) == {ONE.id, TWO.id, THREE.id}


def test_an_archive_that_cannot_be_read_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bench = HistoryBench(tmp_path)
    bench.put(ONE)

    def denied(operation: str, path: str) -> None:
        if operation == "read":
            raise StorageDenied("not yours")

    bench.files.before = denied
    for _ in range(3):
        bench.fetcher.refresh()
    assert caplog.text.count("is not read yet (said once): not yours") == 1
    bench.files.before = lambda operation, path: None
    bench.fetcher.refresh()
    assert bench.names() == [ONE.id]


def test_only_the_newest_stay(tmp_path: Path) -> None:
    bench = HistoryBench(tmp_path, Retention(most=2))
    for owner in (TWO, ONE, THREE):
        bench.put(owner)
        bench.clock.advance(1_000)
        folder = f"{ARCHIVES}/{cluster_folder('/default')}/applications/{owner.id}"
        bench.files.make_directory(f"{folder}/jobs")
        bench.files.write(f"{folder}/application-summary", archive(Owner("applications", owner.id)))
    bench.fetcher.refresh()
    assert sorted(bench.names()) == [ONE.id, THREE.id], "by the times of their archives"
    assert len(bench.get("/applications/overview")["applications"]) == 2, "an application goes with its job"
    assert not [path for path in bench.files.paths(ARCHIVES) if TWO.id in path]


def test_what_is_too_old_goes(tmp_path: Path) -> None:
    bench = HistoryBench(tmp_path, Retention(ttl_ms=10_000))
    bench.put(ONE)
    bench.fetcher.refresh()
    bench.clock.advance(8_000)
    bench.put(TWO)
    bench.clock.advance(8_000)
    bench.fetcher.refresh()
    assert bench.names() == [TWO.id]
    assert f"{ARCHIVES}/{ONE.id}" not in bench.files.paths(ARCHIVES)


def test_a_job_in_two_directories_is_shown_once(tmp_path: Path) -> None:
    bench = HistoryBench(tmp_path, sources=("/first", "/second"))
    bench.put(ONE, archive(ONE, name="first"), "/first")
    bench.put(ONE, archive(ONE, name="second"), "/second")
    for _ in range(2):
        bench.fetcher.refresh()
    assert [each["name"] for each in bench.get("/jobs/overview")["jobs"]] == ["first"]


def test_there_is_an_answer_for_every_path_of_a_job_manager(tmp_path: Path) -> None:
    bench = HistoryBench(tmp_path)
    assert [(route.method, route.path) for route in HISTORY_ROUTES] == [
        (route.method, route.path) for route in ROUTES
    ]
    for route, of_job_manager in zip(HISTORY_ROUTES, ROUTES):
        target = route.path
        for name in route.path_names:
            value = "1" if name in ("subtaskindex", "attempt", "checkpointid") else job_id(5)
            target = target.replace(f":{name}", value)
        answer = bench.ask(target, route.method)
        if route.public or (route.method == "GET" and target in LISTED):
            assert answer.status in (200, 404), target
        elif target.endswith("log-url"):
            assert answer.status == 200
        else:
            assert answer.status == (501 if of_job_manager.writes else 404), target
            assert answer.error


def test_the_dashboard_is_told_what_it_shows(tmp_path: Path) -> None:
    bench = HistoryBench(tmp_path)
    made = bench.get("/config")
    assert made["features"] == {
        "web-submit": False, "web-cancel": False, "web-rescale": False, "web-history": True
    }  # fmt: skip
    assert made["refresh-interval"] == 10_000
    assert b"<script" in bench.ask("/").body


def test_a_token_is_asked_for_where_there_is_one(tmp_path: Path) -> None:
    bench = HistoryBench(tmp_path, token="open-sesame")
    bench.put(ONE)
    bench.fetcher.refresh()
    assert bench.ask("/jobs/overview").status == 401
    assert bench.ask("/jobs/overview", token="other").status == 401
    assert bench.ask("/jobs/overview", token="open-sesame").status == 200
    assert bench.ask(ONE.root, token="open-sesame").status == 200
    assert bench.ask("/").status == 200, "the page itself holds nothing"


def test_ten_thousand_archives_are_not_held_in_memory(tmp_path: Path) -> None:
    """They are rows of a file: this counts what the process keeps of each."""
    bench = HistoryBench(tmp_path)
    for number in range(50):
        bench.put(Owner("jobs", job_id(number)), archive(Owner("jobs", job_id(number)), {}))
    bench.fetcher.refresh()
    kept = [value for value in vars(bench.fetcher).values() if isinstance(value, (dict, set))]
    assert sum(map(len, kept)) == 0
    assert len(bench.names()) == 50
