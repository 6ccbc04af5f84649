"""The commands of README.md and docs/tutorial.md, run as a new user runs them.

Each page runs in an empty folder with an empty home folder: every command of its ```sh blocks, in order, in one shell.
`hikite` is the program under test. A command must succeed, and the ```text block after a ```sh block states its output:
every line must appear in this order, `…` stands for anything, and a line of `…` alone for any number of lines.
The Japanese pages must have the same commands and outputs.
"""

import os
import re
import select
import shlex
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = ["README.md", "docs/tutorial.md"]

# Commands that a test cannot run, by their exact text.
NOT_RUN = {
    "cargo install --locked --path hikite": "builds the program under test once more, which takes minutes",
    'claude mcp add --transport http hikite http://127.0.0.1:7300/mcp --header "Authorization: Bearer $TOKEN"': (
        "the client is not part of the test setup"
    ),
}
# Commands that the text leaves running; they are stopped with Ctrl+C at the end of the page.
BACKGROUND = {"hikite serve"}
DEFAULT_PORT = "7300"
WITHOUT_INSTALLING = "cargo run --release -- "

COMMAND_SECONDS = 120
OUTPUT_SECONDS = 30
STOP_SECONDS = 60


@dataclass
class Step:
    """A ```sh block and the output that the text states for it."""

    line: int
    commands: list[str]
    output: list[str] = field(default_factory=list)


def blocks(text: str) -> list[tuple[int, str, list[str]]]:
    """Line, language and lines of every fenced block."""
    found, language, start, inside = [], None, 0, []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            if language is None:
                language, start, inside = line[3:].strip(), number, []
            else:
                found.append((start, language, inside))
                language = None
        elif language is not None:
            inside.append(line)
    assert language is None, f"the block at line {start} has no end"
    return found


def steps(text: str) -> list[Step]:
    found: list[Step] = []
    for line, language, lines in blocks(text):
        if language == "sh":
            found.append(Step(line, split_commands(lines)))
        elif language == "text":
            assert found and not found[-1].output, f"line {line}: an output without a command before it"
            found[-1].output = lines
    return found


def split_commands(lines: list[str]) -> list[str]:
    """Commands of a block: a here-document and a continued line belong to their command."""
    commands, current, end = [], [], None
    for line in lines:
        current.append(line)
        if end is not None:
            if line == end:
                end = None
        elif here := re.search(r"<<-?\s*(['\"]?)(\w+)\1", line):
            end = here[2]
        if end is None and not line.endswith("\\"):
            command = "\n".join(current)
            if command.strip() and not command.lstrip().startswith("#"):
                commands.append(command)
            current = []
    assert not current, f"the command has no end: {current}"
    return commands


def missing_line(expected: list[str], output: str) -> str | None:
    """The first stated line that does not appear after the lines before it."""
    lines = iter(output.splitlines())
    for wanted in expected:
        if wanted.strip("… ") == "":
            continue
        pattern = re.compile(".*".join(re.escape(part) for part in wanted.rstrip().split("…")))
        if not any(pattern.fullmatch(line.rstrip()) for line in lines):
            return wanted
    return None


