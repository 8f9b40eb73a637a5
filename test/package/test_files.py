"""Files appear whole or not at all."""

import os

import pytest

from humanoid_control.errors import ConfigError
from humanoid_control.files import try_to_write, whole_file, whole_files


def test_a_file_appears_at_the_end_and_replaces_the_old_one(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with whole_file(path) as part:
        part.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new" and list(tmp_path.iterdir()) == [path]


def test_after_an_error_all_is_as_it_was(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), whole_file(path) as part:
        part.write_text("half")
        raise ZeroDivisionError
    with pytest.raises(KeyboardInterrupt), whole_files(tmp_path) as place:
        (place / "a.txt").write_text("half")
        (place / "b.txt").write_text("half")
        raise KeyboardInterrupt
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_files_of_a_folder_appear_together(tmp_path):
    with whole_files(tmp_path / "new") as place:
        (place / "a").write_text("1")
        (place / "b").write_text("2")
        assert not (tmp_path / "new" / "a").exists()
    assert sorted(p.name for p in (tmp_path / "new").iterdir()) == ["a", "b"]


def test_why_it_cannot_be_written_is_told(tmp_path):
    taken = tmp_path / "file"
    taken.write_text("")
    for path in (tmp_path / "nowhere" / "x", taken / "x"):
        with pytest.raises(ConfigError, match=f"^{path} cannot be written: (No such|Not a)"), whole_file(path) as part:
            part.write_text("")
        with pytest.raises(ConfigError, match=f"^{path} cannot be written: (No such|Not a)"):
            try_to_write(path)
    with pytest.raises(ConfigError, match="cannot be written: File exists"), whole_files(taken) as place:
        (place / "x").write_text("")
    with pytest.raises(ConfigError, match="cannot be written: Is a directory"), whole_file(tmp_path) as part:
        part.write_text("")


def test_a_link_stays_and_what_it_points_to_is_written(tmp_path):
    real, link = tmp_path / "real.txt", tmp_path / "link.txt"
    real.write_text("old")
    link.symlink_to(real)
    with whole_file(link) as part:
        part.write_text("new")
    assert link.is_symlink() and real.read_text() == "new"


def test_a_pipe_or_a_device_is_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(ConfigError, match="pipe is not a regular file"), whole_file(pipe) as part:
        part.write_text("")
    with pytest.raises(ConfigError, match="pipe is not a regular file"), whole_files(tmp_path) as place:
        (place / "a").write_text("")
        (place / "pipe").write_text("")
    assert pipe.is_fifo() and list(tmp_path.iterdir()) == [pipe], "nothing else was written either"
