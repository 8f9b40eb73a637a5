"""Outcome of a study: hypotheses with their verdicts, and the report, for whoever reads it.

A report is tables and words on a terminal, plain values as JSON, files in a folder.
"""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from humanoid_control.errors import ConfigError, EnvironmentProblem
from humanoid_control.files import check_file, whole_file, whole_files
from humanoid_control.in_child import end_with_parent
from humanoid_control.terminal import ReportTable, plain_values

if TYPE_CHECKING:
    from evidence.studies.dube2012.lab import RetargetingLab

HOLDS, FAILS, OPEN, DEPENDS = "holds", "does not hold", "cannot be decided", "depends on the clip"
RELATIVE, ABSOLUTE = 0.05, 0.001
"""A difference of errors counts when it is more than 5 % of the larger one and more than 1 mm. Set before any run."""


@dataclass(frozen=True)
class Part:
    """One claim of a hypothesis, measured.

    Attributes:
        claim: in a few words.
        verdict: HOLDS, FAILS or OPEN.
        numbers: what was measured, with units in the names.
        seen: evidence in the motion for a reason, where there is any.
    """

    claim: str
    verdict: str
    numbers: Mapping[str, float]
    seen: str = ""


@dataclass(frozen=True)
class Hypothesis:
    """A published conclusion, as an experiment.

    Attributes:
        name: H1 to H21.
        statement: the conclusion.
        rule: by which it holds and by which it cannot be decided, fixed before measuring.
        experiment: runs it.
        reason: most likely cause when it does not hold.
        needs_clip: False where the outcome is the same for every clip.
    """

    name: str
    statement: str
    rule: str
    experiment: Callable[[RetargetingLab], list[Part]]
    reason: str
    needs_clip: bool = True


@dataclass(frozen=True)
class Finding:
    """Verdict on a hypothesis for one clip; `reason` is empty where it holds."""

    hypothesis: Hypothesis
    clip: str
    parts: tuple[Part, ...]
    verdict: str
    reason: str


def conclude(hypothesis: Hypothesis, clip: str, parts: list[Part]) -> Finding:
    """The finding of several parts."""
    verdict = overall(parts)
    reasons = [hypothesis.reason] if verdict == FAILS else []
    reasons += [p.seen for p in parts if p.verdict == FAILS and p.seen]
    return Finding(hypothesis, clip, tuple(parts), verdict, "; ".join(dict.fromkeys(reasons)))


def overall(parts: Sequence[Part]) -> str:
    """The verdict of several parts: it fails with any of them, and is open while any is open or where there is none."""
    verdicts = {p.verdict for p in parts}
    return FAILS if FAILS in verdicts else OPEN if OPEN in verdicts or not parts else HOLDS


def over_clips(verdicts: Sequence[str]) -> str:
    """The verdict over several clips: that of all which decide it, DEPENDS where they differ, OPEN where none does."""
    decided = {v for v in verdicts if v != OPEN}
    return DEPENDS if len(decided) > 1 else decided.pop() if decided else OPEN


def decide(true: bool, decidable: bool = True) -> str:
    """A verdict from a rule that is met or not, and from whether the data can tell at all."""
    return OPEN if not decidable else HOLDS if true else FAILS


def lower(a: float, b: float) -> bool:
    """True where error a is smaller than error b by a difference that counts [m]."""
    return b - a > max(ABSOLUTE, RELATIVE * b)


def similar(a: float, b: float) -> bool:
    """True where two errors differ by less than what counts [m]."""
    return not lower(a, b) and not lower(b, a)


def cm(value: float) -> float:
    """Metres to centimetres, rounded for the report."""
    return round(100 * value, 2)


# -------- Long studies


