"""What a user can do to a file of volumes: each act does what it says, can be undone, and refuses what is wrong."""

from dataclasses import replace

import numpy as np
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st

from humanoid_control.collision.ssv_file import read_ssv_file
from humanoid_control.collision.ssv_pairs import Sampling
from humanoid_control.collision.ssv_segments import expand
from humanoid_control.errors import HumanoidError, RobotError, UnknownNameError
from humanoid_control.robots import load_robot
from humanoid_control.robots.ssv_model import model_of, volumes_of_shapes
from humanoid_control.viewer.segments import edits
from humanoid_control.viewer.segments.document import Document
from humanoid_control.viewer.segments.editor import Editor
from humanoid_control.viewer.segments.fitting import INERTIA, LOOK
from humanoid_control.viewer.segments.handles import dragged


def names(editor, segment=None):
    document = editor.document
    return [v.name for v in edits.segment_of(document.file, segment or document.selection.segment).ssvs]


def test_volumes_are_added_copied_changed_and_deleted(editor):
    document = editor.document
    for kind, count in (("point", 1), ("line", 2), ("triangle", 3)):
        editor.add(kind)
        assert document.volume.type == kind and len(document.volume.vertices) == count
    editor.change("radius", lambda v: replace(v, radius=0.03))
    editor.change("name", lambda v: replace(v, name="knee"))
    editor.copy()
    assert names(editor) == ["bone", "inner", "point", "line", "knee", "knee_2"]
    a, b = (np.array(v.vertices) for v in document.segment.ssvs[-2:])
    assert np.allclose(b - a, [edits.SHIFT, 0, 0]) and document.volume.radius == 0.03
    editor.delete()
    assert names(editor)[-1] == "knee" and document.volume is not None
    assert len(document.model.radii) == 2 * 5 + 1  # the model follows, images too


def test_every_act_can_be_undone_and_redone(editor):
    document, first = editor.document, editor.document.file
    acts = [
        lambda: editor.add("line"),
        lambda: editor.change("", lambda v: edits.resized(v, 1.3)),
        lambda: editor.flip("x"),
        lambda: editor.stand_for_both(""),
        lambda: editor.change("", lambda v: replace(v, radius=0.1)),
        lambda: editor.to_other_side("y"),
        lambda: editor.rename_segment("l_femur"),
        lambda: editor.new_segment("head"),
        lambda: editor.delete(),
        lambda: editor.add_pair("l_femur", "r_thigh"),
    ]
    states = [first]
    for act in acts:
        act()
        assert document.file != states[-1]
        states.append(document.file)
    for file in reversed(states[:-1]):
        assert document.undo() and document.file == file
    assert not document.undo() and document.file == first
    for file in states[1:]:
        assert document.redo() and document.file == file
    assert not document.redo()


def test_places_of_one_drag_are_one_step_and_a_new_drag_another(editor):
    document, first = editor.document, editor.document.file
    base = document.volume
    for gesture in range(2):
        for k in range(5):
            place = np.array(base.vertices[1]) + [0.0, 0.0, 0.001 * (k + 1 + 5 * gesture)]
            editor.change("drag", lambda v, place=place: dragged(base, "vertex 2", place, np.array([1.0, 0, 0, 0])))
        document.end_gesture()
    assert document.volume.vertices[1][2] == pytest.approx(base.vertices[1][2] + 0.01)
    assert document.undo() and document.volume.vertices[1][2] == pytest.approx(base.vertices[1][2] + 0.005)
    assert document.undo() and document.file == first


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=7, max_size=7))
def test_dragging_the_whole_keeps_its_form(numbers):
    """A rigid motion: lengths between vertices and the radius stay; the middle goes where the handle goes."""
    v = edits.new_volume("triangle", (), 0.05, np.array([0.1, 0.0, 0.3]))
    wxyz = np.array([*numbers[:3], 2.0 + numbers[3]])
    after = dragged(v, "whole", np.array(numbers[4:]), wxyz / np.linalg.norm(wxyz))
    a, b = np.array(v.vertices), np.array(after.vertices)
    lengths = [np.linalg.norm(x - np.roll(x, 1, axis=0), axis=1) for x in (a, b)]
    assert np.allclose(*lengths, atol=3e-6) and after.radius == v.radius
    assert np.allclose(b.mean(axis=0), numbers[4:], atol=2e-6)


