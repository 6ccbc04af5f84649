"""Clients and servers of 2026-07-28 and of the revisions before it, in every combination.

Five published clients hold the same conversation (talk.py) over both transports, in front of a
published server that knows sessions only, and of servers on today's SDKs, which speak both eras or
2026-07-28 alone. The latter say in which revision hikite came to them.
"""

import json
import socket
import subprocess
import time

import anyio
import pytest

from clients import gateway_stdio, over_http, stdio_args, typescript
from parts import server
from talk import Talk

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
CLIENTS = {
    "python-auto": MODERN,
    "python-legacy": LEGACY,
    "typescript-auto": MODERN,
    "typescript-legacy": LEGACY,
    "typescript-1x": LEGACY,
}
# On both SDKs, over both transports; the last one refuses clients with sessions.
DUAL = ["py_stdio", "py_http", "ts_stdio", "ts_http", "ts_http_only"]
DYNAMIC = "demo://resource/dynamic/text/1"
START_SECONDS = 120


@pytest.fixture(scope="module")
def http_servers(parts):
    """The servers that are there before hikite is: their addresses."""
    ports, running = {}, []
    for name, sdk in (("py_http", "python"), ("ts_http", "typescript")):
        ports[name] = free_port()
        running.append(subprocess.Popen(parts.dual(sdk, name, str(ports[name])), stderr=subprocess.DEVNULL))
    for port in ports.values():
        wait_for(port)
    yield {
        "py_http": f"http://127.0.0.1:{ports['py_http']}/mcp",
        "ts_http": f"http://127.0.0.1:{ports['ts_http']}/mcp",
        "ts_http_only": f"http://127.0.0.1:{ports['ts_http']}/modern",
    }
    for process in running:
        process.kill()
        process.wait()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_for(port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            assert time.monotonic() < deadline, f"nothing listens on {port}"
            time.sleep(0.05)


@pytest.fixture(scope="module")
def gateway(http_servers, start_gateway, parts):
    servers = {"everything": parts.everything()}
    for name, sdk in (("py_stdio", "python"), ("ts_stdio", "typescript")):
        servers[name] = server(name, *parts.dual(sdk, name, "stdio"))
    servers |= {name: {"type": "http", "url": url} for name, url in http_servers.items()}
    return start_gateway({"mcpServers": servers})


@pytest.fixture(scope="module")
def shared(start_gateway, parts):
    """With one process for all: this server tells of changes only the session that has asked for them by a
    call, and the calls of a client without a session may go to any."""
    return start_gateway({"mcpServers": {"everything": parts.everything() | {"share": "always"}}})


def steps() -> list[dict]:
    found = [{"id": "list", "list": ["echo", "trigger-sampling-request", *(f"{name}__era" for name in DUAL)]}]
    for name in DUAL:
        for tool in ("era", "ask_person", "ask_model", "ask_roots", "ask_all"):
            found.append({"id": f"{name} {tool}", "call": f"{name}__{tool}"})
        found += [
            {"id": f"{name} count", "call": f"{name}__count", "progress": True},
            {"id": f"{name} say", "call": f"{name}__say", "level": "info", "awaits": 2},
            {"id": f"{name} read", "read": f"note://{name}"},
            {"id": f"{name} prompt", "prompt": f"{name}-prompt", "arguments": {"topic": "tea"}},
            {
                "id": f"{name} hear",
                "hear": f"note://{name}",
                "calls": [{"call": f"{name}__grow"}, {"call": f"{name}__touch"}],
                "awaits": ["tools", f"note://{name}"],
            },
        ]
    slow = {"duration": 0.3, "steps": 3}
    colour = {"prompt": "A colour?", "maxTokens": 20}
    return [
        *found,
        {"id": "everything echo", "call": "echo", "arguments": {"message": "hello"}},
        {"id": "everything ask_person", "call": "trigger-elicitation-request"},
        {"id": "everything ask_model", "call": "trigger-sampling-request", "arguments": colour},
        {"id": "everything ask_roots", "call": "get-roots-list"},
        {"id": "everything count", "call": "trigger-long-running-operation", "arguments": slow, "progress": True},
        {"id": "everything say", "call": "toggle-simulated-logging", "level": "debug", "awaits": 1},
    ]


def steps_to_hear() -> list[dict]:
    updates = {"call": "toggle-subscriber-updates"}
    return [
        {"id": "list", "list": ["toggle-subscriber-updates"]},
        {"id": "hear", "hear": DYNAMIC, "calls": [updates], "awaits": [DYNAMIC]},
        {"id": "hush", **updates},
    ]


@pytest.fixture(scope="module", params=["http", "stdio"])
def over(request):
    return request.param


@pytest.fixture(scope="module", params=CLIENTS)
def who(request):
    return request.param


@pytest.fixture(scope="module")
def hold(who, over, parts, tmp_path_factory):
    """Holds a conversation with one client, over one transport, and returns what happened."""
    folder = tmp_path_factory.mktemp("talk")
    sdk, mode = who.split("-")

    def hold(gateway, steps):
        if sdk == "python":
            return anyio.run(hold_in_python, mode, over, gateway, folder, steps)
        if over == "http":
            task = {"url": gateway.mcp("direct"), "headers": gateway.headers}
        else:
            args = stdio_args(gateway, folder / "data")
            task = {"command": str(gateway.binary), "args": args, "env": gateway.environment()}
        task |= {"sdk": "1.x" if mode == "1x" else "2.x", "mode": mode, "steps": steps}
        return typescript(parts, folder, "typescript_talk.mjs", task)

    return hold


async def hold_in_python(mode, over, gateway, folder, steps):
    talk = Talk()
    if over == "http":
        connection = over_http(gateway, mode=mode, **talk.callbacks())
    else:
        connection = gateway_stdio(gateway, folder / "data", mode=mode, **talk.callbacks())
    async with connection as client:
        return await talk.hold(client, steps)


@pytest.fixture(scope="module")
def talk(hold, gateway):
    return hold(gateway, steps())


@pytest.fixture
def met(talk):
    """The record of one step, which must not have failed."""

    def met(step: str) -> dict:
        record = talk["records"][step]
        assert "error" not in record, json.dumps(record)
        return record

    return met


def test_the_newest_revision_that_the_client_takes_is_spoken(who, over, talk):
    # The older SDK does not tell its revision over stdio; it knows none but those with sessions.
    assert talk["revision"] == ("unknown" if (who, over) == ("typescript-1x", "stdio") else CLIENTS[who])


def test_the_tools_of_all_servers_are_listed(met):
    listed = met("list")["tools"]
    tools = ["era", "ask_person", "ask_model", "ask_roots", "ask_all", "count", "say", "grow", "touch"]
    assert {f"{name}__{tool}" for name in DUAL for tool in tools} <= set(listed)
    assert {"echo", "trigger-elicitation-request", "trigger-sampling-request"} <= set(listed)


@pytest.mark.parametrize("name", DUAL)
def test_a_server_that_can_is_spoken_to_without_a_session(who, met, name):
    # Its tools may be ones that ask only in a session: a client that can be asked so has one, where the server
    # keeps it. The TypeScript SDK's handler greets in the old way, too, but knows nobody afterwards.
    if name == "py_http" and CLIENTS[who] == LEGACY:
        assert json.loads(met(f"{name} era")["text"])["revision"] == LEGACY
    else:
        assert json.loads(met(f"{name} era")["text"]) == {"revision": MODERN, "session": None}


@pytest.mark.parametrize("name", DUAL)
def test_a_server_without_sessions_can_ask_every_client(met, name):
    person, model, roots = (met(f"{name} ask_{what}") for what in ("person", "model", "roots"))
    assert (person["text"], person["asked"]) == ("hello Ada", ["Who is there?"])
    assert (model["text"], model["asked"]) == ("a-model answered blue", ["A colour?"])
    assert (roots["text"], roots["asked"]) == ("work", ["roots"])


@pytest.mark.parametrize("name", DUAL)
def test_a_server_without_sessions_can_ask_three_things_at_once(met, name):
    record = met(f"{name} ask_all")
    assert record["text"] == "Ada, blue, work"
    assert sorted(record["asked"]) == ["A colour?", "Who is there?", "roots"]


@pytest.mark.parametrize("name", DUAL)
def test_progress_of_a_server_without_sessions_arrives(who, over, met, name):
    record = met(f"{name} count")
    assert record["text"] == "counted"
    expected = [[step, 3, f"step {step}"] for step in (1, 2, 3)]
    assert record["progress"] in (expected, expected[: surely_seen(who, over)])


@pytest.mark.parametrize("name", DUAL)
def test_logs_of_a_server_without_sessions_arrive_at_the_level_that_was_asked_for(met, name):
    record = met(f"{name} say")
    assert record["text"] == "said"
    assert record["logs"] == [[level, f"{level} of {name}"] for level in ("info", "error")]


@pytest.mark.parametrize("name", DUAL)
def test_resources_and_prompts_of_a_server_without_sessions_are_relayed(met, name):
    assert met(f"{name} read")["text"] == f"a note of {name}"
    assert met(f"{name} prompt")["text"] == "Speak of tea."


@pytest.mark.parametrize("name", DUAL)
def test_changes_of_a_server_without_sessions_are_heard_of(who, met, name):
    record = met(f"{name} hear")
    assert {"tools", f"note://{name}"} <= set(record["events"])
    assert_honored(who, record, f"note://{name}")


def test_a_server_with_sessions_answers_every_client(met):
    assert met("everything echo")["text"] == "Echo: hello"


def test_a_server_with_sessions_can_ask_every_client(met):
    person, model, roots = (met(f"everything ask_{what}") for what in ("person", "model", "roots"))
    assert "Name: Ada" in person["text"]
    # This server asks for the roots by itself, whenever it comes to it.
    asked_person, asked_model = ([words for words in one["asked"] if words != "roots"] for one in (person, model))
    assert len(asked_person) == 1
    assert "blue" in model["text"]
    assert len(asked_model) == 1
    assert "A colour?" in asked_model[0]
    assert "work" in roots["text"]


def test_progress_of_a_server_with_sessions_arrives(who, over, met):
    seen = [step[:2] for step in met("everything count")["progress"]]
    expected = [[1, 3], [2, 3], [3, 3]]
    assert seen in (expected, expected[: surely_seen(who, over)])


def surely_seen(who: str, over: str) -> int:
    """Of three steps. The TypeScript SDK drops progress that it reads in one piece with the result, and on a pipe
    that is up to the machine; the Python SDK shows that all three were sent."""
    return 2 if over == "stdio" and who.startswith("typescript") else 3


def test_a_log_of_a_server_with_sessions_arrives_with_its_level(met):
    # It sends one of a random level, with the level in its words.
    logs = met("everything say")["logs"]
    assert any(words.lower().startswith(level) for level, words in logs), logs


def test_changes_of_a_server_with_sessions_are_heard_of(who, hold, shared):
    record = hold(shared, steps_to_hear())["records"]["hear"]
    assert "error" not in record, json.dumps(record)
    assert DYNAMIC in record["events"]
    assert_honored(who, record, DYNAMIC)


def assert_honored(who: str, record: dict, uri: str) -> None:
    """A client of 2026-07-28 was told that all it asked for will be heard."""
    if CLIENTS[who] == MODERN:
        assert record["honored"] == {"toolsListChanged": True, "resourceSubscriptions": [uri]}
