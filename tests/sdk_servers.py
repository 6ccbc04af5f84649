#!/usr/bin/env python3
"""The public suite against servers on the official SDKs: straight, and through hikite. Check by check.

    tests/sdk_servers.py target/release/hikite target/debug

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
from matrix import gateway, running

sys.path.insert(0, str(Path(__file__).resolve().parent / "sdk"))
from parts import SESSIONS, STATELESS, Part, all_parts, free_port  # noqa: E402

REVISIONS = (SESSIONS, STATELESS)
AT_ONCE = 2
# From best to worst. What was not looked at is worse than a pass: it may hide anything.
ORDER = {"SUCCESS": 0, "SKIPPED": 1, "absent": 1, "WARNING": 2, "FAILURE": 3}
# Checks that may be worse through hikite: (reason, clause).
EXCEPTIONS: dict[str, tuple[str, str]] = {}


def main() -> int:
    options = parse_arguments()
    parts = all_parts(options.programs)
    cells = [(name, revision) for name in parts for revision in REVISIONS if options.only in ("", name)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        report = list(pool.map(lambda cell: measure(options, parts[cell[0]], cell[1]), cells))
    print(json.dumps(report, indent=2) if options.json else as_text(report))
    if options.table:
        options.table.write_text(as_text(report) + "\n", encoding="utf-8")
    if any("error" in one for one in report):
        return 2
    failing = any(one["failing"] for one in report)
    if options.write:
        conformance_page.write("sdk_servers", as_section(report))
    elif options.check:
        difference = conformance_page.differences("sdk_servers", as_section(report))
        print(difference, file=sys.stderr)
        failing = failing or bool(difference)
    return 1 if failing else 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Runs the conformance suite against servers on the official SDKs.")
    parser.add_argument("hikite", type=Path)
    parser.add_argument("programs", type=Path, help="where cargo put the programs of hikite-testkit")
    parser.add_argument("--only", default="", metavar="SDK", help="one SDK, such as python-2")
    parser.add_argument("--output", type=Path, help="keep logs and the suite's own results in this folder")
    parser.add_argument("--timeout-ms", type=int, default=60_000, help="for each scenario (default: 60000)")
    parser.add_argument("--json", action="store_true", help="print the counts as JSON")
    parser.add_argument("--table", type=Path, help="write the counts as a table to this file as well")
    parser.add_argument("--check", action="store_true", help="fail if docs/conformance.md says otherwise")
    parser.add_argument("--write", action="store_true", help="write docs/conformance.md")
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
            bad = {"error": str(error), "failing": [str(error)], "fail": 1, "checks_passed": 0, "checks_failed": 1}
            return cell | bad
    return cell | compare(direct, through)


@contextmanager
def serving(part: Part, log: Path):
    command, url = part.served_at(free_port())
    with running(command, log, r"(?i)listening|running on", folder=part.folder):
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


def compare(direct: dict[tuple, dict], through: dict[tuple, dict]) -> dict:
    status = lambda checks, key: checks[key]["status"] if key in checks else "absent"
    worse = [
        {
            "check": key[1],
            "scenario": key[0],
            "direct": status(direct, key),
            "through": status(through, key),
            "why": through.get(key, {}).get("errorMessage") or "",
        }
        for key in direct
        if ORDER[status(through, key)] > ORDER[status(direct, key)]
    ]
    failing = [one for one in worse if not explained(EXCEPTIONS, one)]
    return {
        "direct": tally(direct),
        "through": tally(through),
        "worse": worse,
        "better": sum(ORDER[status(through, key)] < ORDER[status(direct, key)] for key in direct),
        "failing": [f"{one['scenario']}: {one['check']}: {one['direct']} became {one['through']}: {one['why']}" for one in failing],
        "fail": len(failing),
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
        "source packages; the others are ours, on the published package, because theirs is in none. What a server\n"
        "itself lacks (tasks, an older era) fails on both sides, unless hikite supplies it.\n\n"
        + conformance_page.table(COLUMNS, rows(report))
        + "\n\n"
        + exceptions_table(EXCEPTIONS, report)
    )


def explained(exceptions: dict[str, tuple[str, str]], bad: dict) -> bool:
    return bad["check"] in exceptions


def exceptions_table(exceptions: dict[str, tuple[str, str]], report: list[dict]) -> str:
    """Every check that was worse, with its reason."""
    found = sorted({(bad["check"], f"{one['sdk']} ({one['revision']})") for one in report for bad in one.get("worse", [])})
    if not found:
        return "No check is worse through hikite."
    names = sorted({check for check, _ in found})
    where = lambda name: ", ".join(place for check, place in found if check == name)
    columns = ["worse through hikite", "where", "why", "clause"]
    return conformance_page.table(
        columns, [[f"`{name}`", where(name), *exceptions.get(name, ("not explained", ""))] for name in names]
    )


if __name__ == "__main__":
    sys.exit(main())
