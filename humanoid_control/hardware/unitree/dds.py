"""DDS access to `rt/lowcmd` and `rt/lowstate` as bytes, for driver and guardian.

Types are announced as the vendor's. Nothing is compiled: the guardian starts at once.
"""

from __future__ import annotations

import socket
import time
from functools import cache
from typing import Any
from xml.sax.saxutils import quoteattr

from cyclonedds._clayer import ddspy_take, ddspy_write  # the public calls create an object for each sample
from cyclonedds.core import DDSException, InstanceState, Policy, Qos, ReadCondition, SampleState, ViewState, WaitSet
from cyclonedds.domain import Domain, DomainParticipant
from cyclonedds.idl import make_idl_struct
from cyclonedds.idl import types as idl_types
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic

from humanoid_control.hardware.transport import HardwareError
from humanoid_control.hardware.unitree.layout import Family, Struct, family_of

types_: Any = idl_types  # its arrays are subscripted without annotation
COMMAND, STATE = "rt/lowcmd", "rt/lowstate"
QUEUE = 16  # states waiting for a reader
TIMEOUT = -10  # result of a write that would block
OFF_FRAMES, OFF_PAUSE = 5, 0.002  # power-off frames at the end, and pause between them [s]
ANY = SampleState.Any | ViewState.Any | InstanceState.Any
KINDS = {
    "u1": types_.uint8,
    "i2": types_.int16,
    "u2": types_.uint16,
    "i4": types_.int32,
    "u4": types_.uint32,
    "f4": types_.float32,
}
_domains: dict[int, tuple[str, Domain]] = {}


@cache
def message_type(struct: Struct) -> Any:
    """Return the middleware's class of a message."""
    fields = {}
    for name, kind, count in struct.fields:
        one = message_type(kind) if isinstance(kind, Struct) else KINDS[kind]
        fields[name] = types_.array[one, count] if count else one
    return make_idl_struct(struct.name.rpartition(".")[2], struct.name, fields)


def _join(domain: int, interface: str) -> None:
    have = [name for _, name in socket.if_nameindex()]
    if interface and interface not in have:
        raise HardwareError(f"{interface}: network interface not found; available: {', '.join(have)}")
    if domain in _domains:
        if (other := _domains[domain][0]) != interface:
            raise HardwareError(
                f"DDS domain {domain} is used on {other or 'any interface'}, not on {interface or 'any interface'}"
            )
        return
    chosen = f"name={quoteattr(interface)}" if interface else 'autodetermine="true"'
    config = (
        '<CycloneDDS><Domain Id="any"><General><Interfaces>'
        f"<NetworkInterface {chosen}/></Interfaces></General></Domain></CycloneDDS>"
    )
    try:
        _domains[domain] = (interface, Domain(domain, config))
    except DDSException as e:
        raise HardwareError(f"DDS domain {domain} on {interface or 'any interface'}: {e}") from None


class Ends:
    """Writer of commands, reader of states, detector of other writers.

    Attributes:
        late: frames that the middleware could not accept.
    """

    def __init__(self, interface: str, domain: int, family: Family, token: str) -> None:
        """Set up without opening.

        Args:
            token: shared by the driver and its guardian.
        """
        self._interface, self._domain, self._family = interface, domain, family
        self._token = token.encode()
        self.invalid = self.late = 0
        self._known: dict[int, bool] = {}
        self._participant: DomainParticipant | None = None

    def open(self, states: bool = True) -> None:
        """Join the domain; `states`: also read states and detect other writers.

        Raises:
            HardwareError: if the interface or the middleware fails.
        """
        _join(self._domain, self._interface)
        try:
            self._participant = p = DomainParticipant(self._domain)
            commands = Topic(p, COMMAND, message_type(self._family.command.struct))
            # reliable because a robot may request it; without blocking, as the next command supersedes this one
            reliable = Qos(Policy.Reliability.Reliable(0), Policy.History.KeepLast(1), Policy.Userdata(self._token))
            self._writer = DataWriter(p, commands, reliable)
            self._write_to = self._writer._ref
            if states:
                topic = Topic(p, STATE, message_type(self._family.state.struct))
                self._reader = DataReader(p, topic, Qos(Policy.Reliability.BestEffort, Policy.History.KeepLast(QUEUE)))
                self._take_from = self._reader._ref
                self._waiting = WaitSet(p)
                self._waiting.attach(ReadCondition(self._reader, ANY))
                once = Qos(Policy.IgnoreLocal.Participant, Policy.History.KeepLast(1))
                self._watcher = DataReader(p, commands, once)
        except DDSException as e:
            self.close()
            raise HardwareError(f"DDS domain {self._domain} on {self._interface or 'any interface'}: {e}") from None

    def close(self) -> None:
        """Leave the domain."""
        for name in ("_waiting", "_watcher", "_reader", "_writer"):
            self.__dict__.pop(name, None)
        self._participant = None
        self._known.clear()

    def take(self) -> list[bytes]:
        """Return received states in order.

        Raises:
            HardwareError: if the middleware refuses.
        """
        taken = ddspy_take(self._take_from, ANY, QUEUE)
        if isinstance(taken, int):
            raise HardwareError(f"{STATE} cannot be read: DDS error {taken}")
        frames = [frame for frame, info in taken if info.valid_data]
        self.invalid += len(taken) - len(frames)
        return frames

    def wait(self, seconds: float) -> None:
        """Wait for a state, at most `seconds`."""
        if seconds > 0:
            self._waiting.wait(int(1e9 * seconds))

    def write(self, frame: bytes) -> None:
        """Send a command.

        Raises:
            HardwareError: if the middleware refuses.
        """
        code = ddspy_write(self._write_to, frame)
        if code == TIMEOUT:
            self.late += 1
        elif code < 0:
            raise HardwareError(f"{COMMAND} cannot be written: DDS error {code}")

    def others(self) -> int:
        """Return the number of foreign command writers."""
        handles = self._watcher.get_matched_publications()
        for handle in handles:
            if handle not in self._known:
                self._known[handle] = self._ours(handle)
        return sum(not self._known[handle] for handle in handles)

    def _ours(self, handle: int) -> bool:
        found = self._watcher.get_matched_publication_data(handle)
        data = found.qos[Policy.Userdata] if found is not None and found.qos is not None else None
        return data is not None and bytes(data.data) == self._token

    def robots(self) -> int:
        """Return the number of command readers."""
        return len(self._writer.get_matched_subscriptions())


class DampingGuard:
    """Guard that damps a robot without its driver; see `GuardSpec`."""

    def __init__(self, interface: str, domain: int, family: str, token: str, off: str) -> None:
        """Join the domain early, as discovery takes time.

        Args:
            off: power-off frame in hex.

        Raises:
            HardwareError: as `Ends.open`.
        """
        self._ends, self._off = Ends(interface, domain, family_of(family), token), bytes.fromhex(off)
        self._ends.open(states=False)

    def damp(self, frame: bytes) -> None:
        """Send a damping frame.

        Raises:
            OSError: if the middleware refuses.
        """
        try:
            self._ends.write(frame)
        except HardwareError as e:
            raise OSError(str(e)) from None

    def off(self) -> None:
        """Remove the power."""
        for _ in range(OFF_FRAMES):
            self.damp(self._off)
            time.sleep(OFF_PAUSE)

    def close(self) -> None:
        """Leave the domain."""
        self._ends.close()
