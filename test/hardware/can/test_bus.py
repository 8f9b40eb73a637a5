"""A CAN bus: opened by name or refused in one line, its load by the formula, frames that are views."""

import copy
import errno
import socket

import can
import pytest

from humanoid_control.errors import HumanoidError, missing_package
from humanoid_control.hardware.can import bus as can_bus
from humanoid_control.hardware.can.bus import (
    CanBus,
    CanFrame,
    candump,
    check_socketcan,
    frame_bits,
    message,
    socketcan_problem,
)
from humanoid_control.hardware.can.drives import CanopenTransport
from humanoid_control.hardware.can.mit import MitTransport
from humanoid_control.hardware.transport import ActuatorSpec, BusSpec, HardwareError


def longest_on_the_wire(size):
    """Bits of the longest frame of this size: every stuffable group of four has its stuff bit."""
    stuffable = 1 + 11 + 1 + 2 + 4 + 8 * size + 15  # start, identifier, RTR, IDE and r0, DLC, data, CRC
    return stuffable + (stuffable - 1) // 4 + 1 + 2 + 7 + 3  # CRC delimiter, ACK, end of frame, intermission


@pytest.mark.parametrize("size", range(9))
def test_bits_of_a_frame_are_those_of_the_longest_one(size):
    assert frame_bits(size) == longest_on_the_wire(size)


def drives(n, transport, period, **options):
    rows = {"counts": 4096} if transport is CanopenTransport else {"model": "AK80-9"}
    specs = tuple(ActuatorSpec(f"j{i}", i, options=rows) for i in range(1, n + 1))
    return BusSpec("leg", specs, period, {"interface": "virtual", "channel": "x", **options})


@pytest.mark.parametrize(("rate", "most"), [(500, 5), (250, 10), (125, 22)])
def test_so_many_drives_fit_on_a_bus(rate, most):
    """Heartbeats, once a second here, take little."""
    options = {"drive_heartbeat": 1.0, "heartbeat": 0.1}
    load = [CanopenTransport.bus_load(drives(n, CanopenTransport, 1 / rate, **options)) for n in (most, most + 1)]
    assert load[0] < 0.7 < load[1]


def test_load_grows_with_what_is_asked_for():
    plain = CanopenTransport.bus_load(drives(4, CanopenTransport, 0.002))
    assert CanopenTransport.bus_load(drives(4, CanopenTransport, 0.002, measured_velocity=True)) > plain
    slow = CanopenTransport.bus_load(drives(4, CanopenTransport, 0.002, bitrate=500_000))
    assert slow == pytest.approx(2 * plain)
    assert MitTransport.bus_load(drives(4, MitTransport, 0.002)) == pytest.approx(4 * 2 * 135 * 500 / 1e6)


def test_a_frame_is_a_view_and_copies_are_not():
    buffer = bytearray(b"\x01\x02\x03\x04")
    frame = CanFrame(0x201, memoryview(buffer)[1:3])
    kept = copy.deepcopy(frame)
    buffer[1] = 0xFF
    assert bytes(frame.data) == b"\xff\x03" and bytes(kept.data) == b"\x02\x03"
    assert not kept.is_extended_id and kept.arbitration_id == 0x201 and candump(frame) == "201#FF03"


@pytest.mark.parametrize("interface", ["virtual", "udp_multicast"])
def test_a_frame_that_is_a_view_goes_through_an_interface(interface, worker_port):
    options = {"interface": interface, "channel": "239.74.163.2", "port": worker_port}
    one, two = CanBus("a", options), CanBus("b", options)
    one.open()
    two.open()
    one.send(CanFrame(0x123, memoryview(bytearray(b"\x0a\x0b"))))
    end = can_bus.time.monotonic() + 2.0
    (got,) = two.receive(end)
    assert (got.arbitration_id, bytes(got.data), got.is_extended_id) == (0x123, b"\x0a\x0b", False)
    one.close()
    two.close()
    two.close()


def test_frames_stay_on_this_computer(worker_port):
    one = CanBus("a", {"interface": "udp_multicast", "channel": "239.74.163.2", "port": worker_port})
    one.open()
    ttl = one.raw._multicast._socket.getsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL)
    one.close()
    assert ttl == 0


def net(folder, name, kind="280", state="up"):
    (folder / name).mkdir()
    (folder / name / "type").write_text(f"{kind}\n")
    (folder / name / "operstate").write_text(f"{state}\n")


