"""What of a JVM's threads and jars is touched, and what is fetched."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest

from yarnflow.errors import JarError
from yarnflow.spark.launch import jar_loader
from yarnflow.spark.launch.jar_loader import JarLoader

_MUTABLE = "org.apache.spark.util.MutableURLClassLoader"


class Loader:
    """A class loader; two are equal if they are one."""

    def __init__(self, name: str = "app") -> None:
        self.name = name
        self.urls: list[str] = []

    def equals(self, other: object) -> bool:
        return self is other

    def addURL(self, url: str) -> None:
        self.urls.append(url)


class Thread:
    def __init__(self, loader: Loader | None, refuses: bool = False) -> None:
        self.loader = loader
        self.refuses = refuses

    def getContextClassLoader(self) -> Loader | None:
        return self.loader

    def setContextClassLoader(self, loader: Loader) -> None:
        if self.refuses:
            raise RuntimeError("java.lang.SecurityException: setContextClassLoader")
        self.loader = loader


class Gateway:
    """Py4j's, with as much of Java as is used."""

    def __init__(self, *threads: Thread) -> None:
        self.downloads: list[str] = []
        self.refuses = ""
        group = SimpleNamespace(enumerate=lambda array: self._fill(array, threads))
        threads[0].getThreadGroup = lambda: group  # type: ignore[attr-defined]
        file = SimpleNamespace
        self.classes = {
            "java.lang.Thread": SimpleNamespace(currentThread=lambda: threads[0]),
            "java.net.URL": "URL",
            _MUTABLE: lambda urls, parent: Loader(_MUTABLE),
            "java.io.File": lambda path: file(path=path, toURI=lambda: file(toURL=lambda: f"file:{path}")),
            "org.apache.spark.SparkConf": lambda defaults: file(set=lambda key, value: None),
            "org.apache.spark.deploy.SparkHadoopUtil": file(
                get=lambda: file(newConfiguration=lambda conf: None)
            ),
            "org.apache.spark.util.DependencyUtils": file(downloadFile=self._download),
        }

    def new_array(self, of: object, size: int) -> list[object]:
        return [None] * size

    def _fill(self, array: list[Any], threads: tuple[Thread, ...]) -> int:
        array[: len(threads)] = threads
        return len(threads)

    def _download(self, jar: str, target: Any, conf: object, hadoop: object) -> str:
        if self.refuses:
            raise RuntimeError(self.refuses)
        self.downloads.append(jar)
        return "file:" + quote(f"{target.path}/{jar.rpartition('/')[2]}")


@pytest.fixture(autouse=True)
def java(monkeypatch: pytest.MonkeyPatch) -> None:
    """Java's classes are those of the gateway."""
    monkeypatch.setattr(jar_loader, "java_class", lambda gateway, name: gateway.classes[name])


def test_threads_with_the_loader_of_the_others_get_the_new_one() -> None:
    app, own = Loader(), Loader("own")
    threads = [Thread(app), Thread(app, refuses=True), Thread(own), Thread(None), Thread(app)]
    gateway = Gateway(*threads)
    JarLoader.install(gateway)
    installed = threads[0].loader
    assert installed is not None and installed.name == _MUTABLE
    assert [thread.loader for thread in threads] == [installed, app, own, None, installed]


def test_a_jar_is_added_and_fetched_once(tmp_path: Path) -> None:
    thread = Thread(Loader())
    gateway = Gateway(thread)
    loader = JarLoader.install(gateway)
    own, directory = tmp_path / "own.jar", tmp_path / "my jars"
    own.touch()
    jars = [f"file://{own}", f"local:{own}", "hdfs://n/a b.jar"]
    for _ in range(2):
        loader.add(jars, directory, {"spark.hadoop.x": "1"})
    assert thread.loader is not None
    assert thread.loader.urls == [f"file:{own}", f"file:{directory}/a b.jar"]
    loader.add([*jars, "hdfs://n/c.jar"], directory, {})
    assert gateway.downloads == ["hdfs://n/a b.jar", "hdfs://n/c.jar"]


def test_jars_that_cannot_be_read(tmp_path: Path) -> None:
    gateway = Gateway(Thread(Loader()))
    loader = JarLoader.install(gateway)
    with pytest.raises(JarError, match="local:/none.jar is not on the driver's machine; put it there"):
        loader.add(["local:/none.jar"], tmp_path, {})
    gateway.refuses = "java.io.IOException: 401 https://ann:pw@h/x.jar"
    with pytest.raises(JarError, match=r"cannot be read by the driver: .* https://ann:\*{6}@h/x.jar") as said:
        loader.add(["https://ann:pw@h/x.jar"], tmp_path, {})
    assert "pw" not in str(said.value)
    gateway.refuses = ""
    loader.add(["https://ann:pw@h/x.jar"], tmp_path, {})
    assert len(gateway.downloads) == 1, "what failed is asked for again"
