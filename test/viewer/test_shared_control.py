"""A choice on the page is not lost where the page, or somebody else, sets the same control at the same moment."""

import asyncio
import inspect
from types import SimpleNamespace

import pytest

from humanoid_control.viewer import power_controls, tendon_controls, walk_controls
from humanoid_control.viewer.power_controls import PowerActions, PowerControls
from humanoid_control.viewer.shared_control import SharedControl, on_press
from humanoid_control.viewer.tendon_controls import TendonActions, TendonControls
from humanoid_control.viewer.walk_controls import WalkActions, WalkControls

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


def press(group, *presses):
    """Press buttons of a group in turn, each by a browser; viser calls plain functions only after the last of them."""
    later = []

    async def arrive():
        for client, label in presses:
            event = SimpleNamespace(client_id=client, client=None)
            group._impl.value = label
            for call in group._impl.update_cb:
                if inspect.iscoroutinefunction(call):
                    await call(event)
                else:
                    later.append((call, event))

    asyncio.run(arrive())  # and what it has left to threads
    for call, event in later:
        call(event)


OWNER, STRANGER = 1, 2


def walk(server, asked):
    made = WalkControls(server, WalkActions(asked.append, asked.append, asked.append))
    return made, walk_controls, "robot", ("emergency stop", "stand")


def tendons(server, asked):
    made = TendonControls(server, TendonActions(("l_biceps",), asked.append, asked.append, asked.append))
    return made, tendon_controls, "winches", ("HOLD", "FOLLOW")


def power(server, asked):
    made = PowerControls(server, PowerActions(lambda request: asked.append(request) or True))
    return made, power_controls, "driver", ("switch off", "home")


@pytest.mark.parametrize("make", [walk, tendons, power])
def test_a_stop_is_not_replaced_by_what_somebody_else_presses_meanwhile(server, monkeypatch, make):
    """Nor does a browser without the token act in the name of one that has it."""
    asked, groups = [], {}
    add = server.gui.add_button_group
    monkeypatch.setattr(
        server.gui, "add_button_group", lambda label, *more: groups.setdefault(label, add(label, *more))
    )
    _, module, name, (stop, other) = make(server, asked)
    monkeypatch.setattr(module, "may_command", lambda server, event: event.client_id == OWNER)
    press(groups[name], (OWNER, stop), (STRANGER, other))
    assert asked == [power_controls.MORE.get(stop, stop)]


def test_each_press_has_its_value_and_errors_are_printed(server, capsys):
    asked, group = [], server.gui.add_button_group("group", ("a", "b", "c"))
    on_press(group, lambda event, label: asked.append((event.client_id, label, 1 / (label != "b"))))
    press(group, (1, "a"), (2, "b"), (3, "c"))
    assert sorted(asked) == [(1, "a", 1.0), (3, "c", 1.0)] and "ZeroDivisionError" in capsys.readouterr().err
