#!/usr/bin/env python3
"""The bridge between eras, measured: the public suite against hikite in front of a server of one era.

    tests/matrix.py target/release/hikite target/debug/fixture-upstream

Eight runs: the requirements of 2025-11-25 and of 2026-07-28, each against a server that speaks
sessions alone and one that speaks 2026-07-28 alone, each over HTTP and over stdio. Two at a time.
Every run has a gateway and a server of its own. Scenarios are counted by tests/conformance.py.

Ends with 0 if every required scenario of every run passes, 1 if one fails, 2 if one could not run.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import conformance
import conformance_page
import suite

CLIENTS = ("2025-11-25", "2026-07-28")
ERAS = {"legacy": ["--era", "legacy", "--extended"], "modern": ["--era", "modern"]}
TRANSPORTS = ("http", "stdio")
# How the fixture begins a line about a message that broke the schema; over stdio hikite logs it.
VIOLATION = "fixture-upstream: schema: "


def main() -> int:
    options = parse_arguments()
    cells = [
        (client, era, transport)
        for transport in TRANSPORTS
        for era in ERAS
        for client in CLIENTS
        if not options.only or options.only == f"{client}/{era}/{transport}"
    ]
    with ThreadPoolExecutor(suite.AT_ONCE) as pool:
        report = list(pool.map(lambda cell: measure(options, *cell), cells))
    sections = {"server": as_section(report), "beside": not_scored(report)}
    return suite.conclude(options, report, as_text(report), sections)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Runs the conformance suite across eras and transports.")
    parser.add_argument("hikite", type=Path)
    parser.add_argument("fixture", type=Path, help="the program fixture-upstream of hikite-testkit")
    parser.add_argument("--only", metavar="CELL", help="one run, such as 2026-07-28/legacy/stdio")
    suite.add_arguments(parser, timeout_ms=30_000)
    return parser.parse_args()


def measure(options: argparse.Namespace, client: str, era: str, transport: str) -> dict:
    cell = {"client": client, "upstream": era, "transport": transport}
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder = options.output / f"{client}-{era}-{transport}" if options.output else scratch
        folder.mkdir(parents=True, exist_ok=True)
        try:
            server = upstream(stack, options, folder, era, transport)
            with suite.gateway(options, folder, server) as url:
                counts = run_suite(options, folder, f"{url}/mcp?surface=direct", client)
            return cell | with_violations(counts, folder)
        except RuntimeError as error:
            return cell | {"error": str(error), "required": 0, "pass": 0, "fail": 1, "failing": [str(error)]} | {
                "checks_passed": 0,
                "checks_failed": 1,
                "not_scored_failing": [],
            }


def upstream(stack: ExitStack, options: argparse.Namespace, folder: Path, era: str, transport: str) -> dict:
    """The entry of the config for a server of this era; over HTTP it is started."""
    program = str(options.fixture.resolve())
    if transport == "stdio":
        return {"command": program, "args": ["--stdio", *ERAS[era]]}
    command = [program, "--http", "127.0.0.1:0", *ERAS[era]]
    return {"url": stack.enter_context(suite.running(command, folder / "fixture.log", r"http://\S+"))}


def run_suite(options: argparse.Namespace, folder: Path, url: str, client: str) -> dict:
    script = Path(conformance.__file__)
    command = [sys.executable, str(script), url, client, "--json", "--timeout-ms", str(options.timeout_ms)]
    command += ["--output", str(folder / "suite")] if options.output else []
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr.strip() or done.stdout[-1000:])
    return json.loads(done.stdout)


def with_violations(counts: dict, folder: Path) -> dict:
    """What hikite sent to the server and the published schema forbids makes a run fail, whatever the suite saw."""
    lines = "\n".join(log.read_text(errors="replace") for log in folder.glob("*.log")).splitlines()
    violations = sorted({line.partition(VIOLATION)[2][:500] for line in lines if VIOLATION in line})
    failed = counts["checks_failed"] + len(violations)
    return counts | {"checks_failed": failed, "failing": counts["failing"] + [f"schema: {one}" for one in violations]}


def cell_name(one: dict) -> str:
    return f"{one['client']}/{one['upstream']}/{one['transport']}"


def row(one: dict) -> list:
    passed = f"{one['pass']} of {one['required']}"
    return [one["client"], one["upstream"], one["transport"], passed, one["checks_passed"], one["checks_failed"]]


COLUMNS = ["client speaks", "server is", "over", "required scenarios passed", "checks passed", "checks failed"]


def as_text(report: list[dict]) -> str:
    lines = [conformance_page.table(COLUMNS, [row(one) for one in report])]
    for one in report:
        name = cell_name(one)
        lines += [f"{name} fails: {scenario}" for scenario in one["failing"]]
        lines += [f"{name} fails, not scored: {scenario}" for scenario in one["not_scored_failing"]]
    return "\n".join(lines)


# How many checks a scenario makes may depend on timing; that is printed, but not on the page.
PAGE_COLUMNS = ["client speaks", "server is", "over", "required scenarios passed", "checks failed"]
REASONS = {
    "tasks-required-task-error": "wants a refusal for a client that knows no tasks; hikite waits for the task in its place",
    "tasks-mrtr-composition": "wants questions before the task; a server of 2025-11-25 asks only within it",
}


def as_section(report: list[dict]) -> str:
    failing = sorted({scenario for one in report for scenario in one["failing"]})
    rows = [[one["client"], one["upstream"], one["transport"], row(one)[3], one["checks_failed"]] for one in report]
    return (
        "## hikite as a server, between eras\n\n"
        "`tests/matrix.py`: the suite as a client of hikite's `direct` surface, in front of a server that speaks one\n"
        "era only. *legacy* is 2025-11-25 with sessions, *modern* is 2026-07-28. The bridge has no row of its own: it is\n"
        "at work wherever client and server differ.\n\n"
        + conformance_page.table(PAGE_COLUMNS, rows)
        + "".join(f"\n\nFails: `{name}`." for name in failing)
    )


def not_scored(report: list[dict]) -> str:
    """What fails beside the requirements. Written with the page, but no reason to call it stale."""
    names = sorted({scenario for one in report for scenario in one["not_scored_failing"]})
    where = lambda name: ", ".join(cell_name(one) for one in report if name in one["not_scored_failing"])
    rows = [[f"`{name}`", where(name), REASONS.get(name, "")] for name in names]
    columns = ["scenario", "where (client/server/transport)", "why"]
    return "## Beside the requirements\n\nThe suite runs more than it requires. Of that, when this page was written, " + (
        "these failed:\n\n" + conformance_page.table(columns, rows) if rows else "nothing failed."
    )


if __name__ == "__main__":
    sys.exit(main())
