"""Document of the volume editor: a file of volumes, the selection in it, and every earlier state for undo."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from humanoid_control.collision.ssv.model import SsvModel
from humanoid_control.collision.ssv.segments import (
    Segment,
    SegmentFile,
    Volume,
    expand,
    read_segment_file,
    write_segment_file,
)
from humanoid_control.errors import RobotError, UnknownNameError

UNDO_DEPTH = 200  # states kept


@dataclass(frozen=True)
class Selection:
    """Names of the selected segment and of a volume in it; empty: none."""

    segment: str = ""
    volume: str = ""


@dataclass(frozen=True)
class DocumentState:
    """One state of a document."""

    file: SegmentFile
    selection: Selection


class Document:
    """A file of volumes being edited. Every change goes through `change`, which refuses what makes no model.

    Attributes:
        path: where `save` writes; None until told.
        model: of the present state, as built.
    """

    def __init__(
        self, file: SegmentFile, build: Callable[[SegmentFile], SsvModel], path: Path | None = None, saved: bool = True
    ) -> None:
        """Begin with a file.

        Args:
            file: its segments and pairs.
            build: makes the model of a file, or raises what is wrong with it.
            path: of the file.
            saved: whether it is there already.

        Raises:
            HumanoidError: the file makes no model.
        """
        self._build, self.path = build, path
        self.model = build(file)
        self._now = DocumentState(file, first_of(file))
        self._saved = file if saved else None
        self._past: list[DocumentState] = []
        self._future: list[DocumentState] = []
        self._gesture = ""

    @property
    def file(self) -> SegmentFile:
        """The present state."""
        return self._now.file

    @property
    def selection(self) -> Selection:
        """The selection; its segment and volume exist, or it is empty."""
        return self._now.selection

    @property
    def segment(self) -> Segment | None:
        """The selected segment, as drawn."""
        return next((s for s in self.file.segments if s.name == self.selection.segment), None)

    @property
    def volume(self) -> Volume | None:
        """The selected volume."""
        s = self.segment
        return next((v for v in s.volumes if v.name == self.selection.volume), None) if s else None

    @property
    def changed(self) -> bool:
        """True while there is something to save."""
        return self.file != self._saved

    def need_segment(self) -> Segment:
        """The selected segment.

        Raises:
            RobotError: none is.
        """
        if self.segment is None:
            raise RobotError("select a segment first")
        return self.segment

    def need_volume(self) -> Volume:
        """The selected volume.

        Raises:
            RobotError: none is.
        """
        if self.volume is None:
            raise RobotError("select a volume first")
        return self.volume

    def select(self, segment: str, volume: str = "") -> None:
        """Select a segment and one of its volumes, by default the first.

        Raises:
            UnknownNameError: there is none of that name.
        """
        found = next((s for s in self.file.segments if s.name == segment), None)
        if found is None:
            raise UnknownNameError("segment", segment, [s.name for s in self.file.segments])
        names = [v.name for v in found.volumes]
        if volume and volume not in names:
            raise UnknownNameError("volume", volume, names, hint=f"(in segment '{segment}')")
        self._now = replace(self._now, selection=Selection(segment, volume or names[0]))
        self._gesture = ""

    def change(self, file: SegmentFile, selection: Selection | None = None, gesture: str = "") -> None:
        """Take a new state, and remember the one before it.

        Args:
            file: the new state.
            selection: in it; by default what was selected, where it still exists.
            gesture: changes one after another with the same word are one for `undo`, as all places of a drag are.

        Raises:
            HumanoidError: it makes no model; nothing has changed.
        """
        selection = existing(file, selection or self.selection)
        if file == self.file:
            self._now = replace(self._now, selection=selection)
            return
        self.model = self._build(file)
        if not gesture or gesture != self._gesture:
            self._past = [*self._past, self._now][-UNDO_DEPTH:]
        self._now, self._future, self._gesture = DocumentState(file, selection), [], gesture

    def end_gesture(self) -> None:
        """The next change is one of its own, whatever its word."""
        self._gesture = ""

    def undo(self) -> bool:
        """Go back one change; whether there was one."""
        return self._step(self._past, self._future)

    def redo(self) -> bool:
        """Take back an undo; whether there was one."""
        return self._step(self._future, self._past)

    def _step(self, source: list[DocumentState], other: list[DocumentState]) -> bool:
        if not source:
            return False
        other.append(self._now)
        self._now = source.pop()
        self.model, self._gesture = self._build(self.file), ""
        return True

    def save(self, path: Path | None = None) -> Path:
        """Write the file; never half of it.

        Args:
            path: instead of the document's own, which it becomes.

        Raises:
            RobotError: no path is known. ConfigError: it cannot be written.
        """
        path = path or self.path
        if path is None:
            raise RobotError("there is no file to save to: name one")
        write_segment_file(path, self.file)
        self.path, self._saved = path, self.file
        return path

    def load(self, path: Path) -> None:
        """Read another file; `undo` comes back from it.

        Raises:
            HumanoidError: it cannot be read, or does not fit the robot; nothing has changed.
        """
        file = read_segment_file(path)
        self.change(file, first_of(file))
        self.path, self._saved = path, file


def first_of(file: SegmentFile) -> Selection:
    """The first volume of a file."""
    return Selection(file.segments[0].name, file.segments[0].volumes[0].name) if file.segments else Selection()


def existing(file: SegmentFile, selection: Selection) -> Selection:
    """A selection as far as it exists; what is gone is replaced by the first one."""
    for s in file.segments:
        if s.name == selection.segment:
            names = [v.name for v in s.volumes]
            return Selection(s.name, selection.volume if selection.volume in names else names[0])
    return first_of(file)


def owners(file: SegmentFile) -> dict[Selection, Selection]:
    """For each volume that is seen, mirror images too, the one in the file that it is drawn from."""
    return {
        Selection(image.name, v.name): Selection(s.name, original.name)
        for s in file.segments
        for original in s.volumes
        for image in expand([replace(s, volumes=(original,))])
        for v in image.volumes
    }
