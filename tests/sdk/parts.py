"""The official SDKs on the other side: where their servers and clients are, and how each is started.

The Python SDK publishes its conformance server and client in the source packages of its releases; those are run as
they are. The other SDKs keep theirs out of what they publish: for them there is a server and a client of our own
here, written upon the released package, which offer what the suite asks for. Go's SDK is in no package registry. As a
server a published program that is built upon it stands for it; the client is ours, built from the sources in Debian.
"""

import json
import os
import platform
import socket
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
CACHE = Path(os.environ.get("HIKITE_TEST_CACHE") or REPOSITORY / ".cache" / "tests")
NODE_MODULES = CACHE / "node" / "node_modules"
SOURCES = CACHE / "sources"
RUST = CACHE / "rust" / "debug"
GO_CLIENT = CACHE / "go" / "go-client"

SESSIONS = "2025-11-25"
STATELESS = "2026-07-28"

OWN = "its own"
OURS = "ours, on it"
PUBLISHED = "kubernetes-mcp-server"


@dataclass(frozen=True)
class Part:
    """One SDK at one version: its server over HTTP and its client over HTTP and stdio."""

    name: str
    version: str
    origin: str
    # The revisions that its client can be told to speak.
    revisions: tuple[str, ...]
    server: list[str] | None
    client: list[str] | None
    folder: Path = HERE

    @property
    def title(self) -> str:
        return f"{self.name} {self.version}"

    def served_at(self, port: int) -> tuple[list[str], str]:
        """The command of the server and where it answers."""
        return [word.format(port=port) for word in self.server], f"http://127.0.0.1:{port}/mcp"


def all_parts() -> dict[str, Part]:
    """Every SDK, by a short name."""
    return {
        "python-1": python("frameworks", "python-1", (SESSIONS,)),
        "python-2": python("python", "python-2", (SESSIONS, STATELESS)),
        "typescript-1": typescript("1", "sdk", (SESSIONS,)),
        "typescript-2": typescript("2", "server", (SESSIONS, STATELESS)),
        "rust": Part(
            name="Rust",
            version=locked_version("rmcp"),
            origin=OURS,
            revisions=(SESSIONS, STATELESS),
            server=[str(RUST / "rmcp-server"), "{port}"],
            client=[str(RUST / "rmcp-client")],
        ),
        "go": Part(
            name="Go",
            version="1.8.0",
            origin=PUBLISHED,
            revisions=(),
            server=[
                str(go_server()), "--bind-address", "127.0.0.1", "--port", "{port}",
                "--kubeconfig", str(HERE / "kubeconfig.yaml"), "--toolsets", "config",
            ],
            client=None,
        ),
        # Debian replaces versions of the SDK within the first line.
        "go-client": Part(
            name="Go", version="1.x", origin=OURS, revisions=(SESSIONS,), server=None, client=[str(GO_CLIENT)],
        ),
    }  # fmt: skip


def python(environment: str, source: str, revisions: tuple[str, ...]) -> Part:
    interpreter = str(CACHE / environment / "bin" / "python")
    release = SOURCES / source
    quiet = [interpreter, "-W", "ignore"]
    return Part(
        name="Python",
        version=(release / "VERSION").read_text().strip() if release.exists() else "(not installed)",
        origin=OWN,
        revisions=revisions,
        server=[*quiet, "-m", "mcp_everything_server", "--port", "{port}"],
        client=[*quiet, str(HERE / "python_client.py"), str(release / ".github/actions/conformance/client.py")],
        folder=release / "examples/servers/everything-server",
    )


def typescript(line: str, package: str, revisions: tuple[str, ...]) -> Part:
    manifest = NODE_MODULES / "@modelcontextprotocol" / package / "package.json"
    return Part(
        name="TypeScript",
        version=json.loads(manifest.read_text())["version"],
        origin=OURS,
        revisions=revisions,
        server=["node", str(HERE / f"typescript_server_{line}.mjs"), str(NODE_MODULES), "{port}"],
        client=["node", str(HERE / "typescript_client.mjs"), str(NODE_MODULES), line],
    )


def go_server() -> Path:
    kind = "arm64" if platform.machine() in ("aarch64", "arm64") else "amd64"
    package = f"kubernetes-mcp-server-linux-{kind}"
    return NODE_MODULES / package / "bin" / package


def locked_version(crate: str) -> str:
    lines = iter((HERE / "rust" / "Cargo.lock").read_text().splitlines())
    found = next(next(lines) for line in lines if line == f'name = "{crate}"')
    return found.split('"')[1]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]
