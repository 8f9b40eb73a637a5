"""Bounding volumes on nine shapes, measured here, next to the published Table 4.2 (Dube 2012)."""

from __future__ import annotations

from typing import Any

from evidence.studies.dube2012.bounding_volumes import (
    DIFFERENCE_DEPENDS_ON_SIZES,
    ELLIPTICAL,
    PUBLISHED,
    SWEPT,
    averages,
    compare,
    elliptical_is_the_better_capsule,
    share_of_random_sizes,
)

TITLE = "bounding volumes on nine shapes, averages (published: Dube 2012, Table 4.2)"
COLUMNS = [
    "volume",
    "faces",
    "published_faces",
    "difference_percent",
    "published_difference_percent",
    "depends_on_sizes",
]
RANDOM_SETS = 50
CAPS = (0.001, 0.05)  # [m]


def measure(quiet: bool = True) -> list[dict[str, Any]]:
    """One row a bounding volume; `shapes` holds the numbers of each shape."""
    fits = compare()
    mean = averages(fits)
    rows = []
    for volume, by_shape in fits.items():
        count, difference = mean[volume]
        published_faces, published_difference = PUBLISHED[volume]
        rows.append(
            {
                "volume": volume,
                "faces": round(count, 2),
                "published_faces": published_faces,
                "difference_percent": round(difference, 1),
                "published_difference_percent": published_difference,
                "depends_on_sizes": "difference" if DIFFERENCE_DEPENDS_ON_SIZES[volume] else "no",
                "shapes": {
                    name: {"faces": f.faces, "difference_percent": round(f.difference, 1)}
                    for name, f in by_shape.items()
                },
            }
        )
    return rows


def notes(rows: list[dict[str, Any]]) -> list[str]:
    """Lines on what the table can decide, and the verdict about the elliptical capsule."""
    mean = {r["volume"]: (r["faces"], r["difference_percent"]) for r in rows}
    by_shape = {r["volume"]: r["shapes"] for r in rows}
    few, tighter, tighter_than_swept = elliptical_is_the_better_capsule(mean)
    shares = share_of_random_sizes(RANDOM_SETS)
    thin, thick = (averages(compare(cap=c, columns=10))[ELLIPTICAL][1] for c in CAPS)
    swept_wins = [
        s for s, f in by_shape[SWEPT].items() if f["difference_percent"] < by_shape[ELLIPTICAL][s]["difference_percent"]
    ]
    return [
        "Faces and the difference of the hull do not depend on the sizes of the shapes. The other three differences "
        "do. Dube 2012 does not print the sizes; here they are those of an adult (Table 2.1), with caps 1 cm high (c "
        "= 1).",
        f"Caps of {1000 * CAPS[0]:g} mm or {1000 * CAPS[1]:g} mm: {ELLIPTICAL} {thin:.1f} or {thick:.1f} %.",
        f"The {ELLIPTICAL} needs about as few faces as the circular capsule: {_verdict(few, shares[0])}.",
        f"It is closer in volume than the circular capsule: {_verdict(tighter, shares[1])}.",
        f"It is closer in volume than the swept spheres: {_verdict(tighter_than_swept, shares[2])}.",
        f"Swept spheres are closer on: {', '.join(swept_wins)} (Dube: the frustums and the rectangular cylinder).",
    ]


def _verdict(holds: bool, share: float) -> str:
    sets = f"in {100 * share:.0f} % of {RANDOM_SETS} random sets of sizes"
    return f"{'holds' if holds else 'does not hold'} ({sets})"
