"""Where the installed parts are, and what each real server needs to start."""

import os
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent


class Parts:
    def __init__(self, cache: Path):
        self.python = cache / "python" / "bin"
        self.python_1x = cache / "python-1x" / "bin"
        self.frameworks = cache / "frameworks" / "bin"
        self.node_modules = cache / "node" / "node_modules"
        # The Inspector and the conformance suite need Node 22; everything else runs on the machine's own.
        self.node22 = self.node_modules / ".bin" / "node"

    def script(self, package: str, path: str) -> str:
        return str(self.node_modules / package / path)

    def node_server(self, name: str, *args: str, **env: str) -> dict:
        script = self.script(f"@modelcontextprotocol/server-{name}", "dist/index.js")
        return server(f"The {name} reference server", "node", script, *args, **env)

    def everything(self) -> dict:
        return self.node_server("everything", "stdio")

    def filesystem(self, folder: Path) -> dict:
        return self.node_server("filesystem", str(folder))

    def memory(self, file: Path) -> dict:
        return self.node_server("memory", MEMORY_FILE_PATH=str(file))

    def sequential_thinking(self) -> dict:
        return self.node_server("sequential-thinking")

    def git(self, repository: Path) -> dict:
        return server("Git", self.python / "mcp-server-git", "--repository", repository)

    def time(self) -> dict:
        return server("Time zones", self.python / "mcp-server-time", "--local-timezone", "UTC")

    def fetch(self) -> dict:
        # With `node` in reach its HTML reader would run `npm install` at the first page.
        # Without the flag it refuses loopback.
        return server("Web pages", self.python / "mcp-server-fetch", "--allow-private-ips", PATH=str(self.python))

    def biomcp(self, home: Path) -> dict:
        """A program in Rust, on the SDK called rmcp."""
        return server("Biomedicine", self.python / "biomcp", "mcp", HOME=str(home))

    def biomcp_1x(self, home: Path) -> dict:
        """The same before it knew 2026-07-28: it exits when the first message is not `initialize`."""
        return server("Biomedicine", self.python_1x / "biomcp", "mcp", HOME=str(home))

    def sqlite(self, file: Path) -> dict:
        return server("A database", self.python_1x / "mcp-server-sqlite", "--db-path", file)

    def serena(self, project: Path, home: Path) -> dict:
        # HOME holds its settings and logs. Out of reach of uv it starts no language server,
        # which it would have to download; the tools that need none work.
        return server(
            "Code by symbols",
            self.python_1x / "serena", "start-mcp-server", "--project", project,
            "--enable-web-dashboard", "false", "--open-web-dashboard", "false", "--enable-gui-log-window", "false",
            HOME=str(home), PATH=os.pathsep.join([str(self.python_1x), "/usr/bin", "/bin"]),
        )  # fmt: skip

    def dual(self, sdk: str, name: str, where: str) -> list[str]:
        """The command of our own small server on a published SDK: "python" or "typescript"."""
        if sdk == "python":
            # What it is told about deprecated features is not for the log.
            return [str(self.python / "python"), "-W", "ignore", str(HERE / "dual_server.py"), name, where]
        return ["node", str(HERE / "dual_server.mjs"), str(self.node_modules), name, where]


def server(description: str, command: object, *args: object, **env: str) -> dict:
    return {
        "description": description,
        "type": "stdio",
        "command": str(command),
        "args": [str(arg) for arg in args],
        "env": env,
    }


def git_repository(folder: Path) -> Path:
    """A repository with one commit, whatever the settings of the person who runs this."""
    folder.mkdir()
    identity = ["-c", "user.name=Tester", "-c", "user.email=tester@example.com", "-c", "commit.gpgsign=false"]
    for command in (["init", "-q"], [*identity, "commit", "-q", "--allow-empty", "-m", "the first commit"]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return folder
