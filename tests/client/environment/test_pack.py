from __future__ import annotations

import gzip
import os
import sys
import tarfile
import types
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from tests.client.environment.environments import MINOR, add_distribution, make_environment, packages_of
from yarnflow.client.environment.check import (
    MANIFEST_NAME,
    describe,
    describe_archive,
    describe_directory,
    examine,
    require_usable,
)
from yarnflow.client.environment.pack import default_output, pack_environment
from yarnflow.errors import ConfigError, EnvironmentUnusable

SITE = f"lib/python{MINOR}/site-packages"


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    return make_environment(tmp_path / ".venv")


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "venv.tar.gz"


def names(path: Path) -> list[str]:
    with tarfile.open(path) as tar:
        return tar.getnames()


def text_of(path: Path, name: str) -> str:
    with tarfile.open(path) as tar:
        stream = tar.extractfile(name)
        assert stream is not None
        return stream.read().decode()


def test_archive_has_the_environment_and_names_no_place_of_this_machine(venv: Path, output: Path) -> None:
    packed = pack_environment(venv, output)
    assert packed.rebuilt and packed.size_bytes == output.stat().st_size
    found = names(output)
    assert found[0] == MANIFEST_NAME
    assert f"{SITE}/pyspark/__init__.py" in found and "bin/python" in found
    assert text_of(output, "bin/tool") == "#!/usr/bin/env python\nprint(1)\n"
    with tarfile.open(output) as tar:
        assert tar.getmember("bin/python3").linkname == str(venv.parent / "base-python")
        member = tar.getmember(f"{SITE}/pyspark/__init__.py")
        # compiled modules compare whole seconds
        assert (member.mtime, member.uid, member.uname) == (1_700_000_000, 0, "")
    settings = text_of(output, "pyvenv.cfg")
    assert "command" not in settings and f"home = {venv.parent}" in settings
    assert str(venv) not in settings


def test_second_pack_does_nothing_until_something_changes(venv: Path, output: Path) -> None:
    assert pack_environment(venv, output).rebuilt
    before = output.stat().st_mtime_ns
    again = pack_environment(venv, output)
    assert not again.rebuilt and output.stat().st_mtime_ns == before
    assert pack_environment(venv, output, force=True).rebuilt
    add_distribution(packages_of(venv), "another", "1.0")
    assert pack_environment(venv, output).rebuilt
    # the same version, installed anew with other files
    (packages_of(venv) / "another-1.0.dist-info" / "RECORD").write_text("another.py,sha256=x,1\n")
    assert pack_environment(venv, output).rebuilt
    assert not pack_environment(venv, output).rebuilt
    assert pack_environment(venv, output, python_prefix="/opt/python").rebuilt


def test_same_environment_same_bytes(venv: Path, output: Path, tmp_path: Path) -> None:
    pack_environment(venv, output)
    other = tmp_path / "other.tar.gz"
    pack_environment(venv, other)
    assert other.read_bytes() == output.read_bytes()


def test_python_in_another_place_on_the_nodes(venv: Path, output: Path) -> None:
    packed = pack_environment(venv, output, python_prefix="/opt/python")
    assert packed.description.interpreter == f"/opt/python/bin/python{MINOR}"
    with tarfile.open(output) as tar:
        assert tar.getmember("bin/python3").linkname == f"/opt/python/bin/python{MINOR}"
    assert "home = /opt/python/bin\n" in text_of(output, "pyvenv.cfg")


def test_links_within_the_environment_stay_within(venv: Path, output: Path) -> None:
    (venv / "lib64").symlink_to("lib")
    (venv / "share").mkdir()
    (venv / "share" / "here").symlink_to(venv / "bin" / "tool")
    pack_environment(venv, output)
    with tarfile.open(output) as tar:
        assert tar.getmember("lib64").linkname == "lib"
        assert tar.getmember("share/here").linkname == "../bin/tool"


