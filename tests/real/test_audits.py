"""Two published programs that look for holes and for bad manners in MCP servers, let loose on hikite.

`mcp-fuzzer` audits the authorization, with and without a token; `mcpscore` holds the whole server against its rules.
"""

import json
import os
import subprocess

import pytest

SECONDS = 300
SCORE_PERCENT = 95
# What its fuzzing says of any server that answers a well-formed request, and of any message that repeats a wrong name.
# The audits are what is judged here.
OF_THE_FUZZING = {"accepted_malformed", "injection_reflection"}


@pytest.fixture(scope="module")
def gateway(start_gateway, parts):
    return start_gateway({"mcpServers": {"everything": parts.everything()}})


def fuzzer(parts, gateway, folder, *more: str, **environment: str) -> list[dict]:
    command = [parts.python / "mcp-fuzzer", "--protocol", "http", "--endpoint", gateway.mcp(), "--no-network"]
    command += ["--auth-audit", "--auth-audit-intrusive", "--security-audit", "--output-dir", folder / "found", "--seed", "7"]
    command += ["--runs", "3", "--runs-per-type", "2", "--timeout", "20", *more]
    run = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=SECONDS, cwd=folder,
        env=os.environ | {"HOME": str(folder)} | environment,
    )
    findings = folder / "found" / "findings.json"
    assert findings.exists(), run.stdout[-4000:] + run.stderr[-4000:]
    return json.loads(findings.read_text())["findings"]


def test_mcp_fuzzer_finds_nothing_without_a_token(parts, gateway, tmp_path):
    assert fuzzer(parts, gateway, tmp_path) == []


def test_mcp_fuzzer_finds_no_way_around_the_token(parts, gateway, tmp_path):
    found = fuzzer(parts, gateway, tmp_path, "--auth-env", MCP_API_KEY=gateway.token)
    audited = [finding for finding in found if finding["category"] not in OF_THE_FUZZING]
    assert audited == []


def test_mcpscore_gives_nearly_everything(parts, gateway, tmp_path):
    command = [parts.python / "mcpscore", gateway.mcp(), "--token", gateway.token, "--no-config", "--json"]
    run = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=SECONDS, cwd=tmp_path,
        env=os.environ | {"HOME": str(tmp_path)},
    )
    report = json.loads(run.stdout)
    failed = [result["rule_id"] for result in report["results"] if not result["passed"]]
    percent = 100 * report["score"] / report["max_score"]
    assert percent >= SCORE_PERCENT, f"{report['score']} of {report['max_score']}; failed: {failed}"
