"""What commands print is of use in the shell that they were printed in."""

import os
import sys

from humanoid_control import terminal


def test_the_activation_is_advised_where_the_command_is_not_found(tmp_path, monkeypatch):
    script = tmp_path / "with space" / ".venv" / "bin" / "activate"
    script.parent.mkdir(parents=True)
    script.touch()
    monkeypatch.setattr(sys, "prefix", str(script.parents[1]))
    monkeypatch.setenv("PATH", os.devnull)
    monkeypatch.chdir(script.parents[2])
    assert terminal.activation_advice().endswith(": . .venv/bin/activate")
    command = script.parent / "humanoid"
    command.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(script.parent))
    assert terminal.activation_advice() == ""
    monkeypatch.setenv("PATH", os.devnull)
    script.unlink()
    assert terminal.activation_advice() == ""
