"""Score files, written atomically."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from humanoid_control.errors import ConfigError
from humanoid_control.evaluation.report.tables import to_json
from humanoid_control.evaluation.score import RobotScore, RunScore
from humanoid_control.files import check_file, check_folder, whole_file, whole_files
from humanoid_control.terminal import plain_values

FOLDER = {"json": "score.json", "page": "score.html", "picture": "errors.png"}


def check_outputs(html: Path | None, folder: Path | None) -> None:
    """Check that the files can be written, before any computation.

    Raises:
        ConfigError: if a folder is missing, is a file, or is not writable.
    """
    if html is not None and html.suffix.lower() not in (".html", ".htm"):
        raise ConfigError(f"the page must be a .html file, got {html}")
    check_file(html, "page")
    check_folder(folder)


def write_scores(scores: Sequence[RobotScore], html: Path | None, folder: Path | None) -> list[str]:
    """Write the requested files atomically; return their names.

    Args:
        html: file for the page.
        folder: for score.json, score.html, errors.png, and a CSV of frames per robot and run.
    """
    if html is None and folder is None:
        return []
    from humanoid_control.evaluation.report.page import score_page
    from humanoid_control.evaluation.report.plots import error_picture

    others: dict[str, bytes | str] = {}
    if folder is not None:
        others[FOLDER["picture"]] = error_picture(scores)
        for s in scores:
            for r in s.runs:
                name = f"{s.robot}_{re.sub('[^a-z0-9]+', '_', r.label.lower())}.csv"
                others[name] = _frames_csv(s.rate, r)
    return write_files(html, folder, score_page(scores), to_json(scores), others)


def write_files(
    html: Path | None, folder: Path | None, page: str, data: Mapping[str, Any], others: Mapping[str, bytes | str]
) -> list[str]:
    """Write a page to a file, and page, data and other files to a folder, atomically; return their names."""
    written = []
    if folder is not None:
        with whole_files(folder) as part:
            (part / FOLDER["json"]).write_text(json.dumps(plain_values(data), allow_nan=False, indent=1))
            (part / FOLDER["page"]).write_text(page, encoding="utf-8")
            for name, content in others.items():
                (part / name).write_bytes(content if isinstance(content, bytes) else content.encode())
            files = len(list(part.iterdir()))
        named = [FOLDER["json"], FOLDER["page"], *(name for name in others if not name.endswith(".csv"))]
        written.append(f"{folder} ({files} files: {', '.join(named)}, and frames as CSV)")
    if html is not None:
        with whole_file(html) as whole:
            whole.write_text(page, encoding="utf-8")
        written.append(str(html))
    return written


def _frames_csv(rate: float, r: RunScore) -> str:
    f, q = r.frames, r.frames.quality
    columns = {f"error_{name}_m": e for name, e in f.errors.items()} | {
        "penetration_m": f.penetration,
        "at_position_limit": q.at_position_limit,
        "at_speed_limit": q.at_speed_limit,
        "speed_rad_s": q.speed,
        "acceleration_rad_s2": q.acceleration,
        "jerk_rad_s3": q.jerk,
        "l_shoulder_singularity": f.singularity[:, 0],
        "r_shoulder_singularity": f.singularity[:, 1],
    }
    out = io.StringIO(newline="")
    rows = csv.writer(out)
    rows.writerow(["time_s", *columns])
    for k, values in enumerate(zip(*columns.values(), strict=True)):
        rows.writerow([f"{k / rate:.6f}", *(f"{v:.6g}" for v in values)])
    return out.getvalue()
