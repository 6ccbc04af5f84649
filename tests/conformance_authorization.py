#!/usr/bin/env python3
"""Runs the public MCP conformance suite's scenarios for authorization servers against a running hikite.

    tests/conformance_authorization.py target/release/hikite

A hikite of its own is started and set up through its own pages; the suite asks a person to open an
address in a browser, and this script is the person: it logs in, says yes, and follows the way back.
The client has no secret: the suite sends none where a server takes clients without.

Ends with 0 if every scenario passes, 1 if one fails, 2 if the suite could not run.
"""

import argparse
import http.cookiejar
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from html.parser import HTMLParser
from pathlib import Path

import conformance
import suite

PASSWORD = "a password for a test"
LINK = r"http://\S+/setup\?token=\S+"
SECONDS = 120
PATIENCE = 50
# Where the suite waits to be answered.
CALLBACK = "http://127.0.0.1:{port}/callback"


def main() -> int:
    options = parse_arguments()
    if not (conformance.NODE_MODULES / ".bin" / "node").exists():
        return give_up("run tests/install.sh first")
    with tempfile.TemporaryDirectory() as scratch:
        try:
            report = measure(options, Path(scratch))
        except (RuntimeError, OSError) as error:
            return give_up(str(error))
    print(json.dumps(report, indent=2) if options.json else as_text(report))
    return 1 if any(one["failing"] for one in report) else 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Runs the conformance suite's authorization scenarios.")
    parser.add_argument("hikite", type=Path)
    parser.add_argument("--json", action="store_true", help="print the counts as JSON")
    return parser.parse_args()


def measure(options: argparse.Namespace, folder: Path) -> list[dict]:
    config, data = folder / "hikite.json", folder / "data"
    config.write_text("{}")
    program = [str(options.hikite.resolve()), "--config", str(config), "--data", str(data)]
    with suite.running([*program, "serve", "--listen", "127.0.0.1:0"], folder / "log", LINK, clean=True) as link:
        base = link.partition("/setup?")[0]
        person = Person(base)
        person.set_up(link)
        return [judge(program, base, person)]


def judge(program: list[str], base: str, person: "Person") -> dict:
    port = free_port()
    made = subprocess.run(
        [*program, "client", "add", "the suite", "--redirect", CALLBACK.format(port=port), "--json"],
        capture_output=True, text=True, check=True,
    )
    arguments = ["authorization", "--url", base, "--resource", f"{base}/mcp", "--port", str(port)]
    arguments += ["--client-id", json.loads(made.stdout)["id"]]
    output = run_suite(arguments, person)
    summary = output.partition("=== SUMMARY ===")[2]
    found = {one["name"]: (int(one["passed"]), int(one["failed"])) for one in conformance.SCENARIO.finditer(summary)}
    if not found:
        raise RuntimeError(f"the suite printed no summary:\n{output[-2000:]}")
    # A scenario without a passed check was skipped, which is no pass.
    failing = [name for name, (passed, failed) in found.items() if failed or not passed]
    return {
        "scenarios": len(found),
        "pass": len(found) - len(failing),
        "fail": len(failing),
        "checks_passed": sum(passed for passed, _ in found.values()),
        "checks_failed": sum(failed for _, failed in found.values()),
        "failing": failing,
        "output": output if failing else "",
    }


def run_suite(arguments: list[str], person: "Person") -> str:
    command = [conformance.NODE_MODULES / ".bin" / "node", conformance.SUITE / "dist" / "index.js", *arguments]
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=os.environ | {"NO_COLOR": "1"},
    )
    alarm = threading.Timer(SECONDS, process.kill)
    alarm.start()
    lines = []
    for line in process.stdout:
        lines.append(line)
        if re.match(r"http://\S+/oauth/authorize\?", line):
            lines.append(patiently(lambda: person.allow(line.strip())))
    process.wait()
    alarm.cancel()
    return "".join(lines)


def patiently(work) -> str:
    """The suite prints the address before it listens for the answer."""
    for _ in range(PATIENCE):
        try:
            return work()
        except urllib.error.HTTPError:
            raise
        except urllib.error.URLError:
            time.sleep(0.1)
    return work()


class Form(HTMLParser):
    """The hidden fields of a page, and where its form goes."""

    def __init__(self, page: str):
        super().__init__()
        self.action, self.fields = "", {}
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list) -> None:
        attributes = dict(attributes)
        if tag == "form":
            self.action = attributes["action"]
        if tag == "input" and attributes.get("type") == "hidden":
            self.fields[attributes["name"]] = attributes["value"]


class Person:
    """Somebody at a browser, which keeps cookies and follows redirects."""

    def __init__(self, base: str):
        self.base = base
        jar = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self.browser = urllib.request.build_opener(jar)

    def set_up(self, link: str) -> None:
        self.fill_in(self.look(link), name="kana", password=PASSWORD)

    def allow(self, address: str) -> str:
        """Says yes if asked; what the page at the end says."""
        page = self.look(address)
        return self.fill_in(page, decision="allow") if "/oauth/consent" in page else page

    def look(self, address: str) -> str:
        with self.browser.open(address, timeout=30) as answer:
            return answer.read().decode()

    def fill_in(self, page: str, **fields: str) -> str:
        form = Form(page)
        body = urllib.parse.urlencode(form.fields | fields).encode()
        request = urllib.request.Request(self.base + form.action, body, {"Origin": self.base})
        try:
            return self.look(request)
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{form.action} answers {error.code}:\n{error.read().decode()}") from error


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def as_text(report: list[dict]) -> str:
    lines = []
    for one in report:
        lines.append(f"{one['pass']} of {one['scenarios']} scenarios pass, {one['checks_passed']} checks")
        lines += [f"  fails: {name}" for name in one["failing"]]
        lines += [one["output"]] if one["failing"] else []
    return "\n".join(lines)


def give_up(reason: str) -> int:
    print(reason, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
