#!/usr/bin/env python3
"""The service modules held against the vendors' own descriptions of their APIs.

    tests/contract/run.py target/release/hikite

Starts hikite and one mock for each vendor, calls every tool of every module over REST, and has every request judged
(judge.py). Ends with 0 if there is no violation and every answer is as it should be, 1 if not, 2 if it could not run.
"""

import argparse
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from functools import partial
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("HIKITE_TEST_CACHE", HERE.parent.parent / ".cache/tests"))
READY = re.compile(r"listening on (http://127\.0\.0\.1:\d+)")
START_SECONDS = 30
STOP_SECONDS = 20
CALL_SECONDS = 60
# The answers whose sizes are shown: those that were recorded.
RECORDED = (
    "github list_issues (minimal)",
    "github get_repo (minimal)",
    "github search_issues (minimal)",
    "github get_file_content (more 1)",
    "notion get_page (minimal)",
    "notion get_page_content (full)",
    "notion search (minimal)",
    "notion query_database (minimal)",
    "notion list_comments (minimal)",
    "notion list_users (minimal)",
    "notion get_database (minimal)",
)


def main() -> int:
    options = parse_arguments()
    if importlib.util.find_spec("openapi_core") is None:
        return again_with(CACHE / "python/bin/python")
    import wrong
    from mock import PROVIDERS, SITE, TOKEN, Vendor

    vendors = {provider: Vendor(provider) for provider in PROVIDERS}
    judges = {module: judge for vendor in vendors.values() for module, judge in vendor.judges.items()}
    passed, faults = wrong.check(judges)
    print(f"{passed} requests that are right or wrong on purpose were told apart")
    accounts = {provider: {"token": TOKEN, "api": vendor.url} for provider, vendor in vendors.items()}
    sizes: list[tuple[str, int, int]] = []
    tools: set[str] = set()
    try:
        for basic in (False, True):
            if basic:
                vendors["atlassian"].basic = True
                accounts = {"atlassian": accounts["atlassian"] | {"email": "me@vendor.example", "site": SITE}}
            right, wrongs, found = held(options, {name: vendors[name] for name in accounts}, accounts, basic, tools)
            passed, faults, sizes = passed + right, faults + wrongs, sizes + found
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 2
    finally:
        for vendor in vendors.values():
            vendor.close()
    return conclude(options, vendors, tools, passed, faults, sizes)


def held(
    options: argparse.Namespace, vendors: dict, accounts: dict, short: bool, called: set[str]
) -> tuple[int, list[str], list]:
    """Runs all cases with these accounts, each provider beside the others. Adds the tools to `called`."""
    from cases import Cases
    from offers import Offers

    language = "ja" if short else "en"
    with tempfile.TemporaryDirectory() as folder:
        gateway = Gateway(options.hikite, Path(folder), accounts, language)
        try:
            url, token = gateway.ready()
            tools = {module: listed(url, token, module) for vendor in vendors.values() for module in vendor.judges}
            called |= {f"{module}:{tool}" for module, names in tools.items() for tool in names}
            call = partial(ask, url, token)
            runs = [Cases(vendor, call, tools) for vendor in vendors.values()]
            threads = [
                threading.Thread(target=guarded, args=(run, run.run_short if short else run.run)) for run in runs
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            runs.append(Offers(url, token, list(vendors.values()), language))
            guarded(runs[-1], runs[-1].run)
            faults = [fault for run in runs for fault in run.faults]
            if gateway.process.poll() is not None or "panicked" in gateway.log():
                faults.append(f"hikite did not bear it:\n{gateway.log()[-4000:]}")
            return sum(run.passed for run in runs), faults, [size for run in runs[:-1] for size in run.sizes]
        finally:
            gateway.stop()


def guarded(run, work) -> None:
    try:
        work()
    except Exception as error:  # The other threads go on; this one has failed.
        run.faults.append(f"{type(run).__name__}: {error!r}")


def conclude(
    options: argparse.Namespace, vendors: dict, tools: set[str], passed: int, faults: list[str], sizes: list
) -> int:
    violations = [violation for vendor in vendors.values() for violation in vendor.violations]
    for fault in faults + violations:
        print(f"FAILED {fault}")
    print(f"\n{'recorded answer':<40} {'JSON':>7} {'compact':>8}  less")
    for name, before, after in sizes:
        if name in RECORDED:
            print(f"{name:<40} {before:>7} {after:>8}  {100 * (1 - after / before):.1f} %")
    for vendor in vendors.values():
        print(f"{vendor.provider}: {vendor.judged} requests judged")
    judged = sum(vendor.judged for vendor in vendors.values())
    print(f"{judged} requests judged, {len(violations)} violations")
    failed = len(faults) + len(violations)
    print(f"{len(tools)} tools, {passed} checks passed, {failed} failed")
    if options.counts:
        options.counts.write_text(f"{max(len(tools) - failed, 0)} {failed}\n{judged} API requests of modules\n")
    return 1 if failed else 0


class Gateway:
    """One hikite with these accounts."""

    def __init__(self, binary: Path, folder: Path, accounts: dict, language: str):
        config = folder / "hikite.json"
        config.write_text(json.dumps({"modules": {"builtin": True, "language": language}, "providers": accounts}))
        self.file, self.data = folder / "hikite.log", folder / "data"
        command = [binary.resolve(), "serve", "--config", config, "--data", self.data, "--listen", "127.0.0.1:0"]
        clean = {name: value for name, value in os.environ.items() if not name.startswith("HIKITE_")}
        with self.file.open("wb") as out:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=out, env=clean
            )

    def log(self) -> str:
        return self.file.read_text(errors="replace")

    def ready(self) -> tuple[str, str]:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            if found := READY.search(self.log()):
                return found[1], (self.data / "token").read_text().strip()
            time.sleep(0.02)
        raise RuntimeError(f"hikite did not become ready:\n{self.log()}")

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def listed(url: str, token: str, module: str) -> dict[str, dict]:
    """The schemas of a module's tools, by name."""
    status, answer = fetch(f"{url}/v1/tools?limit=100&module={module}", token)
    if status != 200:
        raise RuntimeError(f"the tools of {module} are not listed: {status} {answer}")
    return {tool["name"]: tool["inputSchema"] for tool in answer["tools"]}


def ask(url: str, token: str, module: str, tool: str, arguments: dict, **choice) -> tuple[int, dict]:
    body = {"name": f"{module}:{tool}", "parameters": arguments} | ({"options": choice} if choice else {})
    return fetch(f"{url}/v1/tools/call", token, json.dumps(body).encode())


def fetch(url: str, token: str, body: bytes | None = None) -> tuple[int, dict]:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=CALL_SECONDS) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read() or b"{}")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Holds the service modules against the vendors' descriptions.")
    parser.add_argument("hikite", type=Path)
    parser.add_argument("--counts", type=Path, help="write `PASSED FAILED` in tools to this file, then the number of requests")
    return parser.parse_args()


def again_with(python: Path) -> int:
    """The validators are installed beside the other tests' packages."""
    if not python.exists() or Path(sys.executable) == python:
        print("openapi-core is missing: run tests/install.sh", file=sys.stderr)
        return 2
    return subprocess.run([python, __file__, *sys.argv[1:]]).returncode


if __name__ == "__main__":
    sys.exit(main())
