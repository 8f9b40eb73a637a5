"""Editing volumes: every act, its undoing, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from humanoid_control.collision.ssv.segments import expand
from humanoid_control.errors import RobotError, UnknownNameError
from humanoid_control.viewer.volume_editor import edits
from humanoid_control.viewer.volume_editor.scene import dragged
from test.viewer.volume_editor.editing import names


def test_volumes_are_added_copied_changed_and_deleted(editor):
    document = editor.document
    for kind, count in (("point", 1), ("line", 2), ("triangle", 3)):
        editor.add(kind)
        assert document.volume.type == kind and len(document.volume.vertices) == count
    editor.change("radius", lambda v: replace(v, radius=0.03))
    editor.change("name", lambda v: replace(v, name="knee"))
    editor.copy()
    assert names(editor) == ["bone", "inner", "point", "line", "knee", "knee_2"]
    a, b = (np.array(v.vertices) for v in document.segment.volumes[-2:])
    assert np.allclose(b - a, [edits.SHIFT, 0, 0]) and document.volume.radius == 0.03
    editor.delete()
    assert names(editor)[-1] == "knee" and document.volume is not None
    assert len(document.model.arrays.radii) == 2 * 5 + 1  # the model follows, images too


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


@settings(max_examples=50)
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
        from humanoid_control.viewer.volume_editor.scene import radius_line

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
    before = {s.name: s.volumes for s in expand(document.file.segments)}
    editor.stand_for_both("")
    assert [s.name for s in document.file.segments] == ["l_thigh", "r_thigh", "r_shank"]
    assert {s.name: s.volumes for s in expand(document.file.segments)} == before
    assert len(document.file.pairs) == 2
    editor.change("", lambda v: replace(v, radius=0.1))
    assert edits.segment_of(document.file, "r_thigh").volumes[0].radius == 0.065, "each side is its own"
    editor.to_other_side("y")
    other = edits.segment_of(document.file, "r_thigh")
    assert other.link == "r_thigh" and other.volumes[0].radius == 0.1
    assert other.volumes[0].vertices[0] == (0.0, -0.01, -0.05)
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
    with pytest.raises(RobotError, match="monitored already"):
        editor.add_pair("l_femur", "r_femur")


BAD = [
    (lambda e: e.change("", lambda v: replace(v, radius=float("nan"))), "radius"),
    (lambda e: e.change("", lambda v: replace(v, radius=-0.1)), "radius"),
    (lambda e: e.change("", lambda v: edits.with_vertex(v, 0, np.array([np.inf, 0, 0]))), "finite"),
    (lambda e: e.change("", lambda v: replace(v, name="inner")), "already"),
    (lambda e: e.change("", lambda v: replace(v, name="a:b")), "is not a valid name"),
    (lambda e: e.change("", lambda v: replace(v, name="")), "is not a valid name"),
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
    (lambda e: e.document.load(e.document.path), "not a readable volume file"),
]


@pytest.mark.parametrize(("act", "reason"), BAD, ids=[reason for _, reason in BAD])
def test_what_is_wrong_is_refused_in_one_line_and_changes_nothing(editor, act, reason):
    before, selection = editor.document.file, editor.document.selection
    assert not editor.attempt(lambda: act(editor))
    assert editor.failed and reason in editor.message and "\n" not in editor.message
    assert (editor.document.file, editor.document.selection) == (before, selection)
    assert not editor.document.undo()
