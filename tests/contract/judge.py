"""Judges requests by the vendors' own descriptions: openapi-core for the address, parameters and bodies, the types of
Notion's SDK for what is sent to Notion, Atlassian's schema for documents (ADF). It knows nothing of hikite.

Stricter than the validators alone: names that a description does not know are violations, in queries and in bodies.
"""

import json
import re
import xml.etree.ElementTree as xml
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, unquote

import jsonschema
from openapi_core import Config, OpenAPI
from openapi_core.datatypes import RequestParameters
from werkzeug.datastructures import Headers, ImmutableMultiDict

APIS = Path(__file__).resolve().parent / "apis"
# The one that the converters are held against, too.
ADF = APIS.parents[2] / "hikite-modules/fixtures/adf/schema.json"
# Where requests of a description begin, as seen by the vendor.
DESCRIPTIONS = {
    "notion": {"notion": ""},
    "github": {"github": ""},
    "jira": {"jira": ""},
    "confluence": {"confluence-v2": "/wiki/api/v2", "confluence-v1": "/wiki"},
    "supabase": {"supabase": ""},
    "google_calendar": {"google_calendar": "/calendar/v3"},
    "microsoft_todo": {"microsoft_todo": "/v1.0"},
}
METHODS = ("get", "put", "post", "patch", "delete")
NOTION_VERSION = "2026-03-11"
# The body of an operation, as Notion's SDK types it. Its types hold the parameters of the path, too.
NOTION_TYPES = {
    "post-search": "SearchParameters",
    "post-page": "CreatePageParameters",
    "patch-page": "UpdatePageParameters",
    "update-page-markdown": "UpdatePageMarkdownParameters",
    "query-data-source": "QueryDataSourceParameters",
    "patch-block-children": "AppendBlockChildrenParameters",
    "create-a-comment": "CreateCommentParameters",
}
# Where Jira wants a document, and takes a plain text for a mistake.
DOCUMENTS = (("fields", "description"), ("fields", "environment"), ("body",), ("comment",))


@dataclass
class Request:
    method: str
    path: str
    query: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    def header(self, name: str) -> str:
        return next((value for key, value in self.headers.items() if key.lower() == name.lower()), "")


@dataclass
class Operation:
    """What a description says of one method of one path."""

    key: str
    template: str
    pattern: re.Pattern
    document: "Description"
    form: dict
    parameters: list[dict]

    def names(self, place: str) -> set[str]:
        return {parameter["name"] for parameter in self.parameters if parameter["in"] == place}