class Shell:
    """One bash whose folder and variables last from command to command."""

    def __init__(self, folder: Path, environment: dict[str, str]):
        self.logs = folder.parent / "logs"
        self.logs.mkdir()
        self.count = 0
        self.background: list[tuple[str, int, Path]] = []
        self.process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        # Job control gives each command its own process group, as in a terminal.
        self.answer("set -m -o pipefail; echo ready", 10)

    def run(self, command: str) -> tuple[int, str]:
        log = self.next_log()
        status = self.answer(f"{{\n{command}\n}} >{log}.out 2>{log}.err </dev/null\necho $?", COMMAND_SECONDS)
        return int(status), output_of(log)

    def start(self, command: str) -> Path:
        log = self.next_log()
        pid = self.answer(f"{command} >{log}.out 2>{log}.err </dev/null &\necho $!", 10)
        self.background.append((command, int(pid), log))
        return log

    def stop_background(self) -> list[str]:
        """Ctrl+C for every command that still runs; returns those that did not end well."""
        wrong = []
        while self.background:
            command, pid, log = self.background.pop()
            try:
                os.killpg(pid, signal.SIGINT)
            except ProcessLookupError:
                pass
            status = self.answer(f"wait {pid}; echo $?", STOP_SECONDS)
            if status != "0":
                wrong.append(f"`{command}` ended with {status} after Ctrl+C:\n{output_of(log)}")
        return wrong

    def close(self) -> None:
        for _, pid, _ in self.background:
            try:
                os.killpg(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.kill()
        self.process.wait()

    def next_log(self) -> Path:
        self.count += 1
        return self.logs / str(self.count)

    def answer(self, script: str, seconds: float) -> str:
        self.process.stdin.write(f"{script}\n".encode())
        self.process.stdin.flush()
        ready, _, _ = select.select([self.process.stdout], [], [], seconds)
        assert ready, f"no end within {seconds} s: {script}"
        line = self.process.stdout.readline()
        assert line, f"the shell ended: {script}"
        return line.decode().strip()


def output_of(log: Path) -> str:
    """What a command wrote to stdout, then what it wrote to stderr, without colours."""
    parts = [Path(f"{log}.{stream}") for stream in ("out", "err")]
    text = "\n".join(part.read_text(encoding="utf-8", errors="replace").rstrip("\n") for part in parts if part.exists())
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


@pytest.fixture
def new_user(binary, parts, tmp_path):
    """A shell in an empty folder with an empty home, and the port that stands for the default one."""
    for name in ("bin", "home", "work"):
        (tmp_path / name).mkdir()
    (tmp_path / "bin" / "hikite").symlink_to(binary)
    # `npx` finds what is installed here and downloads nothing.
    (tmp_path / "node_modules").symlink_to(parts.node_modules)
    port = free_port()
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("HIKITE_", "XDG_", "npm_", "NPM_"))
    }
    environment = kept | {
        "HOME": str(tmp_path / "home"),
        "PATH": os.pathsep.join([str(tmp_path / "bin"), os.environ["PATH"]]),
        "PORT": port,
        "NPM_CONFIG_OFFLINE": "true",
        "NPM_CONFIG_UPDATE_NOTIFIER": "false",
    }
    shell = Shell(tmp_path / "work", environment)
    yield shell, port
    shell.close()


@pytest.mark.parametrize("page", PAGES)
def test_every_command_works_and_prints_what_the_page_says(page, new_user):
    shell, port = new_user
    found = steps((REPOSITORY / page).read_text(encoding="utf-8"))
    assert found, f"{page} has no commands"
    for step in found:
        expected = [line.replace(DEFAULT_PORT, port) for line in step.output]
        run_step(shell, port, f"{page}:{step.line}", step.commands, expected)
    wrong = shell.stop_background()
    assert not wrong, "\n\n".join(wrong)


def run_step(shell: Shell, port: str, where: str, commands: list[str], expected: list[str]) -> None:
    outputs = []
    for command in commands:
        if command in NOT_RUN:
            assert len(commands) == 1 and not expected, f"{where}: put `{command}` into a block without an output"
            return
        text = command.replace(WITHOUT_INSTALLING, "hikite ").replace(DEFAULT_PORT, port)
        if command in BACKGROUND:
            assert len(commands) == 1 and expected, f"{where}: state what `{command}` prints when it is ready"
            log = shell.start(text)
            outputs = [until(lambda: output_of(log), expected)]
        else:
            status, output = shell.run(text)
            assert status == 0, f"{where}: `{command}` ended with {status}:\n{output}"
            outputs.append(output)
    if missing_line(expected, "\n".join(outputs)) is not None and shlex.split(commands[-1])[0] == "curl":
        # The gateway sees changes of other processes within a second; a reader takes longer than that to type.
        outputs[-1] = until(lambda: shell.run(commands[-1].replace(DEFAULT_PORT, port))[1], expected)
    missing = missing_line(expected, "\n".join(outputs))
    assert missing is None, f"{where}: the output has no line `{missing}`:\n" + "\n".join(outputs)


def until(read, expected: list[str]) -> str:
    """Reads until the stated output is there, or time is up; returns what was read last."""
    deadline = time.monotonic() + OUTPUT_SECONDS
    while missing_line(expected, output := read()) is not None and time.monotonic() < deadline:
        time.sleep(0.2)
    return output


@pytest.mark.parametrize("page", PAGES)
def test_the_japanese_page_has_the_same_commands_and_outputs(page):
    japanese = page.replace(".md", ".ja.md")
    english, translated = (steps((REPOSITORY / name).read_text(encoding="utf-8")) for name in (page, japanese))
    shown = [[(step.commands, step.output) for step in found] for found in (english, translated)]
    assert shown[0] == shown[1], f"{page} and {japanese} differ"


