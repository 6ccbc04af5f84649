#!/usr/bin/env python3
"""Renders the Helm chart and writes deploy/kubernetes.yaml from it: tests/packages/chart.py --write.

Understands what our templates use of Helm's language: `if`, `with`, `end`, `toYaml`, `toPrettyJson`, `nindent`, `default`,
`sha256sum`, values, and trimmed white space. Anything else is an error.
"""

import hashlib
import json
import re
import sys
from pathlib import Path

import yaml

FOLDER = Path(__file__).resolve().parents[2] / "deploy/helm/hikite"
# In the order of `kubectl apply`.
ORDER = ["configmap", "deployment", "service", "poddisruptionbudget", "networkpolicy", "ingress"]
HEAD = """\
# Two nodes of hikite, for an ingress that terminates TLS and a PostgreSQL that exists already. Made from the Helm chart in
# deploy/helm/hikite with its default values: tests/packages/chart.py --write.
#
#   kubectl create secret generic hikite \\
#     --from-literal=store-url=postgres://hikite:PASSWORD@postgres:5432/hikite \\
#     --from-literal=vault-key=$(openssl rand -hex 32) --from-literal=token=$(openssl rand -hex 32)
#   kubectl apply -f deploy/kubernetes.yaml
#
# Change the host, the image and the networks of your cluster. See docs/operations.md.
"""


def read(path: Path) -> dict:
    return yaml.safe_load(path.read_text())


def manifest(folder: Path) -> str:
    texts = [text.strip() for text in rendered(folder, {}) if text.strip()]
    return HEAD + "\n---\n".join(texts) + "\n"


def render(folder: Path, values: dict) -> list[dict]:
    return [yaml.safe_load(text) for text in rendered(folder, values) if text.strip()]


def rendered(folder: Path, values: dict) -> list[str]:
    chart = read(folder / "Chart.yaml")
    root = {
        "Values": merged(read(folder / "values.yaml"), values),
        "Release": {"Name": "hikite", "Namespace": "default"},
        "Chart": {"Name": chart["name"], "Version": chart["version"], "AppVersion": chart["appVersion"]},
    }
    names = {path.stem for path in (folder / "templates").glob("*.yaml")}
    assert names == set(ORDER), f"{names ^ set(ORDER)}: say in ORDER where it belongs"
    return [template((folder / f"templates/{name}.yaml").read_text(), root) for name in ORDER]


def merged(one: dict, other: dict) -> dict:
    both = {key: merged(one[key], other[key]) for key in one.keys() & other.keys() if isinstance(one[key], dict)}
    return one | other | both


def template(text: str, root: dict) -> str:
    text = re.sub(r"\s*\{\{- ", "{{ ", text)
    assert "-}}" not in text, "a dash at the end of an action is not understood"
    parts = re.split(r"(\{\{ .*? \}\})", text)
    # Of each open block: whether it is printed, and its dot.
    blocks: list[tuple[bool, object]] = [(True, root)]
    output = []
    for part in parts:
        is_shown, dot = blocks[-1]
        if not part.startswith("{{ "):
            output.append(part if is_shown else "")
            continue
        word, _, rest = part[3:-3].partition(" ")
        if word == "end":
            blocks.pop()
        elif word in ("if", "with"):
            value = expression(rest, root, dot) if is_shown else None
            blocks.append((is_shown and bool(value), value if word == "with" else dot))
        elif is_shown:
            output.append(as_text(expression(part[3:-3], root, dot)))
    assert len(blocks) == 1, "a block has no end"
    return "".join(output)


def expression(text: str, root: dict, dot: object) -> object:
    value = None
    for number, call in enumerate(text.split(" | ")):
        name, *arguments = call.split(" ")
        values = [operand(argument, root, dot) for argument in arguments]
        if number:
            values.append(value)
        value = FUNCTIONS[name](*values) if name in FUNCTIONS else operand(name, root, dot)
    return value


def operand(text: str, root: dict, dot: object) -> object:
    if text.isdigit():
        return int(text)
    assert text.startswith("."), f"`{text}` is not understood"
    # In a `with` block only the dot itself is used.
    value = dot if text == "." else root
    for name in filter(None, text.split(".")):
        value = value[name]
    return value


def to_yaml(value: object) -> str:
    return yaml.safe_dump(value, default_flow_style=False).rstrip("\n")


def nindent(width: int, text: str) -> str:
    return "\n" + "\n".join(" " * width + line for line in text.split("\n"))


def as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


FUNCTIONS = {
    "toYaml": to_yaml,
    "toPrettyJson": lambda value: json.dumps(value, indent=2, sort_keys=True),
    "nindent": nindent,
    "default": lambda fallback, value: value or fallback,
    "sha256sum": lambda text: hashlib.sha256(text.encode()).hexdigest(),
}

if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        (FOLDER.parents[1] / "kubernetes.yaml").write_text(manifest(FOLDER))
    else:
        print(manifest(FOLDER), end="")
