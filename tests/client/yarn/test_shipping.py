"""Files for the containers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.client.yarn.yarn_fakes import World
from yarnflow.client.yarn import shipping
from yarnflow.client.yarn.shipping import ShippedFile, offload_files, plan_files, stage_jars, start_uploads
from yarnflow.client.yarn.specification import PythonEnvironment
from yarnflow.config.configuration import Configuration
from yarnflow.core.ids import JobId
from yarnflow.core.jars.request import JarRequest, jars_of
from yarnflow.core.messages import JobSubmission, ProgramKind
from yarnflow.core.yarn import Visibility
from yarnflow.errors import ConfigError, FileMissing, InvalidOption, ProgramNotFound
from yarnflow.staging.cache import ContentCache

HERE = PythonEnvironment("/venv/bin/python")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    archive = tmp_path / "dist.zip"
    archive.write_bytes(b"the package")
    monkeypatch.setattr(shipping, "distribution", lambda: archive)
    (tmp_path / "conf").mkdir()
    return World(tmp_path / "conf")


def plan(
    world: World, environment: PythonEnvironment = HERE, files: tuple[str, ...] = (), **values: str
) -> dict[str, ShippedFile]:
    names = {"ship": "yarn.ship-files", "archives": "yarn.ship-archives", "log": "yarnflow.log.config-file"}
    configuration = Configuration.from_dict({names[key]: value for key, value in values.items()}, "-D")
    planned = plan_files(world.services_of(configuration), environment, files)
    assert len({file.name for file in planned}) == len(planned)
    return {file.name: file for file in planned}


def test_what_every_application_ships(world: World) -> None:
    files = plan(world)
    assert set(files) == {"yarnflow-dist", "hadoop-conf", "skein.jar"}
    assert all(files[name].file_name == f"{name}.zip" for name in ("yarnflow-dist", "hadoop-conf"))
    assert [name for name, file in files.items() if not file.archive] == ["skein.jar"]


def test_environment_goes_first_because_it_is_the_largest(world: World, tmp_path: Path) -> None:
    archive = tmp_path / "env.tar.gz"
    archive.write_bytes(b"")
    planned = plan(world, PythonEnvironment("environment/bin/python", archive=archive))
    assert next(iter(planned)) == "environment" and planned["environment"].file_name == "env.tar.gz"
    remote = plan(world, PythonEnvironment("environment/bin/python", archive_uri="hdfs:///e/env.tgz"))
    assert remote["environment"].uri == "hdfs:///e/env.tgz" and remote["environment"].archive


def test_listed_files(world: World, tmp_path: Path) -> None:
    for name in "a.txt", "b.txt", "m.zip":
        (tmp_path / name).write_bytes(name.encode())
    files = plan(
        world,
        ship=f"{tmp_path}/a.txt; file://{tmp_path}/b.txt#bb,hdfs:///x/c.jar,",
        archives=f"{tmp_path}/m.zip#models,hdfs:///x/d.tgz#d",
    )
    assert files["a.txt"].local == tmp_path / "a.txt" and not files["a.txt"].archive
    assert files["bb"].local == tmp_path / "b.txt"
    assert files["c.jar"].uri == "hdfs:///x/c.jar"
    assert files["models"].archive and files["models"].file_name == "m.zip"
    assert files["d"].archive and files["d"].file_name == "d.tgz"


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("ship", "/none/x.txt", "does not exist"),
        ("ship", "{tmp}", "is a directory"),
        ("archives", "{tmp}/a.txt", "unpacks"),
        ("ship", "{tmp}/a.txt,{tmp}/sub/a.txt", "two files"),
        ("ship", "{tmp}/a.txt#secret", "two files"),
        ("ship", "{tmp}/a.txt#yarnflow-dist", "two files"),
        ("ship", "{tmp}/a.txt#b c", "letters"),
        ("ship", "{tmp}/a.txt#a$(x)", "letters"),
        ("ship", "{tmp}/a.txt#../x", "letters"),
    ],
)
def test_bad_lists(world: World, tmp_path: Path, key: str, value: str, said: str) -> None:
    (tmp_path / "a.txt").write_text("")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.txt").write_text("")
    with pytest.raises(InvalidOption, match=said):
        plan(world, HERE, (), **{key: value.format(tmp=tmp_path)})


def test_log_settings_are_checked_and_shipped(world: World, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("version: 1\nroot:\n  level: INFO\n")
    assert plan(world, log=str(path))["log.yaml"].content == path.read_bytes()
    path.write_text("version: [")
    with pytest.raises(ConfigError, match="mine.yaml"):
        plan(world, log=str(path))


def test_programs_go_to_the_master_only(world: World, tmp_path: Path) -> None:
    (tmp_path / "prog.py").write_text("print(1)")
    files = plan(world, files=(str(tmp_path / "prog.py"),))
    assert files["prog.py"].master_only
    assert [name for name, file in files.items() if file.master_only] == ["skein.jar", "prog.py"]
    with pytest.raises(ProgramNotFound, match="/none.zip"):
        plan(world, files=("/none.zip",))


def test_uploads(world: World, tmp_path: Path) -> None:
    (tmp_path / "prog.py").write_text("print(1)")
    services = world.services()
    cache = ContentCache(services.fs, services.layout, tmp_path / "hashes.json")
    files = plan_files(services, HERE, (str(tmp_path / "prog.py"),))
    uploads = start_uploads(files, cache)
    everywhere, master = uploads.resources()
    assert set(everywhere) == {"yarnflow-dist", "hadoop-conf"}
    assert set(master) == {"skein.jar", "prog.py"}
    assert uploads.uploaded_bytes > 0
    assert start_uploads(files, cache).uploaded_bytes == 0
    found = {**everywhere, **master}.items()
    readable = {name for name, resource in found if resource.visibility is Visibility.PUBLIC}
    assert readable == {"yarnflow-dist", "skein.jar"}, "nobody else reads the program or Hadoop's settings"
    # what --dry-run shows is what a submit does
    planned = files[0].planned(services.layout, services.fs.uri)
    assert planned.source == everywhere[files[0].name].source


def test_an_upload_that_fails_says_so(world: World, tmp_path: Path) -> None:
    services = world.services()
    gone = [ShippedFile("x", "x", local=tmp_path / "gone")]
    cache = ContentCache(services.fs, services.layout, tmp_path / "hashes.json")
    with pytest.raises(FileMissing, match="gone"):
        start_uploads(gone, cache).resources()


def test_large_files_of_a_script_travel_over_hdfs(world: World, tmp_path: Path) -> None:
    services = world.services()
    cache = ContentCache(services.fs, services.layout, tmp_path / "hashes.json")
    files = {"prog.py": b"print(1)", "lib.zip": bytes(shipping.MAX_INLINE_BYTES), "b.py": b"2"}
    submission = JobSubmission(
        JobId("ab" * 16), "prog", ProgramKind.SCRIPT, "{}", {"spark.files": "hdfs:///own"},
        files=files, script_argv=("prog.py",),
    )  # fmt: skip
    sent = offload_files(submission, lambda: cache)
    assert set(sent.files) == {"prog.py"}
    uris = sent.configuration["spark.submit.pyFiles"].split(",")
    assert [uri.rpartition("/")[2] for uri in uris] == ["lib.zip", "b.py"]
    assert sent.configuration["spark.files"] == ",".join(["hdfs:///own", *uris])
    assert services.fs.read(uris[1].removeprefix(services.fs.uri)) == b"2"


def test_small_files_of_a_script_stay_in_its_submission() -> None:
    def no_cache() -> ContentCache:
        raise AssertionError("nothing is to be uploaded")

    for files, argv in (({"prog.py": b"1", "lib.py": b"2"}, ("prog.py",)), ({}, ())):
        submission = JobSubmission(
            JobId("ab" * 16), "prog", ProgramKind.SCRIPT, "{}", {}, files=files, script_argv=argv
        )
        assert offload_files(submission, no_cache) is submission


def test_jars_of_this_machine_are_copied(world: World, tmp_path: Path) -> None:
    services = world.services()
    cache = ContentCache(services.fs, services.layout, tmp_path / "hashes.json")
    jar = tmp_path / "own.jar"
    jar.write_bytes(b"jar")
    options = {"spark.jars": f"file://{jar},hdfs:///there.jar,local:/opt/x.jar", "spark.x": "1"}
    staged = stage_jars(options, lambda: cache)
    copy, *others = jars_of(staged)
    assert services.fs.read(copy.removeprefix(services.fs.uri)) == b"jar" and copy.endswith("/own.jar")
    assert others == ["hdfs:///there.jar", "local:/opt/x.jar"] and staged["spark.x"] == "1"
    # a container has nothing to bring
    assert copy not in JarRequest.of(staged).files

    def no_cache() -> ContentCache:
        raise AssertionError("nothing is to be uploaded")

    assert stage_jars(staged, no_cache) == staged
