"""Uploaded programs: what is taken, what is refused, and what a run is asked for."""

from __future__ import annotations

import errno
import io
import os
import uuid
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.rest.asgi import Answer, ask
from tests.rest.bench import MAX_PROGRAM_BYTES, NEW, Bench
from yarnflow.errors import ProgramFailed, SavepointNotFound
from yarnflow.rest.access.tokens import Access, token
from yarnflow.rest.programs import archive as archive_module
from yarnflow.rest.programs import store
from yarnflow.rest.programs.running import ProgramRun

SECRET = b"0123456789abcdef0123456789abcdef"
CODE = b"print('\r\n--b')\r\n"
FORM = {"content-type": "multipart/form-data; boundary=b"}


def form(content: bytes = CODE, name: str = "job.py", field: str = "jarfile") -> bytes:
    """A body as browsers and Flink's clients make it."""
    head = f'Content-Disposition: form-data; name="{field}"; filename="{name}"\r\nContent-Type: a/b\r\n\r\n'
    return b"--b\r\n" + head.encode() + content.replace(b"\n--b", b"\n--c") + b"\r\n--b--\r\n"


def archive(files: Mapping[str, str], **info: Any) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in files.items():
            member = zipfile.ZipInfo(name)
            member.compress_type = zipfile.ZIP_DEFLATED
            for key, value in info.items():
                setattr(member, key, value)
            file.writestr(member, content)
    return made.getvalue()


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(uploads=tmp_path / "programs")


def upload(bench: Bench, body: bytes | None = None, headers: Mapping[str, str] = FORM) -> Answer:
    return ask(bench.app, "POST", "/jars/upload", form() if body is None else body, headers)


def uploaded(bench: Bench, content: bytes = CODE, name: str = "job.py") -> str:
    answer = upload(bench, form(content, name))
    assert answer.status == 200, answer.body
    return str(Path(answer.json["filename"]).name)


def run(bench: Bench, program: str, query: str = "", **body: Any) -> Answer:
    return ask(bench.app, "POST", f"/jars/{program}/run{query}", body)


def asked(
    bench: Bench, content: bytes = CODE, name: str = "job.py", query: str = "", **body: Any
) -> ProgramRun:
    answer = run(bench, uploaded(bench, content, name), query, **body)
    assert answer.status == 200, answer.body
    return bench.runner.asked[-1]


def refused(answer: Answer, status: int, words: str) -> None:
    assert (answer.status, words in answer.error) == (status, True), answer.body


def test_a_program_is_kept_listed_run_and_deleted(bench: Bench, tmp_path: Path) -> None:
    answer = upload(bench)
    assert answer.json["status"] == "success"
    path = Path(answer.json["filename"])
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700
    assert path.read_bytes() == CODE.replace(b"\n--b", b"\n--c")
    listed = bench.get("/jars")
    assert listed["address"] == "http://jm:8081"
    (only,) = listed["files"]
    assert only == {
        "id": path.name, "name": "job.py", "uploaded": path.stat().st_mtime_ns // 1_000_000,
        "entry": [{"name": "job", "description": None}],
    }  # fmt: skip
    assert run(bench, path.name).json == {"jobid": NEW}
    assert list(bench.runner.files) == ["job.py"]
    assert ask(bench.app, "POST", f"/jars/{path.name}/run-application").json == {"applicationId": NEW}
    assert ask(bench.app, "DELETE", f"/jars/{path.name}").json == {}
    assert bench.get("/jars")["files"] == []
    # not even of the run is anything left
    assert list((tmp_path / "programs").iterdir()) == []


def test_plan(bench: Bench) -> None:
    program = uploaded(bench)
    made = bench.get(f"/jars/{program}/plan?entry-class=job&programArg=a,b")["plan"]
    assert made == bench.get(f"/jobs/{NEW}/plan")["plan"]
    assert ask(bench.app, "POST", f"/jars/{program}/plan", {"parallelism": 3}).json["plan"] == made
    first, second = bench.runner.asked
    assert first.arguments == ("a", "b")
    assert second.options == {"parallelism.default": "3"}


