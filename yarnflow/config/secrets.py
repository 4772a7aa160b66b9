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

#: in a name with ``-`` between its words
_STRONG: Final = re.compile(
    r"password|passwd|passphrase|passcode|secret|token|credential|jaas|authorization|basic-?auth|auth-?params"
    r"|http-?headers|connection-?string|shared-?access-?signature|amz-signature|user-?info"
    r"|(?:access|account|api|encryption|private|service|shared|signing|storage|key-?store)-?key"
    r"|(?:^|-)ssl-key(?:$|-pem)|(?:^|-)(?:key|private)-pem(?:$|-)|(?:^|-)sas(?:$|-)"
)
#: words that a sentence may have, too: before ``=`` they are names
_WEAK: Final = re.compile(r"(?:^|-)(?:(?:pg|sf|db|my|user)?pass|pwd|pw|bearer|cookie)(?:$|-)|(?:^|-)auth$")
#: of a shell: directories
_HARMLESS: Final = frozenset({"PWD", "OLDPWD"})
_WORD_ENDS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_. ]")
#: JSON inside of JSON has its quotes escaped; a text ends at the next one with as many backslashes
_QUOTE: Final = r"\\*[\"']"
_ASSIGNMENT: Final = re.compile(rf"(?<![\w.\-])([\w.\-]+)({_QUOTE})?\s*(=>?|:)\s*")
_VALUE: Final = re.compile(rf"({_QUOTE})(?:(?!(?<!\\)\1).)*(\1|$)|[^\s].*", re.MULTILINE)
_FLAG: Final = re.compile(r"(?<![\w.\-])(--?[A-Za-z][\w.\-]*)(\s+)(?!-)\S+")
#: no gap is longer than the numbers say, or long texts of others would take minutes
#: a port ends at a slash, and a password need not
_IN_URL: Final = re.compile(
    r"(://[^\s/:@\"'\[]{0,256}:)(?!\d+[/?#])[^\s@\"']{1,1024}(?=@)|([?&]sig=)[^\s&\"']+", re.IGNORECASE
)
#: what stands alone before the host is a token, or a name that nobody misses
_TOKEN_IN_URL: Final = re.compile(r"(https?://)[^\s/:@\"']{1,1024}(?=@)", re.IGNORECASE)
_PARAMETER: Final = re.compile(r"([?&])([\w.\-]+)=[^\s&\"']+")
_PRIVATE_KEY: Final = re.compile(
    r"(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL
)
#: known by where they stand
_IN_PLACE: Final = re.compile(
    r"(\bjdbc:oracle:\w+:[^\s/@:\"']{0,256}/)[^\s@\"']{1,1024}(?=@)"
    r"|(\bhooks\.slack\.com/services/)[^\s\"']+"
    r"|(\bBearer\s+)[\w.~+/=\-]{20,}"
    r"|(\bcurl\s[^\n]{0,400}?(?<=\s)(?:-u|--user)[\s=]{0,8}[^\s:]{1,256}:)\S+"
    r"|(\bmysql(?:dump|admin)?\s[^\n]{0,400}?(?<=\s)-p)\S+"
    r"|(\bredis-cli\s[^\n]{0,400}?(?<=\s)-a\s+)\S+"
)
#: a signed token in three parts
_SIGNED_TOKEN: Final = re.compile(r"\beyJ[\w\-]{8,}\.[\w\-]+\.[\w\-]*")


def is_secret(name: str) -> bool:
    """Whether the value of an option or variable is hidden; declared options say so themselves."""
    return _is_secret(name, weak=True)


def _is_secret(name: str, weak: bool) -> bool:
    option = OPTIONS_BY_KEY.get(name)
    if option is not None:
        return option.secret
    if name in _HARMLESS:
        return False
    words = _WORD_ENDS.sub("-", name).lower()
    return _STRONG.search(words) is not None or (weak and _WEAK.search(words) is not None)


def masked_text(text: str, secrets: Collection[str] = ()) -> str:
    """A text without the given secrets and without what looks like one."""
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    text = _PRIVATE_KEY.sub(rf"\1{HIDDEN}", text)
    text = masked_urls(text)
    for known in (_IN_PLACE, _SIGNED_TOKEN):
        text = known.sub(lambda found: f"{found[found.lastindex] if found.lastindex else ''}{HIDDEN}", text)
    text = _without_assigned(text)
    return _FLAG.sub(
        lambda found: f"{found[1]}{found[2]}{HIDDEN}" if is_secret(found[1].lstrip("-")) else found[0], text
    )


def _without_assigned(text: str) -> str:
    """Return a text without what follows a secret's name and ``=`` or ``:``."""
    parts: list[str] = []
    copied = looked = 0
    while assignment := _ASSIGNMENT.search(text, looked):
        name, quote, sign = assignment.groups()
        looked = assignment.end()
        # -D is of a command line, not of the name
        if not _is_secret(name.removeprefix("-D"), weak=bool(quote) or sign != ":"):
            continue
        value = _VALUE.match(text, looked)
        if value is None:
            continue
        parts += text[copied:looked], value[1] or "", HIDDEN, value[2] or ""
        copied = looked = value.end()
    return "".join([*parts, text[copied:]])


def masked_urls(text: str) -> str:
    """A text of ours without what lets others into the addresses that it names."""
    for secret in (_IN_URL, _TOKEN_IN_URL):
        text = secret.sub(lambda found: f"{found[found.lastindex or 0]}{HIDDEN}", text)
    return _PARAMETER.sub(
        lambda found: f"{found[1]}{found[2]}={HIDDEN}" if is_secret(found[2]) else found[0], text
    )


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
