"""What the plots and the summary of a tendon study show is what was found."""

import matplotlib.image
import numpy as np
import pytest

from evidence.studies.kawaharazuka2018 import report
from evidence.studies.kawaharazuka2018.report import summary_line
from evidence.studies.kawaharazuka2018.result import ErrorGoal, ExperimentResult, ResultRow, Trace, spread
from humanoid_control.evaluation.report.plots import png


@pytest.fixture
def drawn(monkeypatch):
    """The figure that a plot makes, and what it looks like."""

    def figure(module, plot, *args):
        kept = []
        monkeypatch.setattr(module, "png", lambda f, legend=(): kept.append((f, dict(legend))) or png(f, legend))
        content = plot(*args)
        assert content[:4] == b"\x89PNG"
        return (*kept[0], content)

    return figure


def walk(joints=6):
    rng = np.random.default_rng(0)
    actual = np.cumsum(rng.normal(0, 0.01, (200, joints)), axis=0)
    near, gone = actual + rng.normal(0, 0.002, actual.shape), actual + 50.0
    strip = {name: spread([line - actual, 2 * (line - actual)]) for name, line in (("near", near), ("gone", gone))}
    return Trace("a walk", tuple(f"j{k}" for k in range(joints)), actual, {"near": near, "gone": gone}, spread=strip)


@pytest.mark.nightly
@pytest.mark.parametrize("joints", [1, 5])
def test_every_joint_has_its_lines_in_degrees_and_a_wide_picture(drawn, joints, tmp_path):
    trace = walk(joints)
    figure, legend, content = drawn(report, report.tendons_plot, trace)
    panels = {ax.get_title(): ax for ax in figure.axes}
    assert list(legend) == ["actual", "near", "gone"] and len(figure.axes) == joints + 1
    for k, joint in enumerate(trace.joints):
        lines = {line.get_color(): line.get_ydata() for line in panels[joint].lines}
        assert np.allclose(lines[legend["actual"]], np.degrees(trace.actual[:, k]))
        assert np.allclose(lines[legend["near"]], np.degrees(trace.lines["near"][:, k]))
        low, high = panels[joint].get_ylim()
        assert low < np.degrees(trace.actual[:, k]).min() and high < 60.0, "what runs away leaves the panel"
    (tmp_path / "p.png").write_bytes(content)
    assert matplotlib.image.imread(tmp_path / "p.png").shape[1] == 1150


def test_the_strip_shows_median_and_worst(drawn):
    trace = walk()
    figure, legend, _ = drawn(report, report.tendons_plot, trace)
    strip = figure.axes[-1]
    values = [line.get_ydata() for line in strip.lines if line.get_color() == legend["near"]]
    assert strip.get_yscale() == "log"
    worst, median = np.degrees(trace.spread["near"])[::-1]
    assert np.allclose(values, np.maximum([worst, median], report.LEAST))


@pytest.mark.nightly
def test_table_one_is_drawn_beside_the_source_on_a_logarithmic_scale(drawn):
    line = {"group": "neck", "data": 100, "data s": 1.5, "source data s": 8579.0}
    finding = ExperimentResult("E1", "", "", table=(line | {"regression s": 0.25, "source regression s": 5514.0},))
    assert list(report.pictures(finding)) == ["E1.png"]
    figure, _, _ = drawn(report, report.seconds_plot, finding)
    widths = [[p.get_width() for p in ax.patches] for ax in figure.axes]
    assert widths == [[1.5, 8579.0], [0.25, 5514.0]] and {ax.get_xscale() for ax in figure.axes} == {"log"}


def test_a_line_of_the_summary_names_the_worst_joint_and_whether_the_goal_is_reached():
    errors = np.radians([[1.0, 2.0], [3.0, 1.0], [9.0, 4.0]])
    row = ResultRow("relative", ("elbow", "wrist"), errors, goal=ErrorGoal(median=5.0, worst=9.5))
    assert summary_line(row) == [
        "relative", "2.50", "3.00 elbow", "9.00", "deg", "median < 5, worst < 9.5", "yes",
    ]  # fmt: skip
    row = ResultRow("relative", ("elbow", "wrist"), errors * [1, 2.5], goal=ErrorGoal(median=5.0))
    assert summary_line(row)[2:] == ["5.00 wrist", "10.00", "deg", "median < 5", "no"]
    row = ResultRow("absolute", ("elbow", "wrist"), np.radians([[2.0, 0.0], [2.0, 0.0], [2.0, 7.0]]))
    assert summary_line(row)[2:] == ["2.00 elbow", "7.00 (wrist)", "deg", "", ""]