def test_every_exception_is_still_in_a_page():
    commands = {
        command for page in PAGES for step in steps((REPOSITORY / page).read_text(encoding="utf-8")) for command in step.commands
    }
    assert set(NOT_RUN) | BACKGROUND <= commands, (set(NOT_RUN) | BACKGROUND) - commands


def test_every_page_of_the_documentation_is_in_the_index_once():
    docs = REPOSITORY / "docs"
    pages = {path.name for path in docs.glob("*.md")} - {"README.md", "README.ja.md"}
    english = sorted(page for page in pages if not page.endswith(".ja.md"))
    listed = re.findall(r"^\| \[[^]]+\]\(([^)#]+)\)", (docs / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == english
    # The Japanese index leads to the Japanese page where there is one.
    best = [page.replace(".md", ".ja.md") if page.replace(".md", ".ja.md") in pages else page for page in listed]
    index = re.findall(r"^\| \[[^]]+\]\(([^)#]+)\)", (docs / "README.ja.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert index == best


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "SECURITY.md"])
def test_every_file_and_type_that_a_page_names_exists(name):
    paths = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout.split()
    sources = {path: (REPOSITORY / path).read_text(encoding="utf-8") for path in paths if path.endswith(".rs")}
    page = (REPOSITORY / name).read_text(encoding="utf-8")
    named = set(re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", page, flags=re.DOTALL)))
    wrong = sorted(span for span in named if not name_exists(span, paths, sources))
    assert not wrong, f"{name} names what is not there: {wrong}"


def name_exists(name: str, paths: list[str], sources: dict[str, str]) -> bool:
    """Whether a file, a `Type::member` or a type is in the workspace; other text always is."""
    if name.endswith(".rs"):
        return any(f"/{path}".endswith(f"/{name}") for path in paths)
    if found := re.fullmatch(r"(?:\w+::)*([A-Z]\w*)::(\w+)", name):
        kind, member = found.groups()
        declares = re.compile(rf"\b(?:impl|struct|enum|trait)\b[^\n]*\b{kind}\b")
        texts = [text for text in sources.values() if kind in text and member in text]
        return any(declares.search(text) and re.search(rf"\b{member}\b", text) for text in texts)
    if found := re.fullmatch(r"(?:\w+::)*(\w+)::(\w+)", name):
        module, item = found.groups()
        files = [path for path in sources if f"/{module}/" in path or path.endswith(f"/{module}.rs")]
        crate = module.replace("_", "-")
        files += [path for path in sources if path.startswith(f"{crate}/")]
        return any(f"/{item}.rs" in path or re.search(rf"\b{item}\b", sources[path]) for path in files)
    if re.fullmatch(r"[A-Z][a-z]+(?:[A-Z][a-z]+)+", name):
        texts = [text for text in sources.values() if name in text]
        return any(re.search(rf"\b(?:struct|enum|trait|type) {name}\b", text) for text in texts)
    return True


@pytest.mark.parametrize(
    "expected, output, missing",
    [
        (["one", "three"], "one\ntwo\nthree", None),
        (["one", "…", "three"], "one\nthree", None),
        (["three", "one"], "one\ntwo\nthree", "one"),
        (["a…z"], "abcz", None),
        (["a…z"], "abc", "a…z"),
        (["ab"], "abc", "ab"),
        (["1.5 (x)…"], "1.5 (x) y", None),
    ],
)
def test_stated_output_is_compared_line_by_line(expected, output, missing):
    assert missing_line(expected, output) == missing


def test_a_block_is_split_into_commands():
    lines = ["# a comment", "cat > a <<'EOF'", "b", "EOF", "c \\", "  d", "", "e"]
    assert split_commands(lines) == ["cat > a <<'EOF'\nb\nEOF", "c \\\n  d", "e"]


def test_a_command_that_fails_and_an_output_that_is_missing_are_noticed(new_user):
    shell, port = new_user
    with pytest.raises(AssertionError, match="ended with 3"):
        run_step(shell, port, "here", ["(exit 3)"], [])
    with pytest.raises(AssertionError, match="no line `b`"):
        run_step(shell, port, "here", ["echo a"], ["b"])
    run_step(shell, port, "here", ["echo a"], ["a"])