def test_yarnflow_is_left_out_however_it_is_installed(venv: Path, output: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "yarnflow").mkdir(parents=True)
    (source / "yarnflow" / "__init__.py").write_text("")
    packages = packages_of(venv)
    # setup.py develop, as pip of older versions does it
    (packages / "yarnflow.egg-link").write_text(f"{source}\n.")
    (packages / "easy-install.pth").write_text(f"{source}\n./inside\n")
    (packages / "inside").mkdir()
    (venv / "bin" / "yarnflow").write_text("#!/x\n")
    packed = pack_environment(venv, output)
    assert packed.left_out == ("yarnflow",)
    assert not [name for name in names(output) if "yarnflow" in name and name != MANIFEST_NAME]
    assert text_of(output, f"{SITE}/easy-install.pth") == "./inside\n"
    # PEP 660
    (packages / "yarnflow.egg-link").unlink()
    (packages / "easy-install.pth").write_text("./inside\n")
    info = add_distribution(packages, "yarnflow", "0.1", editable=True)
    (packages / "__editable__.yarnflow-0.1.pth").write_text(str(source))
    (info / "RECORD").write_text(
        f"__editable__.yarnflow-0.1.pth,,\n{info.name}/METADATA,,\n../../../bin/yarnflow,,\n"
    )
    packed = pack_environment(venv, output)
    assert not packed.rebuilt, "yarnflow is no part of what is compared"
    pack_environment(venv, output, force=True)
    assert not [name for name in names(output) if "yarnflow" in name and name != MANIFEST_NAME]


@pytest.mark.parametrize("how", ["direct_url", "egg-link", "pth"])
def test_other_editable_packages_are_refused(how: str, venv: Path, output: Path, tmp_path: Path) -> None:
    packages = packages_of(venv)
    (tmp_path / "mine").mkdir()
    if how == "direct_url":
        add_distribution(packages, "mine", "1", editable=True)
    elif how == "egg-link":
        (packages / "mine.egg-link").write_text(str(tmp_path / "mine"))
    else:
        (packages / "mine.pth").write_text(str(tmp_path / "mine"))
    with pytest.raises(EnvironmentUnusable, match="editable packages.*mine.*without -e"):
        pack_environment(venv, output)
    assert not output.exists()


def test_code_in_a_pth_file_is_no_editable_package(venv: Path, output: Path) -> None:
    (packages_of(venv) / "distutils-precedence.pth").write_text("import os; os.getcwd()\n# note\n/nowhere\n")
    assert pack_environment(venv, output).rebuilt


@pytest.mark.parametrize("name", ["venv.zip", "venv.tar", "venv"])
def test_output_must_be_what_it_is_called(name: str, venv: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=".tar.gz"):
        pack_environment(venv, tmp_path / name)


def test_what_is_no_environment(tmp_path: Path, output: Path) -> None:
    with pytest.raises(EnvironmentUnusable, match="is not a directory"):
        pack_environment(tmp_path / "none", output)
    with pytest.raises(EnvironmentUnusable, match="is not a Python environment"):
        pack_environment(tmp_path, output)
    installation = make_environment(tmp_path / "python", kind="python")
    with pytest.raises(EnvironmentUnusable, match="is a Python installation"):
        pack_environment(installation, output)
    (tmp_path / "broken").mkdir()
    venv = make_environment(tmp_path / "broken" / "v")
    (tmp_path / "broken" / "base-python").unlink()
    with pytest.raises(EnvironmentUnusable, match="bin/python"):
        pack_environment(venv, output)


def test_failure_leaves_the_old_archive(
    venv: Path, output: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pack_environment(venv, output)
    before = output.read_bytes()

    def fail(*arguments: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(gzip.GzipFile, "write", fail)
    with pytest.raises(ConfigError, match="cannot write .*No space left"):
        pack_environment(venv, output, force=True)
    assert output.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".v")) == [".venv"]


