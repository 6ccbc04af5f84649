#!/usr/bin/env python3
"""The public suite against servers on the official SDKs: straight, and through hikite. Check by check.

    tests/sdk_servers.py target/release/hikite

For each SDK of tests/sdk/parts.py and for the clients of both eras the suite runs twice: at the server itself and at
`hikite serve` in front of it. A check that came out worse through hikite is a failure, unless `EXCEPTIONS` names it
with the clause of the specification that asks for it.

Ends with 0 if no check is worse, 1 if one is, 2 if a run was not possible.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import conformance
import conformance_page
import suite
from suite import ORDER, Reason, exceptions_table, gateway, reason_for, running

sys.path.insert(0, str(Path(__file__).resolve().parent / "sdk"))
from parts import SESSIONS, STATELESS, Part, all_parts, free_port  # noqa: E402

REVISIONS = (SESSIONS, STATELESS)

JSON_ANSWER = Reason(
    "absent",
    "where nothing comes before an answer, hikite sends it as JSON: the suite then finds no stream to look at",
    "2025-11-25, Transports, *Sending Messages to the Server*, 5: `text/event-stream` or `application/json`",
)
FIRST_MESSAGE = Reason(
    "WARNING: Server did not send",
    "hikite opens a stream with its first message, whose event id a client resumes from, and never closes it before the "
    "answer: there is nothing to prime for and nothing to retry",
    "2025-11-25, Transports, *Sending Messages to the Server*, 6: SHOULD, so that the client can reconnect once the server "
    "has closed the stream",
)
NEVER_CLOSED = Reason(
    "absent",
    "hikite does not close a stream before its answer, whatever the server does, so that there is nothing to resume",
    "2025-11-25, Transports, *Sending Messages to the Server*, 6: the server MAY close the connection",
)
UNKNOWN_TOOL = Reason(
    "FAILURE: There is no tool",
    "the server has none of the suite's task tools and answers with `isError`, which the check takes for a result; hikite "
    "refuses what nobody lists",
    "2026-07-28, Tools, *Error Handling*: an unknown tool is a protocol error",
)
NO_HOOK = Reason(
    "WARNING: Mutated the",
    "the server has no tool that changes its lists, so that nothing changed; hikite's own lists can change, and it says so",
    "2026-07-28, Tools and Prompts, *Capabilities*: `listChanged` says whether notifications are sent",
    only="Python 1.",
)
# Checks that may be worse through hikite.
EXCEPTIONS: dict[str, list[Reason]] = {
    "server-sse-streams-functional": [JSON_ANSWER],
    "server-sse-priming-event": [JSON_ANSWER, FIRST_MESSAGE],
    "server-sse-retry-field": [JSON_ANSWER, FIRST_MESSAGE],
    "server-sse-disconnect-resume": [NEVER_CLOSED],
    "sep-2663-legacy-task-param-ignored": [UNKNOWN_TOOL],
    "sep-2663-server-rejects-undeclared-client": [UNKNOWN_TOOL],
    "tasks-immediate-result-shortcut": [UNKNOWN_TOOL],
    "tasks-result-type-complete-on-non-task-responses": [UNKNOWN_TOOL],
    "tasks-sync-tool-call": [UNKNOWN_TOOL],
    "sep-2575-server-sends-prompts-list-changed-on-subscription": [NO_HOOK],
    "sep-2575-server-sends-tools-list-changed-on-subscription": [NO_HOOK],
}


def main() -> int:
    options = parse_arguments()
    parts = {name: part for name, part in all_parts().items() if part.server}
    cells = [(name, revision) for name in parts for revision in REVISIONS if options.only in ("", name)]
    with ThreadPoolExecutor(suite.AT_ONCE) as pool:
        report = list(pool.map(lambda cell: measure(options, parts[cell[0]], cell[1]), cells))
    sections = {"sdk_servers": as_section(report)}
    return suite.conclude(options, report, as_text(report), sections, conformance_page.without_counts)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Runs the conformance suite against servers on the official SDKs.")
    parser.add_argument("hikite", type=Path)
    parser.add_argument("--only", default="", metavar="SDK", help="one SDK, such as python-2")
    suite.add_arguments(parser, timeout_ms=60_000)
    return parser.parse_args()


def measure(options: argparse.Namespace, part: Part, revision: str) -> dict:
    cell = {"sdk": part.title, "origin": part.origin, "revision": revision}
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.output / f"{part.name}-{part.version}-{revision}" if options.output else Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            # Each run has a server of its own: some of the suite's calls change what it offers.
            with serving(part, folder / "direct.log") as url:
                direct = run_suite(options, url, revision, folder / "direct")
            with serving(part, folder / "behind.log") as url, gateway(options, folder, {"url": url}) as front:
                through = run_suite(options, f"{front}/mcp?surface=direct", revision, folder / "through")
        except RuntimeError as error:
            bad = {"error": str(error), "failing": [str(error)], "pass": 0, "fail": 1, "checks_passed": 0, "checks_failed": 1}
            return cell | bad
    return cell | compare(part.title, direct, through)


@contextmanager
def serving(part: Part, log: Path):
    command, url = part.served_at(free_port())
    with running(command, log, r"(?i)listening|running on|server starting", folder=part.folder):
        yield url


def run_suite(options: argparse.Namespace, url: str, revision: str, folder: Path) -> dict[tuple, dict]:
    """Every check that the suite made, by scenario, id and how often that id was met before."""
    arguments = ["server", "--url", url, "--requirements", revision, "--timeout", str(options.timeout_ms)]
    output = conformance.suite(*arguments, "--output-dir", str(folder))
    checks = read_checks(folder)
    if not checks:
        raise RuntimeError(f"the suite made no check at {url}:\n{output[-1000:]}")
    return checks


def read_checks(folder: Path) -> dict[tuple, dict]:
    checks = {}
    for file in sorted(folder.glob("*/checks.json")):
        # "server-tools-list-2026-11-17T22-38-38-767Z"
        scenario = file.parent.name.removeprefix("server-")[:-25]
        met = Counter()
        # Of what the suite notes beside its checks there is more or less each time.
        for check in (one for one in json.loads(file.read_text()) if one["status"] != "INFO"):
            checks[(scenario, check["id"], met[check["id"]])] = check
            met[check["id"]] += 1
    return checks


def compare(sdk: str, direct: dict[tuple, dict], through: dict[tuple, dict]) -> dict:
    status = lambda checks, key: checks[key]["status"] if key in checks else "absent"
    worse = [
        {
            "sdk": sdk,
            "check": key[1],
            "scenario": key[0],
            "direct": status(direct, key),
            "through": status(through, key),
            "why": through.get(key, {}).get("errorMessage") or "",
        }
        for key in direct
        if ORDER[status(through, key)] > ORDER[status(direct, key)]
    ]
    failing = [one for one in worse if not reason_for(EXCEPTIONS, one)]
    scenarios = {key[0] for key in direct}
    return {
        "direct": tally(direct),
        "through": tally(through),
        "worse": worse,
        "better": sum(ORDER[status(through, key)] < ORDER[status(direct, key)] for key in direct),
        "failing": [f"{one['scenario']}: {one['check']}: {one['direct']} became {one['through']}: {one['why']}" for one in failing],
        "pass": len(scenarios - {one["scenario"] for one in failing}),
        "fail": len({one["scenario"] for one in failing}),
        # Each check that is not worse is one that passed here, whatever the server itself makes of it.
        "checks_passed": len(direct) - len(failing),
        "checks_failed": len(failing),
    }


def tally(checks: dict[tuple, dict]) -> dict:
    statuses = Counter(check["status"] for check in checks.values())
    return {"passed": statuses["SUCCESS"], "failed": statuses["FAILURE"], "warned": statuses["WARNING"]}


def counted(one: dict) -> str:
    return f"{one['passed']} / {one['failed']} / {one['warned']}"


def rows(report: list[dict]) -> list[list]:
    return [
        [one["sdk"], one["origin"], one["revision"]]
        + ([counted(one["direct"]), counted(one["through"]), len(one["worse"])] if "worse" in one else ["", "", one["error"]])
        for one in report
    ]


COLUMNS = ["server", "whose", "client speaks", "direct", "through hikite", "worse"]


def as_text(report: list[dict]) -> str:
    lines = [conformance_page.table(COLUMNS, rows(report))]
    lines += [f"{one['sdk']} {one['revision']}: {line}" for one in report for line in one["failing"]]
    return "\n".join(lines)


def as_section(report: list[dict]) -> str:
    return (
        "## In front of the official SDKs' servers\n\n"
        "`tests/sdk_servers.py`: the suite straight at a server on each SDK, and at hikite in front of it. *Direct* and\n"
        "*through hikite* are checks passed / failed / warned, of all that the suite runs for the revision, required or\n"
        "not; *worse* counts the checks that came out worse through hikite. Python's server is the SDK's own, from its\n"
        "source packages. TypeScript's and Rust's are ours, on the published package, because theirs is in none. Go's\n"
        "module is in no registry that the tests install from: a published server built upon it stands for it, which has\n"
        "none of the suite's tools. Servers of the C#, Java, Kotlin, Swift, Ruby and PHP SDKs were\n"
        "not to be had. What a server itself lacks (tasks, an era) fails on both sides, unless hikite supplies it.\n\n"
        + conformance_page.table(COLUMNS, rows(report))
        + "\n\n"
        + exceptions_table(EXCEPTIONS, report)
    )


if __name__ == "__main__":
    sys.exit(main())
