"""Runs the conformance client that the Python SDK publishes in its source packages, also over stdio.

    python python_client.py CLIENT.py URL

The published client speaks HTTP alone. With `HIKITE_STDIO` (a command as a JSON list) its transport is exchanged for
the SDK's own stdio transport to that program; every scenario stays as it is written there.
"""

import json
import os
import runpy
import sys
from contextlib import asynccontextmanager

import mcp.client.streamable_http as http
from mcp import StdioServerParameters, stdio_client


def parameters() -> StdioServerParameters:
    command, *args = json.loads(os.environ["HIKITE_STDIO"])
    return StdioServerParameters(command=command, args=args, env=dict(os.environ))


@asynccontextmanager
async def streams_over_stdio(*_, **__):
    """In the place of `streamable_http_client` of 1.x, which yields a third thing."""
    async with stdio_client(parameters()) as (read, write):
        yield read, write, None


def use_stdio() -> None:
    try:
        import mcp.client.client as line_2
    except ImportError:
        http.streamable_http_client = streams_over_stdio
        return
    published = line_2.Client
    line_2.Client = lambda _, **options: published(stdio_client(parameters()), **options)


if __name__ == "__main__":
    script = sys.argv[1]
    if os.environ.get("HIKITE_STDIO"):
        use_stdio()
    sys.argv = sys.argv[1:]
    runpy.run_path(script, run_name="__main__")
