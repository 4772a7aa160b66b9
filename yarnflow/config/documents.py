"""Texts made from declarations: options, errors and the logging configuration.

``scripts/gen-docs`` writes ``conf/OPTIONS.md``, ``conf/yarnflow-conf.yaml``, ``conf/log.yaml`` and
``docs/exit-codes.md`` from them and a test compares them, so that no option or error stays
undocumented and no documented one is gone.

Flink counterpart: ``ConfigOptionsDocGenerator``.
"""

from __future__ import annotations

import inspect
import textwrap
from typing import Final

import yaml

from yarnflow.config.configuration import environment_variable
from yarnflow.config.log_file import DEFAULT_LOGGING
from yarnflow.config.option import AnyOption
from yarnflow.config.options import SECTIONS
from yarnflow.errors import ERRORS_BY_CODE, YarnflowError

_GENERATED: Final = "Written by scripts/gen-docs from yarnflow/config/options; do not edit."
_OPTIONS_HEAD: Final = """\
<!-- {generated} -->
# Options

An option that has the same meaning as in Flink has Flink's key. The value of an option comes from these
places; a later one overrides an earlier one:

1. `yarnflow-conf.yaml` in the configuration directory; keys are flat or nested;
2. the environment variable `YARNFLOW_CONF_` + the key in capitals, with `_` for every character that is not a
   letter or digit, for example `{variable}` for `{key}`;
3. `-Dkey=value` on the command line.

An unknown key is an error; it is not ignored. Keys that begin with `spark.` are passed to Spark unchanged;
`containerized.master.env.NAME` and `containerized.taskmanager.env.NAME` set variables of the containers on
YARN. Older keys of Flink are taken with a warning.
Durations: `500 ms`, `10 s`, `5 min`, `1 h`, `2 d`, `PT1M30S`; no unit means milliseconds. Memory sizes:
`1728m`, `1 gb`; units are powers of 1024, no unit means bytes.

The scope of an option says where it is read: `client`: by the command that submits; `deployment`: by a
command that starts an application on YARN; `cluster`: by the cluster's processes at their start;
`taskmanager`: by a TaskManager at its start; `job`: for each job, with the values with which it was
submitted.
"""
_YAML_HEAD: Final = """\
# Configuration of yarnflow. {generated}
# Edit a copy of this file, and set --conf-dir or YARNFLOW_CONF_DIR to the directory of the copy.
# It contains all options with their defaults; remove the '#' before a key to set it.
# OPTIONS.md in the same directory explains the forms of values, precedence and scope.
"""
_LOG_HEAD: Final = """\
# Logging of all yarnflow processes: a dictionary for Python's logging.config.dictConfig.
# Written by scripts/gen-docs from yarnflow/config/log_file.py; do not edit.
# Edit a copy of this file in your configuration directory.  ${log.file} is replaced by the path of the
# process's own file below yarnflow.log.dir; FlinkFormatter writes lines in Flink's format.
"""
_EXIT_HEAD: Final = """\
<!-- Written by scripts/gen-docs from yarnflow/errors.py; do not edit. -->
# Exit status

A command that ends with an error prints one line, `error: …`, to standard error. Its exit status is the
number of the error's class. The code is the name of the class in logs and between processes. Retryable means
that the same command, unchanged, may succeed later.

| Exit status | Code | Meaning | What to do | Retryable |
|---|---|---|---|---|
"""
#: statuses that no error class has
_OTHER_STATUSES: Final = {
    0: "The job FINISHED, or was accepted when detached; the command was successful.",
    2: "The command line is wrong: an unknown command or flag, a missing argument.",
    130: "Interrupted (Ctrl-C).",
    143: "Terminated (TERM, HUP).",
}
_ACTION: Final = "Operator action:"


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


def log_yaml() -> str:
    """``conf/log.yaml``: the default, to be copied and edited."""
    return _LOG_HEAD + str(yaml.safe_dump(DEFAULT_LOGGING, sort_keys=False))


def exit_codes_markdown() -> str:
    """``docs/exit-codes.md``: every error class and every other way a command ends."""
    rows = [(status, f"| {status} | | {meaning} | | |") for status, meaning in _OTHER_STATUSES.items()]
    rows += [(cls.exit_code, _error_row(cls)) for cls in ERRORS_BY_CODE.values()]
    return _EXIT_HEAD + "".join(f"{row}\n" for _, row in sorted(rows))


def _error_row(cls: type[YarnflowError]) -> str:
    paragraph = inspect.cleandoc(cls.__doc__ or "").partition("\n\n")[0]
    said, _, action = " ".join(paragraph.split()).replace("``", "`").partition(_ACTION)
    action = action.strip()
    return (
        f"| {cls.exit_code} | `{cls.code}` | {said.strip()} | {action[:1].upper()}{action[1:]} "
        f"| {'yes' if cls.retryable else 'no'} |"
    )
