#!/usr/bin/env python3
"""The suite's client scenarios with clients on the official SDKs: straight, through `hikite serve`, through `hikite stdio`.

    tests/sdk_clients.py target/release/hikite

For each SDK of tests/sdk/parts.py its client plays every scenario that is about the protocol at the suite's server,
once itself and once with hikite between (tests/sdk/through.py). What the suite sees then is hikite's own client, moved
by the SDK's. A check that came out worse is a failure, unless `EXCEPTIONS` names it with the clause of the specification
that asks for it. Scenarios about logins are left out: a client's login ends at hikite, which must not pass its token on
(2025-11-25 and 2026-07-28, Security Best Practices, Token Passthrough); hikite's own logins are in
tests/conformance_client.py and tests/conformance_authorization.py.

Ends with 0 if no check is worse, 1 if one is, 2 if a run was not possible.
"""

import argparse
import json
import re
import shlex
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import conformance
import conformance_page
import suite
from suite import ORDER, Reason, exceptions_table, reason_for

sys.path.insert(0, str(Path(__file__).resolve().parent / "sdk"))
from parts import Part, all_parts  # noqa: E402

THROUGH = Path(__file__).resolve().parent / "sdk" / "through.py"
WAYS = ("direct", "serve", "stdio")
# Not required, but about what a gateway must not lose.
BESIDE = ("json-schema-2020-12-preservation",)
# Checks that may be worse with hikite between.
EXCEPTIONS: dict[str, list[Reason]] = {
    "request-metadata: ends well": [
        Reason(
            "There is no tool `add_numbers`.",
            "the client calls a tool that the suite's server does not list, but answers; hikite refuses what nobody lists, "
            "and every check of the scenario passes",
            "2026-07-28, Tools, *Error Handling*: an unknown tool is a protocol error",
        )
    ],
}


def main() -> int:
    options = parse_arguments()
    parts = all_parts()
    cells = [
        (part, revision)
        for name, part in parts.items()
        for revision in part.revisions
        if options.only in ("", name)
    ]
    runs = [(part, revision, scenario) for part, revision in cells for scenario in scenarios(options, revision)]
    with ThreadPoolExecutor(suite.AT_ONCE) as pool:
        compared = list(pool.map(lambda run: measure(options, *run), runs))
    report = [
        summed(part, revision, [one for one in compared if one["cell"] == (part.title, revision)])
        for part, revision in cells
    ]
    sections = {"sdk_clients": as_section(report)}
    return suite.conclude(options, report, as_text(report), sections, conformance_page.without_counts)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Runs the suite's client scenarios with clients on the official SDKs.")
    parser.add_argument("hikite", type=Path)
    parser.add_argument("--only", default="", metavar="SDK", help="one SDK, such as python-2")
    parser.add_argument("--scenario", default="", help="one scenario")
    suite.add_arguments(parser, timeout_ms=60_000)
    return parser.parse_args()


def scenarios(options: argparse.Namespace, revision: str) -> list[str]:
    required = conformance.required_scenarios(revision, "Client")
    names = [name for name in required if not name.startswith("auth/")] + list(BESIDE)
    return [name for name in names if options.scenario in ("", name)]


def measure(options: argparse.Namespace, part: Part, revision: str, scenario: str) -> dict:
    with tempfile.TemporaryDirectory() as scratch:
        kept = options.output / f"{part.name}-{part.version}-{revision}" if options.output else Path(scratch)
        checks = {way: run(options, part, revision, scenario, way, kept / way) for way in WAYS}
    status = lambda way, name: checks[way].get(name, ("absent", ""))
    worse = [
        {
            "sdk": part.title,
            "check": name,
            "scenario": scenario,
            "way": way,
            "direct": status("direct", name)[0],
            "through": status(way, name)[0],
            "why": status(way, name)[1],
        }
        for way in WAYS[1:]
        for name in checks["direct"]
        if ORDER[status(way, name)[0]] > ORDER[status("direct", name)[0]]
    ]
    # Whether the client ended well is not the suite's check.
    if len(checks["direct"]) == 1:
        nothing = {"sdk": part.title, "check": f"{scenario}: is there", "scenario": scenario, "way": "direct", "direct": "SUCCESS"}
        worse.append(nothing | {"through": "absent", "why": "the suite made no check"})
    return {"cell": (part.title, revision), "checks": checks, "worse": worse}