@pytest.mark.parametrize(
    "query, body, arguments",
    [
        ("", {"programArgsList": ["--a b", "c"]}, ("--a b", "c")),
        ("?program-args=x", {"programArgs": "--a 'b c' d"}, ("--a", "b c", "d")),
        ("?program-args=--a%20%22b%20c%22", {"programArgs": None}, ("--a", "b c")),
        ("?programArg=a,b", {"programArgsList": []}, ("a", "b")),
        ("", {}, ()),
    ],
)
def test_arguments_of_all_versions_of_flink(
    bench: Bench, query: str, body: dict[str, Any], arguments: tuple[str, ...]
) -> None:
    assert asked(bench, query=query, **body).arguments == arguments


def test_what_a_run_is_asked_for(bench: Bench) -> None:
    made = asked(
        bench,
        query="?savepointPath=/other&parallelism=7",
        savepointPath="/sp",
        parallelism=2,
        allowNonRestoredState=True,
        claimMode="CLAIM",
        flinkConfiguration={"pipeline.name": "n"},
    )
    assert made.options == {"pipeline.name": "n", "parallelism.default": "2"}
    assert (made.savepoint_path, made.claim_mode, made.allow_non_restored) == ("/sp", "CLAIM", True)
    made = asked(bench, query="?savepointPath=/sp&parallelism=7&allowNonRestoredState=true")
    assert (made.savepoint_path, made.allow_non_restored) == ("/sp", True)
    assert made.options == {"parallelism.default": "7"}
    # as Flink's dashboard sends it: the arguments are where the path should be
    made = asked(bench, query="?program-args=x&savepointPath=x", programArgs="x", savepointPath="")
    assert made.savepoint_path == ""


@pytest.mark.parametrize(
    "names, wanted, module",
    [
        (["__main__.py", "job.py"], None, "__main__"),
        (["job.py", "lib/__init__.py", "lib/a.py"], None, "job"),
        (["a.py", "b.py"], "b", "b"),
        (["lib/__init__.py", "lib/a.py"], "lib.a", "lib.a"),
    ],
)
def test_the_module_of_an_archive(bench: Bench, names: list[str], wanted: str | None, module: str) -> None:
    made = asked(bench, archive(dict.fromkeys(names, "pass")), "job.zip", entryClass=wanted)
    assert (made.module, made.file_name) == (module, "")
    assert sorted(bench.runner.files) == sorted(names)


@pytest.mark.parametrize(
    "names, wanted, words",
    [
        (["a.py", "b.py"], None, "entryClass which of its modules (a, b)"),
        (["lib/a.py"], "", "entryClass which"),
        (["a.py"], "../a", "no name of a Python module"),
    ],
)
def test_a_module_that_is_not_clear(bench: Bench, names: list[str], wanted: str | None, words: str) -> None:
    program = uploaded(bench, archive(dict.fromkeys(names, "pass")), "job.zip")
    refused(run(bench, program, entryClass=wanted), 400, words)
    assert bench.runner.asked == []


def test_another_module_of_a_file(bench: Bench) -> None:
    refused(run(bench, uploaded(bench), entryClass="other"), 400, "is the module job")


@pytest.mark.parametrize("name", ["../up.py", "/abs.py", "a/../../up.py", "a\\b.py"])
def test_an_archive_that_leads_elsewhere_is_not_unpacked(bench: Bench, name: str, tmp_path: Path) -> None:
    program = uploaded(bench, archive({"__main__.py": "", name: "x"}), "job.zip")
    refused(run(bench, program), 400, "leads elsewhere")
    assert [path.name for path in tmp_path.iterdir()] == ["programs"]
    assert [path.name for path in (tmp_path / "programs").iterdir()] == [program]


def test_an_archive_with_a_link_is_not_unpacked(bench: Bench) -> None:
    link = archive({"__main__.py": "/etc/passwd"}, external_attr=0o120777 << 16)
    program = uploaded(bench, link, "job.zip")
    refused(run(bench, program), 400, "a link")


def test_an_archive_that_grows_too_large_is_not_unpacked(bench: Bench) -> None:
    program = uploaded(bench, archive({"__main__.py": "x" * (4 * MAX_PROGRAM_BYTES + 1)}), "job.zip")
    refused(run(bench, program), 400, "unpacked it is larger")


