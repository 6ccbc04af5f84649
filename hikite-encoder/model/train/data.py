"""Training pairs and development sets. The split is by server and was fixed before the first training: a server belongs
to the development set if the hash of its name says so, whatever file its questions are in."""

import gzip
import hashlib
import json
import random
import re
from collections import defaultdict
from pathlib import Path

DEV_PERCENT = 15
DESCRIPTION_MAX = 300
PAIRS_PER_TOOL_MAX = 40
ENGLISH = ("medium_en", "hard_en", "keywords_en", "agent_en")
JAPANESE = ("medium_ja", "hard_ja", "keywords_ja", "short_ja")


def is_dev(module):
    digest = hashlib.sha256(("hikite" + module).encode()).hexdigest()
    return module != "" and int(digest[:8], 16) % 100 < DEV_PERCENT


def lines(path):
    opened = gzip.open(path, "rt") if path.suffix == ".gz" else open(path)
    with opened as file:
        return [json.loads(line) for line in file]


def split_identifier(name):
    name = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name)
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1 \2", name)
    return " ".join(re.sub(r"[^0-9A-Za-z\u0080-\uffff]+", " ", name).split())


def clean(description):
    """Text of a catalog's web page says nothing of the tool."""
    text = " ".join((description or "").split())
    return "" if "Try in Playground" in text or text.startswith("Deploy Server") else text


def first_sentence(text):
    end = re.compile(r"[。！？]|[.!?](?=\s|$)")
    for match in end.finditer(text):
        if match.end() >= 20:
            return text[: match.end()]
    return text


class Tool:
    def __init__(self, module, name, description, params=()):
        self.module, self.name, self.description = module, name, clean(description)
        self.params = list(params or ())
        self.sentence_ja = None
        self.questions = []  # (kind, text)

    def text(self, style="first", module=True, description=None):
        about = self.description if description is None else description
        if style != "whole" and style != "params":
            about = first_sentence(about)
        about = about[:DESCRIPTION_MAX]
        words = split_identifier(self.name)
        head = f"{split_identifier(self.module)} {words}" if module else words
        if style == "params" and self.params:
            about = f"{about} ({', '.join(split_identifier(p) for p in self.params[:8])})"
        return f"{head}: {about}" if about else head


def load(folder):
    """Returns the tools by (module, name), with their questions."""
    folder = Path(folder)
    tools = {}
    for row in lines(folder / "corpus.jsonl.gz") + lines(folder / "toolsets.jsonl.gz"):
        tools[row["module"], row["name"]] = Tool(row["module"], row["name"], row["description"], row.get("params"))
    for file in ("queries", "questions", "sentences"):
        for row in lines(next(folder.glob(f"{file}.jsonl*"))):
            if "name" not in row:
                continue
            key = row["module"], row["name"]
            if key not in tools:
                if "description" not in row:
                    continue
                tools[key] = Tool(*key, row["description"])
            tool = tools[key]
            if row.get("sentence_ja"):
                tool.sentence_ja = row["sentence_ja"]
                tool.is_parallel = bool(row.get("is_parallel")) and bool(tool.description)
            for kind in ENGLISH + JAPANESE:
                if row.get(kind):
                    tool.questions.append((kind, row[kind], file))
    return tools


def dev_sets(tools):
    """Returns (pool, {set: [(question, index of the tool)]}). The pool has every tool of every server with questions."""
    asked = {t.module for t in tools.values() if any(f != "sentences" for _, _, f in t.questions)}
    pool = [t for t in tools.values() if is_dev(t.module) and t.module in asked]
    sets = defaultdict(list)
    for at, tool in enumerate(pool):
        for kind, text, file in tool.questions:
            language = "ja" if kind.endswith("ja") else "en"
            if file == "queries":
                sets[f"dev-{language}"].append((text, at, kind))
            elif file == "questions":
                sets[f"new-{language}"].append((text, at, kind))
    return pool, dict(sets)


def training_tools(tools):
    """Returns the tools that may be trained on: none of a development server, and none with the text of one."""
    held = {t.text(module=False).lower() for t in tools.values() if is_dev(t.module)}
    return [t for t in tools.values() if not is_dev(t.module) and (t.text(module=False).lower() not in held)]


def pairs(folder, seed=0):
    """Returns question-document pairs of public sets (MIT, Apache-2.0), at most forty per document."""
    rows = lines(Path(folder) / "pairs.jsonl.gz")
    random.Random(seed).shuffle(rows)
    count, kept = defaultdict(int), []
    for row in rows:
        if count[row["doc"]] < PAIRS_PER_TOOL_MAX:
            count[row["doc"]] += 1
            kept.append((row["q"], row["doc"]))
    return kept
