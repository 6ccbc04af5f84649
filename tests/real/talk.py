"""One conversation in data, held by any published client, so that all of them can be compared.

A conversation is a list of steps: `list` (until these tools are there), `call`, `read`, `prompt`, and
`hear` (listen for the tool list and one resource while some calls are made). Each gives a record of
what came back and of what happened meanwhile: what the person was asked, progress, logs and events.
"""

import time

import anyio
import mcp_types as types

from clients import plain, tools_of

LOG_LEVEL = "io.modelcontextprotocol/logLevel"
LIST_SECONDS = 30
HEAR_SECONDS = 8
KNOWN = {"name": "Ada", "check": True, "integer": 7}


class Talk:
    """The Python SDK's side of it; typescript_talk.mjs is the other."""

    def __init__(self):
        self.client = None
        self.clear()

    def clear(self):
        self.asked, self.progress, self.logs, self.events = [], [], [], []

    def callbacks(self) -> dict:
        return {
            "elicitation_callback": self.elicit,
            "sampling_callback": self.sample,
            "list_roots_callback": self.list_roots,
            "logging_callback": self.on_log,
            "message_handler": self.on_message,
        }

    async def elicit(self, _context, params):
        self.asked.append(params.message)
        wanted = params.requested_schema["properties"]
        return types.ElicitResult(action="accept", content={key: KNOWN[key] for key in KNOWN if key in wanted})

    async def sample(self, _context, params):
        content = params.messages[0].content
        self.asked.append((content[0] if isinstance(content, list) else content).text)
        content = types.TextContent(type="text", text="blue")
        return types.CreateMessageResult(role="assistant", content=content, model="a-model", stop_reason="endTurn")

    async def list_roots(self, _context):
        self.asked.append("roots")
        return types.ListRootsResult(roots=[types.Root(uri="file:///somewhere/work", name="work")])

    async def on_log(self, params):
        self.logs.append([params.level, params.data])

    async def on_progress(self, progress, total, message):
        self.progress.append([progress, total, message])

    async def on_message(self, message):
        if isinstance(message, types.ToolListChangedNotification):
            self.events.append("tools")
        if isinstance(message, types.ResourceUpdatedNotification):
            self.events.append(str(message.params.uri))

    async def hold(self, client, steps: list[dict]) -> dict:
        self.client = client
        self.is_modern = client.protocol_version >= "2026"
        records = {}
        for step in steps:
            self.clear()
            kind = next(key for key in ("list", "call", "read", "prompt", "hear") if key in step)
            try:
                outcome = await getattr(self, f"do_{kind}")(step)
            except Exception as failure:  # noqa: BLE001
                outcome = {"error": repr(failure)}
            met = {"asked": self.asked, "progress": self.progress, "logs": self.logs, "events": self.events}
            records[step["id"]] = met | outcome
        return {"revision": client.protocol_version, "records": records}

    async def do_list(self, step):
        tools = []

        async def is_there():
            tools[:] = await tools_of(self.client)
            return set(step["list"]) <= set(tools)

        await until(is_there, LIST_SECONDS)
        return {"tools": tools}

    async def do_call(self, step):
        outcome = await self.call(step)

        async def all_logged():
            return len(self.logs) >= step.get("awaits", 0)

        await until(all_logged, HEAR_SECONDS)
        return outcome

    async def call(self, step):
        level = step.get("level")
        if level and not self.is_modern:
            await self.client.set_logging_level(level)
        result = plain(
            await self.client.call_tool(
                step["call"],
                step.get("arguments", {}),
                progress_callback=self.on_progress if step.get("progress") else None,
                meta={LOG_LEVEL: level} if level and self.is_modern else None,
            )
        )
        words = "\n".join(block["text"] for block in result["content"])
        return {"error": words} if result.get("isError") else {"text": words}

    async def do_read(self, step):
        return {"text": plain(await self.client.read_resource(step["read"]))["contents"][0]["text"]}

    async def do_prompt(self, step):
        result = plain(await self.client.get_prompt(step["prompt"], step["arguments"]))
        return {"text": result["messages"][0]["content"]["text"]}

    async def do_hear(self, step):
        async def all_heard():
            return set(step["awaits"]) <= set(self.events)

        async def make_calls():
            texts = [await self.call(one) for one in step["calls"]]
            await until(all_heard, HEAR_SECONDS)
            return texts

        uri = step["hear"]
        if not self.is_modern:
            await self.client.subscribe_resource(uri)
            texts = await make_calls()
            await self.client.unsubscribe_resource(uri)
            return {"texts": texts}
        async with self.client.listen(tools_list_changed=True, resource_subscriptions=[uri]) as stream:
            texts = await make_calls()
            return {"texts": texts, "honored": plain(stream.honored)}


async def until(condition, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not await condition() and time.monotonic() < deadline:
        await anyio.sleep(0.05)
