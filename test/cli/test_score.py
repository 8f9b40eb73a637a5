"""`humanoid score`: tables, JSON, files and page; whole or not at all."""

import csv
import json
import re
import signal
import time
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from humanoid_control.evaluation.tracking_error import LINKS
from humanoid_control.mocap import load_clip
from humanoid_control.robots import load_robot
from test.cli.conftest import INTERRUPTED


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    """Six seconds of the dance as a TRC file."""
    from humanoid_control.mocap import load_clip

    dance = load_clip("dance").crop(6, 12)
    path = tmp_path_factory.mktemp("clip") / "part.trc"
    n = len(dance.labels)
    head = ["PathFileType\t4\t(X/Y/Z)\tpart.trc", "DataRate\tCameraRate\tNumFrames\tNumMarkers\tUnits"]
    head += [f"{dance.rate:g}\t{dance.rate:g}\t{dance.n_frames}\t{n}\tm"]
    head += [
        "Frame#\tTime\t" + "\t\t\t".join(dance.labels),
        "\t\t" + "\t".join(f"X{k}\tY{k}\tZ{k}" for k in range(n)),
        "",
    ]
    rows = [
        "\t".join([str(k + 1), f"{t:.4f}", *(f"{v:.6f}" for v in p.ravel())])
        for k, (t, p) in enumerate(zip(dance.times, dance.positions, strict=True))
    ]
    path.write_text("\n".join(head + rows) + "\n")
    return path


@pytest.fixture(scope="module")
def scored(clip, humanoid_once):
    """Two robots, scored once into everything a score can be written to: the result, and the folder it is in."""
    result = humanoid_once("score", clip, "--robot", "hrp2,we4rii", "--json", "-o", "out", "--html", "page.html")
    assert result.returncode == 0, result.stderr
    return result, humanoid_once.folder


def test_pace_means_what_it_means_to_retarget(clip, humanoid):
    """The same frames a second, twice as many frames, and the same error; the same motion, so half the speed."""
    found = []
    for command in ("score", "retarget"):
        result = humanoid(command, clip, "--robot", "we4rii", "--speed", 0.5, "--json")
        assert result.returncode == 0, result.stderr
        found.append(json.loads(result.stdout))
    scored, row = found[0], found[1]["rows"][0]
    assert (row["frames"], row["rate_hz"]) == (scored["frames"], scored["rate_hz"])
    n, rate = load_clip(str(clip)).n_frames, load_clip(str(clip)).rate
    assert (row["frames"], row["rate_hz"]) == (2 * n - 1, rate)
    mean = scored["robots"][0]["runs"]["avoidance"]["links"]["mean"]["mean"]
    assert row["mean"] == pytest.approx(100 * mean, abs=0.01)


def test_several_accelerations_are_compared_and_the_verdict_is_about_the_first(clip, humanoid):
    result = humanoid("score", clip, "--robot", "we4rii", "--acceleration", "20,100", "--json")
    assert result.returncode == 0, result.stderr
    robot = json.loads(result.stdout)["robots"][0]
    runs = robot["runs"]
    assert list(runs) == [f"{a} rad/s², {w}" for a in (20, 100) for w in ("no avoidance", "avoidance")]
    gentle, quick = (runs[f"{a} rad/s², avoidance"] for a in (20, 100))
    assert gentle["quality"]["acceleration"]["max"] < quick["quality"]["acceleration"]["max"] <= 100 * (1 + 1e-6)
    kept = robot["limit_costs"]["kept"]["mean"]
    assert kept == pytest.approx(gentle["links"]["mean"]["mean"], rel=1e-3)
    assert kept != pytest.approx(quick["links"]["mean"]["mean"], rel=1e-3)


