"""The tools of people who run clusters, on the real one: doctor, logs, env, and the operators' scripts."""

from __future__ import annotations

import re
import shutil
import sys
import tarfile
import venv
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from integration.conftest import ROOT, Started, wait_until
from integration.yarn.jobs import Yarn, application_id, job_id

pytestmark = pytest.mark.may_rerun("YARN starts and ends containers")

_ARCHIVE = "/tests/environment.tar.gz"
_PER_JOB = ("-t", "yarn-per-job")


def checks(done: Started) -> dict[str, str]:
    """Name of a check → what was said, with ``ok``, ``FAILED`` or ``-`` before it."""
    found = {}
    for line in done.stdout.splitlines():
        word, name, text = re.split(r"\s{2,}", line, maxsplit=2)
        found[name] = f"{word} {text}"
    return found


def doctor(yarn: Yarn, *arguments: str | Path, environment: dict[str, str] | None = None) -> dict[str, str]:
    """Checks of a doctor that has found something."""
    done = yarn.run("doctor", *_PER_JOB, *arguments, environment=environment)
    assert done.process.returncode == 1, done.stdout + done.stderr
    return checks(done)


def submit_endless(yarn: Yarn, program: Path) -> tuple[str, str]:
    """A detached job that runs; application and job."""
    started = yarn.run("submit", *_PER_JOB, "-d", program)
    assert started.process.returncode == 0, started.stderr
    application, job = application_id(started), job_id(started)
    yarn.await_running(application, job)
    assert f"{job}) switched from state CREATED to RUNNING" in logs(yarn, job, "--container", "master")
    return application, job


def logs(yarn: Yarn, *arguments: str) -> str:
    """What ``yarnflow logs`` prints."""
    done = yarn.run("logs", *arguments)
    assert done.process.returncode == 0, done.stderr
    return done.stdout


# --- doctor -------------------------------------------------------------------------


@pytest.mark.gate
def test_doctor_finds_all_well(yarn: Yarn) -> None:
    done = yarn.run("doctor", *_PER_JOB)
    assert done.process.returncode == 0, done.stdout + done.stderr
    found = checks(done)
    assert all(text.startswith("ok ") for text in found.values())
    assert found["ResourceManager"].startswith("ok 2 nodes, ")
    assert "root.default is RUNNING" in found["queue"]
    assert re.search(r"Python 3\.\d+\.\d+, Java \d+.*pyspark \d", found["container"])


def test_doctor_without_resource_manager(yarn: Yarn, tmp_path: Path) -> None:
    """Everything else is still looked at; a daemon that is down is an address where nobody listens."""
    conf = tmp_path / "conf"
    shutil.copytree(yarn.hadoop.env()["HADOOP_CONF_DIR"], conf)
    site = conf / "yarn-site.xml"
    address = yarn.hadoop.resource_manager.removeprefix("http://")
    assert address in site.read_text()
    site.write_text(site.read_text().replace(address, "localhost:9"))
    found = doctor(yarn, environment={"HADOOP_CONF_DIR": str(conf)})
    assert found["ResourceManager"].startswith("FAILED ") and "refused" in found["ResourceManager"]
    assert found["queue"].startswith("- ") and found["container"].startswith("- ")
    assert found["HDFS"].startswith("ok ") and found["yarn classpath"].startswith("ok ")


def test_doctor_in_safe_mode_and_with_sizes_that_do_not_fit(yarn: Yarn) -> None:
    yarn.hadoop.safe_mode(True)
    try:
        found = doctor(yarn, "-Dtaskmanager.memory.process.size=50g", "-Dyarn.application.queue=default")
    finally:
        yarn.hadoop.safe_mode(False)
    assert found["HDFS"].startswith("FAILED ") and "safe mode" in found["HDFS"].lower()
    assert found["queue"].startswith("FAILED ") and "51200 MiB" in found["queue"]
    assert found["ResourceManager"].startswith("ok ")


