from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from yarnflow.errors import JavaUnavailable, YarnUnavailable
from yarnflow.yarn.class_path import ClassPath
from yarnflow.yarn.credentials import new_credentials
from yarnflow.yarn.jvm import ClassArchive, ClientJvm, java_program

#: does what skein's driver does: tells its port, then lives until its standard input closes
DRIVER = f"""#!{sys.executable} -S
import os, socket, struct, sys
if "-Xshare:dump" in sys.argv:
    made = next(a for a in sys.argv if a.startswith("-XX:SharedArchiveFile=")).partition("=")[2]
    open(made, "wb").write(b"x" * (1 << 20))
    sys.exit()
print("INFO started", *sys.argv[1:], flush=True)
if os.environ.get("BROKEN"):
    print("ERROR cannot log in", flush=True)
    print("bye", flush=True)
    sys.exit(3)
listed = [a for a in sys.argv if a.startswith("-XX:DumpLoadedClassList=")]
if listed:
    open(listed[0].partition("=")[2], "w").write("java/lang/Object")
with socket.create_connection(("127.0.0.1", int(os.environ["SKEIN_CALLBACK_PORT"]))) as s:
    s.sendall(struct.pack("!i", 4711))
sys.stdin.read()
"""


class Machine:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.java = folder / "jdk" / "bin" / "java"
        self.java.parent.mkdir(parents=True)
        self.java.write_text(DRIVER)
        self.java.chmod(0o755)
        self.jar = folder / "skein.jar"
        self.jar.touch()
        self.cache = folder / "cache"
        self.log = folder / "client.log"

    def jvm(self, cache: bool = False, **environ: str) -> ClientJvm:
        return ClientJvm(
            self.jar,
            self.folder / "application.jar",
            ClassPath((), (self.folder,)),
            new_credentials(),
            {"JAVA_HOME": str(self.folder / "jdk"), "PATH": os.defpath, **environ},
            self.log,
            self.cache if cache else None,
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_it_tells_its_address_and_ends_when_it_is_closed(machine: Machine) -> None:
    jvm = machine.jvm()
    assert jvm.start() == "127.0.0.1:4711"
    said = machine.log.read_text()
    assert f"com.anaconda.skein.Driver --jar {machine.folder}/application.jar" in said
    jvm.close()
    jvm.close()


def test_one_that_ends_at_once_is_an_error_with_its_last_output(machine: Machine) -> None:
    jvm = machine.jvm(BROKEN="1")
    with pytest.raises(YarnUnavailable, match="exit status 3: ERROR cannot log in"):
        jvm.start()
    jvm.close()


def test_a_killed_one_makes_no_archive(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[ClassArchive] = []
    monkeypatch.setattr(ClassArchive, "build", lambda archive: built.append(archive))
    jvm = machine.jvm(cache=True)
    jvm.start()
    jvm.kill()
    jvm.close()
    assert built == []


def test_an_archive_of_classes_is_made_once_and_used(machine: Machine) -> None:
    archive = ClassArchive(str(machine.java), [machine.jar], machine.cache)
    listed = Path(archive.options()[-1].partition("=")[2])
    archive.build(wait=True)
    assert list(listed.parent.iterdir()) == []  # no classes were written down
    listed.write_text("java/lang/Object")
    archive.build(wait=True)
    (made,) = listed.parent.iterdir()
    assert archive.options() == ["-Xshare:auto", f"-XX:SharedArchiveFile={made}"]
    assert made.stat().st_size == 1 << 20


def test_a_failed_archive_leaves_nothing(machine: Machine) -> None:
    archive = ClassArchive(str(machine.java), [machine.jar], machine.cache)
    listed = Path(archive.options()[-1].partition("=")[2])
    listed.write_text("java/lang/Object")
    machine.java.write_text("#!/bin/sh\nexit 1\n")
    archive.build(wait=True)
    assert list(listed.parent.iterdir()) == []


def test_a_jvm_that_ended_well_leaves_an_archive(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[ClassArchive] = []
    monkeypatch.setattr(ClassArchive, "build", lambda archive: built.append(archive))
    jvm = machine.jvm(cache=True)
    jvm.start()
    assert "-XX:DumpLoadedClassList=" in machine.log.read_text()
    jvm.close()
    assert len(built) == 1


def test_another_jar_is_another_archive(machine: Machine) -> None:
    def name() -> str:
        return ClassArchive(str(machine.java), [machine.jar], machine.cache).options()[-1]

    before = name()
    assert name() == before
    machine.jar.write_text("changed")
    assert name() != before


def test_a_cut_off_archive_is_not_used(machine: Machine) -> None:
    archive = ClassArchive(str(machine.java), [machine.jar], machine.cache)
    listed = archive.options()[-1].partition("=")[2]
    Path(listed.replace(".classes", ".jsa").rpartition(".")[0]).write_text("short")
    assert archive.options()[-1].startswith("-XX:DumpLoadedClassList")


def test_java_comes_from_java_home_else_from_the_path(machine: Machine) -> None:
    bin_folder = str(machine.java.parent)
    assert java_program({"JAVA_HOME": str(machine.folder / "jdk")}) == str(machine.java)
    assert java_program({"PATH": f"/nowhere:{bin_folder}"}) == str(machine.java)
    with pytest.raises(JavaUnavailable, match=r"/nowhere/bin \(JAVA_HOME\)"):
        java_program({"JAVA_HOME": "/nowhere", "PATH": bin_folder})
    with pytest.raises(JavaUnavailable, match="no java in PATH"):
        java_program({"PATH": "/nowhere"})


def test_credentials_are_new_each_time_and_do_not_expire() -> None:
    from datetime import UTC, datetime, timedelta

    from cryptography import x509

    one, other = new_credentials(), new_credentials()
    assert one.key != other.key
    assert "PRIVATE" not in repr(one)
    certificate = x509.load_pem_x509_certificate(one.certificate)
    assert certificate.not_valid_after_utc > datetime.now(UTC) + timedelta(days=20 * 365)
    assert certificate.not_valid_before_utc < datetime.now(UTC)