class KeptOutcomes:
    """Outcomes of a long study in a file, one a line: what is in it is not done again.

    Attributes:
        known: job, as text -> its outcome, plain values.
    """

    def __init__(self, file: Path | None, what: str) -> None:
        """Read what is there.

        Args:
            file: made where it is missing; None: nothing is kept. what: that was done, for errors: "dances".

        Raises:
            ConfigError: it cannot be written, or holds something else.
        """
        self._file = file
        self.known: dict[str, dict[str, Any]] = {}
        if file is None:
            return
        check_file(file)
        if not file.is_file():
            return
        try:
            rows = [json.loads(line) for line in file.read_text().splitlines()]
            self.known = {row["job"]: row["outcome"] for row in rows}
        except (ValueError, KeyError, TypeError) as e:
            raise ConfigError(f"{file} contains no results of {what}: {e}") from None

    def all(
        self,
        jobs: Sequence[Sequence[Any]],
        do: Callable[[Any], dict[str, Any]],
        workers: int | None,
        show: Callable[[float], None],
    ) -> Iterator[dict[str, Any]]:
        """Outcomes in the order of the jobs; new ones are made by worker processes and written at once.

        Args:
            jobs: of plain values. do: makes the outcome of one. workers: None: one a core. show: told the share done.
        """
        keys = [json.dumps(list(job)) for job in jobs]
        todo = [job for job, key in zip(jobs, keys, strict=True) if key not in self.known]
        count = max(workers or min(os.cpu_count() or 1, len(todo)), 1)
        context = multiprocessing.get_context(
            "forkserver"
        )  # a plain fork of a process with threads can deadlock or die
        with ProcessPoolExecutor(count, mp_context=context, initializer=end_with_parent) as pool:
            fresh = pool.map(do, todo)
            for k, key in enumerate(keys):
                if key not in self.known:
                    try:
                        outcome = next(fresh)
                    except BrokenProcessPool:
                        raise EnvironmentProblem(
                            f"a worker process was killed during {', '.join(map(str, jobs[k]))}: too little memory? "
                            f"Finished results are kept: run the command again"
                        ) from None
                    self.keep(key, plain_values(outcome))
                show((k + 1) / len(keys))
                yield self.known[key]

    def keep(self, key: str, outcome: dict[str, Any]) -> None:
        """Keep the outcome of a job, plain values, under its name."""
        self.known[key] = outcome
        self._write()

    def _write(self) -> None:
        if self._file is not None:
            text = "".join(json.dumps({"job": k, "outcome": v}) + "\n" for k, v in self.known.items())
            with whole_file(self._file) as part:
                part.write_text(text)


# -------- The report


Progress = Callable[[float, str], None]
"""Called with the share that is done, 0 to 1, and what is being done."""


def silent(done: float, text: str = "") -> None:
    """A progress that nobody sees."""


@dataclass(frozen=True)
class StudyReport:
    """Result of a study.

    Attributes:
        data: plain values, as they are written to JSON.
        parts: tables and sentences in the order of reading.
        details: more of them, for those who ask.
        pictures: makes more files, name -> content; called only where files are asked for, for it may take seconds.
    """

    data: dict[str, Any]
    parts: Sequence[ReportTable | str]
    details: Sequence[ReportTable | str] = ()
    pictures: Callable[[], Mapping[str, bytes | str]] = dict

    def json(self) -> str:
        """The data as text; what is not a number is null."""
        return json.dumps(plain_values(self.data), indent=1, allow_nan=False) + "\n"

    def write(self, path: Path) -> None:
        """Write all files into a folder, which is made, or into a file the one of its ending: whole or not at all."""
        contents = {f"{self.data['study']}.json": self.json(), **self.pictures()}
        raw = {name: c if isinstance(c, bytes) else c.encode() for name, c in contents.items()}
        for name, content in raw.items():
            if path.suffix and path.suffix == Path(name).suffix:
                with whole_file(path) as file:
                    file.write_bytes(content)
                return
        with whole_files(path) as folder:
            for name, content in raw.items():
                (folder / name).write_bytes(content)


def as_markdown(title: str, head: str, parts: Sequence[ReportTable | str]) -> str:
    """Tables and sentences as a page.

    Args:
        title: of the page. head: sentences below it. parts: in the order of reading.
    """
    lines = [f"# {title}", "", head, ""]
    for part in parts:
        if isinstance(part, str):
            lines += [part, ""]
            continue
        lines += [f"## {part.title[0].upper()}{part.title[1:]}", "", "| " + " | ".join(part.columns) + " |"]
        lines += ["|" + "---|" * len(part.columns)]
        lines += ["| " + " | ".join(str(v) for v in row) + " |" for row in part.rows]
        lines.append("")
    return "\n".join(lines)
