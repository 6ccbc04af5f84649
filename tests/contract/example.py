"""Answers that a vendor could give, made from its description: the examples it has, else values of the right shape.

The same description gives the same answer, always. A list that is asked for page by page has ROWS elements.
"""

import copy

from judge import Description, Operation

ROWS = 5
DEPTH_MAX = 7
TEXTS = {
    "date-time": "2026-11-16T09:00:00Z",
    "date": "2026-11-16",
    "uuid": "11111111-2222-4333-8444-555555555555",
    "uri": "https://vendor.example/thing",
    "email": "someone@vendor.example",
}
# Elements of a list are told apart by these.
NAMES = ("title", "displayName", "name", "summary")


def answer_of(operation: Operation) -> tuple[int, str, object]:
    """Status, type and body of the first success that the description promises."""
    document = operation.document
    for status, response in sorted(operation.form["responses"].items()):
        if not status.startswith("2"):
            continue
        number = 200 if not status.isdigit() else int(status)
        content = document.resolve(response).get("content", {})
        kind = "application/json" if "application/json" in content else next(iter(content), "")
        if not kind:
            return (204 if number == 204 or operation.pattern.pattern.startswith("DELETE") else number), "", None
        if number == 204:
            return 204, "", None
        return number, kind, body_of(document, content[kind])
    raise ValueError(f"{operation.key} promises no success")


def body_of(document: Description, media: dict):
    if "example" in media:
        return copy.deepcopy(media["example"])
    for example in media.get("examples", {}).values():
        value = document.resolve(example).get("value")
        if isinstance(value, dict):
            # Some files write the reference one step too deep.
            value = document.resolve(value) if "$ref" not in value else document.resolve(value).get("value")
        if value not in (None, ""):
            return copy.deepcopy(value)
    return value_of(document, media.get("schema", {}), 0, ())


def value_of(document: Description, schema: dict, depth: int, above: tuple):
    reference = schema.get("$ref")
    if reference in above:
        return None
    above += (reference,) if reference else ()
    schema = document.resolve(schema)
    if "example" in schema and "properties" not in schema:
        return copy.deepcopy(schema["example"])
    for word in ("const", "default"):
        if schema.get(word) is not None:
            return schema[word]
    if schema.get("enum"):
        return schema["enum"][0]
    if "allOf" in schema:
        parts = [value_of(document, part, depth, above) for part in schema["allOf"] + [without(schema, "allOf")]]
        objects = [part for part in parts if isinstance(part, dict)]
        return {name: value for part in objects for name, value in part.items()} if objects else parts[0]
    for word in ("oneOf", "anyOf"):
        if schema.get(word):
            return value_of(document, schema[word][0], depth, above)
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((each for each in kind if each != "null"), "null")
    if kind == "object" or "properties" in schema:
        return members(document, schema, depth, above)
    if kind == "array":
        items = document.resolve(schema.get("items", {}))
        fixed = {
            name
            for name, inner in items.get("properties", {}).items()
            if {"enum", "pattern"} & set(document.resolve(inner))
        }
        return rows(value_of(document, schema.get("items", {}), depth + 1, above), ROWS if depth <= 1 else 1, fixed)
    return plain(kind, schema)


def members(document: Description, schema: dict, depth: int, above: tuple) -> dict:
    found = {}
    needed = schema.get("required", [])
    for name, inner in schema.get("properties", {}).items():
        if depth < DEPTH_MAX or name in needed:
            value = value_of(document, inner, depth + 1, above)
            if value is not None:
                found[name] = value
    return found


def plain(kind: str | None, schema: dict):
    if kind == "integer" or kind == "number":
        return max(schema.get("minimum", 7), min(schema.get("maximum", 7), 7))
    if kind == "boolean":
        return True
    if kind == "string":
        if schema.get("pattern") == "^[a-z]+$":
            return "abcdefghijklmnopqrst"
        text = TEXTS.get(schema.get("format"), "text")
        return text * (1 + schema.get("minLength", 0) // len(text))
    return None


def rows(element, number: int, fixed: set = frozenset()) -> list:
    if element is None:
        return []
    found = []
    for at in range(number):
        one = copy.deepcopy(element)
        if isinstance(one, dict) and number > 1:
            for name in ("id", "number"):
                if isinstance(one.get(name), int):
                    one[name] += at
            for name in NAMES:
                if isinstance(one.get(name), str) and at and name not in fixed:
                    one[name] += f" {at + 1}"
        found.append(one)
    return found


def without(schema: dict, word: str) -> dict:
    return {name: value for name, value in schema.items() if name != word}