def test_a_missing_or_sleeping_interface_is_said_with_its_remedy(tmp_path, monkeypatch):
    monkeypatch.setattr(can_bus, "socketcan_problem", lambda: "")
    net(tmp_path, "eth0", "1")
    net(tmp_path, "can1")
    net(tmp_path, "can2", state="down")
    remedy = "ip link set {} up type can bitrate 1000000"
    with pytest.raises(HardwareError) as e:
        check_socketcan("can0", 1_000_000, tmp_path)
    assert str(e.value) == f"can0: interface not found (have: can1, can2); {remedy.format('can0')}"
    with pytest.raises(HardwareError) as e:
        check_socketcan("eth0", 1_000_000, tmp_path)
    assert "interface not found" in str(e.value)
    with pytest.raises(HardwareError) as e:
        check_socketcan("can2", 1_000_000, tmp_path)
    assert str(e.value) == f"can2: down; {remedy.format('can2')}"
    check_socketcan("can1", 1_000_000, tmp_path)


@pytest.mark.parametrize(
    "options",
    [
        {"interface": "socketcan", "channel": "can77"},
        {"interface": "slcan", "channel": "/dev/ttyNOWHERE"},
        {"interface": "pcan", "channel": "PCAN_USBBUS1"},
        {"interface": "udp_multicast", "channel": "not an address"},
    ],
)
def test_what_cannot_be_opened_is_said_in_one_line(options):
    with pytest.raises(HardwareError) as e:
        CanBus("leg", options).open()
    assert "\n" not in str(e.value) and options["channel"] in str(e.value)


def test_frames_that_do_not_fit_into_the_queue_are_counted_and_a_dead_device_is_gone():
    b = CanBus("leg", {"interface": "virtual", "channel": "full"})
    b.open()
    real = b.raw
    b.raw = Failing(errno.ENOBUFS)
    for _ in range(5):
        b.send(message(1))
    assert (b.errors, b.sent) == (5, 0)
    b.raw = real
    b.send(message(1))
    b.raw = Failing(errno.ENOBUFS)
    for _ in range(10):
        b.send(message(1))
    with pytest.raises(HardwareError, match="full disappeared"):
        b.send(message(1))
    b._failures, b.raw = 0, Failing(errno.ENETDOWN)
    with pytest.raises(HardwareError, match="full disappeared"):
        b.send(message(1))
    b._failures = 0
    with pytest.raises(HardwareError, match="full disappeared"):
        b.receive(0.0)
    b.raw = real
    b.close()
    with pytest.raises(HardwareError, match="closed"):
        b.send(message(1))
    with pytest.raises(HardwareError, match="closed"):
        b.receive(0.0)


class Failing:
    """A bus whose device does what the system says with an error number."""

    def __init__(self, number):
        self.number = number

    def send(self, frame):
        raise can.CanOperationError("failed", error_code=self.number)

    def recv(self, timeout):
        raise can.CanOperationError("failed", error_code=self.number)


def test_a_device_that_babbles_does_not_hold_the_cycle_up():
    b = CanBus("leg", {"interface": "virtual", "channel": "babble"})
    b.open()
    real, b.raw = b.raw, Babbling()
    assert len(b.receive(0.0)) == can_bus.MOST
    b.raw = real
    b.close()


class Babbling:
    def recv(self, timeout):
        return message(1)


def test_a_missing_package_is_named_with_its_extra():
    for module in ("can", "canopen"):
        text = str(missing_package(ModuleNotFoundError(name=module)))
        assert text == f"{module} is not installed: pip install 'humanoid_control[canopen]'"
        assert isinstance(missing_package(ModuleNotFoundError(name=module)), HumanoidError)


@pytest.mark.skipif(bool(socketcan_problem()), reason=socketcan_problem())
def test_socketcan(tmp_path):
    """Where the kernel has it: a virtual interface that exists, or the line that says that it does not."""
    try:
        check_socketcan("vcan0", 1_000_000)
    except HardwareError as e:
        pytest.skip(str(e))
    one, two = (CanBus(n, {"interface": "socketcan", "channel": "vcan0"}) for n in "ab")
    one.open()
    two.open()
    one.send(CanFrame(0x123, memoryview(bytearray(b"\x0a"))))
    (got,) = two.receive(can_bus.time.monotonic() + 2.0)
    assert (got.arbitration_id, bytes(got.data)) == (0x123, b"\x0a")
    one.close()
    two.close()
