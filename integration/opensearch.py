"""A real OpenSearch for tests: its distribution for integration tests, from Maven Central."""

from __future__ import annotations

import os
import shutil
import subprocess
import zipfile
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from integration.servers import Server, program
from yarnflow.api.datastream.connectors.elasticsearch import Elasticsearch7SinkBuilder
from yarnflow.spark.launch.java import find_java

_VERSION: Final = "2.19.6"
_ARTIFACT: Final = f"org.opensearch.distribution.integ-test-zip:opensearch:{_VERSION}:zip"


class OpenSearch(Server):
    """One node, without users."""

    def _create(self) -> None:
        found = _distribution()
        with zipfile.ZipFile(found) as archive:
            archive.extractall(self.directory)
        self._home = self.directory / f"opensearch-{_VERSION}"
        for file in (self._home / "bin").iterdir():
            file.chmod(0o755)
        if self._owner is not None:
            for path in (self._home, *self._home.rglob("*")):
                shutil.chown(path, self._owner)

    def _environment(self) -> dict[str, str]:
        # bin/java of it
        home = find_java().program.resolve().parents[1]
        return {"JAVA_HOME": str(home), "OPENSEARCH_JAVA_OPTS": "-Xms256m -Xmx256m"}

    def _command(self) -> list[str]:
        settings = {
            "discovery.type": "single-node",
            "http.port": str(self.port),
            "network.host": "127.0.0.1",
            "cluster.routing.allocation.disk.threshold_enabled": "false",
        }
        return [str(self._home / "bin" / "opensearch"), *(f"-E{k}={v}" for k, v in settings.items())]

    def _ready(self) -> bool:
        try:
            return self.client().cluster.health()["status"] in ("yellow", "green")
        except import_module("opensearchpy").exceptions.TransportError:
            return False

    def client(self) -> Any:
        """The official client."""
        return import_module("opensearchpy").OpenSearch([f"http://127.0.0.1:{self.port}"], max_retries=0)

    def documents(self, index: str) -> dict[str, Mapping[str, Any]]:
        """Id → document, of all that an index has."""
        client = self.client()
        client.indices.refresh(index=index)
        found = client.search(index=index, body={"size": 10_000})["hits"]["hits"]
        return {hit["_id"]: hit["_source"] for hit in found}

    def builder(self) -> Elasticsearch7SinkBuilder:
        """For programs."""
        return Elasticsearch7SinkBuilder().set_hosts(f"http://127.0.0.1:{self.port}")


def _distribution() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "yarnflow", "opensearch")
    found = cache / f"opensearch-{_VERSION}.zip"
    if not found.exists():
        cache.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            [
                *(program("mvn"), "-q", "-B", "dependency:copy"),
                *(f"-Dartifact={_ARTIFACT}", f"-DoutputDirectory={cache}"),
            ],
            check=True,
        )
    return found
