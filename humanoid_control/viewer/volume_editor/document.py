"""Document of the volume editor: volume file, selection, undo history."""

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

UNDO_DEPTH = 200  # maximum number of states


@dataclass(frozen=True)
class Selection:
    """Names of the selected segment and volume; empty: none."""

    segment: str = ""
    volume: str = ""


@dataclass(frozen=True)
class DocumentState:
    """State of a document."""

    file: SegmentFile
    selection: Selection


class Document:
    """Edited volume file; `change` rejects invalid states.

    Attributes:
        path: destination of `save`, or None.
        model: model of the present state.
    """

    def __init__(
        self, file: SegmentFile, build: Callable[[SegmentFile], SsvModel], path: Path | None = None, saved: bool = True
    ) -> None:
        """Start with a file.

        Args:
            file: segments and pairs.
            build: returns the model of a file, or raises.
            saved: the file exists on disk.

        Raises:
            HumanoidError: if the file is invalid.
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
        return self._now.file

    @property
    def selection(self) -> Selection:
        """Existing selection, or empty."""
        return self._now.selection

    @property
    def segment(self) -> Segment | None:
        return next((s for s in self.file.segments if s.name == self.selection.segment), None)

    @property
    def volume(self) -> Volume | None:
        s = self.segment
        return next((v for v in s.volumes if v.name == self.selection.volume), None) if s else None

    @property
    def changed(self) -> bool:
        """Whether there are unsaved changes."""
        return self.file != self._saved

    def need_segment(self) -> Segment:
        """Return the selected segment.

        Raises:
            RobotError: if there is none.
        """
        if self.segment is None:
            raise RobotError("select a segment first")
        return self.segment

    def need_volume(self) -> Volume:
        """Return the selected volume.

        Raises:
            RobotError: if there is none.
        """
        if self.volume is None:
            raise RobotError("select a volume first")
        return self.volume

    def select(self, segment: str, volume: str = "") -> None:
        """Select a segment and a volume, by default its first.

        Raises:
            UnknownNameError: if it does not exist.
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
        """Apply a new state and remember the previous one.

        Args:
            file: new state.
            selection: new selection; default: unchanged.
            gesture: consecutive equal gestures form one undo step.

        Raises:
            HumanoidError: if the file is invalid; nothing changes.
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
        """Start a new undo step with the next change."""
        self._gesture = ""

    def undo(self) -> bool:
        """Undo a change, if any."""
        return self._step(self._past, self._future)

    def redo(self) -> bool:
        """Redo a change, if any."""
        return self._step(self._future, self._past)

    def _step(self, source: list[DocumentState], other: list[DocumentState]) -> bool:
        if not source:
            return False
        other.append(self._now)
        self._now = source.pop()
        self.model, self._gesture = self._build(self.file), ""
        return True

    def save(self, path: Path | None = None) -> Path:
        """Write the file atomically; return its path.

        Args:
            path: new path of the document; None: keep.

        Raises:
            RobotError: if no path is known.
            ConfigError: if it cannot be written.
        """
        path = path or self.path
        if path is None:
            raise RobotError("no file to save to: give one")
        write_segment_file(path, self.file)
        self.path, self._saved = path, self.file
        return path

    def load(self, path: Path) -> None:
        """Read another file, undoably.

        Raises:
            HumanoidError: if it is unusable; nothing changes.
        """
        file = read_segment_file(path)
        self.change(file, first_of(file))
        self.path, self._saved = path, file


def first_of(file: SegmentFile) -> Selection:
    """Return the first volume of a file."""
    return Selection(file.segments[0].name, file.segments[0].volumes[0].name) if file.segments else Selection()


def existing(file: SegmentFile, selection: Selection) -> Selection:
    """Return a selection without missing parts."""
    for s in file.segments:
        if s.name == selection.segment:
            names = [v.name for v in s.volumes]
            return Selection(s.name, selection.volume if selection.volume in names else names[0])
    return first_of(file)


def owners(file: SegmentFile) -> dict[Selection, Selection]:
    """Return, for each visible volume, its original in the file."""
    return {
        Selection(image.name, v.name): Selection(s.name, original.name)
        for s in file.segments
        for original in s.volumes
        for image in expand([replace(s, volumes=(original,))])
        for v in image.volumes
    }
