"""An editor and its robot: files, first sets, pairs, distances, and what a ray hits."""

import socket
from dataclasses import replace

import numpy as np
import pytest
import trimesh

from humanoid_control.collision.ssv.pair_selection import Sampling
from humanoid_control.collision.ssv.segments import expand, read_segment_file
from humanoid_control.errors import ConfigError, HumanoidError, RobotError, UnknownNameError
from humanoid_control.robots import load_robot
from humanoid_control.robots.volumes import model_of, volumes_of_shapes
from humanoid_control.viewer.volume_editor.distances import UNKNOWN, EditorDistances, color_of
from humanoid_control.viewer.volume_editor.document import Document
from humanoid_control.viewer.volume_editor.editor import INERTIA, VISUALS, VolumeEditor
from test.viewer.volume_editor.editing import names


def test_a_saved_file_is_read_as_the_same_and_is_never_half_written(editor, monkeypatch):
    document = editor.document
    assert document.changed, "there is no file yet"
    path = document.save()
    assert not document.changed and read_segment_file(path) == document.file
    editor.add("triangle")
    assert document.changed
    text = path.read_text()
    with monkeypatch.context() as m:
        m.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(ConfigError, match="No space left"):
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
        (v,) = document.segment.volumes
        core = np.array(v.vertices)
        assert v.type == "line" and core[:, :2] == pytest.approx(0.0, abs=1e-3)
        held = trimesh.creation.capsule(height=np.ptp(core[:, 2]), radius=v.radius)
        assert held.volume < 2.6 * 0.1 * 0.2 * 0.6 / 8
    assert "around the visual geometry of the link" in editor.fit(VISUALS, "line")
    editor.fit(INERTIA, "point")
    assert [v.type for v in document.segment.volumes] == ["point"]
    document.select("r_shank")
    editor.change("", lambda v: replace(v, group="x"))
    editor.new_segment("base_link")
    for source, reason in ((INERTIA, "no mass"), (VISUALS, "no visual geometry")):
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
    editor = VolumeEditor(lola, Document(volumes_of_shapes(lola), lambda f: model_of(lola, f)))
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


def test_the_scene_colours_the_nearest_volumes_and_marks_the_smallest_gap_in_red(lola):
    """In every posture again: lines across the smallest gaps, and volumes of pairs opaque, in colours of distance."""
    viser = pytest.importorskip("viser", reason="needs the viewer: pip install 'humanoid_control[viewer]'")
    from humanoid_control.viewer.volume_editor import scene as drawing

    document = Document(volumes_of_shapes(lola), lambda f: model_of(lola, f))
    measured, places = EditorDistances(lola), []
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    server = viser.ViserServer(host="127.0.0.1", port=port, verbose=False)
    try:
        scene = drawing.VolumeScene(server, lola)
        for angle in (0.0, -0.2):
            found = measured.at(document.model, lola.from_mapping({"l_hip_abduction": angle}))
            scene.draw(document.file, document.selection, found)
            handles = server.scene._handle_from_node_name
            lines, mark, label = (handles[f"/gaps/{what}"] for what in ("lines", "mark", "label"))
            nearest = sorted(found.gaps, key=lambda g: g.distance)[: drawing.LINES]
            assert len(nearest) == drawing.LINES < len(found.gaps)
            assert lines.points == pytest.approx(np.array([[g.point_1, g.point_2] for g in nearest]), abs=1e-6)
            colors = [[list(color_of(g.distance, found.largest))] * 2 for g in nearest]
            assert np.array(lines.colors).tolist() == colors
            places.append((nearest[0].point_1 + nearest[0].point_2) / 2)
            assert mark.position == pytest.approx(places[-1], abs=1e-6)
            assert mark.color[0] > 200 and max(mark.color[1:]) < 50, "red"
            assert label.text == f"{1000 * nearest[0].distance:.0f} mm"
            assert label.position == pytest.approx(places[-1], abs=1e-6)
            own = {name: min(g.distance for g in found.gaps if name in (g.volume_1, g.volume_2))
                   for g in found.gaps for name in (g.volume_1, g.volume_2)}  # fmt: skip
            for (segment, volume), mesh in scene._volumes.items():
                name = f"{segment}.{volume}"
                wanted = color_of(own[name], found.largest) if name in own else UNKNOWN
                assert tuple(mesh.color) == wanted and (mesh.opacity == drawing.NEAREST) == (name in own)
            assert lines.visible and all(mesh.visible for mesh in scene._volumes.values())
            assert len(own) > 10 and drawing.NEAREST > 2 * drawing.OTHERS
        assert np.linalg.norm(places[1] - places[0]) > 0.01
    finally:
        server.stop()


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
    from humanoid_control.viewer.meshes import volume_mesh

    poses, rng, hits = lola.link_poses(lola.q(editor.joints)), np.random.default_rng(2), 0
    meshes, names = [], []
    for s in expand(editor.document.file.segments):
        for v in s.volumes:
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
    from humanoid_control.robots.volumes import volumes_of

    urdf = tmp_path / "mine.urdf"
    urdf.write_text((share_dir() / "urdf" / "lola.urdf").read_text())
    assert load_robot(urdf).volumes is None
    editor = VolumeEditor(lola, Document(volumes_of_shapes(lola), lambda f: model_of(lola, f), volumes_path(urdf)))
    editor.document.select("l_thigh")
    editor.change("", lambda v: replace(v, radius=0.09))
    editor.document.save()
    robot = load_robot(urdf)
    assert robot.volumes == tmp_path / "mine.volumes.yaml"
    model = volumes_of(robot)
    k = [s.name for s in model.segments].index("l_thigh")
    assert model.arrays.radii[model.arrays.start[k]] == 0.09 and len(model.pairs) == len(editor.document.model.pairs)
    robot.volumes.write_text("schema: humanoid_ssv/1\nsegments: 3\n")
    with pytest.raises(HumanoidError, match="must be a list"):
        volumes_of(load_robot(urdf))
