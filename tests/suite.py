"""Parts that matrix.py, sdk_servers.py, sdk_clients.py and conformance_authorization.py share: starting programs, their
arguments, reports, and the comparison of a check with and without hikite."""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import conformance_page

# Runs of the conformance suite at the same time.
AT_ONCE = 2
LOG = {"HIKITE_LOG": "info,hikite::stderr=debug"}
START_SECONDS = 120
STOP_SECONDS = 20
# From best to worst. An absent check is worse than a passed one: it may hide a failure.
ORDER = {"SUCCESS": 0, "SKIPPED": 1, "absent": 1, "WARNING": 2, "FAILURE": 3}


@contextmanager
def gateway(options: argparse.Namespace, folder: Path, server: dict):
    """A hikite with one server; yields its address."""
    config = folder / "hikite.json"
    config.write_text(json.dumps({"auth": {"mode": "none"}, "mcpServers": {"fixture": server}}))
    data = tempfile.mkdtemp(dir=folder)
    command = [str(options.hikite.resolve()), "serve", "--config", str(config), "--data", data, "--listen", "127.0.0.1:0"]
    with running(command, folder / "hikite.log", r"http://127\.0\.0\.1:\d+", clean=True) as url:
        yield url


@contextmanager
def running(command: list[str], log: Path, pattern: str, clean: bool = False, folder: Path | None = None):
    """A process whose log contains the pattern; yields the match. With `clean` its exit code after SIGTERM must be 0."""
    with log.open("w") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=os.environ | LOG, cwd=folder
        )
    try:
        yield wait_for(process, log, pattern)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            code = process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
    if clean and code != 0:
        raise RuntimeError(f"{Path(command[0]).name} ended with {code} after SIGTERM")


def wait_for(process: subprocess.Popen, log: Path, pattern: str) -> str:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        found = re.search(pattern, log.read_text())
        if found:
            return found[0]
        time.sleep(0.05)
    raise RuntimeError(f"{Path(process.args[0]).name} does not start:\n{log.read_text()[-1000:]}")


def add_arguments(parser: argparse.ArgumentParser, timeout_ms: int) -> None:
    """Adds the arguments that every script has."""
    parser.add_argument("--output", type=Path, help="keep logs and the suite's own results in this folder")
    parser.add_argument(
        "--timeout-ms", type=int, default=timeout_ms, help=f"for each scenario (default: {timeout_ms})"
    )
    parser.add_argument("--json", action="store_true", help="print the counts as JSON")
    parser.add_argument("--table", type=Path, help="write the counts as a table to this file as well")
    parser.add_argument("--check", action="store_true", help="fail if docs/conformance.md says otherwise")
    parser.add_argument("--write", action="store_true", help="write docs/conformance.md")


def conclude(
    options: argparse.Namespace,
    report: list[dict],
    text: str,
    sections: dict[str, str],
    same: Callable[[str], str] = str,
) -> int:
    """Prints the report, then writes the sections of docs/conformance.md or compares the first one. Returns the exit code."""
    print(json.dumps(report, indent=2) if options.json else text)
    if options.table:
        options.table.write_text(text + "\n", encoding="utf-8")
    if any("error" in one for one in report):
        return 2
    failing = any(one["failing"] for one in report)
    if options.write:
        for name, section in sections.items():
            conformance_page.write(name, section)
    elif options.check:
        name, section = next(iter(sections.items()))
        difference = conformance_page.differences(name, section, same)
        print(difference, file=sys.stderr)
        failing = failing or bool(difference)
    return 1 if failing else 0


@dataclass(frozen=True)
class Reason:
    """Why a check may be worse through hikite, and the clause of the specification that asks for it."""

    # A part of the new status and its message.
    becomes: str
    why: str
    clause: str
    # Beginning of the SDK's name, if the reason applies to one SDK alone.
    only: str = ""


def reason_for(exceptions: dict[str, list[Reason]], bad: dict) -> Reason | None:
    became = f"{bad['through']}: {bad['why']}"
    holds = lambda one: one.becomes in became and bad["sdk"].startswith(one.only)
    return next((one for one in exceptions.get(bad["check"], []) if holds(one)), None)


def exceptions_table(exceptions: dict[str, list[Reason]], report: list[dict]) -> str:
    """Every check that was worse, with its reason."""
    where: dict[tuple, list[str]] = {}
    for one in report:
        for bad in one.get("worse", []):
            reason = reason_for(exceptions, bad) or Reason("", "**not explained**", "")
            places = where.setdefault((bad["check"], reason.why, reason.clause), [])
            place = f"{one['sdk']} ({one['revision']})"
            if place not in places:
                places.append(place)
    if not where:
        return "No check is worse through hikite."
    rows = [[f"`{check}`", ", ".join(places), why, clause] for (check, why, clause), places in sorted(where.items())]
    return conformance_page.table(["worse through hikite", "where", "why", "clause"], rows)
