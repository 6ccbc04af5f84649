"""Two published programs that look for holes and for bad manners in MCP servers, let loose on hikite.

`mcp-fuzzer` audits the authorization, with and without a token, and throws malformed messages; `mcpscore` holds the whole server against its rules.
"""

import datetime
import ipaddress
import json
import os
import subprocess
from pathlib import Path

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

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


def test_mcp_fuzzer_audits_the_login(parts, gateway, tmp_path):
    """With `--no-network` it leaves this audit out, loopback or not."""
    command = [parts.python / "mcp-fuzzer", "--protocol", "streamablehttp", "--endpoint", gateway.mcp()]
    command += ["--mode", "protocol", "--protocol-type", "PingRequest", "--runs-per-type", "1", "--timeout", "20"]
    command += ["--auth-audit", "--auth-audit-intrusive", "--output-dir", tmp_path / "found"]
    run = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=SECONDS, cwd=tmp_path,
        env=os.environ | {"HOME": str(tmp_path)},
    )
    findings = tmp_path / "found" / "findings.json"
    found = json.loads(findings.read_text())["findings"] if findings.exists() else []
    # A stranger may register a client that leads anywhere; nobody can log in with it before an admin approves the place.
    assert {finding["category"] for finding in found} <= {"dcr_malicious_binding"}, run.stdout[-4000:]
    clients = httpx2.get(f"{gateway.url}/v1/clients", headers=gateway.headers).json()["clients"]
    foreign = [client for client in clients if any(uri.startswith("https:") for uri in client["redirectUris"])]
    assert all(client["status"] == "pending" for client in foreign), foreign


def test_mcp_fuzzer_with_a_personal_token_crashes_and_hangs_nothing(parts, start_gateway, tmp_path):
    """Tools of three servers and every message of the protocol, well-formed and malformed, as somebody who may call."""
    (tmp_path / "files").mkdir()
    servers = {
        "time": parts.time(),
        "memory": parts.memory(tmp_path / "memory.json"),
        "files": parts.filesystem(tmp_path / "files"),
    }
    gateway = start_gateway({"mcpServers": servers, "server": {"surface": ["modules", "direct"]}})
    form = {"name": "fuzzer", "subject": "alice"}
    made = httpx2.post(f"{gateway.url}/v1/tokens", headers=gateway.headers, json=form).json()
    more = ["--mode", "all", "--phase", "both", "--protocol-phase", "aggressive", "--auth-env"]
    found = fuzzer(parts, gateway, tmp_path, *more, MCP_API_KEY=made["secret"])
    assert [finding for finding in found if finding["category"] not in OF_THE_FUZZING] == []
    summary = json.loads((tmp_path / "found" / "run_summary.json").read_text())
    assert summary["status"] == "completed" and summary["tools"]["total_runs"] > 50, summary
    outcomes = [tool["outcomes"] for tool in summary["tools"]["by_name"].values()]
    assert sum(outcome["crashed"] for outcome in outcomes) == 0, summary
    assert sum(outcome["anomaly"] for outcome in outcomes) == 0, "an anomaly is a hang or an answer that is no answer"
    assert "panicked" not in gateway.log()
    me = httpx2.get(f"{gateway.url}/v1/me", headers=gateway.headers, timeout=20).json()
    assert me["subject"] == "owner", "it still answers everybody else"


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for this machine, which whoever is given it may trust, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "hikite tests")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(7)
        .not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(now + datetime.timedelta(days=7))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    cert_file, key_file = folder / "cert.pem", folder / "key.pem"
    cert_file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    key_file.write_bytes(key.private_bytes(*form))
    key_file.chmod(0o600)
    return cert_file, key_file


def test_mcpscore_gives_nearly_everything(parts, start_gateway, tmp_path):
    """Over TLS, as whoever can be reached by others must be."""
    cert_file, key_file = certificate(tmp_path)
    tls = {"cert_file": str(cert_file), "key_file": str(key_file)}
    gateway = start_gateway({"mcpServers": {"everything": parts.everything()}, "server": {"tls": tls}})
    command = [parts.python / "mcpscore", gateway.mcp(), "--token", gateway.token, "--no-config", "--json"]
    run = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=SECONDS, cwd=tmp_path,
        env=os.environ | {"HOME": str(tmp_path), "SSL_CERT_FILE": str(cert_file)},
    )
    assert run.stdout, run.stderr
    report = json.loads(run.stdout)
    failed = [result["rule_id"] for result in report["results"] if not result["passed"]]
    percent = 100 * report["score"] / report["max_score"]
    assert percent >= SCORE_PERCENT, f"{report['score']} of {report['max_score']}; failed: {failed}"