def run(options: argparse.Namespace, part: Part, revision: str, scenario: str, way: str, folder: Path) -> dict:
    """How each check of a scenario ended; of several of one name the worst counts."""
    folder.mkdir(parents=True, exist_ok=True)
    between = [sys.executable, str(THROUGH), way, str(options.hikite.resolve()), str(folder)]
    command = shlex.join(part.client if way == "direct" else [*between, *part.client])
    done = conformance.run_quietly(
        *("client", "--command", command, "--scenario", scenario, "--spec-version", revision),
        *("--timeout", str(options.timeout_ms), "--output-dir", str(folder)),
        *(["--force"] if scenario in BESIDE else []),
    )
    (folder / f"{scenario}.log").write_text(done.stdout)
    found = sorted(folder.glob(f"{scenario}-*/checks.json"))
    checks: dict[str, tuple[str, str]] = {}
    for check in json.loads(found[-1].read_text()) if found else []:
        if check["status"] != "INFO":
            seen = checks.get(check["id"], ("SUCCESS", ""))
            now = (check["status"], check.get("errorMessage") or "")
            checks[check["id"]] = max(seen, now, key=lambda one: ORDER[one[0]])
    # The suite also fails a scenario whose client did; that is one more check.
    checks[f"{scenario}: ends well"] = how_it_ended(done.stdout)
    return checks


def how_it_ended(output: str) -> tuple[str, str]:
    if "CLIENT EXITED" not in output and "CLIENT TIMED OUT" not in output:
        return ("SUCCESS", "")
    # The last line that looks like a reason; the client's own words stand before the suite's.
    reasons = [line.strip() for line in output.splitlines() if re.search(r"[Ee]rror\b.*: |[Tt]here is no", line)]
    return ("FAILURE", (reasons or [output[-300:]])[-1][-300:])


def summed(part: Part, revision: str, compared: list[dict]) -> dict:
    worse = [bad for one in compared for bad in one["worse"]]
    failing = [bad for bad in worse if not reason_for(EXCEPTIONS, bad)]
    total = {
        way: {
            status: sum(found[0] == status for one in compared for found in one["checks"][way].values())
            for status in ("SUCCESS", "FAILURE", "WARNING")
        }
        for way in WAYS
    }
    checks = sum(len(one["checks"]["direct"]) for one in compared) * (len(WAYS) - 1)
    # Each scenario is one test for each way through hikite.
    tests_failed = len({(bad["scenario"], bad["way"]) for bad in failing})
    return {
        "sdk": part.title,
        "origin": part.origin,
        "revision": revision,
        "scenarios": len(compared),
        "total": total,
        "worse": worse,
        "failing": [
            f"{bad['scenario']}, {bad['way']}: {bad['check']}: {bad['direct']} became {bad['through']}: {bad['why']}"
            for bad in failing
        ],
        "pass": max(len(compared) * (len(WAYS) - 1) - tests_failed, 0),
        "fail": tests_failed,
        "checks_passed": checks - len(failing),
        "checks_failed": len(failing),
    }


def counted(one: dict) -> str:
    return f"{one['SUCCESS']} / {one['FAILURE']} / {one['WARNING']}"


COLUMNS = ["client", "whose", "speaks", "scenarios", "direct", "through `hikite serve`", "through `hikite stdio`", "worse"]


def rows(report: list[dict]) -> list[list]:
    return [
        [one["sdk"], one["origin"], one["revision"], one["scenarios"]]
        + [counted(one["total"][way]) for way in WAYS]
        + [len(one["worse"])]
        for one in report
    ]


def as_text(report: list[dict]) -> str:
    lines = [conformance_page.table(COLUMNS, rows(report))]
    lines += [f"{one['sdk']} {one['revision']}: {line}" for one in report for line in one["failing"]]
    return "\n".join(lines)


def as_section(report: list[dict]) -> str:
    return (
        "## Behind the official SDKs' clients\n\n"
        "`tests/sdk_clients.py`: a client on each SDK plays the suite's client scenarios at the suite's server, by itself\n"
        "and with hikite between, which it reaches over HTTP or starts itself. Numbers are checks passed / failed /\n"
        "warned. Python's client is the SDK's own, from its source packages; the others are ours, on the published\n"
        "package; Go's is built from the sources in Debian, whose version within 1.x changes. Scenarios about logins are not\n"
        "in it: a login ends at hikite, which must not pass a client's token on (Security Best Practices, *Token\n"
        "Passthrough*); hikite's own are counted above.\n\n"
        + conformance_page.table(COLUMNS, rows(report))
        + "\n\n"
        + exceptions_table(EXCEPTIONS, report)
    )


if __name__ == "__main__":
    sys.exit(main())
