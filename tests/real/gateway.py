"""One hikite process: started from a config, spoken to, stopped without a trace."""

import json
import os
import re
import signal
import subprocess
import time
import uuid
from pathlib import Path

READY = re.compile(r"listening on (https?://127\.0\.0\.1:\d+)")
START_SECONDS = 120
STOP_SECONDS = 20
# Named without the gateway's own prefix, which it reads as settings.
MARK = "REAL_PARTS_MARK"


class Gateway:
    def __init__(self, binary: Path, config: dict | str, folder: Path):
        self.binary = binary
        self.folder = folder
        self.data = folder / "data"
        self.config = folder / "hikite.json"
        if isinstance(config, dict):
            # A busy machine starts servers slowly, and the first list waits for one of them.
            patient = {**config, "limits": {"first_list": "60s", **config.get("limits", {})}}
            config = json.dumps(patient, ensure_ascii=False, indent=2)
        self.config.write_text(config)
        self.log_file = folder / "stderr.log"
        self.mark = uuid.uuid4().hex
        self.process: subprocess.Popen | None = None
        self.url = ""

    def start(self) -> None:
        command = [self.binary, "serve", "--config", self.config, "--listen", "127.0.0.1:0", "--data", self.data]
        with self.log_file.open("wb") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log, env=self.environment()
            )
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if ready := READY.search(self.log()):
                self.url = ready[1]
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        raise AssertionError(f"hikite did not become ready (status {self.process.poll()}):\n{self.log()}")

    def stop(self) -> None:
        """SIGTERM, then: a clean exit in time, and no process left that it or its children started."""
        if self.process is None:
            return
        before = descendants(self.process.pid)
        early = self.process.poll()
        if early is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            status = None
        survivors = self.survivors(before)
        for pid, _ in survivors:
            kill(pid)
        assert early is None, f"hikite ended by itself with {early}:\n{self.log_end()}"
        assert status is not None, f"hikite did not stop within {STOP_SECONDS} s of SIGTERM:\n{self.log_end()}"
        assert status == 0, f"hikite ended with {status} after SIGTERM:\n{self.log_end()}"
        assert not survivors, f"left behind by hikite: {[name for _, name in survivors]}"

    def survivors(self, before: set[tuple[int, str]], seconds: float = 10) -> list[tuple[int, str]]:
        """Whatever of `before`, or of what carries this gateway's mark, is still alive after `seconds`."""
        deadline = time.monotonic() + seconds
        while True:
            alive = {child for child in before if start_time(child[0]) == child[1]} | self.marked()
            if not alive or time.monotonic() > deadline:
                return [(pid, command_line(pid)) for pid, _ in sorted(alive)]
            time.sleep(0.05)

    def marked(self) -> set[tuple[int, str]]:
        """Processes with this gateway's mark in their environment, whoever their parent is by now."""
        needle = f"{MARK}={self.mark}".encode()
        found = set()
        for pid in process_ids():
            try:
                environment = Path(f"/proc/{pid}/environ").read_bytes()
            except OSError:
                continue
            if needle in environment and (started := start_time(pid)):
                found.add((pid, started))
        return found

    def environment(self) -> dict[str, str]:
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("HIKITE_")}
        # Leftover processes are looked for in /proc, which is closed where a process leaves no core dump.
        return inherited | {"HOME": str(home), MARK: self.mark, "HIKITE_DUMPABLE": "1"}

    def mcp(self, surface: str | None = None) -> str:
        return f"{self.url}/mcp" + (f"?surface={surface}" if surface else "")

    def sse(self, surface: str | None = None) -> str:
        return f"{self.url}/sse" + (f"?surface={surface}" if surface else "")

    @property
    def token(self) -> str:
        return (self.data / "token").read_text().strip()

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def log(self) -> str:
        return re.sub(r"\x1b\[[0-9;]*m", "", self.log_file.read_text(errors="replace"))

    def log_end(self) -> str:
        return "\n".join(self.log().splitlines()[-40:])


def process_ids() -> list[int]:
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def stat_fields(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat from the state on; None if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def start_time(pid: int) -> str | None:
    """Tells a process from a later one with the same id. A zombie counts as gone."""
    fields = stat_fields(pid)
    return fields[19] if fields and fields[0] not in "ZX" else None


def descendants(pid: int) -> set[tuple[int, str]]:
    children: dict[int, list[int]] = {}
    for other in process_ids():
        if fields := stat_fields(other):
            children.setdefault(int(fields[1]), []).append(other)
    found, open_ids = set(), [pid]
    while open_ids:
        for child in children.get(open_ids.pop(), []):
            open_ids.append(child)
            if started := start_time(child):
                found.add((child, started))
    return found


def command_line(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        words = []
    return f"{pid} " + b" ".join(words).decode(errors="replace").strip()


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