def test_json_holds_every_measure_of_every_link(scored):
    report = json.loads(scored[0].stdout)
    assert [r["robot"] for r in report["robots"]] == ["hrp2", "we4rii"]
    assert report["units"]["length"] == "m"
    for row in report["robots"]:
        joints = len(load_robot(row["robot"]).imitation_joints)
        for run in row["runs"].values():
            assert tuple(run["links"]) == LINKS
            for link in run["links"].values():
                assert 0 <= link["min"] <= link["mean"] <= link["max"] < 1.5
                assert sum(link["histogram"]["counts"]) == report["frames"]
                assert {"shape", "spread_grade", "height_grade", "mode"} <= set(link["histogram"])
                for extreme in link["peaks"] + link["troughs"]:
                    assert len(extreme["angles"]) == joints
            assert run["collisions"]["frames"] == report["frames"]
            assert {"speed", "acceleration", "jerk"} <= set(run["quality"])
            assert run["drift"]["drift"] >= -1e-9
            assert len(run["joints"]) == joints


def test_tables_name_robots_links_and_the_rows_of_the_source(humanoid, clip):
    result = humanoid("score", clip, "--robot", "we4rii", "--details")
    assert result.returncode == 0, result.stderr
    for word in ("we4rii", "left wrist", "sternum", "lower", "torso", "skew", "joint range used", "trough"):
        assert word in result.stdout, word


