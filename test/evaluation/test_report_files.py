"""Files of a report: places where none can be written are refused before anything is computed."""

import pytest

from humanoid_control.errors import ConfigError
from humanoid_control.evaluation.report import check_outputs


def test_places_where_nothing_can_be_written_are_refused(tmp_path):
    (tmp_path / "file").write_text("mine")
    for html, folder in (
        (tmp_path / "page.txt", None),
        (tmp_path / "none" / "page.html", None),
        (None, tmp_path / "file"),
        (tmp_path / "page.html", tmp_path / "file"),
    ):
        with pytest.raises(ConfigError):
            check_outputs(html, folder)
    check_outputs(tmp_path / "page.html", tmp_path)
    check_outputs(None, None)
    assert [p.name for p in tmp_path.iterdir()] == ["file"] and (tmp_path / "file").read_text() == "mine"
