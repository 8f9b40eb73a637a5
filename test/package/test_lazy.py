"""Faces give each name from its module, when asked, and say what they do not have."""

import subprocess
import sys

import pytest

import humanoid_control.collision as face
from humanoid_control import lazy


def test_a_name_is_imported_when_it_is_asked_for(tmp_path, monkeypatch):
    room = tmp_path / "lazy_room"
    room.mkdir()
    (room / "__init__.py").write_text(
        "from humanoid_control import lazy\n"
        '__getattr__, __dir__, __all__ = lazy.attach(__name__, {"inner": ["VALUE"], "broken": ["OTHER"]})\n'
    )
    (room / "inner.py").write_text("VALUE = object()\n")
    (room / "broken.py").write_text("raise ImportError('not installed')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import lazy_room

    assert "lazy_room.inner" not in sys.modules
    assert dir(lazy_room) == lazy_room.__all__ == ["OTHER", "VALUE"]
    assert lazy_room.VALUE is lazy_room.VALUE is sys.modules["lazy_room.inner"].VALUE
    with pytest.raises(ImportError, match="not installed"):
        _ = lazy_room.OTHER
    with pytest.raises(AttributeError, match="'lazy_room' has no attribute 'MISSING'"):
        _ = lazy_room.MISSING


def test_only_public_names_are_in_all():
    load, shown, public = lazy.attach("humanoid_control", {"errors": ["HumanoidError", "RobotError"]}, ["RobotError"])
    assert public == ["RobotError"] and shown() == ["HumanoidError", "RobotError"]
    assert load("HumanoidError").__name__ == "HumanoidError"


def test_the_face_of_a_room_does_not_load_the_compiler():
    code = f"import sys, {face.__name__}; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_two_faces_do_not_share_names():
    first, _, _ = lazy.attach("humanoid_control", {"errors": ["HumanoidError"]})
    assert first("HumanoidError").__module__ == "humanoid_control.errors"
    with pytest.raises(AttributeError):
        first("RobotError")
