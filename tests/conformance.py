#!/usr/bin/env python3
"""Runs the public MCP conformance suite's server scenarios against a URL and counts.

    tests/conformance.py http://127.0.0.1:7300/mcp?surface=direct 2026-07-28

The revision selects exactly the scenarios it requires (`--requirements` of the suite). What the
suite runs beside them is reported but does not count. The suite cannot send a token, so the
gateway must run with `"auth": {"mode": "none"}`; and it calls tools of its own (`test_simple_text`
and so on), so an upstream that has them must stand behind the gateway.

Ends with 0 if every required scenario passes, 1 if one fails, 2 if the suite could not run.
"""

import argparse
import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

REPOSITORY = Path(__file__).resolve().parents[1]
CACHE = Path(os.environ.get("HIKITE_TEST_CACHE") or REPOSITORY / ".cache" / "tests")
NODE_MODULES = CACHE / "node" / "node_modules"
SUITE = NODE_MODULES / "@modelcontextprotocol" / "conformance"
# "✓ tools-list: 3 passed, 0 failed", with a note behind it at times.
SCENARIO = re.compile(r"^[✓✗] (?P<name>\S+): (?P<passed>\d+) passed, (?P<failed>\d+) failed", re.MULTILINE)


def main() -> int:
    options = parse_arguments()
    if not (NODE_MODULES / ".bin" / "node").exists():
        return give_up("run tests/install.sh first")
    # Some scenarios pass when nothing answers, so a missing server must not look like a poor one.
    if not answers(options.url):
        return give_up(f"nothing listens at {options.url}")
    required = required_scenarios(options.revision, "Server")
    if not required:
        return give_up(f"the suite knows no requirements of {options.revision}")
    output = run_suite(options)
    summary = output.partition("=== SUMMARY ===")[2]
    results = {found["name"]: (int(found["passed"]), int(found["failed"])) for found in SCENARIO.finditer(summary)}
    if not results:
        return give_up(f"the suite printed no summary:\n{output[-2000:]}")
    report = count(options, required, results)
    print(json.dumps(report, indent=2) if options.json else as_text(report))
    return 1 if report["failing"] else 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Runs the MCP conformance suite's server scenarios against a URL.")
    parser.add_argument("url")
    parser.add_argument("revision", help="such as 2025-11-25 or 2026-07-28")
    parser.add_argument("--output", type=Path, help="keep the suite's own results in this folder")
    parser.add_argument("--timeout-ms", type=int, default=30_000, help="for each scenario (default: 30000)")
    parser.add_argument("--json", action="store_true", help="print the counts as JSON")
    return parser.parse_args()


def answers(url: str) -> bool:
    address = urlsplit(url)
    try:
        socket.create_connection((address.hostname, address.port or 80), timeout=5).close()
    except OSError:
        return False
    return True


def run_suite(options: argparse.Namespace) -> str:
    args = ["server", "--url", options.url, "--requirements", options.revision, "--timeout", str(options.timeout_ms)]
    return suite(*args, *(["--output-dir", str(options.output)] if options.output else []))


def suite(*args: str) -> str:
    return run_quietly(*args).stdout


def run_quietly(*args: str) -> subprocess.CompletedProcess:
    command = [NODE_MODULES / ".bin" / "node", SUITE / "dist" / "index.js", *args]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def suite_version() -> str:
    return json.loads((SUITE / "package.json").read_text())["version"]


def required_scenarios(revision: str, side: str) -> list[str]:
    """What the suite requires of a `Server` or of a `Client`."""
    listing = suite("list", "--requirements", revision)
    section = listing.partition(f"{side} scenarios")[2].partition("\n\n")[0]
    return re.findall(r"^\s+- (\S+)", section, re.MULTILINE)


def count(options: argparse.Namespace, required: list[str], results: dict[str, tuple[int, int]]) -> dict:
    # A required scenario that is not in the summary did not pass.
    failing = [name for name in required if name not in results or results[name][1]]
    scored = [results[name] for name in required if name in results]
    return {
        "url": options.url,
        "revision": options.revision,
        "required": len(required),
        "pass": len(required) - len(failing),
        "fail": len(failing),
        "checks_passed": sum(passed for passed, _ in scored),
        "checks_failed": sum(failed for _, failed in scored),
        "failing": failing,
        "not_scored_failing": [name for name, (_, failed) in results.items() if failed and name not in required],
    }


def as_text(report: dict) -> str:
    lines = [
        f"{report['revision']}: {report['pass']} of {report['required']} required scenarios pass, "
        f"{report['fail']} fail ({report['checks_passed']} checks passed, {report['checks_failed']} failed)"
    ]
    lines += [f"  fails: {name}" for name in report["failing"]]
    lines += [f"  fails, not scored: {name}" for name in report["not_scored_failing"]]
    return "\n".join(lines)


def give_up(reason: str) -> int:
    print(f"tests/conformance.py: {reason}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
