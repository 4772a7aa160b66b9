"""``submit``'s options about the state to start from, and what is checked before anything starts.

Flink counterpart: ``flink run -s`` with ``--claimMode``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from yarnflow.config.configuration import Configuration
from yarnflow.config.options import job
from yarnflow.core.checkpoint.messages import ClaimMode
from yarnflow.errors import InvalidOption, SavepointNotFound
from yarnflow.graph.growing_state import reads_for_ever
from yarnflow.graph.job_graph import JobGraph

F = TypeVar("F", bound=Callable[..., Any])

#: checks a job graph before it is handed over
CheckGraph = Callable[[JobGraph], None]


def restore_options(function: F) -> F:
    """``-s``, ``--restore``, ``-n``, ``--claim-mode`` and ``--trust-state``."""
    for option in (
        click.option(
            "--claim-mode",
            "--claimMode",
            "-cm",
            "-rm",
            "--restoreMode",
            "claim_mode",
            type=click.Choice([mode.value for mode in ClaimMode], case_sensitive=False),
            help="Whether the state is copied (NO_CLAIM, default) or becomes the job's own (CLAIM).",
        ),
        click.option(
            "--trust-state",
            is_flag=True,
            help="Others than this cluster and its user could have written the state, but you know who did.",
        ),
        click.option(
            "--allow-non-restored-state",
            "--allowNonRestoredState",
            "-n",
            "allow_non_restored",
            is_flag=True,
            help="State of operators that the program has no more is left behind; else it is an error.",
        ),
        click.option(
            "--restore",
            metavar="latest|none|PATH",
            help="State to start from: the newest retained one of the job key, none, or as -s; default: the "
            "newest if the last job of the key failed.",
        ),
        click.option(
            "-s",
            "--from-savepoint",
            "--fromSavepoint",
            metavar="PATH",
            help="Start from a savepoint or retained checkpoint.",
        ),
    ):
        function = option(function)
    return function


def restore_values(
    from_savepoint: str | None,
    restore: str | None,
    claim_mode: str | None,
    trusted: bool,
    allow_non_restored: bool,
) -> dict[str, str]:
    """The options that the flags stand for.

    Raises
    ------
    InvalidOption
        They contradict each other, or a path is empty.
    """
    if from_savepoint is not None and restore is not None:
        raise InvalidOption("-s and --restore both say what the job starts from; use one of them")
    text = from_savepoint if from_savepoint is not None else restore
    if text is not None and not text.strip():
        # a variable of a script that is not set must not mean to start empty
        raise InvalidOption("the path to start from is empty; name one, or --restore none to start empty")
    if from_savepoint in (job.LATEST_STATE, job.NO_STATE):
        text = f"./{from_savepoint}"
    if claim_mode and restore == job.NO_STATE:
        raise InvalidOption("--claim-mode is about state to start from, and --restore none asks for none")
    values: dict[str, str] = {}
    if text is not None:
        values[job.STATE_RECOVERY_PATH.key] = text
    if trusted:
        values[job.STATE_RECOVERY_TRUSTED.key] = "true"
    if allow_non_restored:
        values[job.STATE_RECOVERY_ALLOW_NON_RESTORED.key] = "true"
    if claim_mode:
        values[job.STATE_RECOVERY_CLAIM_MODE.key] = claim_mode.upper()
    return values


def with_state(configuration: Configuration, target: str) -> tuple[Configuration, CheckGraph | None]:
    """Look at the state that a program is to start from.

    Parameters
    ----------
    target : str
        Where it will run.

    Returns
    -------
    Configuration
        With the path as every machine understands it.
    callable or None
        Raises StateIncompatible for a graph that does not fit; None = no state is named.

    Raises
    ------
    SavepointNotFound, SavepointInvalid, InvalidOption
        There is none, it cannot be read, or it cannot be named so.
    """
    text = configuration.get(job.STATE_RECOVERY_PATH)
    if text in ("", job.LATEST_STATE, job.NO_STATE):
        return configuration, None
    from yarnflow.cli.state_options import absolute_state, open_file_systems
    from yarnflow.client.saved_state import check_fits
    from yarnflow.fs.saved_state import read_state

    file_systems = open_file_systems()
    uri = absolute_state(text, configuration, file_systems, default_target=target)
    resolved = configuration.with_values({job.STATE_RECOVERY_PATH.key: uri}, source="command line")
    try:
        state = read_state(file_systems, uri)
    except SavepointNotFound:
        if target == "remote" and uri.startswith("file:"):
            # a directory of the cluster's machines, perhaps; the Dispatcher looks again
            return resolved, None
        raise

    def check(graph: JobGraph) -> None:
        from yarnflow.graph.state.shape import shape_of

        allow = resolved.get(job.STATE_RECOVERY_ALLOW_NON_RESTORED)
        check_fits(state, shape_of(graph), allow_non_restored=allow)

    return resolved, check


def noting_lost_state(
    check: CheckGraph | None, configuration: Configuration, note: Callable[[str], None]
) -> CheckGraph:
    """Check a graph for a cluster that ends with the command, and say once whose state will be lost.

    Parameters
    ----------
    check : callable, optional
        Done first.
    configuration : Configuration
        The command's; what the program sets is in its graph.
    note : callable
        Told of the first job that does not end by itself and keeps its state in the cluster's directory.
    """
    said = False

    def check_and_note(graph: JobGraph) -> None:
        nonlocal said
        if check is not None:
            check(graph)
        key = job.CHECKPOINT_DIR.key
        if said or configuration.get(job.CHECKPOINT_DIR) or graph.configuration.get(key):
            return
        # a program that reads the elements itself ends the job when it has enough
        if reads_for_ever(graph) and not graph.collects:
            said = True
            note(
                f"Job {graph.name} does not end by itself, and its state goes with this command; to keep it "
                f"set -D{key}=DIR, or end the job with `yarnflow stop JOB -p DIR`."
            )

    return check_and_note
