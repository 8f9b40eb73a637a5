"""What commands print is of use in the shell that they were printed in."""

import json
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


def test_a_wide_table_breaks_between_words_and_keeps_its_first_column(capsys):
    lines = [["robot", "a very long heading"], ["hrp2 by name", "1"], ["x", "some more words\nand others"]]
    assert terminal.column_widths(lines, 200) == [12, 19], "as wide as the longest line"
    assert terminal.column_widths(lines, 12 + 10 + 7) == [12, 10]
    assert terminal.column_widths(lines, 5) == [12, 7], "words stay whole"
    terminal.table("", ["robot", *(f"number of things {k}" for k in range(9))], [["hrp2", *[0.5] * 9]])
    printed = capsys.readouterr().out.splitlines()
    assert len({len(line) for line in printed if line}) == 1 and len(printed[1]) <= 100


def test_a_table_that_does_not_fit_is_printed_in_parts_with_the_names_of_its_rows(capsys):
    names = [f"unbreakable_word_{k}" for k in range(9)]
    terminal.table("wide", ["robot", *names], [["hrp2", *range(9)]])
    printed = capsys.readouterr().out
    assert all(name in printed for name in names) and printed.count("hrp2") == 3 and printed.count("wide") == 1
    assert max(map(len, printed.splitlines())) <= 100


def test_what_a_library_prints_goes_to_standard_error(capfd):
    with terminal.stdout_to_stderr():
        os.system("echo a library")
    terminal.print_json({"a": 1})
    out, err = capfd.readouterr()
    assert json.loads(out) == {"a": 1} and err == "a library\n"


def test_the_title_of_a_narrow_table_stays_on_its_line(capsys):
    title = "runs in /a/folder/with/a/long/name/that/is/wider/than/the/table"
    terminal.table(title, ["run"], [["a"]])
    assert title in capsys.readouterr().out.splitlines()[0]
