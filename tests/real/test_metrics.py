"""Prometheus' own tool reads `/metrics` and the rules that come with hikite; dashboards and rules name what there is.

`promtool` is part of the Debian package `prometheus`.
"""

import json
import re
import shutil
import subprocess
from pathlib import Path

import httpx2
import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
RULES = REPOSITORY / "deploy" / "prometheus"
DASHBOARDS = sorted((REPOSITORY / "deploy" / "grafana").glob("*.json"))
OURS = re.compile(r"\b(?:hikite|mcp|http|process)_[a-z0-9_]+")
OF_A_HISTOGRAM = re.compile(r"_(?:bucket|sum|count)$")


@pytest.fixture(scope="module")
def exposition(start_gateway, parts) -> str:
    config = {"mcpServers": {"everything": parts.everything(), "absent": {"command": "/nonexistent/program"}}}
    gateway = start_gateway(config)
    call = {"name": "everything:echo", "parameters": {"message": "x"}}
    for body in (call, call | {"parameters": {}}, {"name": "nowhere:at-all"}):
        httpx2.post(f"{gateway.url}/v1/tools/call", json=body, headers=gateway.headers, timeout=60)
    answer = httpx2.get(f"{gateway.url}/metrics", headers=gateway.headers)
    assert answer.status_code == 200
    return answer.text


def promtool(*arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess:
    tool = shutil.which("promtool")
    assert tool, "promtool is not installed: the package is `prometheus`"
    return subprocess.run([tool, *arguments], input=stdin, capture_output=True, text=True, timeout=120, cwd=RULES)


def test_promtool_takes_the_metrics(exposition):
    checked = promtool("check", "metrics", stdin=exposition)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


def test_the_alert_rules_are_well_formed_and_fire_when_they_should():
    for arguments in (("check", "rules", "hikite.rules.yml"), ("test", "rules", "hikite.test.yml")):
        checked = promtool(*arguments)
        assert checked.returncode == 0, checked.stdout + checked.stderr


def test_every_alert_is_tried():
    alerts = set(re.findall(r"alert: (\w+)", (RULES / "hikite.rules.yml").read_text()))
    tried = set(re.findall(r"alertname: (\w+)", (RULES / "hikite.test.yml").read_text()))
    assert alerts and alerts == tried


def named_in_expressions() -> dict[str, set[str]]:
    """Every metric of ours that a rule or a dashboard asks for, and where."""
    found: dict[str, set[str]] = {}

    def note(text: str, where: str) -> None:
        for name in OURS.findall(re.sub(r'"[^"]*"', '""', text)):
            found.setdefault(name, set()).add(where)

    # What people read may speak of anything.
    note(re.sub(r"(?m)^\s+(?:summary|description):.*(?:\n\s{12,}.*)*", "", (RULES / "hikite.rules.yml").read_text()), "rules")
    for file in DASHBOARDS:
        board = json.loads(file.read_text())
        for panel in board["panels"]:
            for target in panel.get("targets", []):
                note(target["expr"], file.name)
        for variable in board["templating"]["list"]:
            note(variable.get("definition", ""), file.name)
    return found


# Labels that begin like a metric.
LABELS = {"http_response_status_code", "http_request_method", "http_route", "mcp_method_name"}


def test_every_metric_that_is_asked_for_is_there(exposition):
    kinds = dict(re.findall(r"(?m)^# TYPE (\S+) (\S+)$", exposition))
    missing = {}
    for name, places in named_in_expressions().items():
        family = OF_A_HISTOGRAM.sub("", name)
        is_there = name in kinds or kinds.get(family) == "histogram"
        if not is_there and name not in LABELS:
            missing[name] = sorted(places)
    assert missing == {}


def test_dashboards_can_be_imported():
    assert {file.stem for file in DASHBOARDS} == {"hikite-audit", "hikite-overview", "hikite-store", "hikite-upstream"}
    seen = set()
    for file in DASHBOARDS:
        board = json.loads(file.read_text())
        assert board["uid"] == file.stem and board["uid"] not in seen
        seen.add(board["uid"])
        numbers = [panel["id"] for panel in board["panels"]]
        assert len(numbers) == len(set(numbers))
        taken = set()
        for panel in board["panels"]:
            at = panel["gridPos"]
            cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
            assert at["x"] + at["w"] <= 24 and not cells & taken, (file.name, panel["title"])
            taken |= cells
