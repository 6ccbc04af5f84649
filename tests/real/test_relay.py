"""Everything beside plain calls, relayed to and from server-everything: equal to a direct connection.

Each test runs the same conversation twice, once straight with the server and once through the
gateway, and holds the two records against each other. `legacy` is a client of the revisions with
sessions, `auto` one that takes 2026-07-28 where it is offered; the server knows sessions only.
"""

import re

import anyio
import mcp_types as types
import pytest
from mcp import MCPError

from clients import direct, over_http, plain, text_of, tools_of, tools_with

pytestmark = pytest.mark.anyio

DOCUMENT = "demo://resource/static/document/features.md"
DYNAMIC = "demo://resource/dynamic/{kind}/1"
TEMPLATE = "demo://resource/dynamic/text/{resourceId}"
SIMULATED_LOGS = {
    *(f"{level}-level message" for level in ("Debug", "Info", "Notice", "Warning", "Error", "Critical", "Emergency")),
    "Alert level-message",
}


@pytest.fixture(scope="module")
def everything(parts):
    """With a process for each session, as a server needs that asks back."""
    return parts.everything() | {"share": "never"}


@pytest.fixture(scope="module")
def gateway(start_gateway, everything):
    return start_gateway({"mcpServers": {"everything": everything}})


@pytest.fixture(params=["legacy", "auto"])
def same(request, gateway, everything):
    """Runs a conversation on both sides, asserts that they are equal, and returns the record."""

    async def same(converse, person=None):
        async with direct(everything, **callbacks(person)) as client:
            own = await converse(client)
        if person:
            person.asked.append("--- through the gateway ---")
        async with over_http(gateway, mode=request.param, **callbacks(person)) as client:
            relayed = await converse(client)
        assert scrub(relayed) == scrub(own)
        return relayed

    return same


def scrub(record):
    """Without what differs from one connection to the next: the clock, and the newest revision's envelope."""
    if isinstance(record, dict):
        kept = {key: scrub(value) for key, value in record.items() if not is_envelope(key)}
        return {key: value for key, value in kept.items() if key != "_meta" or value}
    if isinstance(record, list | tuple):
        return [scrub(item) for item in record]
    if isinstance(record, str):
        return re.sub(r"created at [\d:]+ [AP]M", "created at some time", record)
    return record


def is_envelope(key: str) -> bool:
    return key in {"resultType", "ttlMs", "cacheScope"} or key.startswith("io.modelcontextprotocol/")


class Person:
    """Answers what a server asks of the person at the client, and keeps what was asked."""

    def __init__(self, name: str = "Ada", action: str = "accept"):
        self.name = name
        self.action = action
        self.asked: list = []

    async def sample(self, _context, params):
        self.asked.append(plain(params))
        content = types.TextContent(type="text", text=f"{self.name} says blue")
        return types.CreateMessageResult(role="assistant", content=content, model="a-person", stop_reason="endTurn")

    async def elicit(self, _context, params):
        self.asked.append(plain(params))
        content = {"name": self.name, "check": True, "integer": 7} if self.action == "accept" else None
        return types.ElicitResult(action=self.action, content=content)

    async def list_roots(self, _context):
        return types.ListRootsResult(roots=[types.Root(uri="file:///somewhere/work", name=f"{self.name}'s work")])


def callbacks(person: Person | None) -> dict:
    if person is None:
        return {}
    return {
        "sampling_callback": person.sample,
        "elicitation_callback": person.elicit,
        "list_roots_callback": person.list_roots,
    }


async def test_tools_are_listed_alike(same):
    # The server offers some tools only to clients that can be asked; the gateway lists them for all.
    await same(tools_of, Person())


async def test_prompts_are_listed_and_got(same):
    async def converse(client):
        return [
            [plain(prompt) for prompt in (await client.list_prompts()).prompts],
            plain(await client.get_prompt("simple-prompt")),
            plain(await client.get_prompt("args-prompt", {"city": "Kyoto", "state": "Kyoto"})),
            plain(await client.get_prompt("resource-prompt", {"resourceType": "Text", "resourceId": "1"})),
        ]

    listed, _, with_arguments, _ = await same(converse)
    assert len(listed) == 4
    assert "Kyoto" in with_arguments["messages"][0]["content"]["text"]


async def test_resources_and_templates_are_listed_and_read(same):
    async def converse(client):
        return [
            [plain(resource) for resource in (await client.list_resources()).resources],
            [plain(template) for template in (await client.list_resource_templates()).resource_templates],
            plain(await client.read_resource(DOCUMENT)),
            plain(await client.read_resource(DYNAMIC.format(kind="text"))),
            # The blob holds the time of day, so only its shape can be compared.
            [sorted(content) for content in plain(await client.read_resource(DYNAMIC.format(kind="blob")))["contents"]],
        ]

    resources, templates, document, _, _ = await same(converse)
    assert DOCUMENT in [resource["uri"] for resource in resources]
    assert len(templates) == 2
    assert document["contents"][0]["text"]


async def test_arguments_are_completed(same):
    async def converse(client):
        prompt = types.PromptReference(type="ref/prompt", name="completable-prompt")
        template = types.ResourceTemplateReference(type="ref/resource", uri=TEMPLATE)
        engineering = {"department": "Engineering"}
        return [
            plain(await client.complete(prompt, {"name": "department", "value": "S"})),
            plain(await client.complete(prompt, {"name": "name", "value": ""}, engineering)),
            plain(await client.complete(template, {"name": "resourceId", "value": "1"})),
        ]

    department, name, _ = await same(converse)
    assert department["completion"]["values"] == ["Sales", "Support"]
    assert name["completion"]["values"] == ["Alice", "Bob", "Charlie"]


