"""Emulated servos at the far end of a pseudo terminal: control tables; CRC and stuffing are the maker's own.

Nothing here is taken from the package, so that both ends of a wire cannot be wrong alike.
"""

import contextlib
import os
import pty
import select
import termios
import threading
import time
import tty

from dynamixel_sdk import Protocol2PacketHandler

VENDOR = Protocol2PacketHandler()
X = {"torque": 64, "watchdog": 98, "current": 102, "velocity": 104, "position": 116, "present": 126, "supply": 144}
P = {"torque": 512, "watchdog": 546, "current": 550, "velocity": 552, "position": 564, "present": 574, "supply": 592}
BAUD = {getattr(termios, f"B{n}"): n for n in (57600, 115200, 1_000_000, 2_000_000, 4_000_000)}


def crc(data):
    return VENDOR.updateCRC(0, list(data), len(data)).to_bytes(2, "little")


def status(servo, data=b"", error=0):
    """A status packet, stuffed by the maker's code."""
    body = [0xFF, 0xFF, 0xFD, 0, servo, *(len(data) + 4).to_bytes(2, "little"), 0x55, error, *data, 0, 0]
    body = bytes(VENDOR.addStuffing(body))[:-2]
    return body + crc(body)


class Servo:
    """One servo: its control table, and a motor that goes to its goal at once unless `follows` is taken away."""

    def __init__(self, servo, model=1020, firmware=45, table=X, current_limit=1193, velocity_limit=350):
        self.id, self.at = servo, table
        self.table = bytearray(1024)
        self.put(0, model, 2)
        self.put(6, firmware, 1)
        self.put(7, servo, 1)
        self.put(9, 250, 1)
        self.put(11, 3, 1)
        self.put(38, current_limit, 2)
        self.put(44, velocity_limit, 4)
        self.put(48, 4095 if table is X else 501433, 4)
        self.put(52, 0 if table is X else -501433, 4)
        self.put(table["present"] + 6, 2048 if table is X else 0, 4)
        self.put(table["supply"], 120, 2)
        self.put(table["supply"] + 2, 35, 1)
        self.silent = self.refuses_watchdog = self.stuck = self.unmeasured = False
        self.heard, self.reboots, self.written = time.monotonic(), 0, []

    def put(self, address, value, width):
        self.table[address : address + width] = (value % 256**width).to_bytes(width, "little")

    def get(self, address, width, signed=False):
        return int.from_bytes(self.table[address : address + width], "little", signed=signed)

    @property
    def on(self):
        return self.get(self.at["torque"], 1) == 1

    @property
    def position(self):
        return self.get(self.at["present"] + 6, 4, True)

    @property
    def error(self):
        return 0x80 if self.get(self.at["torque"] + 6, 1) else 0

    def watch(self):
        """Bus watchdog: with torque, it trips after so much silence; goals are read-only from then on."""
        units = self.get(self.at["watchdog"], 1)
        if self.on and 1 <= units <= 127 and time.monotonic() - self.heard > 0.02 * units:
            self.put(self.at["watchdog"], -1, 1)
        self.heard = time.monotonic()

    def write(self, address, data):
        """Write; the error number."""
        goals = range(self.at["current"], self.at["position"] + 4)
        if address < 64 and self.on:
            return 7
        if address in goals and self.get(self.at["watchdog"], 1) == 255:
            return 4
        if address == self.at["watchdog"] and self.refuses_watchdog and data[0]:
            return 4
        if address == self.at["torque"] and data[0] and self.error:
            return 1
        if address == self.at["position"]:
            count = int.from_bytes(data, "little", signed=True)
            low, high = self.get(52, 4, True), self.get(48, 4, True)
            if self.get(11, 1) == 3 and not low <= count <= high:
                return 6
        self.table[address : address + len(data)] = data
        self.written.append((address, bytes(data)))
        self.move()
        return 0

    def move(self):
        if not self.on or self.stuck:
            return
        present, mode = self.at["present"], self.get(11, 1)
        if mode in (3, 4, 5):
            self.put(present + 6, self.get(self.at["position"], 4), 4)
        if mode == 1:
            self.put(present + 2, self.get(self.at["velocity"], 4), 4)
        if mode in (0, 5):
            self.put(present, self.get(self.at["current"], 2), 2)

    def reboot(self):
        self.reboots += 1
        for address in (self.at["torque"], self.at["torque"] + 6, self.at["watchdog"]):
            self.put(address, 0, 1)


