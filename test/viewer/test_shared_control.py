"""A choice on the page is not lost where the page shows a value of its own at the same moment."""

from types import SimpleNamespace

import pytest

from humanoid_control.viewer.shared_control import SharedControl

pytest.importorskip("viser")


def somebody_chooses(control, value):
    """Store a value as viser does when it arrives; return the call that viser makes later, in another thread."""
    control.handle._impl.value = value
    event = SimpleNamespace(client_id=3)
    return lambda: [call(event) for call in control.handle._impl.update_cb]


@pytest.fixture
def slider(server):
    asked = []
    handle = server.gui.add_slider("time", min=0.0, max=32.0, step=0.01, initial_value=0.0)
    yield SharedControl(handle, asked.append), asked
    handle.remove()


def test_what_the_page_shows_is_no_choice(slider):
    control, asked = slider
    control.show(6.4)
    control.show(6.5, max=20.0)
    assert (control.value, control.handle.max, asked) == (6.5, 20.0, [])


def test_a_choice_is_not_overwritten_before_its_action(slider):
    control, asked = slider
    control.show(6.4)
    arrives = somebody_chooses(control, 16.0)
    control.show(6.5)
    assert control.value == 16.0, "the page would put its own value in the place of the choice"
    arrives()
    assert asked == [16.0]
    control.show(16.1)
    assert control.value == 16.1 and asked == [16.0]


def test_a_choice_that_arrives_while_the_page_shows_a_value_has_its_action(slider):
    control, asked = slider
    control.handle.on_update(lambda event: None if event.client_id else somebody_chooses(control, 16.0)())
    control.show(6.4)
    assert asked == [16.0] and control.value == 16.0


def test_options_that_replace_a_value_are_shown(server):
    asked = []
    control = SharedControl(server.gui.add_dropdown("clip", ("a", "b"), initial_value="b"), asked.append)
    control.show("c", options=("c", "d"))
    assert control.value == "c"
    control.show("d", options=("c", "d"))
    assert control.value == "d" and asked == []
    somebody_chooses(control, "c")()
    assert asked == ["c"]