class Outline(HTMLParser):
    """Whether tags close in order, and what the page refers to."""

    VOID = ("meta", "br", "link", "img", "input", "hr")

    def __init__(self):
        super().__init__()
        self.open, self.refers, self.tags, self.ids = [], [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.refers += [v for k, v in attributes if k in ("src", "href", "xlink:href", "data")]
        self.ids += [v for k, v in attributes if k == "id"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_folder_holds_json_page_and_every_frame(scored):
    folder = scored[1] / "out"
    files = {p.name for p in folder.iterdir()}
    assert {"score.json", "score.html", "errors.png"} < files and not [f for f in files if f.startswith(".")]
    assert (scored[1] / "page.html").read_text() == (folder / "score.html").read_text()
    report = json.loads((folder / "score.json").read_text())
    assert report == json.loads(scored[0].stdout)
    assert (folder / "errors.png").read_bytes().startswith(b"\x89PNG")
    runs = {
        f"{row['robot']}_{label.replace(' ', '_')}.csv": run
        for row in report["robots"]
        for label, run in row["runs"].items()
    }
    assert files - {"score.json", "score.html", "errors.png"} == set(runs)
    for name, run in runs.items():
        with (folder / name).open() as f:
            rows = list(csv.DictReader(f))
        assert len(rows) == report["frames"]
        for link in LINKS:
            e = np.array([float(r[f"error_{link}_m"]) for r in rows])
            assert e.mean() == pytest.approx(run["links"][link]["mean"], rel=1e-4)
        assert {"penetration_m", "at_position_limit", "at_speed_limit", "jerk_rad_s3"} <= set(rows[0])


def test_the_page_is_whole_and_refers_to_nothing_outside(scored):
    page = (scored[1] / "page.html").read_text()
    outline = Outline()
    outline.feed(page)
    assert outline.open == []
    inside = set(outline.ids)
    assert all(r.startswith("#") and r[1:] in inside for r in outline.refers), "links lead only into the page"
    assert all(url[1:] in inside for url in re.findall(r"url\((#[^)]+)\)", page))
    assert "@import" not in page and "<script" not in page and "url(http" not in page
    assert outline.tags.count("svg") == 1 + 2 * 4
    assert "prefers-color-scheme: dark" in page and "#010203" not in page


MISTAKES = [
    (["score"], "required: clip"),
    (["score", "dnace"], "did you mean dance"),
    (["score", "missing.c3d"], "missing.c3d"),
    (["score", "dance", "--robot", "hrp2,hpr2"], "did you mean hrp2"),
    (["score", "dance", "--robot", ","], "contains no name"),
    (["score", "dance", "--robot", ""], "contains no name"),
    (["score", "dance", "--robot", "mine.urdf"], "URDF file not found: mine.urdf"),
    (["score", "dance", "--trough-rule", "boht"], "did you mean both"),
    (["score", "dance", "--html", "page.pdf"], "must be a .html file"),
    (["score", "dance", "--html", "nowhere/page.html"], "folder nowhere does not exist"),
    (["score", "dance", "-o", "nowhere/deep"], "folder nowhere does not exist"),
    (["score", "dance", "--method", "weigthed_dls"], "did you mean weighted_dls"),
    (["score", "dance", "--method", ""], "contains no name"),
    (["score", "dance", "--robots", "hpr2"], "did you mean hrp2"),
]


@pytest.mark.parametrize(("args", "words"), MISTAKES, ids=lambda v: " ".join(v) if isinstance(v, list) else "")
def test_a_mistake_is_one_line_and_leaves_nothing(humanoid, args, words):
    result = humanoid(*args)
    assert result.returncode == 2 and "Traceback" not in result.stderr
    lines = [line for line in result.stderr.splitlines() if line.strip()]
    assert len(lines) == 1 and words in lines[0], result.stderr
    assert list(humanoid.folder.iterdir()) == []


@pytest.mark.nightly
def test_interrupted_it_ends_at_once_and_leaves_nothing(humanoid):
    process = humanoid.start("score", "dance", "--robot", "all", "-o", "out", "--html", "page.html")
    time.sleep(2.5)
    assert process.poll() is None, Path(process.log_path).read_text()
    process.send_signal(signal.SIGINT)
    assert process.wait(30) in INTERRUPTED
    assert "Traceback" not in Path(process.log_path).read_text()
    left = [p.name for p in humanoid.folder.iterdir() if not p.name.startswith(("command_", "state"))]
    assert left == []


def test_a_robot_that_is_not_in_the_catalogue_is_scored_from_its_files(humanoid, clip, tmp_path):
    from humanoid_control.robots.catalogue import urdf_path

    source = urdf_path("wabian2")
    (humanoid.folder / "mine.urdf").write_text(source.read_text())
    (humanoid.folder / "mine.yaml").write_text(source.with_suffix(".yaml").read_text())
    result = humanoid("score", clip, "--robot", "mine.urdf", "--json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["robots"][0]["robot"] == "wabian2"


def test_methods_are_compared_each_with_and_without_avoidance(humanoid, clip):
    result = humanoid("score", clip, "--robot", "suralp", "--method", "weighted_dls,constrained", "--json")
    assert result.returncode == 0, result.stderr
    runs = json.loads(result.stdout)["robots"][0]["runs"]
    ways = [f"{method}, {how}" for method in ("weighted_dls", "constrained") for how in ("no avoidance", "avoidance")]
    assert list(runs) == ways
    for method in ("weighted_dls", "constrained"):
        assert runs[f"{method}, avoidance"]["collisions"]["total"] == 0
    assert (
        runs["constrained, avoidance"]["links"]["mean"]["mean"]
        <= runs["weighted_dls, avoidance"]["links"]["mean"]["mean"]
    )


def test_every_way_to_solve_has_a_colour_and_a_robot_that_stands_still_a_page():
    import numpy as np

    from humanoid_control.evaluation import retarget_variants, score_trajectories
    from humanoid_control.evaluation.report import score_page
    from humanoid_control.evaluation.report.plots import SERIES, WIDTHS
    from humanoid_control.retargeting import Targets, retarget_clip
    from humanoid_control.retargeting.scaling import POINTS

    solved = retarget_variants(["constrained", "weighted_dls", "dls", "pinv"])
    assert len(SERIES) == len(WIDTHS) == len(solved) == 8
    robot = load_robot("wabian2", "fixed")
    still = np.tile(robot.point_positions(robot.q("neutral"), POINTS), (5, 1, 1))
    body = np.zeros((5, 2, 3))
    targets = Targets("still", 50.0, still, body, ("l_hip", "r_hip"))
    held = retarget_clip(targets, robot)
    held.positions[:] = held.positions[0]
    text = score_page([score_trajectories(robot, targets, [(label, held) for label, _ in solved])])
    outline = Outline()
    outline.feed(text)
    assert outline.open == [] and "nan" not in text.lower()
