"""What is not shown to people: one rule for options, variables, documents and log lines.

In doubt something is hidden; a value that ends nowhere for certain is hidden to the end of its
line.  Flink counterpart: ``GlobalConfiguration.isSensitive``.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, Final

from yarnflow.config.options import OPTIONS_BY_KEY

HIDDEN: Final = "******"

_WORD: Final = (
    r"(?:password|passwd|passphrase|secret|token|credential|jaas|authorization|basic[-_. ]?auth"
    r"|(?:access|account|api|encryption|private|shared|signing|storage)[-_. ]?key|(?<![a-z])sas(?![a-z]))"
)
_NAME: Final = re.compile(_WORD, re.IGNORECASE)
#: JSON inside of JSON has its quotes escaped; a text ends at the next one with as many backslashes
_QUOTE: Final = r"\\*[\"']"
_ASSIGNED: Final = re.compile(
    rf"({_WORD}[\w.\-]*(?:{_QUOTE})?\s*(?:=>?|:)\s*)(?:({_QUOTE})(?:(?!(?<!\\)\2).)*(\2|$)|[^\s].*)",
    re.IGNORECASE | re.MULTILINE,
)
_FLAG: Final = re.compile(rf"(--?[\w.\-]*{_WORD}[\w.\-]*\s+)(?!-)\S+", re.IGNORECASE)
_IN_URL: Final = re.compile(r"(://[^\s/:@\"']*:)[^\s/@\"']+(?=@)|([?&]sig=)[^\s&\"']+", re.IGNORECASE)
#: what stands alone before the host is a token, or a name that nobody misses
_TOKEN_IN_URL: Final = re.compile(
    rf"(https?://)[^\s/:@\"']+(?=@)|([?&][\w.\-]*{_WORD}[\w.\-]*=)[^\s&\"']+", re.IGNORECASE
)
_PRIVATE_KEY: Final = re.compile(
    r"(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL
)


def is_secret(name: str) -> bool:
    """Whether the value of an option or variable is hidden; declared options say so themselves."""
    option = OPTIONS_BY_KEY.get(name)
    return option.secret if option is not None else _NAME.search(name) is not None


def masked_text(text: str, secrets: Collection[str] = ()) -> str:
    """A text without the given secrets and without what looks like one."""
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    text = _PRIVATE_KEY.sub(rf"\1{HIDDEN}", text)
    text = masked_urls(text)
    text = _ASSIGNED.sub(lambda found: f"{found[1]}{found[2] or ''}{HIDDEN}{found[3] or ''}", text)
    return _FLAG.sub(rf"\1{HIDDEN}", text)


def masked_urls(text: str) -> str:
    """A text of ours without what lets others into the addresses that it names."""
    for secret in (_IN_URL, _TOKEN_IN_URL):
        text = secret.sub(lambda found: (found[1] or found[2]) + HIDDEN, text)
    return text


def masked(node: Any, secrets: Collection[str] = ()) -> Any:
    """A document of dictionaries, lists and texts in which the same is hidden."""
    if isinstance(node, dict):
        return {
            key: _hidden(value) if is_secret(str(key)) else masked(value, secrets)
            for key, value in node.items()
        }
    if isinstance(node, list):
        return [masked(item, secrets) for item in node]
    return masked_text(node, secrets) if isinstance(node, str) else node


def _hidden(node: Any) -> Any:
    """Every text; numbers are none."""
    if isinstance(node, dict):
        return {key: _hidden(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_hidden(item) for item in node]
    return HIDDEN if isinstance(node, str) and node else node
