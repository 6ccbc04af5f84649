"""`oidc-provider` as an issuer whose tokens are good here, and as somewhere that people log in with."""

import base64
import hashlib
import hmac
import json
import socket
import subprocess
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest

from clients import HERE
from person import Person

US = "https://hikite.example/mcp"


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture(scope="module")
def issuer():
    return f"http://127.0.0.1:{free_port()}"


@pytest.fixture(scope="module")
def gateway(start_gateway, parts, issuer):
    auth = {
        "issuers": [{"issuer": issuer, "audience": US, "scope_claim": "scope"}],
        "login": {"other": {"issuer": issuer, "client_id": "hikite", "client_secret": "of+hikite/&",
                            "allow": ["*@example.com"]}},
    }
    gateway = start_gateway({"auth": auth, "limits": {"failed_logins": 0}, "modules": {"builtin": False}})
    node = parts.node22
    # Modules are found beside the script.
    folder = gateway.folder / "issuer"
    folder.mkdir()
    (folder / "node_modules").symlink_to(parts.node_modules)
    (folder / "provider.mjs").write_text((HERE / "oidc_provider.mjs").read_text())
    callback = f"{gateway.url}/oauth/federated/other/callback"
    command = [node, folder / "provider.mjs", issuer.rsplit(":", 1)[1], callback]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert any("ready" in line for line in process.stdout)
        yield gateway
        process.kill()


def token(issuer: str, resource: str) -> str:
    form = {"grant_type": "client_credentials", "resource": resource, "scope": "read call"}
    basic = base64.b64encode(b"machine:of-machine").decode()
    request = Request(f"{issuer}/token", urlencode(form).encode(), {"Authorization": f"Basic {basic}"})
    with urlopen(request, timeout=30) as answer:
        return json.load(answer)["access_token"]


def me(gateway, bearer: str) -> tuple[int, dict]:
    request = Request(f"{gateway.url}/v1/me", headers={"Authorization": f"Bearer {bearer}"})
    try:
        with urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except HTTPError as refused:
        return refused.code, {}


def encoded(value) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def test_its_tokens_for_us_are_good_and_no_others(gateway, issuer):
    bearer = token(issuer, US)
    status, told = me(gateway, bearer)
    assert (status, told["subject"], told["scopes"]) == (200, f"{issuer}#machine", ["read", "call"])
    assert me(gateway, token(issuer, "https://other.example/mcp"))[0] == 401

    header, claims, signature = bearer.split(".")
    with urlopen(f"{issuer}/jwks", timeout=30) as answer:
        key = json.load(answer)["keys"][0]
    for alg in ("none", "HS256"):
        unsigned = f"{encoded({'alg': alg, 'typ': 'at+jwt', 'kid': key['kid']})}.{claims}"
        for secret in (json.dumps(key).encode(), base64.urlsafe_b64decode(key["n"] + "==")):
            mac = hmac.digest(secret, unsigned.encode(), hashlib.sha256)
            assert me(gateway, f"{unsigned}.{encoded(mac)}")[0] == 401
        assert me(gateway, f"{unsigned}.")[0] == 401
    assert me(gateway, f"{header}.{claims}.{signature[:-4]}AAAA")[0] == 401


def test_somebody_logs_in_with_it(gateway, issuer):
    page = f"{gateway.url}/ui"
    for name in ("rin", "rin", "ren"):
        person = Person(name, "any password")
        assert person.go(f"{gateway.url}/oauth/federated/other", until=lambda url: url == page)
        status, _, shown = person.fetch(page, None)
        assert status == 200 and name in shown, shown
    request = Request(f"{gateway.url}/v1/users", headers=gateway.headers)
    with urlopen(request, timeout=30) as answer:
        users = json.load(answer)
    subjects = json.dumps(users)
    assert subjects.count(f"{issuer}#rin") == 1 and subjects.count(f"{issuer}#ren") == 1
