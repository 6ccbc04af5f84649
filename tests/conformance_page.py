"""docs/conformance.md: what the public suite measured. Each section is written by the script that measures it."""

import difflib
import re
from collections.abc import Callable

from conformance import REPOSITORY, suite_version

PAGE = REPOSITORY / "docs" / "conformance.md"
HEAD = """\
# Conformance

What the public suite of the protocol measures, `@modelcontextprotocol/conformance` {version}. This page is written
by the scripts that measure it, and `./test` fails when the required part no longer says what they find.
"""
SECTIONS = ("server", "client", "sdk_servers", "sdk_clients", "beside")


def begin(name: str) -> str:
    return f"<!-- {name}: generated -->"


def table(columns: list[str], rows: list[list]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def write(name: str, text: str) -> None:
    sections = read() | {name: text.strip()}
    parts = [HEAD.format(version=suite_version())]
    parts += [f"{begin(one)}\n\n{sections[one]}\n" for one in SECTIONS if one in sections]
    PAGE.write_text("\n".join(parts), encoding="utf-8")


def read() -> dict[str, str]:
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    found = re.split(r"^<!-- (\w+): generated -->$", text, flags=re.MULTILINE)[1:]
    return {name: part.strip() for name, part in zip(found[::2], found[1::2])}


def differences(name: str, text: str, same: Callable[[str], str] = str) -> str:
    """What the page says otherwise than what was measured; empty if nothing. `same` leaves out what may differ."""
    committed, measured = (same(one.strip()).splitlines() for one in (read().get(name, ""), text))
    return "\n".join(difflib.unified_diff(committed, measured, "docs/conformance.md", "measured", lineterm=""))


def without_counts(text: str) -> str:
    """How many checks the suite makes, and whether hikite answers with a stream, depends on timing; a check that is worse
    without a reason fails by itself."""
    lines = [line for line in text.partition("| worse through hikite |")[0].splitlines() if not line.startswith("No check")]
    return re.sub(r"\d+ / \d+ / \d+|(?<=\| )\d+(?= \|$)", "-", "\n".join(lines), flags=re.MULTILINE).strip()
