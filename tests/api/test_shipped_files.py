"""Files that a program has for its workers."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

import pytest

from tests.api.conftest import Jobs
from tests.api.environments import environment
from yarnflow.api.building import shipped
from yarnflow.errors import GraphError


def test_files_for_the_workers(jobs: Jobs, tmp_path: Path) -> None:
    (tmp_path / "lib" / "inner").mkdir(parents=True)
    (tmp_path / "lib" / "inner" / "deep.py").write_text("N = 1")
    (tmp_path / "one.py").write_text("N = 2")
    with zipfile.ZipFile(tmp_path / "a-1.whl", "w") as wheel:
        wheel.writestr("a.py", "N = 3")
    env = jobs.env
    for name in ("lib", "one.py", "a-1.whl"):
        env.add_python_file(str(tmp_path / name))
    env.add_python_archive(str(tmp_path / "a-1.whl"), "data")
    env.add_python_archive(str(tmp_path / "a-1.whl"))
    env.register_cached_file(str(tmp_path / "one.py"), "one")
    env.from_collection([1]).print()
    files = jobs.graph().files
    assert sorted(files) == [
        "archives/a-1.whl/a-1.whl", "archives/data/a-1.whl", "python/a-1.whl.zip", "python/lib.zip",
        "python/one.py",
    ]  # fmt: skip
    assert files["python/one.py"] == b"N = 2"
    with zipfile.ZipFile(io.BytesIO(files["python/lib.zip"])) as made:
        assert made.namelist() == ["inner/deep.py"]


def test_files_that_cannot_be_shipped(tmp_path: Path) -> None:
    env = environment()
    unread = r"^test_shipped_files\.py:\d+: add_python_file\(\): .*none\.py cannot be read"
    with pytest.raises(GraphError, match=unread):
        env.add_python_file(str(tmp_path / "none.py"))
    with pytest.raises(GraphError, match="target directory 'a/b' must be a plain name"):
        env.add_python_archive(str(tmp_path), "a/b")
    requirements = tmp_path / "requirements.txt"
    named = "# tests\n-r other.txt\npytest>=1  # here\nhttps://host/x.whl\n"
    requirements.write_text(named + "no-such-package-y>=1 ; python_version < '3'\n")
    env.set_python_requirements(str(requirements))
    requirements.write_text("pytest\nno-such-package-x==1\n")
    with pytest.raises(GraphError, match="no-such-package-x, which is not installed here.*yarnflow env pack"):
        env.set_python_requirements(str(requirements))


def test_files_of_one_name_are_refused_unless_they_are_the_same(tmp_path: Path) -> None:
    for place in ("a", "b", "c"):
        (tmp_path / place / "lib").mkdir(parents=True)
        (tmp_path / place / "lib" / "m.py").write_text(f"N = {place in 'ab'}")
        (tmp_path / place / "m.txt").write_text(f"N = {place in 'ab'}")
    env = environment()
    for place in ("a", "b"):
        env.add_python_file(str(tmp_path / place / "lib"))
        env.add_python_archive(str(tmp_path / place / "m.txt"))
    with pytest.raises(GraphError, match=r"add_python_file\(\): two different files .* python/lib\.zip"):
        env.add_python_file(str(tmp_path / "c" / "lib"))
    with pytest.raises(GraphError, match=r"^test_.*\d: add_python_archive\(\): two different files"):
        env.add_python_archive(str(tmp_path / "c" / "m.txt"))


def test_all_files_together_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipped, "_MAX_BYTES", 1000)
    (tmp_path / "lib").mkdir()
    for name in ("one", "two", "lib/three", "lib/four", "lib/five"):
        (tmp_path / f"{name}.py").write_bytes(os.urandom(400))
    env = environment()
    with pytest.raises(GraphError, match=r"add_python_file\(\): .*lib: \d+ bytes .* at most 1000"):
        env.add_python_file(str(tmp_path / "lib"))
    env.add_python_file(str(tmp_path / "one.py"))
    env.add_python_file(str(tmp_path / "two.py"))
    (tmp_path / "six.py").write_bytes(os.urandom(400))
    with pytest.raises(GraphError, match="all files of the job together: 1200 bytes"):
        env.add_python_file(str(tmp_path / "six.py"))


def test_directories_are_shipped_without_hidden_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lib = tmp_path / ".work" / "lib"
    for name in (".git/HEAD", ".env", "__pycache__/m.pyc", "inner/.cache/x.py", "inner/m.py"):
        (lib / name).parent.mkdir(parents=True, exist_ok=True)
        (lib / name).write_text("secret")
    _, content = shipped.python_file(str(lib), "-pyfs")
    with zipfile.ZipFile(io.BytesIO(content)) as made:
        assert made.namelist() == ["inner/m.py"]

    def refuse(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(GraphError, match=r"^-pyfs: .*m\.py cannot be read: Permission denied"):
        shipped.python_file(str(lib), "-pyfs")
