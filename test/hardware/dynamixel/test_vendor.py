"""The emulated servos answer the maker's own master, and the driver talks to the same servos."""

import time

import numpy as np
import pytest

pytest.importorskip("dynamixel_sdk", reason="needs dynamixel-sdk")

from dynamixel_sdk import COMM_SUCCESS, GroupSyncRead, GroupSyncWrite, PortHandler

from humanoid_control.hardware.transport import Flag
from test.hardware.dynamixel.servos import VENDOR, Bus, Servo

pytestmark = pytest.mark.drives


@pytest.fixture(params=[20, 30])
def bus(request):
    with Bus([Servo(k) for k in range(1, request.param + 1)]) as b:
        yield b


@pytest.fixture
def master(bus):
    port = PortHandler(bus.path)
    assert port.openPort() and port.setBaudRate(1_000_000)
    yield port
    port.closePort()


def patient(attempt):
    """The maker's timeouts are short for a busy machine: three tries."""
    for _ in range(3):
        if (result := attempt())[0] == COMM_SUCCESS:
            return result
        time.sleep(0.1)  # an answer that is late comes meanwhile, and is not taken for that to the next question
    raise AssertionError(result)


def test_the_makers_master_pings_reads_and_writes_the_servos(bus, master):
    def ping():
        model, result, error = VENDOR.ping(master, 3)
        return result, model, error

    assert patient(ping)[1:] == (1020, 0)
    patient(lambda: VENDOR.write4ByteTxRx(master, 3, 116, 2000))
    assert bus[3].get(116, 4) == 2000

    def read():
        value, result, error = VENDOR.read4ByteTxRx(master, 3, 116)
        return result, value, error

    assert patient(read)[1:] == (2000, 0)
    bus[3].put(70, 0x20, 1)
    assert patient(ping)[2] == 0x80 and patient(read)[2] == 0x80


def test_the_makers_master_reads_and_writes_all_at_once(bus, master):
    ids = sorted(bus.servos)
    write = GroupSyncWrite(master, VENDOR, 116, 4)
    for k in ids:
        write.addParam(k, list((1000 + k).to_bytes(4, "little")))
        bus[k].put(132, 0x00FDFFFF - k if k % 2 else -k, 4)
    assert write.txPacket() == COMM_SUCCESS
    read = GroupSyncRead(master, VENDOR, 126, 10)
    for k in ids:
        read.addParam(k)
    for attempt in (read.txRxPacket, read.fastSyncRead):
        patient(lambda attempt=attempt: (attempt(),))
        for k in ids:
            assert read.getData(k, 132, 4) == ((0x00FDFFFF - k) if k % 2 else 2**32 - k)
    assert [bus[k].get(116, 4) for k in ids] == [1000 + k for k in ids]


def test_the_makers_master_sees_the_bus_watchdog_trip(bus, master):
    patient(lambda: VENDOR.write1ByteTxRx(master, 4, 98, 2))
    patient(lambda: VENDOR.write1ByteTxRx(master, 4, 64, 1))
    time.sleep(0.1)  # silence is what is tested

    def read():
        value, result, _ = VENDOR.read1ByteTxRx(master, 4, 98)
        return result, value

    assert patient(read)[1] == 255

    def goal():
        result, error = VENDOR.write4ByteTxRx(master, 4, 116, 2000)
        return result, error

    assert patient(goal)[1] == 4, "goals are read-only until the watchdog is cleared"


@pytest.mark.parametrize("fast", [True, False])
def test_the_driver_moves_all_servos(bus, driver, fast):
    ids = sorted(bus.servos)
    with driver(bus, ids, fast_sync_read=fast) as d:
        d.cycle()
        assert d.state.have(Flag.FRESH).all() and not d.state.have(Flag.ENABLED).any()
        assert np.abs(d.state.q).max() < 1e-12 and not any(bus[k].on for k in ids)
        d.enable()
        assert d.state.have(Flag.ENABLED).all() and all(bus[k].on for k in ids)
        goal = np.linspace(-1.0, 1.0, len(ids))
        d.command.q[:] = goal
        d.until(lambda: np.abs(d.state.q - goal).max() < 1e-3, "all at their goals", write=True)
        assert np.abs(d.state.q - goal).max() <= np.pi / 4096 + 1e-9
        assert [bus[k].position for k in ids] == [round(2048 + q * 4096 / (2 * np.pi)) for q in goal]
        assert (0x8A in bus.heard) == fast and (fast or 0x82 in bus.heard)
        d.until(lambda: np.isfinite(d.state.voltage).all(), "supply")
        assert d.state.voltage.tolist() == [12.0] * len(ids) and d.state.temperature.tolist() == [35.0] * len(ids)
        d.until(lambda: d.transport.power(False), "power off")
        assert not any(bus[k].on for k in ids)
