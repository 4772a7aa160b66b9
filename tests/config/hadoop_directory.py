"""Configuration directories of Hadoop that tests write."""

from __future__ import annotations

from pathlib import Path


def hadoop_environ(directory: Path, default_fs: str) -> dict[str, str]:
    """Return the environment of a process that finds this configuration."""
    text = f"<property><name>fs.defaultFS</name><value>{default_fs}</value></property>"
    (directory / "core-site.xml").write_text(f"<configuration>{text}</configuration>")
    (directory / "yarn-site.xml").write_text("<configuration/>")
    return {"HADOOP_CONF_DIR": str(directory)}
