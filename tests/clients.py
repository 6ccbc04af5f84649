#!/usr/bin/env python3
"""Claude Code and Codex log in to hikite and reach its tools, as a person at a terminal would have them do. Both and
Gemini CLI read the entry that `hikite connect` writes.

    tests/clients.py target/release/hikite

Their packages are large, so that this is not part of every run: `./test --clients`. Installs them from npm into the
cache, starts hikite, adds it to each client, logs in through the pages that a person would see, and asks the client
whether it is connected. Ends with 0 if all are, 1 if one is not, 2 if it could not run.
"""

import argparse
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

TESTS = Path(__file__).resolve().parent
sys.path.insert(0, str(TESTS / "real"))
from gateway import Gateway  # noqa: E402
from person import Person  # noqa: E402

CACHE = Path(os.environ.get("HIKITE_TEST_CACHE", TESTS.parent / ".cache/tests")) / "clients"
PACKAGES = ("@anthropic-ai/claude-code@2.1.325", "@openai/codex@0.166.0", "@google/gemini-cli@0.61.0")
LINK = re.compile(r"https?://[^\s\"'\x1b]+/oauth/authorize\?[^\s\"'\x1b]+")
SECONDS = 120


def main() -> int:
    parser = argparse.ArgumentParser(description="Logs in with clients that people use.")
    parser.add_argument("hikite", type=Path)
    parser.add_argument("--counts", type=Path, help="write `PASSED FAILED` in clients to this file")
    options = parser.parse_args()
    install()
    with tempfile.TemporaryDirectory() as folder:
        gateway = Gateway(options.hikite.resolve(), {"server": {"surface": "modules"}}, Path(folder))
        gateway.start()
        try:
            person = Person()
            person.set_up(gateway)
            passed = [tried(name, client, gateway, person, Path(folder)) for name, client in CLIENTS.items()]
        finally:
            gateway.stop()
    if options.counts:
        options.counts.write_text(f"{sum(passed)} {len(passed) - sum(passed)}\n")
    return 0 if all(passed) else 1


def install() -> None:
    if (CACHE / ".stamp").exists() and (CACHE / ".stamp").read_text() == " ".join(PACKAGES):
        return
    CACHE.mkdir(parents=True, exist_ok=True)
    (CACHE / "package.json").write_text("{}")
    command = ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", *PACKAGES]
    if subprocess.run(command, cwd=CACHE).returncode:
        sys.exit(2)
    (CACHE / ".stamp").write_text(" ".join(PACKAGES))


def tried(name: str, client, gateway: Gateway, person: Person, folder: Path) -> bool:
    home = folder / name
    home.mkdir()
    try:
        client(gateway, person, home)
    except (AssertionError, subprocess.TimeoutExpired) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return False
    print(f"{name}: connected")
    return True


def claude_code(gateway: Gateway, person: Person, home: Path) -> None:
    run = runner("claude", home)
    run("mcp", "add", "--transport", "http", "hikite", gateway.mcp())
    assert "authentication" in run("mcp", "list").lower(), "it does not say that a login is needed"
    log_in(["claude", "mcp", "login", "hikite", "--no-browser"], home, person)
    listed = run("mcp", "list")
    assert "✓" in listed or "connected" in listed.lower(), listed


def codex(gateway: Gateway, person: Person, home: Path) -> None:
    # It asks for the login as soon as it is told of the server.
    log_in(["codex", "mcp", "add", "hikite", "--url", gateway.mcp()], home, person)
    listed = runner("codex", home)("mcp", "list")
    assert "oauth" in listed.lower(), listed


