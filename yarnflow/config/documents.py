"""Texts made from the option declarations: ``conf/OPTIONS.md`` and ``conf/yarnflow-conf.yaml``.

``scripts/gen-docs`` writes them and a test compares them, so that no option stays
undocumented and no documented one is gone.

Flink counterpart: ``ConfigOptionsDocGenerator``.
"""

from __future__ import annotations

import textwrap
from typing import Final

from yarnflow.config.configuration import environment_variable
from yarnflow.config.option import AnyOption
from yarnflow.config.options import SECTIONS

_GENERATED: Final = "Written by scripts/gen-docs from yarnflow/config/options; do not edit."
_OPTIONS_HEAD: Final = """\
<!-- {generated} -->
# Options

Keys are Flink's where the meaning is Flink's. Weakest first, an option is taken from

1. `yarnflow-conf.yaml` in the configuration directory; keys are flat or nested;
2. the environment variable `YARNFLOW_CONF_` + the key in capitals, with `_` for every other character than
   letters and digits, for example `{variable}` for `{key}`;
3. `-Dkey=value` on the command line.

An unknown key is an error, not ignored. Keys that begin with `spark.` are handed to Spark unchanged.
Durations: `500 ms`, `10 s`, `5 min`, `1 h`, `2 d`, `PT1M30S`; no unit means milliseconds. Memory sizes:
`1728m`, `1 gb`; units are powers of 1024, no unit means bytes.

Scope says who reads an option: `client` the command that submits, `cluster` the cluster's processes at their
start, `taskmanager` a TaskManager at its start, `job` each job, with the values it was submitted with.
"""
_YAML_HEAD: Final = """\
# Configuration of yarnflow. {generated}
# A copy is yours to edit: point --conf-dir or YARNFLOW_CONF_DIR at its directory.
# All options stand here with their defaults; remove the '#' before a key to set it.
# OPTIONS.md beside this file says more about forms, precedence and scope.
"""


def options_markdown() -> str:
    """``conf/OPTIONS.md``."""
    example = SECTIONS["Cluster"][0]
    parts = [
        _OPTIONS_HEAD.format(
            generated=_GENERATED, variable=environment_variable(example), key=example.key
        )
    ]
    for title, options in SECTIONS.items():
        parts.append(f"\n## {title}\n")
        parts.append("| Key | Default | Type | Scope | Meaning |\n|---|---|---|---|---|")
        parts.extend(_row(option) for option in options)
    return "\n".join(parts) + "\n"


def _row(option: AnyOption) -> str:
    default = f"`{option.default_text}`" if option.default_text else "(empty)"
    notes = [option.description.replace("|", "\\|")]
    if option.deprecated_keys:
        notes.append(f"Older keys: {', '.join(f'`{key}`' for key in option.deprecated_keys)}.")
    if option.secret:
        notes.append("Never shown.")
    return f"| `{option.key}` | {default} | {option.type_name} | {option.scope.value} | {' '.join(notes)} |"


def conf_yaml() -> str:
    """``conf/yarnflow-conf.yaml``: every option, commented out."""
    parts = [_YAML_HEAD.format(generated=_GENERATED)]
    for title, options in SECTIONS.items():
        parts.append(f"\n# {'=' * 4} {title} {'=' * (100 - len(title))}")
        for option in options:
            parts.append("")
            parts.extend(textwrap.wrap(option.description, 106, initial_indent="# ", subsequent_indent="# "))
            value = option.default_text or '""'
            parts.append(f"#{option.key}: {value}")
    return "\n".join(parts) + "\n"