def test_doctor_finds_an_environment_that_nodes_do_not_have(yarn: Yarn) -> None:
    found = doctor(yarn, "-Dpython.environment=file:/no/such/environment")
    assert found["container"].startswith("FAILED ") and "yarnflow logs application_" in found["container"]
    assert [name for name, text in found.items() if not text.startswith("ok ")] == ["container"]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive whose packages are those of this environment, by a line in a ``.pth`` file.

    All nodes are this machine.  Hundreds of MiB of packages are not what is tested here.
    """
    prefix = tmp_path_factory.mktemp("archive") / "env"
    venv.create(prefix, symlinks=True, with_pip=False)
    (packages,) = prefix.glob("lib/python3*/site-packages")
    own = next(path for path in map(Path, sys.path) if (path / "pyspark").is_dir())
    (packages / "elsewhere.pth").write_text(f"{own}\n")
    path = prefix.parent / "env.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        tar.add(prefix, ".")
    return path


def test_doctor_runs_an_environment_from_an_archive(yarn: Yarn, archive: Path) -> None:
    yarn.hadoop.hdfs.put(_ARCHIVE, archive.read_bytes())
    done = yarn.run("doctor", *_PER_JOB, f"-Dpython.environment=hdfs://{_ARCHIVE}")
    assert done.process.returncode == 0, done.stdout + done.stderr
    assert checks(done)["Python environment"] == f"ok hdfs://{_ARCHIVE}, unpacked on the nodes"


# --- logs ---------------------------------------------------------------------------


def test_logs_of_a_running_and_of_an_ended_application(yarn: Yarn, endless: Path) -> None:
    application, job = submit_endless(yarn, endless)
    live = logs(yarn, application)
    assert "JobManager serves at" in live and "taskmanager.log on " in live
    assert "launch_container" not in live
    master = logs(yarn, job, "--container", "master", "-n", "1")
    assert "jobmanager.log" in master and "taskmanager.log" not in master
    parts = [part.splitlines() for part in re.split(r"(?m)^(?===> )", master) if part.strip()]
    assert parts and all(len(lines) == 2 for lines in parts), "one line of each file below its heading"
    workers = logs(yarn, job, "--container", "taskmanager")
    assert "Successful registration at resource manager" in workers and "jobmanager.log" not in workers

    follow = yarn.start("logs", application, "--follow")
    wait_until(lambda: "JobManager serves at" in follow.stdout, "what there is to be shown")
    assert yarn.run("cancel", *_PER_JOB, f"-Dyarn.application.id={application}", job).process.returncode == 0
    assert follow.wait() == 0, follow.stderr
    assert f"{job}) switched from state CANCELLING to CANCELED" in follow.stdout
    assert "has ended: KILLED" in follow.stderr
    assert follow.stdout.count("JobManager serves at") == live.count("JobManager serves at")

    collected = logs(yarn, job)
    assert f"{job}) switched from state CANCELLING to CANCELED" in collected
    assert set(re.findall(r"==> (\S+) ", collected)) == set(re.findall(r"==> (\S+) ", follow.stdout))


def test_logs_of_nothing(yarn: Yarn) -> None:
    none = yarn.run("logs", "application_1_0001")
    assert none.process.returncode == 82
    assert "YARN does not know application_1_0001" in none.stderr
    assert yarn.run("logs", "0" * 32).process.returncode == 41


# --- env ----------------------------------------------------------------------------


def test_a_small_environment_is_packed_checked_and_cleaned(yarn: Yarn, tmp_path: Path) -> None:
    prefix = tmp_path / ".venv"
    venv.create(prefix, symlinks=True, with_pip=False)
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    file = tmp_path / "venv.tar.gz"
    pack = ("env", "pack", "--environment", prefix, "-o", file, "--to", "hdfs:")
    first = yarn.run(*pack, environment=cache)
    assert first.process.returncode == 0 and " made: " in first.stderr, first.stderr
    uri = first.stdout.strip().removeprefix("-Dpython.environment=")
    assert yarn.hadoop.hdfs.read(urlsplit(uri).path) == file.read_bytes()
    again = yarn.run(*pack, environment=cache)
    assert "is up to date" in again.stderr and again.stdout == first.stdout

    unpacked = tmp_path / "unpacked"
    with tarfile.open(file) as tar:
        tar.extractall(unpacked, filter="fully_trusted")
    code = "import sys; print(sys.prefix)"
    assert yarn.hadoop.run(unpacked / "bin" / "python", "-c", code).strip() == str(unpacked)

    checked = yarn.run("env", "check", file)
    assert checked.process.returncode == 86 and "FAILED  pyspark is missing" in checked.stdout
    script = ROOT / "examples" / "plain_pyspark.py"
    refused = yarn.run("submit", *_PER_JOB, f"-Dpython.environment={file}", script)
    assert refused.process.returncode == 86 and "pyspark is missing" in refused.stderr

    assert uri in yarn.run("env", "list").stdout
    assert f"kept (uploaded lately): {uri}" in yarn.run("env", "clean").stdout
    assert f"deleted: {uri}" in yarn.run("env", "clean", "--older-than", "0").stdout
    assert uri not in yarn.run("env", "list").stdout


# --- scripts ------------------------------------------------------------------------


def test_operators_scripts(yarn: Yarn, endless: Path, tmp_path: Path) -> None:
    """A session with two jobs: listed, collected, emptied."""
    started = yarn.run("session", "start", "-d", "-Dtaskmanager.numberOfTaskSlots=1")
    assert started.process.returncode == 0, started.stderr
    session = application_id(started)
    target = ("-t", "yarn-session", f"-Dyarn.application.id={session}")
    jobs = [
        job_id(yarn.run("submit", *target, "-d", "--job-key", key, endless)) for key in ("one", "two")
    ]
    listed = yarn.hadoop.run(ROOT / "scripts/yarn-list")
    assert f"{session} : yarnflow session (yarn-session, RUNNING" in listed
    assert all(f"{job} : endless (" in listed for job in jobs)

    bundle = tmp_path / "bundle.tar.gz"
    yarn.hadoop.run(ROOT / "scripts/support-bundle", jobs[0], "-o", bundle)
    (secret_file,) = (f"{path}/secret" for path in application_directories(yarn))
    secret = yarn.hadoop.hdfs.read(secret_file).decode().strip()
    with tarfile.open(bundle) as tar:
        texts = {}
        for member in tar.getmembers():
            stream = tar.extractfile(member)
            assert stream is not None
            texts[member.name.removeprefix("bundle/")] = stream.read().decode()
    assert "missing.txt" not in texts, texts["missing.txt"]
    assert session in texts["application.json"] and jobs[1] in texts["jobs.json"]
    assert any(name.endswith("/jobmanager.log") for name in texts)
    assert secret and not any(secret in text for text in texts.values())

    drained = yarn.hadoop.run(ROOT / "scripts/yarn-drain", session).splitlines()
    assert drained[:2] == [f"job endless ({job}): CANCELED" for job in jobs]
    assert drained[-1] == "nothing is left of it on YARN and HDFS"
    assert not application_directories(yarn) and not yarn.live()
    assert yarn.hadoop.run(ROOT / "scripts/yarn-list") == "No applications.\n"
    yarn.hadoop.run(ROOT / "scripts/support-bundle", session, "-o", bundle)
    with tarfile.open(bundle) as tar:
        assert any(name.endswith("/jobmanager.log") for name in tar.getnames())


def application_directories(yarn: Yarn) -> list[str]:
    """Directories of applications on HDFS."""
    parent = f"{yarn.home}/.yarnflow/applications"
    return [f"{parent}/{name}" for name in yarn.below(parent)]
