"""The same calls by the Python SDK, in turns: all at once at their server, and as one batch through hikite.

    python python.py SERVER_URL HIKITE_URL CALLS SECONDS

Prints {"direct", "batch"}: the milliseconds of each turn.
"""

import json
import sys
import time

import anyio
from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client

WARM_UP = 3


async def main(server: str, hikite: str, count: int, seconds: float) -> None:
    expected = [f"marker-{number}" for number in range(count)]
    commands = [
        {"id": f"t{number}", "module": "bench", "tool": "echo", "params": {"text": text}, "raw_output": True}
        for number, text in enumerate(expected)
    ]
    times: dict[str, list[float]] = {"direct": [], "batch": []}
    async with (
        streamablehttp_client(server) as (read, write, _),
        ClientSession(read, write) as direct,
        streamablehttp_client(hikite) as (read_too, write_too, _),
        ClientSession(read_too, write_too) as gateway,
    ):
        await direct.initialize()
        await gateway.initialize()

        async def by_itself() -> list[str]:
            seen = [""] * count

            async def echo(number: int) -> None:
                result = await direct.call_tool("echo", {"text": expected[number]})
                seen[number] = result.content[0].text

            async with anyio.create_task_group() as group:
                for number in range(count):
                    group.start_soon(echo, number)
            return seen

        async def in_a_batch() -> list[str]:
            result = await gateway.call_tool("batch", {"commands": commands})
            return [task["result"] for task in result.structuredContent["tasks"]]

        until, turn = time.perf_counter() + seconds, 0
        while turn < 2 * WARM_UP or time.perf_counter() < until:
            for name, run in (("direct", by_itself), ("batch", in_a_batch)):
                started = time.perf_counter()
                seen = await run()
                took = (time.perf_counter() - started) * 1000
                assert seen == expected, seen
                if turn >= WARM_UP:
                    times[name].append(took)
            turn += 1
    print(json.dumps(times))


anyio.run(main, sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