def test_conda_needs_conda_pack(tmp_path: Path, output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prefix = make_environment(tmp_path / "env", kind="conda")
    monkeypatch.setitem(sys.modules, "conda_pack", None)
    with pytest.raises(EnvironmentUnusable, match="pip install conda-pack"):
        pack_environment(prefix, output)
    calls: list[dict[str, object]] = []

    def pack(**arguments: object) -> None:
        calls.append(arguments)
        Path(str(arguments["output"])).write_bytes(b"x")

    monkeypatch.setitem(sys.modules, "conda_pack", types.SimpleNamespace(pack=pack))
    packed = pack_environment(prefix, output)
    assert packed.description.kind == "conda" and packed.description.interpreter == ""
    assert [call["prefix"] for call in calls] == [str(prefix)]


def test_default_output() -> None:
    assert default_output(Path("/x/.venv")) == Path("venv.tar.gz")


# --- checks ----------------------------------------------------------------------


def failures(path: Path) -> list[str]:
    return [finding.text for finding in examine(describe(path)) if not finding.ok]


def test_a_packed_environment_is_usable(venv: Path, output: Path) -> None:
    pack_environment(venv, output)
    assert failures(venv) == failures(output) == []
    description = require_usable(output)
    assert description == describe_archive(output)
    assert description.distributions == describe_directory(venv).distributions
    assert description.kind == "venv" and description.key


@pytest.mark.parametrize("kind", ["directory", "archive"])
def test_missing_distributions_are_named_with_a_remedy(kind: str, tmp_path: Path, output: Path) -> None:
    venv = make_environment(tmp_path / "v", without=("pyspark", "pyyaml"))
    path = venv
    if kind == "archive":
        pack_environment(venv, output)
        path = output
    assert len(failures(path)) == 2
    with pytest.raises(EnvironmentUnusable) as caught:
        require_usable(path)
    assert f"pyspark is missing; pip install pyspark=={metadata.version('pyspark')}" in str(caught.value)
    assert "pyyaml is missing" in str(caught.value)


def test_another_spark_or_python_is_refused(tmp_path: Path) -> None:
    venv = make_environment(tmp_path / "v", without=("pyspark",))
    add_distribution(packages_of(venv), "pyspark", "3.5.1")
    (text,) = failures(venv)
    assert text.startswith("pyspark 3.5.1, but the client has")
    (venv / "pyvenv.cfg").write_text("home = /x\nversion_info = 3.9.2.final.0\n")
    assert any(text.startswith("Python 3.9.2, but the client runs") for text in failures(venv))


def test_archives_of_others_are_read_through(venv: Path, tmp_path: Path) -> None:
    path = tmp_path / "own.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        tar.add(venv, ".")
    description = describe_archive(path)
    assert description.python_version == MINOR
    assert description.interpreter == str(venv.parent / "base-python")
    assert description.distributions == describe_directory(venv).distributions
    assert failures(path) == []
    zipped = tmp_path / "own.zip"
    with zipfile.ZipFile(zipped, "w") as archive:
        for file in venv.rglob("*"):
            archive.write(file, file.relative_to(venv))
    assert describe_archive(zipped).distributions == description.distributions


def test_bad_archives(venv: Path, output: Path, tmp_path: Path) -> None:
    nested = tmp_path / "nested.tar.gz"
    with tarfile.open(nested, "w:gz") as tar:
        tar.add(venv, "myenv")
    with pytest.raises(EnvironmentUnusable, match="in the directory myenv/"):
        describe(nested)
    empty = tmp_path / "empty.tar.gz"
    with tarfile.open(empty, "w:gz") as tar:
        tar.add(tmp_path / "base-python", "something")
    with pytest.raises(EnvironmentUnusable, match="no bin/python"):
        describe(empty)
    pack_environment(venv, output)
    cut = tmp_path / "cut.tar.gz"
    cut.write_bytes(output.read_bytes()[:200])
    garbage = tmp_path / "garbage.tar.gz"
    garbage.write_bytes(b"no archive")
    for path in (cut, garbage):
        with pytest.raises(EnvironmentUnusable, match="cannot be read as an archive"):
            describe(path)
    other = tmp_path / "env.tar.xz"
    other.write_bytes(b"")
    with pytest.raises(EnvironmentUnusable, match="YARN unpacks"):
        describe(other)
    with pytest.raises(EnvironmentUnusable, match="does not exist"):
        describe(tmp_path / "nothing.tar.gz")


def test_a_damaged_archive_is_made_again(venv: Path, output: Path) -> None:
    output.write_bytes(b"no archive")
    assert pack_environment(venv, output).rebuilt
    assert failures(output) == []
