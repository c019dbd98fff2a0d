"""Two hosts of one run that lose each other: network namespaces, joined by a link that delays, loses and cuts packets.

The link is a pair of taps with a forwarder between them, in place of veth and `tc netem`, which many kernels lack. Each
host runs torchrun with one process. Needs root and /dev/net/tun; without them the campaign says so and does nothing.
"""

import ctypes
import fcntl
import heapq
import os
import random
import select
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from litebert.checkpoint import list_checkpoints, load_checkpoint
from tests.torture.jobs import Job
from tests.torture.jobs import run as run_job
from tests.torture.ledger import Ledger

NAMES = ("litebert-a", "litebert-b")
ADDRESSES = ("10.77.0.1", "10.77.0.2")
TIMEOUT_SECONDS = 20  # of a process for the others; half an hour without LITEBERT_PROCESS_TIMEOUT
ENDS_WITHIN_SECONDS = 240.0
_CLONE_NEWNET, _TUNSETIFF, _TAP_WITHOUT_HEADER = 0x40000000, 0x400454CA, 0x0002 | 0x1000


@dataclass
class Link:
    """Frames from one tap to the other; what happens to them can change at any time."""

    taps: tuple[int, int]
    delay_seconds: float = 0.0
    loss: float = 0.0
    is_cut: bool = False
    is_over: bool = False
    _waiting: list[tuple[float, int, int, bytes]] = field(default_factory=list)

    def forward(self) -> None:
        """Carry frames until it is over."""
        rng, number = random.Random(1), 0
        while not self.is_over:
            ready, _, _ = select.select(self.taps, [], [], 0.002 if self._waiting else 0.05)
            for tap in ready:
                frame = os.read(tap, 1 << 16)
                if not self.is_cut and rng.random() >= self.loss:
                    number += 1
                    target = self.taps[1 - self.taps.index(tap)]
                    heapq.heappush(self._waiting, (time.monotonic() + self.delay_seconds, number, target, frame))
            while self._waiting and self._waiting[0][0] <= time.monotonic():
                _, _, target, frame = heapq.heappop(self._waiting)
                with suppress(OSError):
                    os.write(target, frame)


def find_obstacle() -> str:
    """Why there can be no namespaces here; empty if there can."""
    if os.getuid() != 0:
        return "network namespaces need root"
    if not Path("/dev/net/tun").exists():
        return "there is no /dev/net/tun"
    made = subprocess.run(["ip", "netns", "add", NAMES[0]], capture_output=True, text=True, check=False)
    subprocess.run(["ip", "netns", "delete", NAMES[0]], capture_output=True, check=False)
    return made.stderr.strip()


def build_link() -> Link:
    """Make both hosts, and the link between them."""
    remove_link()
    library = ctypes.CDLL(None, use_errno=True)
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    taps = []
    for name, address in zip(NAMES, ADDRESSES, strict=True):
        subprocess.run(["ip", "netns", "add", name], check=True)
        inside = os.open(f"/run/netns/{name}", os.O_RDONLY)
        assert library.setns(inside, _CLONE_NEWNET) == 0
        try:
            tap = os.open("/dev/net/tun", os.O_RDWR)
            fcntl.ioctl(tap, _TUNSETIFF, struct.pack("16sH", b"link0", _TAP_WITHOUT_HEADER))
        finally:
            assert library.setns(home, _CLONE_NEWNET) == 0
            os.close(inside)
        taps.append(tap)
        for words in (f"addr add {address}/24 dev link0", "link set link0 up", "link set lo up"):
            subprocess.run(["ip", "-n", name, *words.split()], check=True)
    os.close(home)
    link = Link((taps[0], taps[1]))
    threading.Thread(target=link.forward, daemon=True).start()
    return link


def remove_link() -> None:
    for name in NAMES:
        subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


class Hosts:
    """Two torchruns that make one run."""

    def __init__(self, words: list[str], folder: Path) -> None:
        self.words, self.folder = words, folder
        self.processes: list[subprocess.Popen[bytes]] = []
        for host in (0, 1):
            self.start(host)

    def start(self, host: int) -> None:
        meeting = f"--nnodes=2 --nproc-per-node=1 --node-rank={host} --max-restarts=0"
        address = f"--master-addr={ADDRESSES[0]} --master-port=29400"
        torchrun = [sys.executable, "-m", "torch.distributed.run", *meeting.split(), *address.split(), "-m", "litebert"]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "link0", "TP_SOCKET_IFNAME": "link0"}
        environment["LITEBERT_PROCESS_TIMEOUT"] = str(TIMEOUT_SECONDS)
        with (self.folder / f"host-{host}.log").open("ab") as log:
            command = ["ip", "netns", "exec", NAMES[host], *torchrun, *self.words]
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
        self.processes[host : host + 1] = [process]

    def kill(self, host: int) -> None:
        """All of a host at once: torchrun, and the worker in the session that it has made for it."""
        import psutil

        with suppress(psutil.Error):
            root = psutil.Process(self.processes[host].pid)
            for member in (root, *root.children(recursive=True)):
                with suppress(psutil.Error):
                    member.send_signal(signal.SIGKILL)
        self.processes[host].wait()

    def wait(self) -> list[int] | None:
        """The exit codes, None if one of them does not end."""
        deadline = time.monotonic() + ENDS_WITHIN_SECONDS
        while time.monotonic() < deadline:
            codes = [process.poll() for process in self.processes]
            if None not in codes:
                return [code for code in codes if code is not None]
            time.sleep(0.5)
        for host in (0, 1):
            self.kill(host)
        return None

    def read_logs(self) -> str:
        return "\n".join((self.folder / f"host-{host}.log").read_text(errors="replace") for host in (0, 1))