class Bus:
    """A pseudo terminal with servos; a context manager.

    Attributes:
        path: of the end that a driver opens. baud: of the servos, None: whatever the other end has.
        noise: bytes before every reply. torn: replies to sync reads lose this many bytes at their end.
        heard: instruction packets by instruction.
    """

    def __init__(self, servos, baud=None):
        self.servos = {s.id: s for s in servos}
        self.baud, self.noise, self.torn, self.heard, self.echo = baud, b"", 0, {}, False
        self._end = False

    def __enter__(self):
        self.fd, slave = pty.openpty()
        tty.setraw(slave)
        self.path = os.ttyname(slave)
        self._slave = slave  # kept open: the far end hangs up otherwise
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._end = True
        self._thread.join()
        self.hang_up()

    def hang_up(self):
        for fd in (self.fd, self._slave):
            with contextlib.suppress(OSError):
                os.close(fd)

    def __getitem__(self, servo):
        return self.servos[servo]

    def _run(self):
        buffer = b""
        while not self._end:
            ready, _, _ = select.select([self.fd], [], [], 0.02)
            if not ready:
                continue
            try:
                buffer += os.read(self.fd, 4096)
            except OSError:
                return
            if self.baud is not None and BAUD.get(termios.tcgetattr(self._slave)[5]) != self.baud:
                buffer = b""  # at another rate bytes are no bytes
                continue
            buffer = self._take(buffer)

    def _take(self, buffer):
        while (at := buffer.find(b"\xff\xff\xfd\x00")) >= 0 and len(buffer) >= at + 7:
            size = 7 + int.from_bytes(buffer[at + 5 : at + 7], "little")
            if len(buffer) < at + size:
                return buffer[at:]
            frame, buffer = buffer[at : at + size], buffer[at + size :]
            if frame[-2:] == crc(frame[:-2]):
                plain = bytes(VENDOR.removeStuffing(list(frame)))
                self._handle(plain[4], plain[7], plain[8 : 5 + int.from_bytes(plain[5:7], "little")], frame)
        return buffer

    def _handle(self, to, instruction, p, frame):
        self.heard[instruction] = self.heard.get(instruction, 0) + 1
        alive = [s for s in self.servos.values() if not s.silent]
        for s in alive:
            s.watch()
        mine = {s.id: s for s in alive}
        reply = frame if self.echo else b""
        if instruction == 1:
            reply += b"".join(status(s.id, s.table[0:2] + s.table[6:7], s.error) for s in alive if to in (s.id, 254))
        elif instruction == 2 and to in mine:
            address, length = int.from_bytes(p[0:2], "little"), int.from_bytes(p[2:4], "little")
            reply += status(to, mine[to].table[address : address + length], mine[to].error)
        elif instruction == 3 and to in mine:
            error = mine[to].write(int.from_bytes(p[0:2], "little"), p[2:])
            reply += status(to, error=mine[to].error | error)
        elif instruction == 8 and to in mine:
            mine[to].reboot()
            reply += status(to)
        elif instruction in (0x82, 0x83, 0x8A):
            address, length = int.from_bytes(p[0:2], "little"), int.from_bytes(p[2:4], "little")
            if instruction == 0x83:
                for k in range(4, len(p), length + 1):
                    if p[k] in mine:
                        mine[p[k]].write(address, p[k + 1 : k + 1 + length])
            else:
                reply += self._sync_read(instruction == 0x8A, address, length, p[4:], mine)
                reply = reply[: len(reply) - self.torn]
        if reply:
            with contextlib.suppress(OSError):
                os.write(self.fd, self.noise + reply)

    def _sync_read(self, fast, address, length, ids, mine):
        mine = {k: s for k, s in mine.items() if not (s.unmeasured and address == s.at["present"])}
        if not fast:
            return b"".join(
                status(k, mine[k].table[address : address + length], mine[k].error) for k in ids if k in mine
            )
        size = 1 + len(ids) * (length + 4) + 2 - 2
        out = bytes([0xFF, 0xFF, 0xFD, 0, 0xFE]) + size.to_bytes(2, "little") + b"\x55"
        for k in ids:
            if k not in mine:
                break  # the next one waits for this one in vain
            out += bytes([mine[k].error, k]) + bytes(mine[k].table[address : address + length])
            out += crc(out)
        return out