def written(name: str, program: str, file: str, before: str):
    """`hikite connect` writes the client's file, the client lists hikite, and `--undo` restores the bytes."""

    def client(gateway: Gateway, _: Person, home: Path) -> None:
        path, listed = home / file, runner(program, home)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(before)

        def hikite(*arguments: str) -> str:
            command = [gateway.binary, "--config", gateway.config, "--data", gateway.data, *arguments, "--yes"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=environment(home))
            assert done.returncode == 0, f"{arguments}: {done.stderr}"
            return done.stderr

        hikite("connect", name, "--url", gateway.url)
        once = path.read_bytes()
        assert "connected already" in hikite("connect", name, "--url", gateway.url) and path.read_bytes() == once
        hikite("connect", name, "--undo")
        assert path.read_text() == before, "undo does not restore the bytes"
        hikite("connect", name, "--url", gateway.url)
        assert "hikite" in listed("mcp", "list"), "it does not list hikite"
        hikite("connect", name, "--token", "--url", gateway.url)
        assert path.stat().st_mode & 0o777 == 0o600, "others can read the token"
        said = listed("mcp", "list")
        # Codex lists servers without calling them.
        assert re.search("hikite.*(Bearer token)" if name == "codex" else "hikite.* Connected", said), said
        hikite("disconnect", name)
        assert "hikite" not in listed("mcp", "list"), "it still lists hikite"

    return client


CLIENTS = {
    "Claude Code": claude_code,
    "Codex": codex,
    "Claude Code by command": written("claude-code", "claude", ".claude.json", '{\n  "numStartups": 1\n}\n'),
    "Codex by command": written("codex", "codex", ".codex/config.toml", '# mine\nmodel = "o3"\n'),
    "Gemini CLI by command": written("gemini-cli", "gemini", ".gemini/settings.json", "{}\n"),
}


def environment(home: Path) -> dict[str, str]:
    theirs = ("ANTHROPIC_", "CLAUDE", "GEMINI_", "OPENAI_")
    plain = {name: value for name, value in os.environ.items() if not name.startswith(theirs)}
    # Gemini CLI starts servers only in folders that it trusts.
    own = {"CODEX_HOME": str(home / ".codex"), "DISABLE_AUTOUPDATER": "1", "GEMINI_CLI_TRUST_WORKSPACE": "true"}
    return plain | {"HOME": str(home)} | own


def runner(program: str, home: Path):
    (home / ".codex").mkdir(exist_ok=True)

    def run(*arguments: str) -> str:
        command = [CACHE / "node_modules/.bin" / program, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=environment(home), cwd=home)
        assert done.returncode == 0, f"{program} {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    return run


def log_in(command: list[str], home: Path, person: Person) -> None:
    """At a terminal: reads the link, goes there as a person does, and comes back where the client listens."""
    (home / ".codex").mkdir(exist_ok=True)
    ours, theirs = pty.openpty()
    # Wide, so that no link is broken into lines.
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 4000, 0, 0))
    process = subprocess.Popen(
        [CACHE / "node_modules/.bin" / command[0], *command[1:]], stdin=theirs, stdout=theirs, stderr=theirs,
        env=environment(home), cwd=home, start_new_session=True,
    )
    os.close(theirs)
    said, deadline, came_back = "", time.monotonic() + SECONDS, False
    try:
        while process.poll() is None and time.monotonic() < deadline:
            if select.select([ours], [], [], 0.2)[0]:
                try:
                    said += os.read(ours, 65536).decode(errors="replace")
                except OSError:
                    break
            link = LINK.search(said)
            if link and not came_back:
                came_back = True
                come_back(link[0], person, ours)
        process.wait(10)
        assert came_back and process.returncode == 0, f"{' '.join(command)} ended with {process.returncode}:\n{said}"
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def come_back(url: str, person: Person, terminal: int) -> None:
    back = dict(parse_qsl(urlsplit(url).query))["redirect_uri"]
    address = f"{back}?{urlencode(person.authorize(url))}"
    try:
        urllib.request.urlopen(address, timeout=30).read()
    except urllib.error.URLError:
        # Nobody listens there: it is pasted.
        os.write(terminal, f"{address}\r".encode())


if __name__ == "__main__":
    sys.exit(main())
