"""`hikite serve` as a person at a terminal sees it: a line per server, then where to go next."""

import json
import os
import pty
import re
import signal
import subprocess
import time

import pytest

SECONDS = 120
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
LOG_TIME = re.compile(r"\d{4}-\d\d-\d\dT")


class Terminal:
    """hikite on a pseudo terminal of its own."""

    def __init__(self, binary, folder, config, *flags, **environment):
        (folder / "hikite.json").write_text(json.dumps(config))
        ours, theirs = pty.openpty()
        self.ours = ours
        command = [binary, "serve", "--config", folder / "hikite.json", "--data", folder / "data", *flags]
        environment = {**os.environ, "TERM": "xterm", "HOME": str(folder), **environment}
        self.process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True
        )
        os.close(theirs)
        self.raw = ""

    def wait_for(self, words: str) -> str:
        """Reads until the words have come, and returns everything so far without escape sequences."""
        os.set_blocking(self.ours, False)
        deadline = time.monotonic() + SECONDS
        while words not in self.text():
            assert time.monotonic() < deadline and self.process.poll() is None, f"no {words!r} in:\n{self.text()}"
            self.read()
            time.sleep(0.02)
        return self.text()

    def read(self) -> None:
        try:
            self.raw += os.read(self.ours, 65536).decode(errors="replace")
        except (BlockingIOError, OSError):
            pass

    def text(self) -> str:
        return ESCAPES.sub("", self.raw)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        deadline = time.monotonic() + SECONDS
        while self.process.poll() is None and time.monotonic() < deadline:
            self.read()
            time.sleep(0.02)
        os.close(self.ours)
        return self.process.returncode


@pytest.fixture
def terminal(binary, tmp_path):
    started = []

    def start(config, *flags, **environment):
        config = {"server": {"listen": "127.0.0.1:0"}, "modules": {"builtin": False}, **config}
        started.append(Terminal(binary, tmp_path, config, *flags, **environment))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()


def test_a_terminal_shows_each_server_and_then_the_next_steps(terminal, parts, tmp_path):
    servers = {"memory": parts.memory(tmp_path / "memory.json"), "lost": {"command": "no-such-program"}}
    shown = terminal({"mcpServers": servers})
    text = shown.wait_for("Ctrl+C")
    assert re.search(r"memory: \d+ tools", text), text
    assert "lost: failed" in text and "doctor` says why" in text
    assert re.search(r"Pages +http://127\.0\.0\.1:\d+/ui", text)
    assert re.search(r"Set up +http://127\.0\.0\.1:\d+/setup\?token=[0-9a-f]+", text)
    assert "connect claude-code" in text
    assert "1 not answering" in text
    assert not LOG_TIME.search(text), "log lines belong behind --log"
    assert "hk_local_" not in text, "the token is not shown unasked"
    assert shown.stop() == 0


def test_the_log_is_there_for_those_who_ask(terminal):
    shown = terminal({}, "--log", "info")
    text = shown.wait_for("the catalog is built")
    assert LOG_TIME.search(text)
    assert "usable=0" in text
    assert shown.stop() == 0


def test_no_color_means_no_colours(terminal):
    # The category has a warning, which has a colour elsewhere.
    category = {"description": "c", "server": "lost"}
    config = {"mcpServers": {"lost": {"command": "no-such-program"}}, "categories": {"c": category}}
    shown = terminal(config, NO_COLOR="1")
    shown.wait_for("Ctrl+C")
    shown.wait_for("WARN")
    assert not re.search(r"\x1b\[3[0-7]m", shown.raw), shown.raw
    assert shown.stop() == 0


def test_a_signal_ends_the_wait_for_slow_servers(terminal):
    shown = terminal({"mcpServers": {"slow": {"command": "sleep", "args": ["1000"]}}})
    shown.wait_for("slow: starting")
    begun = time.monotonic()
    assert shown.stop() == 0
    assert "still starting" not in shown.text(), f"it waited for {time.monotonic() - begun:.1f} s"