async def test_every_kind_of_content_is_relayed(same):
    async def converse(client):
        calls = [
            ("get-structured-content", {"location": "Chicago"}),
            ("get-tiny-image", {}),
            ("get-annotated-message", {"messageType": "error", "includeImage": True}),
            ("get-resource-links", {"count": 3}),
            ("get-resource-reference", {"resourceType": "Text", "resourceId": 1}),
        ]
        return [plain(await client.call_tool(name, arguments)) for name, arguments in calls]

    structured, image, *_ = await same(converse)
    assert structured["structuredContent"]
    assert {block["type"] for block in image["content"]} == {"text", "image"}


async def test_progress_is_relayed(same):
    async def converse(client):
        seen = []

        async def on_progress(progress, total, message):
            # The gateway reports a server that takes more than a moment to start.
            if not (message or "").endswith("is starting."):
                seen.append((progress, total, message))

        result = await client.call_tool(
            "trigger-long-running-operation", {"duration": 0.4, "steps": 4}, progress_callback=on_progress
        )
        return [plain(result), seen]

    _, seen = await same(converse)
    assert [step[:2] for step in seen] == [(1, 4), (2, 4), (3, 4), (4, 4)]


async def test_a_server_can_ask_for_sampling(same):
    person = Person()

    async def converse(client):
        return plain(await client.call_tool("trigger-sampling-request", {"prompt": "A colour?", "maxTokens": 20}))

    assert "Ada says blue" in text_of(await same(converse, person))
    assert_asked_alike(person, "A colour?")


@pytest.mark.parametrize("action", ["accept", "decline", "cancel"])
async def test_a_server_can_ask_the_person(same, action):
    person = Person(action=action)

    async def converse(client):
        return plain(await client.call_tool("trigger-elicitation-request", {}))

    text = text_of(await same(converse, person))
    assert ("Name: Ada" in text) == (action == "accept")
    assert_asked_alike(person, "Please provide inputs")


async def test_a_server_can_ask_for_roots(same):
    async def converse(client):
        return plain(await client.call_tool("get-roots-list", {}))

    assert "Ada's work" in text_of(await same(converse, Person()))


def assert_asked_alike(person: Person, expected: str) -> None:
    """The person was asked once on each side, and the same thing."""
    own, _, relayed = person.asked
    assert scrub(relayed) == scrub(own)
    assert expected in str(own)


async def test_a_client_that_can_be_asked_is_shown_the_tools_that_ask(gateway, everything):
    async with direct(everything, **callbacks(Person())) as client:
        own = await tools_of(client)
    async with over_http(gateway, **callbacks(Person())) as client:
        listed = await tools_with(client, set(own))
    assert listed == own


async def test_each_session_is_asked_its_own_questions(gateway):
    answers = {}

    async def one(name):
        async with over_http(gateway, **callbacks(Person(name))) as client:
            for _ in range(3):
                result = await client.call_tool("trigger-sampling-request", {"prompt": name})
                answers.setdefault(name, []).append(text_of(plain(result)))

    async with anyio.create_task_group() as group:
        for name in ("Ada", "Grace"):
            group.start_soon(one, name)
    for name, texts in answers.items():
        assert len(texts) == 3
        assert all(f"{name} says blue" in text for text in texts)


async def simulated_logs(client, logs, level, toggles):
    """Sets the level, switches the server's logging on and off, and waits for what arrives."""
    await client.set_logging_level(level)
    logs.clear()
    for _ in range(toggles):
        await client.call_tool("toggle-simulated-logging", {})
    await wait_until(lambda: level != "debug" or len(logs) >= toggles // 2)
    return [(log["level"], log["data"]) for log in logs]


@pytest.mark.parametrize("through", ["directly", "through the gateway"])
async def test_log_messages_arrive_at_the_level_that_was_set(gateway, everything, through):
    logs = []

    async def on_log(params):
        if params.data in SIMULATED_LOGS:
            logs.append(plain(params))

    if through == "directly":
        connection = direct(everything, logging_callback=on_log)
    else:
        connection = over_http(gateway, logging_callback=on_log)
    async with connection as client:
        # Each time it is switched on it sends one message of a random level at once.
        everything_logged = await simulated_logs(client, logs, "debug", toggles=6)
        assert len(everything_logged) == 3
        await simulated_logs(client, logs, "emergency", toggles=6)
        await anyio.sleep(0.5)
        assert {log["level"] for log in logs} <= {"emergency"}


@pytest.mark.parametrize("through", ["directly", "through the gateway"])
async def test_a_subscriber_hears_of_an_updated_resource(gateway, everything, through):
    uri = DYNAMIC.format(kind="text")
    updated = []

    async def on_message(message):
        if isinstance(message, types.ResourceUpdatedNotification):
            updated.append(str(message.params.uri))

    if through == "directly":
        connection = direct(everything, message_handler=on_message)
    else:
        connection = over_http(gateway, message_handler=on_message)
    async with connection as client:
        await client.subscribe_resource(uri)
        await client.call_tool("toggle-subscriber-updates", {})
        await wait_until(lambda: updated)
        await client.call_tool("toggle-subscriber-updates", {})
        await client.unsubscribe_resource(uri)
    assert set(updated) == {uri}


async def wait_until(condition, seconds: float = 30) -> None:
    with anyio.fail_after(seconds):
        while not condition():
            await anyio.sleep(0.02)


async def test_an_unknown_tool_is_an_error_of_the_protocol(gateway):
    async with over_http(gateway) as client:
        with pytest.raises(MCPError) as failure:
            await client.call_tool("no-such-tool", {})
    assert failure.value.error.code == -32602
