"""A small server on the Python SDK, which speaks the revisions with sessions and 2026-07-28.

    python dual_server.py NAME stdio
    python dual_server.py NAME PORT      # streamable HTTP at /mcp

`dual_server.mjs` is the same server on the TypeScript SDK. The tool `era` answers in which revision
it was asked, as seen from here.
"""

import json
import sys
from typing import Annotated

import anyio
from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample
from mcp_types import CreateMessageResult, ListRootsResult, SamplingMessage, TextContent
from pydantic import BaseModel

NAME, WHERE = sys.argv[1:]
NOTE = f"note://{NAME}"
server = MCPServer(NAME, instructions=f"This is {NAME}.")
grown = 0


class Person(BaseModel):
    name: str


async def person() -> Elicit[Person]:
    return Elicit("Who is there?", Person)


async def model() -> Sample:
    question = SamplingMessage(role="user", content=TextContent(type="text", text="A colour?"))
    return Sample([question], max_tokens=20)


async def roots() -> ListRoots:
    return ListRoots()


@server.tool()
async def era(ctx: Context) -> str:
    headers = ctx.headers or {}
    return json.dumps({"revision": ctx.protocol_version, "session": headers.get("mcp-session-id")})


@server.tool()
async def ask_person(answer: Annotated[ElicitationResult[Person], Resolve(person)]) -> str:
    return f"hello {answer.data.name}" if isinstance(answer, AcceptedElicitation) else f"it was {answer.action}"


@server.tool()
async def ask_model(answer: Annotated[CreateMessageResult, Resolve(model)]) -> str:
    return f"{answer.model} answered {answer.content.text}"


@server.tool()
async def ask_roots(answer: Annotated[ListRootsResult, Resolve(roots)]) -> str:
    return ", ".join(root.name or "" for root in answer.roots)


@server.tool()
async def ask_all(
    who: Annotated[Person, Resolve(person)],
    what: Annotated[CreateMessageResult, Resolve(model)],
    where: Annotated[ListRootsResult, Resolve(roots)],
) -> str:
    return f"{who.name}, {what.content.text}, {where.roots[0].name}"


@server.tool()
async def count(ctx: Context) -> str:
    for step in (1, 2, 3):
        await ctx.report_progress(step, 3, f"step {step}")
        # The TypeScript SDK loses progress that it reads in one piece with the result.
        await anyio.sleep(0.05)
    return "counted"


@server.tool()
async def say(ctx: Context) -> str:
    for level in ("debug", "info", "error"):
        await ctx.log(level, f"{level} of {NAME}", logger_name="a-logger")
    return "said"


@server.tool()
async def grow(ctx: Context) -> str:
    """One tool more than before."""
    global grown
    grown += 1
    name = f"{NAME}_grown_{grown}"
    server.add_tool(lambda: "grown", name=name, description="It was not there at first.")
    await ctx.notify_tools_changed()
    return name


@server.tool()
async def touch(ctx: Context) -> str:
    await ctx.notify_resource_updated(NOTE)
    return NOTE


@server.resource(NOTE, name=f"{NAME}-note", mime_type="text/plain")
def note() -> str:
    return f"a note of {NAME}"


@server.prompt(name=f"{NAME}-prompt")
def prompt(topic: str) -> str:
    return f"Speak of {topic}."


if WHERE == "stdio":
    server.run("stdio")
else:
    server.run("streamable-http", host="127.0.0.1", port=int(WHERE))