def test_the_radius_handle_stays_on_the_surface():
    for kind in ("point", "line", "triangle"):
        v = edits.new_volume(kind, (), 0.05, np.zeros(3))
        from humanoid_control.viewer.segments.handles import radius_line

        anchor, n = radius_line(v)
        assert n @ (np.array(v.vertices) - anchor).T == pytest.approx(0.0)
        assert dragged(v, "radius", anchor + 0.08 * n, np.array([1.0, 0, 0, 0])).radius == pytest.approx(0.08)
        assert dragged(v, "radius", anchor - 0.08 * n, np.array([1.0, 0, 0, 0])).radius > 0


def test_mirroring_negates_one_coordinate_and_twice_is_nothing(editor):
    before = editor.document.volume
    editor.flip("y")
    image = editor.document.volume
    assert np.array(image.vertices) == pytest.approx(np.array(before.vertices) * [1, -1, 1])
    editor.flip("y")
    assert editor.document.volume.vertices == before.vertices
    assert len(names(editor)) == 4
    with pytest.raises(UnknownNameError, match="mirror axis"):
        editor.flip("w")


def test_one_segment_for_both_sides_becomes_two_and_one_again(editor):
    """Neither the volumes that the robot has nor its pairs change by that."""
    document = editor.document
    before = {s.name: s.ssvs for s in expand(document.file.segments)}
    editor.stand_for_both("")
    assert [s.name for s in document.file.segments] == ["l_thigh", "r_thigh", "r_shank"]
    assert {s.name: s.ssvs for s in expand(document.file.segments)} == before
    assert len(document.file.pairs) == 2
    editor.change("", lambda v: replace(v, radius=0.1))
    assert edits.segment_of(document.file, "r_thigh").ssvs[0].radius == 0.065, "each side is its own"
    editor.to_other_side("y")
    other = edits.segment_of(document.file, "r_thigh")
    assert other.link == "r_thigh" and other.ssvs[0].radius == 0.1
    assert other.ssvs[0].vertices[0] == (0.0, -0.01, -0.05)
    editor.stand_for_both("y")
    assert [s.name for s in document.file.segments] == ["l_thigh", "r_shank"]
    with pytest.raises(RobotError, match="stands for both sides"):
        editor.to_other_side("y")
    document.select("r_shank")
    editor.rename_segment("shank")
    with pytest.raises(RobotError, match="no other side"):
        editor.stand_for_both("y")


def test_pairs_follow_names_and_leave_with_what_they_watch(editor):
    document = editor.document
    editor.rename_segment("l_femur")
    assert [(p.first, p.second) for p in document.file.pairs] == [("l_femur", "r_femur"), ("l_femur", "r_shank")]
    document.select("l_femur", "inner")
    editor.change("", lambda v: replace(v, group="medial"))
    assert document.file.pairs[0].groups_1 == ("medial",) == document.file.pairs[0].groups_2
    said = editor.delete()
    assert "with 1 pairs" in said and [p.second for p in document.file.pairs] == ["r_shank"]
    editor.remove_pairs("r_shank", "l_femur")
    assert document.file.pairs == () and editor.distances().smallest is None
    editor.add_pair("r_femur", "l_femur")
    with pytest.raises(RobotError, match="watched already"):
        editor.add_pair("l_femur", "r_femur")


BAD = [
    (lambda e: e.change("", lambda v: replace(v, radius=float("nan"))), "radius"),
    (lambda e: e.change("", lambda v: replace(v, radius=-0.1)), "radius"),
    (lambda e: e.change("", lambda v: edits.with_vertex(v, 0, np.array([np.inf, 0, 0]))), "finite"),
    (lambda e: e.change("", lambda v: replace(v, name="inner")), "already"),
    (lambda e: e.change("", lambda v: replace(v, name="a:b")), "cannot be a name"),
    (lambda e: e.change("", lambda v: replace(v, name="")), "cannot be a name"),
    (lambda e: e.change("", lambda v: edits.resized(v, 0.0)), "positive"),
    (lambda e: e.rename_segment("r_shank"), "already"),
    (lambda e: e.rename_segment("femur"), "no side"),
    (lambda e: e.new_segment("hed"), "did you mean head"),
    (lambda e: e.add_pair("l_thigh", "l_thigh"), "itself"),
    (lambda e: e.add_pair("l_thigh", "r_thig"), "did you mean r_thigh"),
    (lambda e: e.document.select("l_thigh", "bon"), "did you mean bone"),
    (lambda e: e.fit_mesh("a.doc", b"", "auto", 1.0), "must be one of"),
    (lambda e: e.fit_mesh("a.stl", b"solid", "auto", 1.0), "a.stl"),
    (lambda e: e.fit_mesh("a.stl", b"", "auto", 0.0), "positive number"),
    (lambda e: e.document.load(e.document.path), "not a readable file"),
]


