"""The archive of the package: same sources, same bytes; byte code that is used as it is."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from yarnflow.client.yarn.distribution import distribution, zip_bytes
from yarnflow.errors import ConfigError
from yarnflow.yarn.master_jar import master_jar

SOURCES = {
    "pkg/__init__.py": "names = {'a', 'b', 'c', 'zebra', 'yak'}\nif 'x' in {'x', 'yy', 'zzz'}:\n    pass\n",
    "pkg/inner/__init__.py": '"""text"""\nANSWER = 42\n',
    "pkg/settings.yaml": "a: 1\n",
}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    for name, text in SOURCES.items():
        path = tmp_path / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "src" / "pkg"


def test_every_interpreter_makes_the_same_bytes(package: Path, tmp_path: Path) -> None:
    ours = distribution(package, tmp_path / "cache").read_bytes()
    program = (
        "import sys; from pathlib import Path; from yarnflow.client.yarn.distribution import distribution\n"
        "sys.stdout.write(str(distribution(Path(sys.argv[1]), Path(sys.argv[2]))))"
    )
    for seed in "1", "2":
        path = subprocess.run(
            [sys.executable, "-c", program, str(package), str(tmp_path / seed)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
            timeout=PATIENCE.process_s,
        ).stdout
        assert Path(path).read_bytes() == ours


def test_times_and_byte_code_of_the_sources_do_not_matter(package: Path, tmp_path: Path) -> None:
    first = distribution(package, tmp_path / "one").read_bytes()
    os.utime(package / "__init__.py", (1, 1))
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "old.cpython-311.pyc").write_bytes(b"old")
    assert distribution(package, tmp_path / "two").read_bytes() == first


def test_it_is_made_once_and_again_after_a_change(package: Path, tmp_path: Path) -> None:
    first = distribution(package, tmp_path / "cache")
    first.write_bytes(b"kept")
    assert distribution(package, tmp_path / "cache") == first and first.read_bytes() == b"kept"
    (package / "__init__.py").write_text("names = ()\n")
    assert distribution(package, tmp_path / "cache") != first


def test_old_archives_are_forgotten(package: Path, tmp_path: Path) -> None:
    for number in range(7):
        (package / "settings.yaml").write_text(f"a: {number}\n")
        newest = distribution(package, tmp_path / "cache")
    left = list((tmp_path / "cache").iterdir())
    assert newest in left and len(left) == 4


def test_its_byte_code_runs_without_a_look_at_the_sources(package: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(distribution(package, tmp_path / "cache")) as archive:
        archive.extractall(tmp_path / "there")
        assert "pkg/settings.yaml" in archive.namelist()
    source = tmp_path / "there" / "pkg" / "inner" / "__init__.py"
    source.write_text("ANSWER = 'compiled anew'\n")
    program = "import pkg.inner; print(pkg.inner.ANSWER, pkg.inner.__spec__.cached)"
    shown = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path / "there", check=True, capture_output=True, text=True
    ).stdout
    assert shown.startswith("42 ")


def test_zip_depends_on_names_and_contents_only() -> None:
    files = [("b", b"2"), ("a", b"1")]
    assert zip_bytes(files) == zip_bytes(reversed(files))
    assert zip_bytes(files) != zip_bytes([("b", b"2"), ("a", b"3")])


def test_a_directory_that_cannot_be_written_to_is_named(package: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said = f"cannot write to {tmp_path}/file/.*set XDG_CACHE_HOME"
    with pytest.raises(ConfigError, match=said):
        distribution(package, tmp_path / "file" / "dist")
    with pytest.raises(ConfigError, match=said):
        master_jar(tmp_path / "file")


def test_an_archive_another_client_forgets_at_the_same_time(package: Path, tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / f"{number}.zip").symlink_to(tmp_path / "gone")
    assert distribution(package, tmp_path).exists()
