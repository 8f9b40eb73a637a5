"""Distances as colours: from red at contact to blue at the largest gap, and the bar that explains them."""

from __future__ import annotations

import html

import numpy as np

Color = tuple[int, int, int]
# The middle is passed early: what is near differs most.
STOPS: tuple[tuple[float, Color], ...] = (
    (0.0, (214, 39, 40)),
    (0.12, (255, 140, 0)),
    (0.3, (240, 210, 50)),
    (0.6, (70, 180, 95)),
    (1.0, (45, 105, 200)),
)
INSIDE: Color = (150, 0, 90)  # overlapping
UNKNOWN: Color = (165, 170, 178)  # no partner
# Segments without regard to distance.
PALETTE: tuple[Color, ...] = (
    (31, 119, 180), (255, 127, 14), (44, 160, 44), (148, 103, 189), (140, 86, 75), (227, 119, 194), (188, 189, 34),
    (23, 190, 207), (110, 120, 130), (80, 90, 200),
)  # fmt: skip


def color_of(distance: float, largest: float) -> Color:
    """Colour of a distance [m] on a bar from 0 to the largest gap [m]; overlapping and unknown have their own."""
    if not np.isfinite(distance):
        return UNKNOWN
    if distance < 0:
        return INSIDE
    share = min(distance / largest, 1.0) if largest > 0 else 0.0
    at = [s for s, _ in STOPS]
    r, g, b = (round(float(np.interp(share, at, [c[k] for _, c in STOPS]))) for k in range(3))
    return r, g, b


def bar_html(largest: float, smallest: float, label: str = "", font: int = 12) -> str:
    """The bar with a scale in mm and a red mark at the smallest gap.

    Args:
        largest, smallest: gaps [m]; the smallest may be negative.
        label: of the smallest gap, such as the names of both segments.
        font: size of the letters [px].
    """
    gradient = ", ".join(f"rgb{c} {100 * s:.0f}%" for s, c in STOPS)
    share = 100 * min(max(smallest / largest, 0.0), 1.0) if largest > 0 else 0.0
    ticks = "".join(
        f"<span style='position:absolute;left:{100 * s:.0f}%;transform:translateX(-{100 * s:.0f}%)'>"
        f"{1000 * largest * s:.0f}</span>"
        for s in (0.0, 0.25, 0.5, 0.75, 1.0)
    )
    of = f": {html.escape(label)}" if label else ""
    said = f"smallest gap <b>{1000 * smallest:.0f} mm</b>{of}"
    if smallest < 0:
        said = f"<span style='color:rgb{INSIDE}'>overlap of <b>{-1000 * smallest:.0f} mm</b>{of}</span>"
    return (
        f"<div style='margin:2px 14px 6px;font-size:{font}px;line-height:1.35'>{said}"
        f"<div style='position:relative;height:{font}px;margin-top:{font // 2 + 2}px;border-radius:3px;"
        f"background:linear-gradient(to right, {gradient})'>"
        f"<div style='position:absolute;left:{share:.1f}%;top:-{font // 3}px;margin-left:-2px;width:4px;"
        f"height:{font + 2 * (font // 3)}px;background:#d00000;border:1px solid white'></div></div>"
        f"<div style='position:relative;height:{int(1.4 * font)}px'>{ticks}</div>"
        f"<div style='text-align:center;margin-top:-2px'>distance to the nearest partner [mm]</div></div>"
    )
