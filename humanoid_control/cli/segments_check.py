"""`humanoid segments --check`: segments, volumes and pairs of a robot, and the smallest gaps of its named postures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from humanoid_control.cli.output import console, print_json, table, warn
from humanoid_control.collision.ssv_file import SsvFile
from humanoid_control.collision.ssv_segments import Ssv, expand
from humanoid_control.robots import Robot
from humanoid_control.robots.ssv_model import model_of
from humanoid_control.viewer.segments.distances import Measure


def check(robot: Robot, file: SsvFile, path: Path | None, as_json: bool) -> int:
    """Print them; 1 where watched volumes overlap in the neutral posture, else 0.

    Args:
        robot: whose volumes.
        file: its volumes.
        path: where they are from; None: the robot's collision shapes.
        as_json: as JSON.
    """
    model, measure = model_of(robot, file), Measure(robot)
    drawn = {s.name for s in file.segments}
    segments: list[dict[str, Any]] = [
        {
            "segment": s.name,
            "link": s.link,
            "volumes": len(s.ssvs),
            "types": " ".join(f"{n} {kind}" for kind in ("point", "line", "triangle") if (n := _count(s.ssvs, kind))),
            "partners": sum(s.name in (p.first, p.second) for p in model.pairs),
            "drawn": s.name in drawn,
        }
        for s in expand(file.segments)
    ]
    postures: list[dict[str, Any]] = []
    for name in robot.postures:
        smallest = measure(model, robot.joints(robot.q(name))).smallest
        if smallest is not None:
            pair = f"{smallest.volume_1} - {smallest.volume_2}"
            postures.append({"posture": name, "smallest_gap_mm": round(1000 * smallest.distance, 2), "between": pair})
    overlap = any(row["posture"] == "neutral" and row["smallest_gap_mm"] < 0 for row in postures)
    if as_json:
        print_json(
            {
                "robot": robot.name,
                "file": str(path) if path else None,
                "segments": segments,
                "pairs": len(model.pairs),
                "pairs_of_volumes": len(model.volume_pairs),
                "postures": postures,
            }
        )
        return int(overlap)
    columns = ["segment", "link", "volumes", "types", "partners"]
    for row in segments:
        row["link"] = row["link"] if row["drawn"] else f"{row['link']} (mirrored)"
    rows = [[row[c] for c in columns] for row in segments]
    table(f"{robot.title}: volumes of {path or 'its collision shapes'}", columns, rows)
    console.print(f"{len(model.pairs)} pairs of segments watched, {len(model.volume_pairs)} of volumes")
    columns = ["posture", "smallest gap mm", "between"]
    table("smallest gaps", columns, [[p["posture"], p["smallest_gap_mm"], p["between"]] for p in postures])
    if overlap:
        warn("volumes that are watched overlap in the neutral posture: draw them smaller, or do not watch that pair")
    return int(overlap)


def _count(ssvs: tuple[Ssv, ...], kind: str) -> int:
    return sum(v.type == kind for v in ssvs)
