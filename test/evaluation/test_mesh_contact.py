"""Contacts of a robot's own meshes along a clip: the frames of the retargeted motion, beside what its shapes say."""

import numpy as np

from humanoid_control.evaluation.mesh_contact import (
    MeshContacts,
    clip_mesh_contacts,
    geometry_with_meshes,
    mesh_contacts,
)
from humanoid_control.mocap import find_body_points, load_clip
from humanoid_control.retargeting import retarget_clip, scale_to_robot
from humanoid_control.robots import load_robot


def test_every_tenth_frame_of_a_clip_is_judged():
    robot, body = load_robot("wabian2", "fixed"), find_body_points(load_clip("dance").crop(6, 8))
    told = []
    found = clip_mesh_contacts(robot, body, 10, lambda done, total: told.append((done, total)))
    trajectory = retarget_clip(scale_to_robot(body, robot), robot)
    again = mesh_contacts(robot, trajectory.positions[::10])
    assert np.array_equal(found.meshes.touching, again.touching) and found.meshes.pairs == again.pairs
    assert found.share_by_shapes == np.mean(trajectory.clearance[::10] < 0)
    frames = len(again.touching)
    assert told == [(k + 1, frames) for k in range(frames)]
    data = found.to_json()
    assert (data["robot"], data["frames"]) == ("wabian2", frames)
    assert data["touching_percent"] == 100 * again.share


def test_frames_are_counted_by_pair():
    touching = np.array([[True, False], [True, True], [False, False]])
    contacts = MeshContacts((("a", "b"), ("a", "c")), touching, 5)
    assert contacts.frames_of_pairs == [2, 1] and contacts.frames == 2


def test_geometry_with_meshes_is_found_and_primitive_shapes_are_none(monkeypatch):
    robot = load_robot("hrp2", "floating")
    assert geometry_with_meshes(robot) is None
    mesh = '<geometry><mesh filename="a.stl"/></geometry>'
    link = '<link name="a">{}</link>'
    for content, tag in (
        (f"<visual>{mesh}</visual>", "visual"),
        (f"<visual>{mesh}</visual><collision>{mesh}</collision>", "collision"),
        ('<collision><geometry><sphere radius="1"/></geometry></collision>', None),
    ):
        monkeypatch.setattr(robot, "urdf", f'<robot name="a">{link.format(content)}</robot>')
        assert geometry_with_meshes(robot) == tag
