"""The first message to a server of which nothing is known yet: it costs no server its start.

hikite asks `server/discover` first. Some servers answer, most refuse, and those on the Rust SDK of
the revisions with sessions end at once.
"""

import json
import platform
import re
import time

import anyio
import pytest

from clients import direct, over_http, plain, text_of, tools_of, tools_with
from gateway import Gateway
from parts import git_repository, server
from talk import Talk

pytestmark = pytest.mark.anyio

MODERN = "2026-07-28"
# Until hikite says `initialize` as well, and until it starts a server anew that is silent still.
PATIENCE_SECONDS = 2
SILENCE_SECONDS = 30
VERSION = {"command": "biomcp version"}
PUBLISHED = ["everything", "filesystem", "memory", "sequential-thinking", "git", "time", "fetch", "sqlite"]


def wrapped(one: dict, script: str, file) -> dict:
    """The server, started by a shell script that has its command in "$@" and `file` in $FILE."""
    args = ["-c", script, "sh", one["command"], *one["args"]]
    return one | {"command": "sh", "args": args, "env": one["env"] | {"FILE": str(file)}}


def known_after(gateway) -> float | None:
    """Seconds from the start of the server to its lists, as hikite tells it."""
    known = re.search(r"lists received .*\bms=(\d+)", gateway.log())
    return int(known[1]) / 1000 if known else None


# Published for this architecture only.
@pytest.mark.parametrize("mode", ["legacy", "auto"] if platform.machine() == "x86_64" else [])
async def test_a_server_that_exits_at_the_question_is_started_again_once(start_gateway, parts, tmp_path, mode):
    starts = tmp_path / "starts"
    counted = wrapped(parts.biomcp_1x(tmp_path), 'echo one >> "$FILE"; exec "$@"', starts)
    gateway = start_gateway({"mcpServers": {"biomcp": counted}})
    async with over_http(gateway, mode=mode) as client:
        await tools_with(client, {"biomcp"})
        assert starts.read_text().count("one") == 2
        assert known_after(gateway) < SILENCE_SECONDS
        assert "biomcp 0.8.25" in text_of(plain(await client.call_tool("biomcp", VERSION)))
    # The process that was listed stays for calls.
    assert starts.read_text().count("one") == 2


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_server_in_rust_is_spoken_to_without_a_session(start_gateway, parts, tmp_path, mode):
    heard = tmp_path / "heard"
    overheard = wrapped(parts.biomcp(tmp_path), 'tee -a "$FILE" | "$@"', heard)
    gateway = start_gateway({"mcpServers": {"biomcp": overheard}})
    async with over_http(gateway, mode=mode) as client:
        await tools_with(client, {"biomcp"})
        assert "biomcp 0.9.3" in text_of(plain(await client.call_tool("biomcp", VERSION)))
    messages = [json.loads(line) for line in heard.read_text().splitlines()]
    assert messages[0]["method"] == "server/discover"
    assert "tools/call" in [message["method"] for message in messages]
    revisions = {message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] for message in messages}
    assert revisions == {MODERN}


@pytest.mark.parametrize("sdk", ["python", "typescript"])
async def test_a_server_that_starts_slowly_is_still_spoken_to_without_a_session(start_gateway, parts, tmp_path, sdk):
    """hikite has said `initialize` as well by the time it listens. One SDK refuses that; the other takes it, and would
    speak with a session from then on."""
    command, *args = parts.dual(sdk, sdk, "stdio")
    late = wrapped(server(sdk, command, *args), f'sleep {PATIENCE_SECONDS + 1}; exec "$@"', tmp_path)
    gateway = start_gateway({"mcpServers": {sdk: late}})
    async with over_http(gateway, **Talk().callbacks()) as client:
        await tools_with(client, {"era"})
        assert json.loads(text_of(plain(await client.call_tool("era", {}))))["revision"] == MODERN
        assert text_of(plain(await client.call_tool("ask_person", {}))) == "hello Ada"


async def test_a_server_that_never_answers_the_question_is_waited_for_only_once(start_gateway, parts, tmp_path):
    heard = tmp_path / "heard"
    deaf = 'tee -a "$FILE" | grep --line-buffered -v server/discover | "$@"'
    silent = wrapped(parts.sequential_thinking(), deaf, heard)
    gateway = start_gateway({"mcpServers": {"thinking": silent}})
    thought = {"thought": "hm", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1}
    async with over_http(gateway) as client:
        await tools_with(client, {"sequentialthinking"})
        assert PATIENCE_SECONDS <= known_after(gateway) < SILENCE_SECONDS
        text_of(plain(await client.call_tool("sequentialthinking", thought)))
    methods = [json.loads(line)["method"] for line in heard.read_text().splitlines()]
    # One process for the lists and for calls.
    assert (methods.count("server/discover"), methods.count("initialize")) == (1, 1)


@pytest.fixture
def published(parts, tmp_path):
    """The servers of the other files, each of which either knows the question or refuses it."""
    return {
        "everything": lambda: parts.everything(),
        "filesystem": lambda: parts.filesystem(tmp_path),
        "memory": lambda: parts.memory(tmp_path / "memory.jsonl"),
        "sequential-thinking": lambda: parts.sequential_thinking(),
        "git": lambda: parts.git(git_repository(tmp_path / "repository")),
        "time": lambda: parts.time(),
        "fetch": lambda: parts.fetch(),
        "sqlite": lambda: parts.sqlite(tmp_path / "shop.db"),
    }


@pytest.mark.parametrize("name", PUBLISHED)
async def test_a_server_is_known_as_soon_as_it_has_started(binary, published, tmp_path, name):
    """An answer that never comes would cost the whole patience, each time; a busy machine does not."""
    one = published[name]()
    tries = []
    for attempt in range(3):
        began = time.monotonic()
        async with direct(one) as client:
            await tools_of(client)
        alone = time.monotonic() - began
        folder = tmp_path / str(attempt)
        folder.mkdir()
        tries.append((await seconds_to_lists(binary, one, folder), alone))
        if tries[-1][0] < alone + PATIENCE_SECONDS / 2:
            return
    pytest.fail(f"known after, and alone: {tries}")


async def seconds_to_lists(binary, one: dict, folder) -> float:
    gateway = Gateway(binary, {"mcpServers": {"one": one}}, folder)
    gateway.start()
    try:
        with anyio.fail_after(30):
            while (seconds := known_after(gateway)) is None:
                await anyio.sleep(0.02)
    finally:
        gateway.stop()
    return seconds
