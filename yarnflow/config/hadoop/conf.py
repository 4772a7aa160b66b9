"""Hadoop's client configuration (``HADOOP_CONF_DIR``), read without a JVM.

Decides which properties hold, as Hadoop's ``Configuration`` does (later files win unless a value is
final, ``${…}`` is expanded, files are included), and where NameNodes and ResourceManagers have their
web servers, with high availability as well.  Never talks to any of them.  Flink counterpart:
``HadoopUtils.getHadoopConfiguration``.
"""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from xml.etree import ElementTree

from yarnflow.config.hadoop.variables import HADOOP_VARIABLES
from yarnflow.errors import YarnUnavailable

#: read in this order
CORE_SITE: Final = "core-site.xml"
YARN_SITE: Final = "yarn-site.xml"
_SITE_FILES: Final = (CORE_SITE, "hdfs-site.xml", YARN_SITE)
_ADVICE: Final = "set HADOOP_CONF_DIR to the cluster's client configuration"
#: old name → present one
_DEPRECATED: Final[Mapping[str, str]] = {
    "fs.default.name": "fs.defaultFS",
    "dfs.http.address": "dfs.namenode.http-address",
    "dfs.https.address": "dfs.namenode.https-address",
    "dfs.federation.nameservices": "dfs.nameservices",
}
_VARIABLE: Final = re.compile(r"\$\{([^${}\s]+)\}")
_ENVIRONMENT: Final = re.compile(r"env\.(\w+?)(?:(:?-)(.*))?")
#: Hadoop gives up at the same depth
_MAX_DEPTH: Final = 20
_INCLUDE: Final = "{http://www.w3.org/2001/XInclude}include"
#: addresses to listen on, which nobody can connect to from elsewhere
_ANY_HOST: Final = frozenset({"0.0.0.0", "::", "[::]", ""})


@dataclass(frozen=True, slots=True)
class HadoopConf:
    """Properties of ``*-site.xml`` as Hadoop's clients see them.

    Parameters
    ----------
    directory : Path
        Where they were read.
    properties : mapping
        Key → value, expanded; without Hadoop's defaults.
    """

    directory: Path
    properties: Mapping[str, str]

    @classmethod
    def load(
        cls, environ: Mapping[str, str], required: Sequence[str] = (CORE_SITE, YARN_SITE)
    ) -> HadoopConf:
        """Read the directory that ``HADOOP_CONF_DIR`` names.

        ``YARN_CONF_DIR`` and ``$HADOOP_HOME/etc/hadoop`` are tried after it, when it is not set.

        Parameters
        ----------
        environ : mapping
        required : sequence of str
            Files that must be there.

        Raises
        ------
        YarnUnavailable
            No directory is named, it does not exist, or a file in it is missing or not XML.
        """
        name, directory = _find(environ)
        if not directory.is_dir():
            raise YarnUnavailable(f"{name} is {directory}, which is not a directory; {_ADVICE}")
        for file in required:
            if not (directory / file).is_file():
                raise YarnUnavailable(f"there is no {file} in {directory} ({name}); {_ADVICE}")
        raw: dict[str, str] = {}
        final: set[str] = set()
        for file in _SITE_FILES:
            if (directory / file).is_file():
                _read(directory / file, raw, final)
        return cls(directory, {key: _expand(value, raw, environ) for key, value in raw.items()})

    def get(self, key: str, default: str = "") -> str:
        """A property; ``default`` when no file has it."""
        return self.properties.get(key, default)

    def files(self) -> list[Path]:
        """The files that containers need; those with passwords of key stores are left out."""
        return sorted(path for path in self.directory.glob("*.xml") if not path.name.startswith("ssl-"))

    @property
    def default_fs(self) -> str:
        """URI of the default file system without a slash at its end: ``hdfs://host:8020`` or ``file://``.

        Raises
        ------
        YarnUnavailable
            It is another one.
        """
        uri = self.get("fs.defaultFS", "file:///")
        parts = urlsplit(uri)
        if parts.scheme == "file":
            return "file://"
        if parts.scheme != "hdfs" or not parts.netloc:
            raise YarnUnavailable(
                f"fs.defaultFS in {self.directory / 'core-site.xml'} is {uri}; only hdfs://… and file:/// "
                f"can be used; {_ADVICE}"
            )
        return f"hdfs://{parts.netloc}"

    @property
    def secure(self) -> bool:
        """Kerberos is on."""
        return self.get("hadoop.security.authentication", "simple").strip().lower() == "kerberos"

    def namenode_http_addresses(self) -> list[str]:
        """``http(s)://host:port`` of every NameNode of the default file system.

        Raises
        ------
        YarnUnavailable
            The default file system is not HDFS, or its NameNodes are not named.
        """
        name = urlsplit(self.default_fs).netloc
        if not name:
            raise YarnUnavailable(f"fs.defaultFS in {self.directory / 'core-site.xml'} is no HDFS; {_ADVICE}")
        scheme, key, port = "http", "dfs.namenode.http-address", 9870
        if self.get("dfs.http.policy").upper() == "HTTPS_ONLY":
            scheme, key, port = "https", "dfs.namenode.https-address", 9871
        if name not in _words(self.get("dfs.nameservices")):
            host = urlsplit(self.default_fs).hostname or ""
            return [_url(scheme, self.get(key), host, port)]
        nodes = _words(self.get(f"dfs.ha.namenodes.{name}"))
        found = []
        for suffix in [f".{name}.{node}" for node in nodes] or [f".{name}"]:
            rpc = urlsplit(f"//{self.get(f'dfs.namenode.rpc-address{suffix}')}")
            address = self.get(key + suffix)
            if not address and not rpc.hostname:
                raise YarnUnavailable(
                    f"{key}{suffix} is missing in {self.directory / 'hdfs-site.xml'}, so the NameNodes of "
                    f"{self.default_fs} cannot be found; {_ADVICE}"
                )
            found.append(_url(scheme, address, rpc.hostname or "", port))
        return found

    def resource_manager_web_addresses(self) -> list[str]:
        """``http(s)://host:port`` of every ResourceManager.

        Raises
        ------
        YarnUnavailable
            High availability is on, but a ResourceManager's host is not named.
        """
        scheme, key, port = "http", "yarn.resourcemanager.webapp.address", 8088
        if self.get("yarn.http.policy").upper() == "HTTPS_ONLY":
            scheme, key, port = "https", "yarn.resourcemanager.webapp.https.address", 8090
        if self.get("yarn.resourcemanager.ha.enabled").lower() != "true":
            return [_url(scheme, self.get(key), self.get("yarn.resourcemanager.hostname"), port)]
        ids = _words(self.get("yarn.resourcemanager.ha.rm-ids"))
        found = []
        for rm_id in ids:
            address = self.get(f"{key}.{rm_id}")
            host = self.get(f"yarn.resourcemanager.hostname.{rm_id}")
            if not address and not host:
                break
            found.append(_url(scheme, address, host, port))
        if not ids or len(found) < len(ids):
            missing = f"{key}.{ids[len(found)]}" if ids else "yarn.resourcemanager.ha.rm-ids"
            raise YarnUnavailable(f"{missing} is missing in {self.directory / 'yarn-site.xml'}; {_ADVICE}")
        return found

    @property
    def yarn_cluster(self) -> str:
        """What tells this YARN from others that have the same file system.

        The name it was given, which its ResourceManagers have in common, else their addresses: unlike the
        time in application ids, neither changes when a ResourceManager starts again or another takes over.

        Raises
        ------
        YarnUnavailable
            High availability is on, but a ResourceManager's host is not named.
        """
        named = self.get("yarn.resourcemanager.cluster-id")
        return named or ",".join(sorted(self.resource_manager_web_addresses()))

    def user(self, environ: Mapping[str, str]) -> str:
        """Who the client is for YARN and HDFS: ``HADOOP_USER_NAME``, else the operating system's user.

        As for Hadoop's own clients, the variable counts without Kerberos only.
        """
        named = "" if self.secure else environ.get("HADOOP_USER_NAME", "")
        if named:
            return named
        try:
            return pwd.getpwuid(os.geteuid()).pw_name
        except KeyError:
            raise YarnUnavailable(
                f"the user with id {os.geteuid()} has no name on this machine; set HADOOP_USER_NAME"
            ) from None


