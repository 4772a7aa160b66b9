"""``yarnflow completion SHELL``: what makes a shell complete verbs, flags, options, targets and jobs.

Made by click from the declarations of the verbs: a shell asks ``yarnflow`` itself with each TAB, so nothing
here is written per verb or flag, and nothing is loaded by other commands.
"""

from __future__ import annotations

from typing import Final

import click
from click.shell_completion import get_completion_class

from yarnflow.cli.output import CONTEXT

_SHELLS: Final = ("bash", "zsh", "fish")
#: set by the script when it asks; click looks for it
_VARIABLE: Final = "_YARNFLOW_COMPLETE"


@click.command("completion", context_settings=CONTEXT)
@click.argument("shell", type=click.Choice(_SHELLS))
def command(shell: str) -> None:
    """Print the completion of commands for a shell.

    \b
    bash:  eval "$(yarnflow completion bash)"                  in ~/.bashrc
    zsh:   eval "$(yarnflow completion zsh)"                   in ~/.zshrc, after compinit
    fish:  yarnflow completion fish > ~/.config/fish/completions/yarnflow.fish
    """
    click.echo(completion_script(shell))


def completion_script(shell: str) -> str:
    """The script for one of the shells."""
    from yarnflow.cli.main import yarnflow

    kind = get_completion_class(shell)
    assert kind is not None
    completion = kind(yarnflow, {}, "yarnflow", _VARIABLE)
    # not source(), which asks for the version of a shell that need not be here
    return completion.source_template % completion.source_vars()