@pytest.mark.parametrize(("act", "reason"), BAD, ids=[reason for _, reason in BAD])
def test_what_is_wrong_is_refused_in_one_line_and_changes_nothing(editor, act, reason):
    before, selection = editor.document.file, editor.document.selection
    assert not editor.attempt(lambda: act(editor))
    assert editor.failed and reason in editor.message and "\n" not in editor.message
    assert (editor.document.file, editor.document.selection) == (before, selection)
    assert not editor.document.undo()


def test_a_saved_file_is_read_as_the_same_and_is_never_half_written(editor, monkeypatch):
    document = editor.document
    assert document.changed, "there is no file yet"
    path = document.save()
    assert not document.changed and read_ssv_file(path) == document.file
    editor.add("triangle")
    assert document.changed
    text = path.read_text()
    with monkeypatch.context() as m:
        m.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(RobotError, match="No space left"):
            document.save()
    assert path.read_text() == text and [p.name for p in path.parent.iterdir()] == [path.name]
    document.load(path)
    assert names(editor) == ["bone", "inner"] and not document.changed
    assert document.undo() and names(editor)[-1] == "triangle", "loading can be undone"
    path.write_text(text.replace("link: l_thigh", "link: l_thig"))
    with pytest.raises(UnknownNameError, match="did you mean"):
        document.load(path)
    assert names(editor)[-1] == "triangle"


def test_a_first_set_is_fitted_to_looks_inertia_and_meshes(editor):
    document = editor.document
    mesh = trimesh.creation.box((0.1, 0.2, 0.6))
    for suffix in ("stl", "obj", "ply", "off"):
        content = mesh.export(file_type=suffix)
        content = content.encode() if isinstance(content, str) else content
        editor.fit_mesh(f"part.{suffix}", content, "line", 0.5)
        (v,) = document.segment.ssvs
        core = np.array(v.vertices)
        assert v.type == "line" and core[:, :2] == pytest.approx(0.0, abs=1e-3)
        held = trimesh.creation.capsule(height=np.ptp(core[:, 2]), radius=v.radius)
        assert held.volume < 2.6 * 0.1 * 0.2 * 0.6 / 8
    assert "around what the link looks like" in editor.fit(LOOK, "line")
    editor.fit(INERTIA, "point")
    assert [v.type for v in document.segment.ssvs] == ["point"]
    document.select("r_shank")
    editor.change("", lambda v: replace(v, group="x"))
    editor.new_segment("base_link")
    for source, reason in ((INERTIA, "no mass"), (LOOK, "nothing to see")):
        with pytest.raises(RobotError, match=reason):
            editor.fit(source, "auto")


def test_searched_pairs_come_with_reasons_and_a_change_meanwhile_is_noticed(editor):
    take = editor.find_pairs(Sampling(postures=40))
    editor.attempt(take)
    assert not editor.failed and "left out" in editor.message
    assert len(editor.document.file.pairs) + len(editor.choice.left_out) == 3
    assert "r_thigh - r_shank: one joint connects them" in editor.choice.explain()
    stale = editor.find_pairs(Sampling(postures=4))
    editor.add("point")
    assert not editor.attempt(stale) and "search again" in editor.message


