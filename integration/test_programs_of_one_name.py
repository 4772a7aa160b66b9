"""Programs whose files have one name, and a program that was edited: which job is whose.

Scripts on the cluster that tests share, submitted as two people who do not know of each other would.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from integration.conftest import Started, wait_until
from integration.projects import NIGHTLY, main_of
from integration.shared_cluster import SharedCluster
from yarnflow import errors

#: endless; writes what it reads
_ENDLESS: Final = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.appName("clicks").getOrCreate()
rows = spark.readStream.format("rate").option("rowsPerSecond", 5).load()
rows.writeStream.format("json").option("path", sys.argv[1]).start().awaitTermination()
"""
#: counts words of a folder, a file in each batch; fails in the batch that the last argument names
_COUNTING: Final = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()

def show(counts, batch):
    with open(sys.argv[2], "a") as out:
        out.write(f"{batch} {sorted(map(tuple, counts.collect()))}\\n")
    if batch == int(sys.argv[3]):
        raise RuntimeError("this batch is refused")

words = spark.readStream.schema("word STRING").option("maxFilesPerTrigger", 1).csv(sys.argv[1])
query = words.groupBy("word").count().writeStream.outputMode("complete").foreachBatch(show)
query.trigger(availableNow=True).start().awaitTermination()
"""
#: reads the same folder
_ARCHIVING: Final = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()

def archive(words, batch):
    with open(sys.argv[2], "a") as out:
        out.writelines(f"{word}\\n" for word, in words.collect())

words = spark.readStream.schema("word STRING").csv(sys.argv[1])
words.writeStream.foreachBatch(archive).trigger(availableNow=True).start().awaitTermination()
"""


def _submit(cluster: SharedCluster, *arguments: str | Path) -> Started:
    return cluster.commands.run("submit", *cluster.options, *arguments)


def _job_id(submitted: Started) -> str:
    assert submitted.process.returncode == 0, submitted.stderr
    assert submitted.job_id, submitted.stderr
    return submitted.job_id


def _assert_refused(submitted: Started, *named: str) -> None:
    assert submitted.process.returncode == errors.DuplicateJob.exit_code, submitted.stderr
    for text in named:
        assert text in submitted.stderr


@pytest.fixture
def words(tmp_path: Path) -> Path:
    """Three files, a word in each."""
    directory = tmp_path / "words"
    directory.mkdir()
    for number, word in enumerate("aba"):
        (directory / f"{number}.csv").write_text(f"{word}\n")
    return directory


@pytest.mark.gate
@pytest.mark.may_rerun("a cluster's driver starts")
def test_a_live_job_is_attached_to_by_its_own_program_only(
    shared_cluster: SharedCluster, tmp_path: Path
) -> None:
    """In the gate: a job that is not run, without a word, is the worst answer to a submit."""
    clicks, nightly = main_of(tmp_path / "a", _ENDLESS), main_of(tmp_path / "b", NIGHTLY)
    live = _job_id(_submit(shared_cluster, "-d", clicks, tmp_path / "clicks"))
    again = _submit(shared_cluster, "-d", clicks, tmp_path / "clicks")
    assert _job_id(again) == live and "attached" in again.stderr.lower()

    other = _submit(shared_cluster, nightly, tmp_path / "numbers")
    assert _job_id(other) != live
    assert sum(len(path.read_text().splitlines()) for path in (tmp_path / "numbers").glob("*.json")) == 7

    ways = "--on-existing replace", "--restore latest", "--job-key"
    _assert_refused(_submit(shared_cluster, "-d", clicks, tmp_path / "elsewhere"), live, *ways)
    main_of(tmp_path / "a", _ENDLESS.replace('"rowsPerSecond", 5', '"rowsPerSecond", 6'))
    _assert_refused(_submit(shared_cluster, "-d", clicks, tmp_path / "clicks"), live, *ways)
    assert list(shared_cluster.live_jobs()) == [live]

    replacing = ("-d", "--on-existing", "replace", clicks, tmp_path / "elsewhere")
    second = _submit(shared_cluster, *replacing)
    (now,) = shared_cluster.live_jobs()
    assert now != live and now in second.stderr + second.stdout
    wait_until(lambda: any((tmp_path / "elsewhere").glob("*.json")), "the edited program to write")
    shared_cluster.cancel(now)


