"""What the shell completes values with: targets, keys of options, jobs.

Called by the shell with every TAB: nothing here fails, and nothing keeps anybody waiting.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem

#: for each cluster that is asked for its jobs
_ANSWER_WITHIN_MS: Final = 1_000


def option_keys(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Keys of options, each with ``=``."""
    from yarnflow.config.options import ALL_OPTIONS

    return _items(((f"{option.key}=", option.description) for option in ALL_OPTIONS), incomplete)


def target_names(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of targets."""
    from yarnflow.cli.targets import TARGETS

    return _items(((target.name, target.description) for target in TARGETS), incomplete)


def job_ids(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Jobs that have not ended, of the clusters that answer at once."""
    from yarnflow.cli.configuration import load_configuration
    from yarnflow.client.discovery.clusters import Clusters, live_jobs
    from yarnflow.errors import YarnflowError

    try:
        configuration = load_configuration(context.params.get("conf_dir"), ())
        listings, _ = Clusters(configuration, timeout_ms=_ANSWER_WITHIN_MS).listings()
    except YarnflowError:
        return []
    found = ((job.job_id, f"{job.name} ({job.status.value})") for job in live_jobs(listings))
    return _items(found, incomplete)


def job_ids_and_files(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Jobs, or else files."""
    from click.shell_completion import CompletionItem

    return job_ids(context, parameter, incomplete) or [CompletionItem(incomplete, type="file")]


def _items(found: Iterable[tuple[str, str]], incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(value, help=text) for value, text in found if value.startswith(incomplete)]