def test_a_damaged_archive(bench: Bench) -> None:
    content = bytearray(archive({"__main__.py": "print('Hello')" * 9}))
    # within what is compressed
    content[45:50] = b"\xff" * 5
    refused(run(bench, uploaded(bench, bytes(content), "job.zip")), 400, "cannot be unpacked")


def test_an_archive_that_is_damaged_within_lzma(bench: Bench) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_LZMA) as file:
        file.writestr("__main__.py", "print('Hello')" * 9)
    content = bytearray(made.getvalue())
    # what says how it is compressed
    content[45:50] = b"\xff" * 5
    refused(run(bench, uploaded(bench, bytes(content), "job.zip")), 400, "cannot be unpacked")


def test_a_full_disk_is_not_the_archives_fault(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    program = uploaded(bench, archive({"__main__.py": ""}), "job.zip")

    def full(*_arguments: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(archive_module, "_write", full)
    refused(run(bench, program), 503, "No space left on device (web.upload.dir)")


def test_a_name_that_no_file_can_have(bench: Bench) -> None:
    assert uploaded(bench, name="é" * 96 + ".py")
    refused(upload(bench, form(name="語" * 90 + ".py")), 400, "longer than 200 bytes")


@pytest.mark.parametrize(
    "name", ["job.jar", "job", ".py", "..py", "job.py\x00", "x" * 99 + ".py", "a\tb.py", ""]
)
def test_only_programs_are_taken(bench: Bench, name: str, tmp_path: Path) -> None:
    refused(upload(bench, form(name=name)), 400, "only Python files")
    assert list((tmp_path / "programs").iterdir()) == []


@pytest.mark.parametrize("name", ["C:\\work\\job.py", "../../job.py", "/etc/job.py"])
def test_a_path_before_the_name_is_left_out(bench: Bench, name: str) -> None:
    path = Path(upload(bench, form(name=name.replace("\\", "\\\\"))).json["filename"])
    assert path.name.endswith("_job.py") and path.exists()


def test_what_is_no_archive_is_not_taken_for_one(bench: Bench) -> None:
    refused(upload(bench, form(b"PK no", "job.zip")), 400, "job.zip is no .zip archive")


@pytest.mark.parametrize(
    "body, words",
    [
        (b"", "received 0"),
        (b"--b--", "received 0"),
        (form()[: -len("--b--\r\n")].rstrip() + b"\r\n" + form(), "received 2"),
        (b'--b\r\nContent-Disposition: form-data; name="x"\r\n\r\nv\r\n--b--', "received 0"),
        (b"nothing", "does not begin with its boundary"),
        (form()[:-9], "it has no end"),
        (b"--b\r\nContent-Disposition", "a part has no head"),
        (b"--b" + b"\r\n\r\n\r\n\r\n--b" * 17, "more than 16 parts"),
    ],
)
def test_bodies_that_hold_no_file(bench: Bench, body: bytes, words: str, tmp_path: Path) -> None:
    refused(upload(bench, body), 400, words)
    assert not list((tmp_path / "programs").iterdir())


def test_an_empty_file_is_a_file(bench: Bench) -> None:
    assert Path(upload(bench, form(b"")).json["filename"]).read_bytes() == b""


@pytest.mark.parametrize(
    "kind", ["", "application/json", "multipart/form-data", "multipart/form-data; boundary="]
)
def test_other_types_of_bodies(bench: Bench, kind: str) -> None:
    refused(upload(bench, headers={"content-type": kind}), 400, "must be multipart/form-data")


def test_a_program_that_is_too_large(bench: Bench, tmp_path: Path) -> None:
    refused(upload(bench, form(b"x" * 100_000)), 413, "larger than 1000 bytes (web.upload.max-size)")
    # what says nothing of its length
    refused(upload(bench, form(b"x" * 100_000), {**FORM, "content-length": "0"}), 413, "larger than 1000")
    assert not list((tmp_path / "programs").glob("*"))


def test_there_is_an_end_to_programs(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MAX_PROGRAMS", 2)
    uploaded(bench)
    uploaded(bench)
    refused(upload(bench), 409, "delete one first")
    assert len(bench.get("/jars")["files"]) == 2


def test_other_files_of_the_directory_are_no_programs(bench: Bench, tmp_path: Path) -> None:
    program = uploaded(bench)
    (tmp_path / "programs" / "mine.py").touch()
    (tmp_path / "programs" / f"{program[:-6]}x.py").symlink_to("/etc/passwd")
    assert [file["id"] for file in bench.get("/jars")["files"]] == [program]
    for name in ("mine.py", f"{program[:-6]}x.py", "..", f"..%2f{program}"):
        assert ask(bench.app, "DELETE", f"/jars/{name}").status in (400, 404)
    assert (tmp_path / "programs" / "mine.py").exists()


def test_what_killed_masters_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    """1. an hour ago a run, a body and a program were begun  2. others are new, or nobody's business."""
    old = (".run-abc", f".{'0' * 32}.part", f".{uuid.uuid4()}_job.py")
    others = (".mine", f"{uuid.uuid4()}_job.py", "0.part")
    for name in (*old, *others):
        (tmp_path / name).write_bytes(b"")
        os.utime(tmp_path / name, (0, 0))
    (tmp_path / ".run-abc").unlink()
    (tmp_path / ".run-abc" / "program").mkdir(parents=True)
    os.utime(tmp_path / ".run-abc", (0, 0))
    (tmp_path / ".run-new").mkdir()
    os.utime(tmp_path / ".run-new", (3_000, 3_000))
    kept = store.ProgramStore(tmp_path, now_s=lambda: 3_600.0)
    assert kept.directory() == tmp_path
    assert {path.name for path in tmp_path.iterdir()} == {*others, ".run-new"}


def test_errors_of_a_program_and_its_traceback(bench: Bench, tmp_path: Path) -> None:
    program = uploaded(bench)
    bench.runner.error = ProgramFailed("job.py failed: ValueError: no", "Traceback …\nValueError: no")
    answer = run(bench, program)
    assert answer.status == 400
    assert answer.json == {"errors": ["job.py failed: ValueError: no", "Traceback …\nValueError: no"]}
    bench.runner.error = SavepointNotFound("no savepoint")
    assert run(bench, program, savepointPath="/sp").status == SavepointNotFound.http_status
    assert [path.name for path in (tmp_path / "programs").iterdir()] == [program]


def test_the_id_of_a_job_cannot_be_chosen(bench: Bench) -> None:
    refused(run(bench, uploaded(bench), jobId="1" * 32), 501, "pipeline.job-key")


def test_a_program_that_is_not_there(bench: Bench) -> None:
    refused(run(bench, "nothing.py"), 404, "nothing.py does not exist")


def test_whoever_may_only_read_uploads_and_runs_nothing(tmp_path: Path) -> None:
    bench = Bench(SECRET, uploads=tmp_path / "programs")
    reading = {"authorization": f"Bearer {token(SECRET, Access.READ)}"}
    writing = {"authorization": f"Bearer {token(SECRET, Access.WRITE)}"}
    assert upload(bench).status == 401
    assert upload(bench, headers={**FORM, **reading}).status == 403
    # refused before anything of the body was kept
    assert not (tmp_path / "programs").exists()
    program = Path(upload(bench, headers={**FORM, **writing}).json["filename"]).name
    for method, path in (
        ("POST", f"/jars/{program}/run"),
        ("POST", f"/jars/{program}/run-application"),
        ("GET", f"/jars/{program}/plan"),
        ("POST", f"/jars/{program}/plan"),
        ("DELETE", f"/jars/{program}"),
    ):
        assert ask(bench.app, method, path, headers=reading).status == 403, path
    assert bench.runner.asked == []
    assert ask(bench.app, "GET", "/jars", headers=reading).status == 200
    assert ask(bench.app, "POST", f"/jars/{program}/run", headers=writing).status == 200


def test_a_page_of_another_site_uploads_nothing(bench: Bench) -> None:
    refused(upload(bench, headers={**FORM, "origin": "http://evil"}), 403, "another site")


def test_where_no_programs_are_taken() -> None:
    bench = Bench()
    for method, path in (("GET", "/jars"), ("POST", "/jars/x_y.py/run"), ("DELETE", "/jars/x")):
        refused(ask(bench.app, method, path), 404, "web.submit.enable")
    refused(upload(bench), 404, "web.submit.enable")
