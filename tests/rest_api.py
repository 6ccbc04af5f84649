#!/usr/bin/env python3
"""The REST API held against its own description by schemathesis: every operation, every check.

    tests/rest_api.py target/release/hikite target/debug/fixture-upstream

Starts hikite with a fixture server and registered tools, and sends it what its OpenAPI description allows and what
it forbids, with a fixed seed. Ends with 0 if every answer is as described, 1 if one is not, 2 if it could not run.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

TESTS = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("HIKITE_TEST_CACHE", TESTS.parent / ".cache/tests"))
READY = re.compile(r"listening on (http://127\.0\.0\.1:\d+)")
START_SECONDS = 30
STOP_SECONDS = 20
# The tool of the examples: it takes anything and answers with what it was asked.
LISTS = {
    "serverInfo": {"name": "files", "version": "1.0.0"},
    "tools": [{"name": "read_file", "description": "Reads a file.", "inputSchema": {"type": "object"}}],
}
REGISTERED = (
    {"name": "clock", "description": "The time.", "tags": ["time"], "category": "daily", "http": {"url": "/time"}},
    {"name": "alarm", "description": "Rings.", "dependencies": ["clock"], "http": {"url": "/ring", "method": "POST"}},
)
# What the service behind registered tools answers, whatever it is asked.
ANSWER = json.dumps({"data": {"items": [1, 2], "0": "first"}}).encode()


def main() -> int:
    options = parse_arguments()
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        service = ThreadingHTTPServer(("127.0.0.1", 0), Service)
        threading.Thread(target=service.serve_forever, daemon=True).start()
        target = f"http://127.0.0.1:{service.server_port}"
        process, log = start(options, folder)
        try:
            url = ready(process, log)
            token = (folder / "data/token").read_text().strip()
            for form in REGISTERED:
                register(url, token, form | {"http": form["http"] | {"url": target + form["http"]["url"]}})
            status = held_against_description(options, folder, url, token, target)
            failed = count(options, folder)
            if process.poll() is not None or "panicked" in log.read_text(errors="replace"):
                print(f"hikite did not bear it:\n{log.read_text(errors='replace')[-4000:]}", file=sys.stderr)
                return 1
            return 1 if status or failed else 0
        except RuntimeError as error:
            print(error, file=sys.stderr)
            return 2
        finally:
            stop(process)


class Service(BaseHTTPRequestHandler):
    """Stands behind registered tools."""

    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(ANSWER)))
        self.end_headers()
        self.wfile.write(ANSWER)

    do_GET = do_POST = do_PATCH = do_DELETE = answer

    def log_message(self, *_) -> None:
        pass


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Holds the REST API against its description.")
    parser.add_argument("hikite", type=Path)
    parser.add_argument("fixture", type=Path, help="the program fixture-upstream of hikite-testkit")
    parser.add_argument("--seconds", type=int, default=2400, help="time limit (default: 2400)")
    parser.add_argument("--examples", type=int, default=100, help="random requests of one operation (default: 100)")
    parser.add_argument("--seed", type=int, default=20261115)
    parser.add_argument("--counts", type=Path, help="write `PASSED FAILED` in operations to this file, then the number of requests")
    return parser.parse_args()


def start(options: argparse.Namespace, folder: Path) -> tuple[subprocess.Popen, Path]:
    (folder / "lists.json").write_text(json.dumps(LISTS))
    server = {
        "description": "Files.",
        "command": str(options.fixture.resolve()),
        "args": ["--stdio", "--replay", str(folder / "lists.json")],
    }
    categories = {"reading": {"description": "Reading.", "server": "files"}}
    config = folder / "hikite.json"
    # Addresses of this machine are not for registered tools, unless the owner says so.
    egress = {"allow": ["127.0.0.1"]}
    # That every operation refuses a wrong token is tried so often that the brake would answer in its place.
    limits = {"failed_logins": 0}
    written = {"mcpServers": {"files": server}, "categories": categories, "egress": egress, "limits": limits}
    config.write_text(json.dumps(written))
    log = folder / "hikite.log"
    command = [options.hikite.resolve(), "serve", "--config", config, "--data", folder / "data", "--listen", "127.0.0.1:0"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HIKITE_")}
    with log.open("wb") as out:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=out, env=clean), log


def ready(process: subprocess.Popen, log: Path) -> str:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if found := READY.search(log.read_text(errors="replace")):
            return found[1]
        time.sleep(0.02)
    raise RuntimeError(f"hikite did not become ready:\n{log.read_text(errors='replace')}")


def register(url: str, token: str, form: dict) -> None:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/v1/tools", json.dumps(form).encode(), headers)
    try:
        urllib.request.urlopen(request, timeout=START_SECONDS).close()
    except OSError as error:
        raise RuntimeError(f"`{form['name']}` could not be registered: {error}") from error


def held_against_description(options: argparse.Namespace, folder: Path, url: str, token: str, target: str) -> int:
    program = CACHE / "python/bin/schemathesis"
    command = [
        program, "run", f"{url}/v1/openapi.json", "--checks", "all", "--continue-on-failure",
        "--phases", "examples,coverage,fuzzing,stateful", "--max-examples", str(options.examples),
        "--seed", str(options.seed), "--workers", "1", "--request-timeout", "10", "--warnings", "off",
        "--header", f"Authorization: Bearer {token}",
        "--report", "json", "--report-json-path", folder / "report.json", "--no-color",
    ]
    settings = {"SCHEMATHESIS_HOOKS": "rest_api_hooks", "PYTHONPATH": str(TESTS), "REST_API_TARGET": target}
    try:
        return min(subprocess.run(command, cwd=folder, env=os.environ | settings, timeout=options.seconds).returncode, 1)
    except FileNotFoundError as error:
        raise RuntimeError(f"{program} is missing: run tests/install.sh") from error
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"schemathesis did not end within {options.seconds} s") from error


def count(options: argparse.Namespace, folder: Path) -> int:
    """Prints what was sent and what failed, and returns the number of failures. An operation or a phase that did not run
    is a failure, too."""
    report = json.loads((folder / "report.json").read_text())
    cases, operations = report["test_cases"], report["operations"]
    idle = [name for name, phase in report["phases"].items() if phase["status"] == "skip"]
    untested = operations["total"] - operations["tested"]
    failed = cases["with_failures"] + cases["errored"] + len(report["errors"]) + len(idle) + untested
    passed = cases["generated"] - cases["with_failures"] - cases["errored"]
    if idle or untested:
        print(f"did not run: phases {idle}, {untested} operations")
    print(f"{operations['tested']} operations, {passed} requests answered as described, {failed} failures")
    if options.counts:
        operations_passed = max(operations["tested"] - failed, 0)
        options.counts.write_text(f"{operations_passed} {failed}\n{cases['generated']} REST requests\n")
    return failed


def stop(process: subprocess.Popen) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


if __name__ == "__main__":
    sys.exit(main())
