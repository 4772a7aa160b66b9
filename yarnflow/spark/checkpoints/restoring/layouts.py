"""Where the state of operators on elements lies in what is brought, and where the program looks for it.

Never moves it (:mod:`yarnflow.spark.checkpoints.restoring.moving`).
"""

from __future__ import annotations

from collections.abc import Mapping

from yarnflow.core.checkpoint.manifest import SavepointMetadata
from yarnflow.core.checkpoint.program_shape import ProgramShape
from yarnflow.errors import StateIncompatible
from yarnflow.operators.task.state_layout import LAYOUT_FILE, StateLayout, is_changed
from yarnflow.spark.checkpoints.restoring.moving import read_layout
from yarnflow.spark.checkpoints.restoring.parts import Part, directory_name
from yarnflow.spark.hadoop_files import HadoopFiles


class Layouts:
    """Those of one savepoint or checkpoint, and of the program that is to go on from it.

    Parameters
    ----------
    files : HadoopFiles
    wanted : mapping
        Query → where the program has the state of its operators on elements.
    manifest : SavepointMetadata
    """

    def __init__(
        self, files: HadoopFiles, wanted: Mapping[str, StateLayout], manifest: SavepointMetadata
    ) -> None:
        self._files = files
        self._wanted = wanted
        self._manifest = manifest

    def check(self, part: Part, shape: ProgramShape | None) -> None:
        """State of operators on elements that may lie anywhere is for the program alone that wrote it."""
        before, after = self.of(part.source, part)
        if before is not None or after is None or not any(path.startswith("state/") for path in part.paths):
            return
        if shape is None or shape.graph_hash != self._manifest.program.graph_hash:
            raise StateIncompatible(
                f"{part.source} has state of operators on elements, and no {LAYOUT_FILE} that says where: it "
                "was written by an earlier development version, and only the very same program can go on "
                "from it; submit that, or start without state (--restore none)"
            )

    def is_changed(self, part: Part) -> bool:
        """Whether state lies elsewhere than where the program looks for it."""
        before, after = self.of(part.source, part)
        return before is not None and after is not None and is_changed(before, after)

    def of(self, directory: str, part: Part) -> tuple[StateLayout | None, StateLayout | None]:
        """As it is in a directory, and as the program has it; None = there are no operators on elements."""
        names = {directory_name(p, self._manifest): p.query for p in self._manifest.positions}
        return read_layout(self._files, directory), self._wanted.get(names.get(part.name, ""))
