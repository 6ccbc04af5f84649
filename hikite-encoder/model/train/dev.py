"""Writes the development sets in the form that `hikite eval` reads. Usage: python3 dev.py WORK OUT.

Tools with one text are equally right. Questions are those of queries.jsonl, as they stood before any training."""

import json
import re
import sys
from collections import defaultdict
from pathlib import Path

import data


def main(work, out):
    pool, sets = data.dev_sets(data.load(work))
    same = defaultdict(list)
    for tool in pool:
        same[tool.text("params")].append(f"{tool.module}:{tool.name}")
    tools = [{"id": f"{t.module}:{t.name}", "server": t.module, "name": t.name, "description": t.description,
              "schema": {"properties": {p: {} for p in t.params}}} for t in pool]
    for name, folder in (("dev-en", "dev"), ("dev-ja", "dev-ja")):
        questions = [{"query": question, "relevant": same[pool[at].text("params")]} for question, at, _ in sets[name]]
        (out / folder).mkdir(parents=True, exist_ok=True)
        for file, rows in (("tools.jsonl", tools), ("queries.jsonl", questions)):
            lines = (json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows)
            # Folders of people's homes stay out of the repository.
            text = re.sub(r"/(?:home|Users|root)/", "/data/", "".join(lines))
            (out / folder / file).write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