class Description:
    """One file, amended where it is known to be narrower than the vendor's SDK (see apis/amendments.json)."""

    def __init__(self, name: str, prefix: str):
        self.prefix = prefix
        self.spec = json.loads((APIS / f"{name}.json").read_text())
        for amendment in json.loads((APIS / "amendments.json").read_text()).get(name, []):
            *way, last = amendment["at"].split("/")[1:]
            place = self.spec
            for step in way:
                place = place[step.replace("~1", "/")]
            place[last] = amendment["is"]
        # Where the address begins is judged here, whatever servers the file names.
        self.spec["servers"] = [{"url": f"https://vendor.example{prefix}"}]
        # Who may call is judged below, in one way for all.
        self.spec.pop("security", None)
        for forms in self.spec["paths"].values():
            for form in forms.values():
                if isinstance(form, dict):
                    form.pop("security", None)
        self.api = OpenAPI.from_dict(self.spec, config=Config(spec_validator_cls=None))
        self.operations = [self.operation(*found) for found in self.found()]

    def found(self):
        for template, forms in self.spec["paths"].items():
            for method in METHODS:
                if method in forms:
                    yield template, method, forms[method], forms.get("parameters", [])

    def operation(self, template: str, method: str, form: dict, common: list) -> Operation:
        parameters = [self.resolve(each) for each in common + form.get("parameters", [])]
        long = {each["name"] for each in parameters if each.get("x-multi-segment")}
        pieces = re.split(r"\{([^}]+)\}", self.prefix + template)
        regex = "".join(
            re.escape(piece) if at % 2 == 0 else ("(.+)" if piece in long else "([^/]+)")
            for at, piece in enumerate(pieces)
        )
        key = form.get("operationId") or f"{method} {template}"
        return Operation(key, template, re.compile(f"{method.upper()} {regex}"), self, form, parameters)

    def resolve(self, schema: dict) -> dict:
        while "$ref" in schema:
            found = self.spec
            for step in schema["$ref"].split("/")[1:]:
                found = found[step.replace("~1", "/")]
            schema = found
        return schema

    def unknown(self, value, schemas: list[dict], at: str = "") -> list[str]:
        """Members that no schema for this place has a word about."""
        parts, pending = [], list(schemas)
        while pending:
            schema = self.resolve(pending.pop())
            parts.append(schema)
            pending += [each for key in ("allOf", "anyOf", "oneOf") for each in schema.get(key, [])]
        if isinstance(value, list):
            items = [part["items"] for part in parts if isinstance(part.get("items"), dict)]
            return [fault for number, each in enumerate(value) for fault in self.unknown(each, items, f"{at}/{number}")]
        if not isinstance(value, dict):
            return []
        known: dict[str, list[dict]] = {}
        for part in parts:
            for name, schema in part.get("properties", {}).items():
                known.setdefault(name, []).append(schema)
        # Where a file allows anything beside what it names (Jira's does), every typing error would pass.
        free = not known or any(isinstance(part.get("additionalProperties"), dict) for part in parts)
        faults = [f"unknown member {at}/{name}" for name in value if name not in known and not free]
        return faults + [
            fault
            for name, each in value.items()
            if name in known
            for fault in self.unknown(each, known[name], f"{at}/{name}")
        ]