def _find(environ: Mapping[str, str]) -> tuple[str, Path]:
    for name in HADOOP_VARIABLES:
        if environ.get(name):
            return name, Path(environ[name])
    if environ.get("HADOOP_HOME"):
        return "$HADOOP_HOME/etc/hadoop", Path(environ["HADOOP_HOME"]) / "etc" / "hadoop"
    raise YarnUnavailable(f"HADOOP_CONF_DIR is not set, so YARN and HDFS cannot be found; {_ADVICE}")


def _read(path: Path, raw: dict[str, str], final: set[str], depth: int = 0) -> None:
    """Add a file's properties to ``raw``."""
    try:
        root = ElementTree.fromstring(path.read_bytes())
    except ElementTree.ParseError as error:
        raise YarnUnavailable(f"{path} is not valid XML: {error}; correct it") from error
    except OSError as error:
        raise YarnUnavailable(f"cannot read {path}: {error.strerror}; check its permissions") from error
    for element in root:
        if element.tag == _INCLUDE:
            included = path.parent / element.get("href", "").removeprefix("file://")
            if depth < _MAX_DEPTH and included.is_file():
                _read(included, raw, final, depth + 1)
            continue
        key = (element.findtext("name") or element.get("name") or "").strip()
        value = element.findtext("value", element.get("value"))
        key = _DEPRECATED.get(key, key)
        if element.tag != "property" or not key or value is None or key in final:
            continue
        raw[key] = value.strip()
        if (element.findtext("final") or element.get("final") or "").strip() == "true":
            final.add(key)


def _expand(text: str, raw: Mapping[str, str], environ: Mapping[str, str]) -> str:
    """Replace ``${property}`` and ``${env.NAME}``; what is not known stays as it is."""
    for _ in range(_MAX_DEPTH):
        done = _VARIABLE.sub(lambda found: _variable(found, raw, environ), text)
        if done == text:
            break
        text = done
    return text


def _variable(found: re.Match[str], raw: Mapping[str, str], environ: Mapping[str, str]) -> str:
    name = found[1]
    if asked := _ENVIRONMENT.fullmatch(name):
        value = environ.get(asked[1])
        # with the colon, an empty variable counts as missing
        if value is None or (not value and asked[2] == ":-"):
            value = asked[3]
        return found[0] if value is None else value
    java = {"user.name": environ.get("USER"), "user.home": environ.get("HOME"), "java.io.tmpdir": "/tmp"}
    value = raw.get(name, java.get(name))
    return found[0] if value is None else value


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _url(scheme: str, address: str, host: str, port: int) -> str:
    """Base URL from an address that may be empty, lack its port or name no host to connect to."""
    named, separator, number = address.rpartition(":")
    if not separator:
        named, number = address, ""
    if named in _ANY_HOST:
        named = host if host not in _ANY_HOST else "localhost"
    return f"{scheme}://{named}:{number or port}"
