"""Small plots written as SVG: where curves lie, where they are broken, round numbers at the axes."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from humanoid_control.evaluation.report.small_multiples import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    Curve,
    PlotPanel,
    small_multiples,
    ticks,
)


def test_ticks_are_round_inside_and_few():
    for low, high in ((0.0, 1.0), (-12.3, 88.0), (0.00012, 0.00013), (1e5, 3.7e5), (-1.0, -0.2)):
        at = ticks(low, high)
        assert 2 <= len(at) <= 5 and (at >= low - 1e-9 * abs(low)).all() and (at <= high + 1e-9 * abs(high)).all()
        step = at[1] - at[0]
        assert step / 10.0 ** np.floor(np.log10(step) + 1e-9) == pytest.approx(
            min((1.0, 2.0, 5.0), key=lambda s: abs(step / 10.0 ** np.floor(np.log10(step) + 1e-9) - s))
        )


def test_a_curve_goes_from_corner_to_corner_and_breaks_where_numbers_are_missing():
    t = np.linspace(2.0, 3.0, 11)
    y = np.linspace(-5.0, 5.0, 11)
    y[4] = np.nan
    text = small_multiples(
        t, [PlotPanel("a & b", [Curve(y, "#123456")]), PlotPanel("none")], 2, "a title", [("right", "#123456")]
    )
    svg = ET.fromstring(text[text.index("<svg") :])
    paths = [e for e in svg.iter() if e.tag.endswith("path") and e.get("stroke") == "#123456"]
    runs = [
        np.array(re.findall(r"-?[\d.]+", part), dtype=float).reshape(-1, 2) for part in paths[0].get("d").split("M")[1:]
    ]
    assert [len(r) for r in runs] == [4, 6]
    width, height = 1150.0 / 2, 150.0
    assert runs[0][0, 0] == pytest.approx(LEFT) and runs[1][-1, 0] == pytest.approx(width - RIGHT, abs=0.1)
    # 5 % of margin above and below 11 of range.
    inner = height - TOP - BOTTOM
    assert runs[0][0, 1] == pytest.approx(TOP + inner * (1 - 0.5 / 11), abs=0.1)
    assert runs[1][-1, 1] == pytest.approx(TOP + inner * 0.5 / 11, abs=0.1)
    assert "a &amp; b" in text and 'aria-label="a title"' in text and text.count("<text") > 6


def test_a_band_lies_about_its_curve_and_long_curves_are_thinned():
    t = np.linspace(0, 1, 5000)
    text = small_multiples(t, [PlotPanel("p", [Curve(np.sin(t), "#abcdef", np.full(5000, 0.1))])], 1, "t")
    svg = ET.fromstring(text[text.index("<svg") :])
    area = next(e for e in svg.iter() if e.get("fill") == "#abcdef")
    points = np.array(re.findall(r"-?[\d.]+", area.get("d")), dtype=float).reshape(-1, 2)
    assert len(points) == 1000 and points[0, 1] > points[-1, 1], "the lower edge first, then the upper one back"
