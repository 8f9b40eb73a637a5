"""What is drawn is what was measured."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_hex

from humanoid_control.evaluation import retarget_variants, score_clip
from humanoid_control.evaluation.report import plots as score_plots
from humanoid_control.evaluation.report import score_page
from humanoid_control.evaluation.report.plots import INK, SERIES, svg
from humanoid_control.evaluation.report.tables import joint_table
from humanoid_control.evaluation.tracking_error import LINKS
from humanoid_control.mocap import find_body_points, load_clip
from humanoid_control.robots import load_robot


@pytest.fixture(scope="module")
def scores():
    body = find_body_points(load_clip("dance").crop(6, 9))
    variants = retarget_variants(["weighted_dls"])
    return [score_clip(body, load_robot(name, "fixed"), variants) for name in ("suralp", "wabian2")]


@pytest.fixture
def drawn(monkeypatch):
    """The axes of the figure that a plot makes."""

    def axes(plot, *args):
        kept = []
        monkeypatch.setattr(score_plots, "svg", lambda figure, *rest: kept.append(figure) or svg(figure, *rest))
        assert plot(*args).count("<svg") == 1
        return kept[0].axes

    return axes


def test_bars_are_as_long_as_the_mean_errors(drawn, scores):
    axes = drawn(score_plots.error_bars, scores)
    for ax, links in zip(axes, score_plots.PAIRED.values(), strict=True):
        for i, bars in enumerate(b for b in ax.containers if hasattr(b, "patches")):
            expected = [np.mean([s.runs[i].links[k].mean for k in links]) for s in scores]
            assert [p.get_width() / 100 for p in bars.patches] == pytest.approx(expected)
        middles = [p.get_y() + p.get_height() / 2 for p in ax.patches]
        assert np.mean(middles) == pytest.approx(np.mean(range(len(scores)))), "beside the names of the robots"
        assert np.abs(np.subtract.outer(range(len(scores)), middles)).min(axis=0).max() < 0.5


def test_histograms_show_every_frame_of_every_link(drawn, scores):
    axes = drawn(score_plots.histograms, scores[0])
    assert len(axes) == len(LINKS)
    for ax, name in zip(axes, LINKS, strict=True):
        for patch, run in zip(ax.patches, scores[0].runs, strict=True):
            assert patch.get_data().values.sum() == scores[0].n_frames
            assert patch.get_data().edges == pytest.approx(100 * run.links[name].histogram.edges)


def test_range_bars_lie_inside_the_range_of_the_joint(drawn, scores):
    (ax,) = drawn(score_plots.joint_ranges, scores[0])
    frames, *used = (list(c.patches) for c in _groups(ax, len(scores[0].runs[0].joints)))
    for bars in used:
        for outer, inner in zip(frames, bars, strict=True):
            assert outer.get_x() - 1e-6 <= inner.get_x()
            assert inner.get_x() + inner.get_width() <= outer.get_x() + outer.get_width() + 1e-6


def test_ranges_of_the_joint_table_are_degrees(scores):
    row, use = joint_table(scores[0]).rows[0], scores[0].runs[0].joints[0]
    assert row[1] == f"{np.degrees(use.lower):.0f} .. {np.degrees(use.upper):.0f}"
    assert row[2] == f"{np.degrees(use.used_lower):.0f} .. {np.degrees(use.used_upper):.0f}"


def test_bars_of_one_joint_lie_side_by_side(drawn, scores):
    (ax,) = drawn(score_plots.joint_ranges, scores[0])
    frames, *used = (list(c.patches) for c in _groups(ax, len(scores[0].runs[0].joints)))
    assert len(used) > 1
    assert [t.get_text() for t in ax.get_yticklabels()] == [u.joint.replace("_", " ") for u in scores[0].runs[0].joints]
    for outer, *bars in zip(frames, *used, strict=True):
        edges = [e for bar in bars for e in (bar.get_y(), bar.get_y() + bar.get_height())]
        assert edges == sorted(edges) and outer.get_y() < edges[0] < edges[-1] < outer.get_y() + outer.get_height()


@pytest.mark.parametrize("plot", [score_plots.error_bars, score_plots.over_time, score_plots.histograms])
def test_the_last_axes_say_what_runs_along_them(plot, drawn, scores):
    assert drawn(plot, scores if plot is score_plots.error_bars else scores[0])[-1].get_xlabel()


def test_postures_are_those_of_the_best_and_the_worst_frame_desired_beside_actual(drawn, scores):
    s = scores[0]
    moments = dict(score_plots.peak_moments(s))
    mean = s.runs[0].frames.errors["mean"]
    assert (moments["trough"], moments["peak"]) == (np.argmin(mean), np.argmax(mean))
    axes = drawn(score_plots.postures, s)
    assert len(axes) == 8
    for row, frame in enumerate((moments["trough"], moments["peak"])):
        for ax, plane in ((axes[4 * row + 1], [1, 2]), (axes[4 * row + 3], [0, 2])):
            lines = {(to_hex(line.get_color()), line.get_linestyle()): line.get_xydata() for line in ax.lines}
            wanted = {(INK, "--"): s.targets.positions[frame]}
            wanted |= {(SERIES[i], "-"): r.frames.reached[frame] for i, r in enumerate(s.runs)}
            assert set(lines) == set(wanted)
            for key, points in wanted.items():
                for p in points[:, plane]:
                    assert np.nanmin(np.linalg.norm(lines[key] - p, axis=1)) < 1e-12


def _groups(ax, n):
    """The bars of each run as one container; the ranges there are, drawn one by one, as the first."""
    single = [c.patches[0] for c in ax.containers if len(c.patches) == 1 and n > 1]
    return [type("Bars", (), {"patches": single}), *(c for c in ax.containers if len(c.patches) == n)]


def test_a_page_needs_no_peak_of_the_mean_error(scores):
    """By the printed rule of troughs the mean may have neither peak nor trough where single links have both."""
    run = scores[0].runs[0]
    links = run.links | {"mean": replace(run.links["mean"], peaks=(), troughs=())}
    assert any(link.peaks for link in links.values())
    page = score_page([replace(scores[0], runs=(replace(run, links=links),))])
    table = page[page.index("joint angles at peaks and troughs") :]
    assert all(f'<td class="text">{u.joint}</td>' in table for u in run.joints)
