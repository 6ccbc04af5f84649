"""What the description of the REST API cannot say, told to schemathesis.

JSON Schema describes the form that registers a tool member by member. It cannot say how the members agree: that
`{name}` in an address must be a parameter of the tool, that a default must be one of the allowed values, that no two
parameters have one name. Data that is meant to be right is made right in these respects, so that a refusal of it is a
fault of the API. Data that is meant to be wrong is sent as it was made. The same goes for projects, tokens, users,
clients, accounts and configs of others: who is a subject, what is a permission, what is a name, which projects there are; and for batches: which tools there are, and who waits for whom; and
for the part of an answer that is wanted.
"""

import os
import zlib

import schemathesis

# Where the requests of registered tools lead.
API = os.environ["REST_API_TARGET"]
KINDS = {"string": "text", "number": 1.5, "integer": 3, "boolean": True, "object": {}, "array": []}
REQUESTS = (
    {"url": f"{API}/things"},
    {"url": f"{API}/a/b?c=d", "method": "DELETE", "headers": {"Accept": "application/json"}},
    {"url": API, "method": "POST", "body": {"a": [1, "b"]}, "result": "data.items[0]"},
    {"url": f"{API}/x", "method": "PATCH", "query": {"page": "2"}, "result": "/data/0"},
)


KEPT = ("POST /v1/pins/{key}/block", "POST /v1/modules/{name}/disable")


@schemathesis.hook
def map_case(context, case):
    make_right = {
        "POST /v1/tools": agreeing,
        "POST /v1/projects": project,
        "PATCH /v1/projects/{name}": project,
        "POST /v1/tokens": token,
        "POST /v1/users": user,
        "PATCH /v1/users/{name}": user,
        "POST /v1/clients": client,
        "POST /v1/accounts": account,
        "PATCH /v1/accounts/{id}": account,
        "POST /v1/accounts/connect": account,
        "PUT /v1/providers/{name}": app,
        "POST /v1/batch": batch,
        "POST /v1/tools/call": call,
        "POST /v1/permissions/preview": preview,
        "POST /v1/upstreams/import": imported,
        "PUT /v1/upstreams/{name}": upstream,
        "PUT /v1/categories/{name}": category,
    }.get(case.operation.label)
    is_form = make_right is not None and isinstance(case.body, dict)
    if is_form and case.meta is not None and case.meta.generation.mode.is_positive:
        case.body = make_right(case.body)
    # Either what came before a record, or what came after one.
    if case.operation.label.startswith("GET /v1/audit") and "after" in (case.query or {}):
        case.query.pop("before", None)
    # What the other operations are tried with stays there.
    if case.operation.label in KEPT and any("file" in str(value) for value in (case.path_parameters or {}).values()):
        case.path_parameters = dict.fromkeys(case.path_parameters, "nothing:here")
    return case


PERMISSIONS = {"allow": ["git", "risk:read"], "deny": ["*:delete_*"]}


def project(form: dict) -> dict:
    return agreed(form, {"name": named("p", form), "members": ["alice", "bob"], "permissions": PERMISSIONS})


def user(form: dict) -> dict:
    form = form | ({"project": None} if form.get("project") else {})
    return agreed(form, {"name": named("u", form), "permissions": PERMISSIONS})


def client(form: dict) -> dict:
    return form | {"redirectUris": ["https://app.example/callback"]}


def account(form: dict) -> dict:
    right = {"name": named("a", form), "provider": "notion", "token": "t0ken", "permissions": PERMISSIONS}
    return agreed(form, right)


def preview(form: dict) -> dict:
    return agreed(form, {"permissions": PERMISSIONS})


def imported(form: dict) -> dict:
    return form | {"config": {"mcpServers": {"docs": {"url": f"{API}/mcp"}}}, "apply": False}


def upstream(form: dict) -> dict:
    return {"url": f"{API}/mcp", "description": str(form.get("description") or "")[:100]}