def wait_for_step(out: Path, step: int) -> None:
    deadline = time.monotonic() + ENDS_WITHIN_SECONDS
    while time.monotonic() < deadline and len(_lines(out)) < step:
        time.sleep(0.1)


def _lines(out: Path) -> list[bytes]:
    file = out / "metrics.jsonl"
    return file.read_bytes().splitlines() if file.is_file() else []


def lose_host(hosts: Hosts, link: Link, out: Path) -> None:
    """The second host disappears without a goodbye, for good."""
    wait_for_step(out, 5)
    link.is_cut = True
    hosts.kill(1)


def heal(hosts: Hosts, link: Link, out: Path) -> None:  # noqa: ARG001
    """A partition of a few seconds: TCP sends again what was lost."""
    wait_for_step(out, 5)
    link.is_cut = True
    time.sleep(6)
    link.is_cut = False


def slow_down(hosts: Hosts, link: Link, out: Path) -> None:  # noqa: ARG001
    """Forty milliseconds each way, and two of a hundred packets lost, from the beginning."""
    link.delay_seconds, link.loss = 0.04, 0.02


def restart_first(hosts: Hosts, link: Link, out: Path) -> None:  # noqa: ARG001
    """The host of the rendezvous is killed, and started again while the other still waits or has ended."""
    wait_for_step(out, 5)
    hosts.kill(0)


FAULTS: dict[str, Callable[[Hosts, Link, Path], None]] = {
    "undisturbed": lambda *_: None,
    "partition-heals": heal,
    "slow-and-lossy": slow_down,
    "host-disappears": lose_host,
    "rendezvous-restarts": restart_first,
}
JOB = Job("pretrain", "pretrain {m}/recipe.toml train.steps=30 train.save_every=4 --out {out}")


def torture(materials: Path, folder: Path, ledger: Ledger, seconds: float) -> None:
    """Every fault once per round, until the time is up; a run that stopped is started again and must end alike."""
    obstacle = find_obstacle()
    if obstacle:
        print(f"hosts: nothing was tried, {obstacle}")
        return
    folder.mkdir(parents=True, exist_ok=True)
    alone = folder / "alone"
    if not alone.is_dir():
        ending = run_job(JOB, materials, alone)
        assert ending.code == 0, ending.output
    deadline = time.monotonic() + seconds
    for number in range(1000):
        for name, disturb in FAULTS.items():
            trial = f"{name} {number}"
            if ledger.is_tried(trial):
                continue
            if time.monotonic() > deadline:
                return
            place = folder / f"{name}-{time.time_ns()}"
            place.mkdir()
            link = build_link()
            try:
                problem, facts = _try_fault(disturb, link, materials, place, alone)
            finally:
                link.is_over = True
                remove_link()
            ledger.write(trial, problem=problem, **facts)


def _try_fault(
    disturb: Callable[[Hosts, Link, Path], None], link: Link, materials: Path, place: Path, alone: Path
) -> tuple[str, dict[str, object]]:
    out = place / "out"
    hosts = Hosts(JOB.words(materials, out), place)
    disturb(hosts, link, out)
    started_at = time.monotonic()
    codes = hosts.wait()
    facts: dict[str, object] = {"codes": codes, "seconds": round(time.monotonic() - started_at)}
    if codes is None:
        return f"a host still runs after {ENDS_WITHIN_SECONDS:g} s", facts
    if any(codes):
        logs = hosts.read_logs()
        facts["is_clear"] = "another process of this run ended or cannot be reached" in logs or "SIGKILL" in logs
        facts["saved"] = len(list_checkpoints(out / "checkpoints"))
        link.is_cut, link.delay_seconds, link.loss = False, 0.0, 0.0
        again = Hosts(JOB.words(materials, out), place)
        codes = again.wait()
        facts["codes_again"] = codes
        if codes is None or any(codes):
            return f"the run does not continue: {codes}, {again.read_logs()[-300:]}", facts
    if not facts.get("is_clear", True):
        return f"no clear message: {hosts.read_logs()[-300:]}", facts
    return _compare(out, alone), facts


def _compare(out: Path, alone: Path) -> str:
    import torch

    ends = [load_checkpoint(list_checkpoints(path / "checkpoints")[-1]) for path in (out, alone)]
    if ends[0].step != ends[1].step:
        return f"ends at step {ends[0].step} instead of {ends[1].step}"
    weights = [end.load_weights() for end in ends]
    differing = [n for n, w in weights[0].items() if not torch.allclose(w, weights[1][n], atol=1e-5, rtol=1e-4)]
    return f"differs in {', '.join(differing[:5])}" if differing else ""
