#!/usr/bin/env python3
"""Runs the public MCP conformance suite's client scenarios against hikite's own upstream client.

    tests/conformance_client.py target/debug/client-driver

The driver (hikite-testkit) makes the calls that a scenario wants; hikite-upstream does the rest. All
scenarios that a revision requires run, and beside them some that the suite runs without scoring them.
A scenario counts as the suite judges it: warnings make it fail, and a driver that fails does, too,
unless the scenario is about what a client must refuse.

Ends with 0 if every scenario passes, 1 if one fails, 2 if the suite could not run.
"""

import argparse
import json
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import conformance
import conformance_page

# The first has no list of its own: what it requires of logins and later revisions took away.
REVISIONS = ("2025-03-26", "2025-11-25", "2026-07-28")
OLD = ("auth/2025-03-26-oauth-metadata-backcompat", "auth/2025-03-26-oauth-endpoint-fallback")
# Not required, but about what a gateway must not lose, and logins without a person.
BESIDE = ("json-schema-2020-12-preservation", "auth/client-credentials-jwt", "auth/client-credentials-basic")
AT_ONCE = 2


def main() -> int:
    options = parse_arguments()
    if not (conformance.NODE_MODULES / ".bin" / "node").exists():
        return give_up("run tests/install.sh first")
    if not options.driver.exists():
        return give_up(f"there is no {options.driver}")
    report = [measure(options, revision) for revision in REVISIONS]
    if options.only:
        report = [one for one in report if one["scenarios"]]
    if not report or not all(one["scenarios"] for one in report):
        return give_up("the suite knows no client scenarios")
    print(json.dumps(report, indent=2) if options.json else as_text(report))
    failing = any(one["failing"] for one in report)
    if options.write:
        conformance_page.write("client", as_section(report))
    elif options.check:
        difference = conformance_page.differences("client", as_section(report))
        print(difference, file=sys.stderr)
        failing = failing or bool(difference)
    return 1 if failing else 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Runs the MCP conformance suite's client scenarios.")
    parser.add_argument("driver", type=Path, help="the program client-driver of hikite-testkit")
    parser.add_argument("--only", help="this scenario alone")
    parser.add_argument("--output", type=Path, help="keep the suite's own results in this folder")
    parser.add_argument("--timeout-ms", type=int, default=30_000, help="for each scenario (default: 30000)")
    parser.add_argument("--json", action="store_true", help="print the counts as JSON")
    parser.add_argument("--check", action="store_true", help="fail if docs/conformance.md says otherwise")
    parser.add_argument("--write", action="store_true", help="write docs/conformance.md")
    return parser.parse_args()


def measure(options: argparse.Namespace, revision: str) -> dict:
    scenarios = list(OLD)
    if revision != REVISIONS[0]:
        scenarios = [*conformance.required_scenarios(revision, "Client"), *BESIDE]
    if options.only:
        scenarios = [name for name in scenarios if name == options.only]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        results = list(pool.map(lambda name: run(options, revision, name), scenarios))
    return {
        "revision": revision,
        "scenarios": len(scenarios),
        "pass": sum(not result["why"] for result in results),
        "fail": sum(bool(result["why"]) for result in results),
        "checks_passed": sum(result["passed"] for result in results),
        # A scenario that fails without a failed check has failed all the same.
        "checks_failed": sum(max(result["failed"], bool(result["why"])) for result in results),
        "failing": {name: result["why"] for name, result in zip(scenarios, results) if result["why"]},
    }


def run(options: argparse.Namespace, revision: str, scenario: str) -> dict:
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.output / revision if options.output else Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        done = conformance.run_quietly(
            *("client", "--command", str(options.driver.resolve()), "--scenario", scenario),
            *("--spec-version", revision, "--timeout", str(options.timeout_ms), "--output-dir", str(folder)),
            # Extensions are of no revision.
            *(["--force"] if scenario in BESIDE else []),
        )
        found = sorted(folder.glob(f"{scenario}-*/checks.json"))
        checks = json.loads(found[-1].read_text()) if found else []
    bad = [check for check in checks if check["status"] in ("FAILURE", "WARNING")]
    why = [f"{check['name']}: {check.get('errorMessage') or check['description']}" for check in bad]
    passed = sum(check["status"] == "SUCCESS" for check in checks)
    # Nothing seen is nothing passed, whatever the suite makes of it.
    if not bad and (done.returncode or not passed):
        why.append(done.stdout.strip()[-1000:] or "no check passed")
    return {"passed": passed, "failed": sum(check["status"] == "FAILURE" for check in checks), "why": why}


def as_text(report: list[dict]) -> str:
    lines = []
    for one in report:
        lines.append(
            f"client {one['revision']}: {one['pass']} of {one['scenarios']} scenarios pass, {one['fail']} fail "
            f"({one['checks_passed']} checks passed, {one['checks_failed']} failed)"
        )
        lines += [f"  fails: {name}: {reason}" for name, why in one["failing"].items() for reason in why]
    return "\n".join(lines)


def as_section(report: list[dict]) -> str:
    columns = ["revision", "scenarios passed", "checks failed"]
    row = lambda one: [one["revision"], f"{one['pass']} of {one['scenarios']}", one["checks_failed"]]
    failing = sorted({f"{one['revision']} {name}" for one in report for name in one["failing"]})
    return (
        "## hikite as a client\n\n"
        "`tests/conformance_client.py`: the upstream client of hikite against the suite's servers, logins included.\n\n"
        + conformance_page.table(columns, [row(one) for one in report])
        + "".join(f"\n\nFails: `{name}`." for name in failing)
    )


def give_up(reason: str) -> int:
    print(f"tests/conformance_client.py: {reason}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
