"""Records of finished jobs, and the manifest: one row per clip and robot.

A record is written after its output, so that interrupted runs resume.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from humanoid_control.clip_library.places import PRIVATE, Place
from humanoid_control.clip_library.work import BAD_INPUT, Job
from humanoid_control.terminal import plain_values

Record = dict[str, Any]
RECORDS = f"{PRIVATE}/records"
CSV, PARQUET = "manifest.csv", "manifest.parquet"
FIRST, LAST = ("clip", "robot", "grade", "verdict"), ("warnings", "seconds", "output", "sha256", "failed", "reason")
SEPARATOR = " | "  # between warnings
_NAME = re.compile(r"^[0-9a-f]{32}\.json$")


class Records:
    """Records at a place.

    Attributes:
        known: job key -> record.
    """

    def __init__(self, place: Place) -> None:
        """Read the records, except damaged ones."""
        self._place = place
        self.known: dict[str, Record] = {}
        self._outputs: dict[str, int] = {}
        self._current: dict[tuple[str, str], str] = {}
        sizes = place.sizes()
        for name in sorted(sizes):
            folder, _, file = name.rpartition("/")
            if folder == RECORDS and _NAME.match(file):
                if (record := self._read(file.removesuffix(".json"))) is not None:
                    record.pop("figure", None)
                    self._remember(record)
            elif not name.startswith(f"{PRIVATE}/"):
                self._outputs[name] = sizes[name]

    def _read(self, key: str) -> Record | None:
        content = self._place.get(f"{RECORDS}/{key}.json")
        try:
            record = json.loads(content or b"")
        except ValueError:
            return None
        needed = {"clip": str, "robot": str, "key": str, "failed": str, "output": str, "reason": str}
        if not isinstance(record, dict) or any(not isinstance(record.get(k), t) for k, t in needed.items()):
            return None
        return record if record["key"] == key else None

    def _remember(self, record: Record) -> None:
        self._current[record["clip"], record["robot"]] = record["key"]
        self.known[record["key"]] = record

    def finished(self, job: Job) -> bool:
        """Test whether the output is complete, or the input bad."""
        record = self.known.get(job.key)
        if record is None:
            return False
        done = self._outputs.get(record["output"]) == record.get("bytes")
        if record["failed"]:
            done = record["failed"] == BAD_INPUT
        if done:  # the current one of several, which a killed run may have left
            self._current[record["clip"], record["robot"]] = record["key"]
        return bool(done)

    def remove(self, clip: str, robot: str, key: str = "") -> None:
        """Remove a record unless its key is `key`."""
        before = self._current.get((clip, robot), key)
        if before != key:
            del self.known[before], self._current[clip, robot]
            self._place.remove(f"{RECORDS}/{before}.json")

    def add(self, record: Record, content: bytes | None = None) -> None:
        """Store output and record.

        Earlier ones are removed first, so that no record refers to a wrong output.

        Raises:
            ConfigError: if it cannot be written.
        """
        before = self.known.get(self._current.get((record["clip"], record["robot"]), ""))
        self.remove(record["clip"], record["robot"], record["key"])
        if before and not before["failed"] and (record["failed"] or before["output"] != record["output"]):
            self._place.remove(before["output"])
            self._outputs.pop(before["output"], None)
        if content is not None:
            self._place.put(record["output"], content)
        text = json.dumps(plain_values(record), allow_nan=False)
        self._place.put(f"{RECORDS}/{record['key']}.json", text.encode())
        if not record["failed"]:
            self._outputs[record["output"]] = record["bytes"]
        self._remember({k: v for k, v in record.items() if k != "figure"})

    def rows(self) -> list[Record]:
        """Return the current records, sorted."""
        return [self.known[key] for _, key in sorted(self._current.items())]

    def figure(self, record: Record) -> Record | None:
        whole = self._read(record["key"])
        return whole.get("figure") if whole else None


# -------- The manifest


def manifest_table(records: Iterable[Record]) -> tuple[list[str], list[list[Any]]]:
    """Return columns and rows; missing: None."""
    records = list(records)
    numbers = list(dict.fromkeys(k for r in records for k in r.get("numbers", {})))
    rows = []
    for r in records:
        values = {**r, "warnings": SEPARATOR.join(r.get("warnings", [])), "output": "" if r["failed"] else r["output"]}
        own = r.get("numbers", {})
        rows.append(
            [values.get(c, "") for c in FIRST] + [own.get(n) for n in numbers] + [values.get(c, "") for c in LAST]
        )
    return [*FIRST, *numbers, *LAST], rows


def manifest_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(columns)
    lines.writerows(["" if v is None else v for v in row] for row in rows)
    return text.getvalue().encode()


def manifest_parquet(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> bytes | None:
    """Return the manifest as Parquet, with numbers as doubles, or None without pyarrow."""
    if importlib.util.find_spec("pyarrow") is None:
        return None
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays = []
    for k, name in enumerate(columns):
        values = [row[k] for row in rows]
        if name in (*FIRST, *LAST) and name != "seconds":
            arrays.append(pa.array([str(v) for v in values], pa.string()))
        else:
            arrays.append(pa.array([None if v in (None, "") else float(v) for v in values], pa.float64()))
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(arrays, names=list(columns)), sink)
    return bytes(sink.getvalue().to_pybytes())


def write_manifest(place: Place, records: Iterable[Record]) -> list[str]:
    """Write the manifest; return file names.

    Raises:
        ConfigError: if it cannot be written.
    """
    columns, rows = manifest_table(records)
    place.put(CSV, manifest_csv(columns, rows))
    parquet = manifest_parquet(columns, rows)
    if parquet is None:
        return [CSV]
    place.put(PARQUET, parquet)
    return [CSV, PARQUET]