def test_a_failed_job_is_gone_on_from_by_its_own_program_only(
    shared_cluster: SharedCluster, tmp_path: Path, words: Path
) -> None:
    """The state of one program is not another one's, whatever their files are called."""
    counting, archiving = main_of(tmp_path / "a", _COUNTING), main_of(tmp_path / "b", _ARCHIVING)
    out, archive = tmp_path / "counts", tmp_path / "archive"
    once = ("-Drestart-strategy.type=none",)
    failed = _submit(shared_cluster, *once, counting, words, out, "1")
    assert failed.process.returncode == errors.UserCodeError.exit_code, failed.stderr
    assert [line.partition(" ")[0] for line in out.read_text().splitlines()] == ["0", "1"]

    assert _submit(shared_cluster, *once, archiving, words, archive).process.returncode == 0
    assert sorted(archive.read_text().split()) == ["a", "a", "b"], "it began where the other one was"

    repaired = (*once, counting, words, out, "-1")
    _assert_refused(_submit(shared_cluster, *repaired), "--restore latest", "--restore none", "--job-key")
    assert _submit(shared_cluster, "--restore", "latest", *repaired).process.returncode == 0
    assert out.read_text().splitlines()[-1] == "2 [('a', 2), ('b', 1)]"
    assert len(out.read_text().splitlines()) == 4, "batch 1 and 2 and nothing before"


def test_an_edited_program_takes_the_place_of_a_live_one_with_its_state(
    shared_cluster: SharedCluster, tmp_path: Path, words: Path
) -> None:
    """As the refusal says it is done."""
    endless = _COUNTING.replace(".trigger(availableNow=True)", "")
    counting, out = main_of(tmp_path / "a", endless), tmp_path / "counts"
    arguments = (counting, words, out, "-1")
    _job_id(_submit(shared_cluster, "-d", *arguments))
    wait_until(lambda: out.exists() and len(out.read_text().splitlines()) == 3, "all files to be counted")
    main_of(tmp_path / "a", f"# repaired\n{endless}")
    _assert_refused(_submit(shared_cluster, "-d", *arguments))
    replaced = _submit(shared_cluster, "-d", "--on-existing", "replace", "--restore", "latest", *arguments)
    assert replaced.process.returncode == 0, replaced.stderr
    (words / "3.csv").write_text("a\n")
    counted = "[('a', 3), ('b', 1)]"
    wait_until(lambda: out.read_text().splitlines()[-1].endswith(counted), "the fourth file to be counted")
    (now,) = shared_cluster.live_jobs()
    shared_cluster.cancel(now)


def test_a_key_that_was_chosen_is_as_strict(shared_cluster: SharedCluster, tmp_path: Path) -> None:
    clicks, nightly = main_of(tmp_path / "a", _ENDLESS), main_of(tmp_path / "b", NIGHTLY)
    chosen = ("-d", "--job-key", f"key of {tmp_path.name}")
    live = _job_id(_submit(shared_cluster, *chosen, clicks, tmp_path / "clicks"))
    _assert_refused(_submit(shared_cluster, *chosen, nightly, tmp_path / "numbers"), live)
    assert _job_id(_submit(shared_cluster, *chosen, clicks, tmp_path / "clicks")) == live
    shared_cluster.cancel(live)


def test_a_moved_program_is_another_one(shared_cluster: SharedCluster, tmp_path: Path) -> None:
    """A link leads to the same one."""
    clicks = main_of(tmp_path / "a", _ENDLESS)
    live = _job_id(_submit(shared_cluster, "-d", clicks, tmp_path / "clicks"))
    (tmp_path / "link.py").symlink_to(clicks)
    named = ("-d", "--name", "main", tmp_path / "link.py", tmp_path / "clicks")
    assert _job_id(_submit(shared_cluster, *named)) == live
    moved = main_of(tmp_path / "b", clicks.read_text())
    second = _job_id(_submit(shared_cluster, "-d", moved, tmp_path / "others"))
    assert second != live and set(shared_cluster.live_jobs()) == {live, second}
    for job_id in (live, second):
        shared_cluster.cancel(job_id)