def category(form: dict) -> dict:
    return agreed(form, {"server": "files", "tools": {"includeNames": ["read_file"]}, "skill": "Look first."})


def app(form: dict) -> dict:
    return agreed(form, {"client_id": "an-app"})


def agreed(form: dict, right: dict) -> dict:
    """The form with what is right in place of what was made, where there was something."""
    return form | {name: value for name, value in right.items() if form.get(name) is not None}


def named(letter: str, form: dict) -> str:
    """A name for each name that was made."""
    return f"{letter}{zlib.crc32(str(form.get('name')).encode('utf-8', 'surrogatepass'))}"


def token(form: dict) -> dict:
    # Which users there are; and a token acts for a user or for a subject, not for both.
    form = {name: value for name, value in form.items() if name != "user"}
    form = form | ({"subject": "alice"} if form.get("subject") is not None else {})
    return form | ({"project": None} if form.get("project") else {})


def batch(form: dict) -> dict:
    commands = form.get("commands")
    if isinstance(commands, str):
        return form | {"commands": '{"id": "a", "module": "files", "tool": "read_file"}'}
    return form | {"commands": [task(one, index) for index, one in enumerate(commands)]}


def call(form: dict) -> dict:
    # One that takes anything: which parameters another takes is its own to say.
    form = form | {"name": "files:read_file"}
    options = form.get("options")
    if not isinstance(options, dict):
        return form
    # A part that is not there and a time that is over are rightly refused, and nothing to find out here.
    if options.get("select") is not None:
        options = options | {"select": "."}
    timeout = options.get("timeout")
    if isinstance(timeout, (int, float)) and not isinstance(timeout, bool) and 0 < timeout < 5000:
        options = options | {"timeout": 5000}
    return form | {"options": options}


def task(written: dict, index: int) -> dict:
    right = {
        "id": f"{index}{written['id']}"[:100],
        "module": "files",
        "tool": "read_file",
        "toolKey": "files:read_file",
        "after": [],
        "for_each": [1, {}],
        "if": True,
        "select": "path",
        "params": {"path": "notes.txt"},
    }
    # `module` and `tool`, or their key: whatever was there must agree.
    return written | {name: value for name, value in right.items() if written.get(name) is not None}


def agreeing(form: dict) -> dict:
    form = agreed(form, {"dependencies": ["files:read_file"]})
    if isinstance(form.get("http"), dict):
        form["http"] = REQUESTS[len(str(form.get("name"))) % len(REQUESTS)]
    if form.get("parameters") is not None and form.get("inputSchema") is not None:
        del form["inputSchema"]
    if isinstance(form.get("inputSchema"), dict):
        known = {"type", "properties"}
        form["inputSchema"] = {name: value for name, value in form["inputSchema"].items() if name in known}
        form["inputSchema"].get("properties", {}).update({name: {} for name in form["inputSchema"].get("properties", {})})
    if isinstance(form.get("parameters"), list):
        form["parameters"] = [parameter(one, index) for index, one in enumerate(form["parameters"])]
    return form


def parameter(written: dict, index: int) -> dict:
    kind = written["type"]
    value = KINDS[kind]
    # Whoever calls the tool later knows nothing of its parameters.
    fixed = {"name": written["name"] if index == 0 else f"{index}{written['name']}", "required": False}
    if "default" in written:
        fixed["default"] = value
    if "enum" in written:
        fixed["enum"] = [value]
    agreed = written | fixed
    for member, fits in (("pattern", ("string",)), ("minimum", ("number", "integer")), ("maximum", ("number", "integer"))):
        if member in agreed and kind not in fits:
            del agreed[member]
    if "pattern" in agreed:
        agreed["pattern"] = "^t?"
    if "minimum" in agreed:
        agreed["minimum"] = min(agreed["minimum"], 1)
    if "maximum" in agreed:
        agreed["maximum"] = max(agreed["maximum"], 3)
    return agreed