class Judge:
    """Of one vendor."""

    def __init__(self, vendor: str):
        self.vendor = vendor
        descriptions = [Description(name, prefix) for name, prefix in DESCRIPTIONS[vendor].items()]
        self.operations = [operation for description in descriptions for operation in description.operations]
        # The more of a path is fixed, the sooner it is tried.
        self.operations.sort(key=lambda operation: operation.template.count("{"))
        if vendor == "notion":
            texts = {key: (APIS / "notion-sdk" / f"{name}.json").read_text() for key, name in NOTION_TYPES.items()}
            self.types = {key: jsonschema.Draft7Validator(json.loads(text)) for key, text in texts.items()}
        if vendor == "jira":
            self.adf = jsonschema.Draft4Validator(json.loads(ADF.read_text()))

    def operation(self, request: Request) -> Operation | None:
        return next(
            (each for each in self.operations if each.pattern.fullmatch(f"{request.method} {request.path}")), None
        )

    def judge(self, request: Request) -> list[str]:
        """Everything that is wrong with a request; nothing if it is right."""
        faults = self.headers(request)
        operation = self.operation(request)
        if operation is None:
            return faults + [f"no such operation: {request.method} {request.path}"]
        pairs = parse_qsl(request.query, keep_blank_values=True)
        known = operation.names("query")
        faults += [f"unknown query parameter {name}" for name, _ in pairs if name not in known]
        faults += self.by_description(operation, request, pairs)
        faults += self.body(operation, request)
        return faults

    def headers(self, request: Request) -> list[str]:
        faults = []
        if not re.fullmatch(r"(Bearer|Basic) \S+", request.header("Authorization")):
            faults.append("no Authorization")
        if not request.header("User-Agent"):
            faults.append("no User-Agent")
        if self.vendor == "notion" and request.header("Notion-Version") != NOTION_VERSION:
            faults.append(f"Notion-Version is not {NOTION_VERSION}")
        if self.vendor == "github" and not request.header("X-GitHub-Api-Version"):
            faults.append("no X-GitHub-Api-Version")
        return faults

    def by_description(self, operation: Operation, request: Request, pairs: list) -> list[str]:
        path = request.path
        for value in operation.pattern.fullmatch(f"{request.method} {path}").groups():
            path = path.replace(value, value.replace("/", "%2F"))
        try:
            operation.document.api.validate_request(Seen(request, path, pairs))
            return []
        except Exception as error:  # Whatever the validator does not bear is no valid request.
            return [told(error)]

    def body(self, operation: Operation, request: Request) -> list[str]:
        form = operation.document.resolve(operation.form.get("requestBody", {}))
        if not request.body:
            return [] if not form.get("required") else ["no body"]
        if not form:
            return ["a body where there is none"]
        kind = request.header("Content-Type").split(";")[0]
        if kind not in form["content"]:
            return [f"the body is {kind or 'of no type'}"]
        try:
            value = json.loads(request.body)
        except ValueError as error:
            return [f"the body is no JSON: {error}"]
        if self.vendor == "notion":
            return self.by_sdk(operation, request, value)
        faults = operation.document.unknown(value, [form["content"][kind]["schema"]])
        if self.vendor == "jira":
            faults += self.documents(value)
        if self.vendor == "confluence":
            faults += storage(value)
        return faults

    def by_sdk(self, operation: Operation, request: Request, value) -> list[str]:
        if operation.key not in self.types:
            return [f"no type of the SDK for {operation.key}"]
        names = re.findall(r"\{([^}]+)\}", operation.template)
        values = operation.pattern.fullmatch(f"{request.method} {request.path}").groups()
        whole = dict(zip(names, map(unquote, values))) | value
        return [f"not of the SDK's type: {told(error)}" for error in self.types[operation.key].iter_errors(whole)]

    def documents(self, value) -> list[str]:
        faults = []
        for way in DOCUMENTS:
            found = value
            for step in way:
                found = found.get(step) if isinstance(found, dict) else None
            if found is not None and not (isinstance(found, dict) and found.get("type") == "doc"):
                faults.append(f"{'/'.join(way)} is no document")
        for document in found_documents(value):
            faults += [f"not as ADF is: {told(error)}" for error in self.adf.iter_errors(document)]
        return faults


class Seen:
    """A request as openapi-core wants to see it."""

    def __init__(self, request: Request, path: str, pairs: list):
        self.host_url = "https://vendor.example"
        self.path = path
        self.method = request.method.lower()
        self.body = request.body or None
        self.content_type = request.header("Content-Type").split(";")[0]
        self.parameters = RequestParameters(
            query=ImmutableMultiDict(pairs), header=Headers(list(request.headers.items()))
        )


def found_documents(value):
    if isinstance(value, dict):
        if value.get("type") == "doc":
            yield value
            return
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from found_documents(each)


def storage(value) -> list[str]:
    """Confluence's storage format is XML with two prefixes and HTML's entities."""
    text = (
        value.get("body", {}).get("value") if isinstance(value, dict) and isinstance(value.get("body"), dict) else None
    )
    if text is None:
        return []
    plain = re.sub(r"&(?!(amp|lt|gt|quot|apos|#\d+|#x[0-9a-fA-F]+);)\w+;", " ", text)
    try:
        xml.fromstring(f'<storage xmlns:ac="ac" xmlns:ri="ri">{plain}</storage>')
        return []
    except xml.ParseError as error:
        return [f"the storage format is no XML: {error}"]


def told(error: BaseException) -> str:
    """The reasons under an error, on one line."""
    words, seen = [], set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        words.append(str(getattr(error, "message", "") or error)[:300])
        for inner in getattr(error, "schema_errors", None) or []:
            words.append(str(inner.message)[:300])
        error = error.__cause__
    return "; ".join(dict.fromkeys(word.replace("\n", " ") for word in words if word))
