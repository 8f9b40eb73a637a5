"""Another slave: canopen's own LocalNode with the EDS of a CiA 402 drive, configured by its EDS and followed."""

import struct
from pathlib import Path

import can
import canopen
import numpy as np
import pytest

from humanoid_control.errors import ConfigError
from humanoid_control.hardware.can.drives import CanopenTransport
from humanoid_control.hardware.transport import (
    ActuatorCommand,
    ActuatorSpec,
    ActuatorState,
    BusSpec,
    Flag,
    HardwareError,
    HomingProgress,
    HomingSpec,
)
from test.hardware.can.conftest import Rig
from test.hardware.can.durand_drives import Machine

EDS = Path(__file__).with_name("slave.eds")


class LocalDrive:
    """A LocalNode that maps process data as its records say, and behaves as a drive at each SYNC."""

    def __init__(self, network, id):
        self.node = network.create_node(id, str(EDS))
        self.network, self.id, self.command = network, id, {}
        self.node.nmt.state = "PRE-OPERATIONAL"
        self.machine = Machine(self.get, self.put, lambda code: self.node.emcy.send(code, 1), self.get_sub)
        network.subscribe(0x80, self.sync)
        for k in range(2):
            network.subscribe(
                0x200 + 0x100 * k + id, lambda cob, data, stamp: self.command.__setitem__(cob, bytes(data))
            )

    def commanded(self, cob, data, stamp):
        self.command[cob] = bytes(data)

    def get(self, index):
        return self.node.sdo[index].raw

    def get_sub(self, index, sub):
        return self.node.sdo[index][sub].raw

    def put(self, index, value):
        self.node.sdo[index].raw = value

    def record(self, base, k):
        """Mapped objects of a process data object; none where it is off."""
        if self.node.sdo[base + k][1].raw >> 31:
            return []
        table = self.node.sdo[base + 0x200 + k]
        return [table[j].raw >> 16 for j in range(1, table[0].raw + 1)]

    def sync(self, cob, data, stamp):
        if self.node.nmt.state != "OPERATIONAL":
            return
        for k in range(2):
            if mapped := self.record(0x1800, k):
                content = b"".join(self.node.get_data(index, 0) for index in mapped)
                self.network.send_message(0x180 + 0x100 * k + self.id, content)
            if (frame := self.command.pop(0x200 + 0x100 * k + self.id, None)) is not None:
                for index in self.record(0x1400, k):
                    size = len(self.node.object_dictionary[index]) // 8
                    self.node.set_data(index, 0, frame[:size])
                    frame = frame[size:]
        self.machine.control(self.get(0x6040))
        self.machine.step(0.005)


@pytest.fixture
def local():
    """Two such drives and a transport with their EDS."""
    channel = "local"
    network = canopen.Network(can.Bus(channel, "virtual"))
    network.NOTIFIER_CYCLE = 0.02
    network.connect()
    drives = [LocalDrive(network, i) for i in (5, 6)]

    def transport(homing=None, heartbeat=0.01, **options):
        specs = tuple(
            ActuatorSpec(f"j{i}", i, lower=-2.0, upper=2.0, velocity=20.0, effort=1.5,
                         options={"counts": 4096, "eds": str(EDS), **options}, homing=homing) for i in (5, 6)
        )  # fmt: skip
        return CanopenTransport(
            BusSpec("leg", specs, 0.005, {"interface": "virtual", "channel": channel, "heartbeat": heartbeat})
        )

    yield transport, drives
    for drive in drives:
        drive.node.nmt.stop_heartbeat()
    network.disconnect()


class Cycle(Rig):
    """The cycle of a rig around another transport."""

    def __init__(self, transport):
        self.transport, self.spec = transport, transport._spec
        self.state, self.command = ActuatorState(2), ActuatorCommand(2)


def test_another_slave_is_configured_followed_and_fails(local):
    make, drives = local
    r = Cycle(make())
    r.open().enable()
    assert r.transport.serials() == ("77", "77") and r.transport.trouble() == ""
    assert drives[0].record(0x1400, 0) == [0x6040, 0x607A] and drives[0].record(0x1400, 1) == []
    assert drives[0].record(0x1800, 0) == [0x6041, 0x6064, 0x6077] and drives[0].record(0x1800, 1) == []
    assert drives[0].node.sdo[0x1016][1].raw == 127 << 16 | 30
    r.until(lambda: r.state.have(Flag.ENABLED).all(), write=True)
    r.command.q[:] = 0.7, -0.3
    r.until(lambda: np.allclose(r.state.q, r.command.q, atol=0.002), write=True)
    drives[1].machine.fail(0x3210)
    r.until(lambda: r.state.have(Flag.FAULT)[1] and r.state.code[1], write=True)
    assert r.transport.fault_text(int(r.state.code[1])) == "DC link over-voltage (0x3210)"
    r.transport.clear_faults()
    r.until(lambda: not r.state.have(Flag.FAULT).any())
    r.transport.close()
    r.wait(lambda: drives[0].node.nmt.state == "PRE-OPERATIONAL")
    assert drives[0].machine.state == "SWITCH ON DISABLED"


def test_another_slave_looks_for_its_zero(local):
    make, drives = local
    r = Cycle(make(HomingSpec(17, 3.0, 1.0), heartbeat=0.2, absolute=False))
    drives[0].machine.switch = -300.0
    r.open().enable()
    r.until(lambda: r.state.have(Flag.ENABLED).all(), write=True)
    found = []

    def each():
        r.command.q[:] = r.state.q
        found.append(r.transport.home(0, True))

    r.until(lambda: HomingProgress.DONE in found, write=True, each=each)
    assert drives[0].get(0x6060) == 8 and -300 <= drives[0].machine.shift < -260
    r.until(lambda: r.state.have(Flag.HOMED).tolist() == [True, False], write=True)
    assert abs(r.state.q[0]) < 0.03


def test_the_identity_is_that_of_the_eds(local):
    make, drives = local
    for drive in drives:
        drive.node.set_data(0x1018, 2, struct.pack("<I", 0x403))
    with pytest.raises(HardwareError, match=r"^j5 \(leg 5\): identity 0x555/0x403/0x1, expected 0x555/0x402/0x1$"):
        make().open()
    make(product=0x403).open()


def test_an_eds_of_something_else_is_refused(tmp_path):
    path = tmp_path / "io.eds"
    text = EDS.read_text()
    path.write_text(text[: text.index("[6040]")])
    spec = ActuatorSpec("a", 1, options={"counts": 4096, "eds": str(path)}, where="my.hardware.yaml:3")
    with pytest.raises(
        ConfigError, match=r"^my.hardware.yaml:3: .*io.eds is not a drive .*: it lacks 0x6040, 0x6041, "
    ):
        CanopenTransport(BusSpec("leg", (spec,), 0.002, {"interface": "virtual", "channel": "x"}))
