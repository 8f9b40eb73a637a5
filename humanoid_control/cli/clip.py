"""`humanoid clip`: contents of a motion file, near marker sets, draft of a matching set."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from humanoid_control.cli.parser import CLIP_HELP, add_clip_options, clip_options, file_path, given
from humanoid_control.errors import ClipError, ConfigError, first_few
from humanoid_control.files import check_file
from humanoid_control.terminal import console, print_json, table, warn

if TYPE_CHECKING:
    from humanoid_control.mocap.clip import MarkerClip
    from humanoid_control.mocap.marker_set_draft import Draft
    from humanoid_control.mocap.marker_sets import SetMatch
    from humanoid_control.mocap.stick_figure import StickFigure

EXAMPLES = """examples:
  humanoid clip waltz.c3d                      labels, rate, units, a stick figure, the nearest marker sets
  humanoid clip waltz.c3d -o waltz.png         a picture of the stick figure with labels
  humanoid clip waltz.c3d --draft my_set.yaml  a draft marker set from labels and geometry, to be checked
  humanoid clip giant.bvh --unit cm --scale 0.55
  humanoid clip waltz.c3d --json

Use the draft: humanoid retarget waltz.c3d --marker-set my_set.yaml (also score, demo, picture, study).
"""
SETS = 4  # shown


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("clip", type=given, help=CLIP_HELP)
    add_clip_options(parser)
    parser.add_argument("--draft", type=file_path, metavar="SET.yaml", help="marker set file to draft")
    parser.add_argument("--frame", type=int, help="frame to draw (default: the first that shows all points it can)")
    parser.add_argument("-o", "--output", type=file_path, metavar="PNG", help="picture of the stick figure to write")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    from humanoid_control.mocap.load import load_clip
    from humanoid_control.mocap.marker_sets import match_sets
    from humanoid_control.mocap.stick_figure import build_stick_figure, text_figure

    if args.output is not None and args.output.suffix.lower() != ".png":
        raise ConfigError(f"-o must be a .png file, got {args.output}")
    check_file(args.output)
    marker_set, reading = clip_options(args)
    clip = load_clip(args.clip, **reading)
    drafted = _draft(clip, args.draft) if args.draft is not None else None
    figure = build_stick_figure(clip, args.frame, marker_set or (args.draft if drafted and not drafted[1] else None))
    matches = match_sets(clip)
    if args.output is not None:
        from humanoid_control.evaluation.report.plots import write_stick_figure

        write_stick_figure(args.output, figure, f"{clip.name}, frame {figure.frame}")
    if args.json:
        draft_data = None if drafted is None else _draft_data(args.draft, *drafted)
        print_json(_clip_data(clip, figure, matches) | {"draft": draft_data})
        return 0
    console.print(
        f"{clip.name}: {len(clip.labels)} {clip.noun}s, {clip.n_frames} frames at {clip.rate:g} Hz, "
        f"{clip.duration:.2f} s; {np.ptp(figure.positions[:, 2]):.2f} m high in frame {figure.frame}",
        highlight=False,
    )
    for text in clip.warnings:
        warn(text)
    hidden = [f"{label} ({100 * share:.0f} %)" for label, share in _seen(clip).items() if share < 1]
    console.print(f"labels: {', '.join(clip.labels)}", highlight=False, markup=False)
    if hidden:
        console.print(f"hidden in some frames: {', '.join(hidden)}", highlight=False, markup=False)
    print(f"\n{text_figure(figure)}\n")
    if not figure.placed:
        console.print("hips and shoulders are unknown: the upward and forward directions are guesses")
    rows = [
        [
            m.name,
            "fits" if m.fits else f"misses {len(m.missing)}",
            len(m.points),
            first_few(m.missing, 5),
            len(m.unknown),
        ]
        for m in matches[:SETS]
    ]
    table("nearest marker sets", ["set", "", "points", "missing labels", "unknown labels"], rows)
    if drafted is not None:
        _print_draft(args, *drafted)
    elif not matches[0].fits and not marker_set:
        draft = f"humanoid clip {args.clip} --draft my_set.yaml drafts one"
        if by_words := _read_by_words(clip):
            warn(f"{by_words}; {draft}")
        else:
            console.print(f"no matching set: {draft}", highlight=False)
    if args.output is not None:
        console.print(f"written: {args.output}")
    return 0


def _read_by_words(clip: MarkerClip) -> str:
    """Return the interpretation of labels outside all sets, or an empty string."""
    from humanoid_control.mocap import locate_body

    try:
        return locate_body(clip).warnings[-1]
    except ClipError:
        return ""


def _seen(clip: MarkerClip) -> dict[str, float]:
    return dict(zip(clip.labels, (1 - np.isnan(clip.positions[..., 0]).mean(axis=0)).tolist(), strict=True))


def _clip_data(clip: MarkerClip, figure: StickFigure, matches: Sequence[SetMatch]) -> dict[str, Any]:
    return {
        "clip": clip.name,
        "points": f"{clip.noun}s",
        "rate_hz": clip.rate,
        "frames": clip.n_frames,
        "duration_s": clip.duration,
        "height_m": float(np.ptp(figure.positions[:, 2])),
        "labels": {label: round(share, 4) for label, share in _seen(clip).items()},
        "warnings": clip.warnings,
        "marker_sets": [
            {"name": m.name, "fits": m.fits, "points": m.points, "missing": m.missing, "unknown": m.unknown}
            for m in matches
        ],
    }


def _draft(clip: MarkerClip, path: Path) -> tuple[Draft, str]:
    from humanoid_control.mocap.marker_set_draft import write_draft

    if not path.suffix:
        raise ClipError(f"{path}: a marker set is a .yaml file")
    return write_draft(clip, path)


def _draft_data(path: Path, draft: Draft, problem: str) -> dict[str, Any]:
    entries = {**draft.landmarks, **draft.points}
    return {
        "file": str(path),
        "points": [
            {"point": name, "labels": e.labels, "rule": e.rule, "found": e.how, "guess": e.weak}
            for name, e in entries.items()
        ],
        "missing": draft.missing,
        "problem": problem,
    }


def _print_draft(args: argparse.Namespace, draft: Draft, problem: str) -> None:
    entries = {**draft.landmarks, **draft.points}
    rows = [
        [name, e.rule or " or ".join(" + ".join(labels) for labels in e.labels), e.how, "guess" if e.weak else ""]
        for name, e in entries.items()
    ]
    rows += [[name, "", "not found", "missing"] for name in draft.missing]
    table("draft", ["point", "labels", "found", "guess"], rows)
    if any(e.weak for e in entries.values()):
        warn("points marked 'guess' may be wrong: correct them")
    console.print(f"written: {args.draft}")
    if problem:
        warn(f"not usable yet: {problem}")
        return
    options = f" --unit {args.unit}" if args.unit else ""
    options += f" --up {args.up}" if args.up else ""
    options += f" --scale {args.scale:g}" if args.scale else ""
    options += f" --rate {args.rate:g}" if args.rate else ""
    console.print(
        f"check it, then try: humanoid retarget {args.clip} --marker-set {args.draft}{options}", highlight=False
    )
