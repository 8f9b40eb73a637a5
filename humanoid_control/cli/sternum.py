"""`humanoid sternum`: how well the sternum is estimated from hips and shoulders, on a clip that shows it."""

from __future__ import annotations

import argparse
from typing import Any

from humanoid_control.cli.parser import given
from humanoid_control.terminal import console, machine, print_json, table

EXAMPLES = """examples:
  humanoid sternum dance1.trc                      constants fitted to the clip, to its other half, and the package's
  humanoid sternum dance1.trc --fit walk1.trc      and those of another person
  humanoid sternum dance1.trc --json

All errors in cm, mean and standard deviation. spine, clavicles: estimated less true length; side, front, up: distance
along the axes of the pelvis; distance: in space. "published": Dube 2012, section 5.3.3, on a recording that is not
available; the clip you name takes its place. sample: "in" for constants fitted to the frames they are judged on, "out"
for constants fitted to others, "part" for both ("the package" was fitted to dance1 and walk1).
"""

_HEADS = {
    "spine": "spine",
    "r_clavicle": "r clavicle",
    "l_clavicle": "l clavicle",
    "side": "side",
    "front": "front",
    "up": "up",
    "distance": "distance",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("clip", type=given, help="a clip with a marker on the sternum, or 'dance' (built in)")
    parser.add_argument(
        "--fit", type=given, metavar="CLIP", help="another clip with a sternum marker, to fit the constants to"
    )
    parser.add_argument("--marker-set", type=given, help="marker set of the clips, or the path of an own one")
    parser.add_argument("--json", action="store_true", help="print the table as JSON")


def run(args: argparse.Namespace) -> int:
    from humanoid_control.mocap.body_points import find_body_points
    from humanoid_control.mocap.load import load_clip
    from humanoid_control.studies.dube2012.sternum_report import GOAL, sternum_report

    marker_set = args.marker_set or None
    body = find_body_points(load_clip(args.clip), marker_set)
    other = find_body_points(load_clip(args.fit), marker_set) if args.fit else None
    rows = [_in_cm(row) for row in sternum_report(body, other)]
    if args.json:
        print_json({"study": "sternum", "machine": machine(), "clip": args.clip, "unit": "cm", "rows": rows})
        return 0
    heads = ["method", "constants from", "sample", *_HEADS.values(), "max"]
    cells = [
        [
            row["method"],
            row["fitted_on"],
            row["sample"] or "?",
            *(f"{row[k]:.2f}±{row[f'{k}_std']:.2f}" for k in _HEADS),
            "-" if row["worst"] != row["worst"] else f"{row['worst']:.2f}",
        ]
        for row in rows
    ]
    table(f"error of the estimated sternum [cm], {body.name}, {body.n_frames} frames", heads, cells)
    goal_mean, goal_std = (100 * v for v in GOAL)
    for row in rows[1:]:
        met = row["distance"] <= goal_mean and row["distance_std"] <= goal_std
        verdict = "at or below" if met else "above"
        console.print(
            f"{row['method']}, {row['fitted_on']}: {row['distance']:.2f} ± {row['distance_std']:.2f} cm, "
            f"{verdict} the published {goal_mean:.1f} ± {goal_std:.1f} cm"
        )
    return 0


def _in_cm(row: Any) -> dict[str, Any]:
    """A row of the report as plain names and centimetres."""
    means = {k: round(100 * row.mean[k], 3) for k in _HEADS}
    stds = {f"{k}_std": round(100 * row.std[k], 3) for k in _HEADS}
    return {
        "method": row.method,
        "fitted_on": row.fitted_on,
        "sample": row.sample,
        "frames": row.frames,
        **means,
        **stds,
        "worst": round(100 * row.worst, 3),
    }
