"""C3D: the binary marker file of Vicon, Qualisys and most laboratories."""

from __future__ import annotations

from pathlib import PurePath

import numpy as np

from humanoid_control.capture.c3d_format import C3dContent, decode_c3d
from humanoid_control.capture.clip import MarkerClip, distinct_labels
from humanoid_control.capture.units import scale_of_markers
from humanoid_control.errors import ClipError

# Biomechanics software stores its results as "points" and lists them in these parameters of the POINT group ...
_OUTPUT_GROUPS = ("ANGLES", "FORCES", "MOMENTS", "POWERS", "SCALARS", "MODELED_MARKERS", "REACTIONS")
# ... or, when it forgets to, at least names them like this.
_OUTPUT_ENDINGS = ("angle", "angles", "force", "moment", "power", "grf")


def parse_c3d(data: bytes, source: str) -> MarkerClip:
    """Read the markers of a C3D file; angles, forces, moments, powers and scalars stored as points are left out.

    A marker is missing where its residual is negative, or where it lies exactly in the origin.

    Args:
        data: the bytes of the file.
        source: its path, for messages and the clip's name.

    Raises:
        ClipError: not a C3D file, damaged, no marker in it, or not a person's size in any unit.
    """
    content = decode_c3d(data, source)
    labels, warnings = distinct_labels(_labels(content))
    outputs = {label for group in _OUTPUT_GROUPS for label in content.texts(f"POINT:{group}")}
    keep = [i for i, label in enumerate(labels) if label not in outputs and not label.lower().endswith(_OUTPUT_ENDINGS)]
    if not keep:
        raise ClipError(f"{source}: all {len(labels)} points are model outputs: export the marker trajectories")
    positions = content.points[:, keep]
    positions[content.missing[:, keep] | (positions == 0).all(axis=2)] = np.nan
    units = content.texts("POINT:UNITS")
    scale, unit_warnings = scale_of_markers(positions, units[0] if units else "", source)
    return MarkerClip(
        name=PurePath(source).stem,
        labels=tuple(labels[i] for i in keep),
        rate=content.rate,
        positions=positions * scale,
        source=source,
        warnings=content.warnings + warnings + unit_warnings,
    )


def _labels(content: C3dContent) -> list[str]:
    """One label a point: LABELS, LABELS2, ... hold up to 255 each; points beyond them have none."""
    n_points = content.points.shape[1]
    labels = list(content.texts("POINT:LABELS"))
    more = 2
    while len(labels) < n_points and content.texts(f"POINT:LABELS{more}"):
        labels += content.texts(f"POINT:LABELS{more}")
        more += 1
    return (labels + [""] * n_points)[:n_points]