def test_distances_are_those_of_the_robots_own_volumes(lola):
    """Beside the exact distances of Lola's capsules: thighs and shanks are the same as lines."""
    editor = Editor(lola, Document(volumes_of_shapes(lola), lambda f: model_of(lola, f)))
    editor.set_joint("l_hip_abduction", -0.3)
    exact = lola.self_distance().all_distances
    import pinocchio as pin

    pin.forwardKinematics(lola.model, lola.data, lola.q(editor.joints))
    d, shapes = exact(lola.data), [s.name for s in lola.shapes]
    wanted = {frozenset((shapes[i], shapes[j])): x for (i, j), x in zip(lola.pairs, d, strict=True)}
    found = {frozenset((g.first, g.second)): g for g in editor.distances().gaps}
    for pair in (("l_thigh", "r_thigh"), ("l_shank", "r_shank"), ("l_thigh", "r_shank")):
        gap = found[frozenset(pair)]
        assert gap.distance == pytest.approx(wanted[frozenset(pair)], abs=1e-9)
        assert np.linalg.norm(gap.point_1 - gap.point_2) == pytest.approx(abs(gap.distance), abs=1e-9)
    distances = editor.distances()
    assert distances.smallest.distance == pytest.approx(distances.segments.min())
    assert distances.volumes.min() == distances.segments.min()
    with pytest.raises(UnknownNameError):
        editor.set_joint("l_hip", 0.0)


def depth(triangles, origin, direction):
    """Where a ray first meets triangles (F, 3, 3): Moeller and Trumbore."""
    a, e1, e2 = triangles[:, 0], triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0]
    h = np.cross(direction, e2)
    scale = np.einsum("ij,ij->i", e1, h)
    kept = np.abs(scale) > 1e-12
    a, e1, e2, h, scale = a[kept], e1[kept], e2[kept], h[kept], scale[kept]
    s = origin - a
    u, q = np.einsum("ij,ij->i", s, h) / scale, np.cross(s, e1)
    v, t = q @ direction / scale, np.einsum("ij,ij->i", e2, q) / scale
    inside = (u >= 0) & (v >= 0) & (u + v <= 1) & (t > 0)
    return t[inside].min() if inside.any() else np.inf


def test_a_ray_hits_the_volume_that_it_enters_first(editor, lola):
    """Beside rays through the triangles of the drawn surfaces; images lead to what they are drawn from."""
    from humanoid_control.viewer.segments.volume_mesh import volume_mesh

    poses, rng, hits = lola.link_poses(lola.q(editor.joints)), np.random.default_rng(2), 0
    meshes, names = [], []
    for s in expand(editor.document.file.segments):
        for v in s.ssvs:
            vertices, faces = volume_mesh(np.array(v.vertices), v.radius)
            X = poses[s.link]
            meshes.append((vertices @ X.rotation.T + X.translation)[faces])
            names.append(("l_thigh" if s.name == "r_thigh" else s.name, v.name))
    for _ in range(60):
        eye = np.array([2.0, 0, 0.8]) + rng.normal(size=3) * 0.3
        aim = rng.uniform([-0.15, -0.3, 0.2], [0.15, 0.3, 1.0]) - eye
        near = [depth(m, eye, aim / np.linalg.norm(aim)) for m in meshes]
        best = sorted(near)
        if np.isfinite(best[0]) and best[1] - best[0] < 5e-3:
            continue  # too close to tell by facets
        if editor.pick(eye, aim):
            assert (editor.document.selection.segment, editor.document.selection.volume) == names[np.argmin(near)]
            hits += 1
        else:
            assert not np.isfinite(best[0])
    assert 15 < hits < 60


def test_a_robot_uses_the_file_beside_its_urdf(lola, tmp_path):
    from humanoid_control.paths import share_dir
    from humanoid_control.robots.catalogue import volumes_path
    from humanoid_control.robots.ssv_model import ssv_of

    urdf = tmp_path / "mine.urdf"
    urdf.write_text((share_dir() / "urdf" / "lola.urdf").read_text())
    assert load_robot(urdf).volumes is None
    editor = Editor(lola, Document(volumes_of_shapes(lola), lambda f: model_of(lola, f), volumes_path(urdf)))
    editor.document.select("l_thigh")
    editor.change("", lambda v: replace(v, radius=0.09))
    editor.document.save()
    robot = load_robot(urdf)
    assert robot.volumes == tmp_path / "mine.volumes.yaml"
    model = ssv_of(robot)
    k = [s.name for s in model.segments].index("l_thigh")
    assert model.radii[model.start[k]] == 0.09 and len(model.pairs) == len(editor.document.model.pairs)
    robot.volumes.write_text("schema: humanoid_ssv/1\nsegments: 3\n")
    with pytest.raises(HumanoidError, match="must be a list"):
        ssv_of(load_robot(urdf))
