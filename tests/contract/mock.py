"""The vendors on loopback: each request is judged, then answered with recorded traffic or with what the vendor's own
description promises. Lists are given page by page, each vendor in its own way.
"""

import copy
import json
import threading
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import paging
from example import ROWS, answer_of, rows
from judge import Judge, Operation, Request

HERE = Path(__file__).resolve().parent
CLOUD_ID = "11111111-aaaa-4bbb-8ccc-222222222222"
SITE = "site.example"
TOKEN = "test-token"
# Whose credential serves which modules.
PROVIDERS = {
    "notion": ["notion"],
    "github": ["github"],
    "atlassian": ["jira", "confluence"],
    "supabase": ["supabase"],
    "google": ["google_calendar"],
    "microsoft": ["microsoft_todo"],
}
# The block of a Notion page that has others in it, and what they are numbered by.
BELOW = "393abc1e-edcd-8000-8000-00000000be10"
DIFF = "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-old\n+new\n"
BOUNDARY = "contract-boundary"
SOURCE = (
    f"--{BOUNDARY}",
    'Content-Disposition: form-data; name="file"; filename="index.ts"',
    "Content-Type: application/typescript",
    "",
    'Deno.serve(() => new Response("hello"))',
    f"--{BOUNDARY}--",
    "",
)


@dataclass
class Answer:
    status: int = 200
    kind: str = "application/json"
    body: object = None
    headers: dict[str, str] = field(default_factory=dict)

    def bytes(self) -> bytes:
        if self.body is None:
            return b""
        if isinstance(self.body, str) and self.kind != "application/json":
            return self.body.encode()
        return json.dumps(self.body, ensure_ascii=False).encode()


class Vendor:
    """One provider: its judges, its answers, and what it was asked."""

    def __init__(self, provider: str):
        self.provider = provider
        self.judges = {module: Judge(module) for module in PROVIDERS[provider]}
        self.written = json.loads((HERE / "answers.json").read_text())
        self.recorded = {}
        for module in self.judges:
            file = HERE / "recorded" / f"{module}.json"
            self.recorded[module] = json.loads(file.read_text()) if file.exists() else {"answers": {}}
        self.lock = threading.Lock()
        self.seen: list[tuple[Request, list[str]]] = []
        self.judged = 0
        self.violations: list[str] = []
        # What is answered instead, while it is set.
        self.refusal: Answer | None = None
        # The elements of the last list that was asked for.
        self.list: list = []
        # Whether recorded lists that are too short for three pages are made longer.
        self.long = False
        self.basic = False
        handler = type("Handler", (Handler,), {"vendor": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def take(self) -> list[tuple[Request, list[str]]]:
        """What was asked since the last time."""
        with self.lock:
            seen, self.seen = self.seen, []
            return seen

    def answer(self, request: Request) -> Answer:
        if request.path == "/oauth/token/accessible-resources" and self.provider == "atlassian":
            right = request.method == "GET" and request.header("Authorization") == f"Bearer {TOKEN}"
            self.note(request, [] if right else ["not as Atlassian wants it"])
            return Answer(body=[{"id": CLOUD_ID, "url": f"https://{SITE}", "name": "site", "scopes": []}])
        module, request, faults = self.whose(request)
        judge = self.judges[module]
        faults += judge.judge(request)
        self.note(request, faults)
        operation = judge.operation(request)
        if self.refusal is not None:
            return self.refusal
        if faults or operation is None:
            return Answer(418, body={"message": f"a violation: {faults}"})
        return self.special(module, operation, request) or self.usual(module, operation, request)

    def whose(self, request: Request) -> tuple[str, Request, list[str]]:
        """The module a request is of; what stands before Atlassian's paths is judged here."""
        if self.provider != "atlassian":
            faults = [] if request.header("Authorization") == f"Bearer {TOKEN}" else ["not the token"]
            return next(iter(self.judges)), request, faults
        module = "confluence" if "/wiki/" in request.path or "/ex/confluence/" in request.path else "jira"
        prefix = "" if self.basic else f"/ex/{module}/{CLOUD_ID}"
        scheme = "Basic " if self.basic else "Bearer "
        faults = [] if request.header("Authorization").startswith(scheme) else [f"not {scheme}"]
        if not request.path.startswith(prefix):
            faults.append(f"the path does not begin with {prefix}")
        return module, replace(request, path=request.path.removeprefix(prefix)), faults

    def note(self, request: Request, faults: list[str]) -> None:
        with self.lock:
            self.judged += 1
            self.seen.append((request, faults))
            self.violations += [
                f"{self.provider}: {request.method} {request.path}?{request.query}: {fault}" for fault in faults
            ]

    def usual(self, module: str, operation: Operation, request: Request) -> Answer:
        status, kind, body = answer_of(operation)
        recorded = self.recorded[module]["answers"]
        if operation.key in recorded:
            body = copy.deepcopy(recorded[operation.key])
        elif operation.key in self.written.get(module, {}):
            body = copy.deepcopy(self.written[module][operation.key])
            kind = "application/json"
            status = 204 if body is None and status == 200 and operation.key == "editIssue" else status
        if body is None and status != 204:
            return Answer(status, "text/plain", "")
        answer = Answer(status, kind, body)
        return answer if status == 204 else self.page(module, operation, request, answer)

    def special(self, module: str, operation: Operation, request: Request) -> Answer | None:
        """Answers that are no JSON, or that depend on what is asked for."""
        accept = request.header("Accept")
        if operation.key == "repos/get-content":
            if not accept.startswith("application/vnd.github.raw"):
                return None
            if request.path.endswith("/contents/docs"):
                return Answer(body=self.recorded[module]["folder"])
            text = self.recorded[module]["file"] + "\nsecond line\nthird line"
            return Answer(kind="application/vnd.github.raw+json; charset=utf-8", body=text)
        if operation.key == "pulls/get" and accept != "application/vnd.github+json":
            return Answer(kind=f"{accept}; charset=utf-8", body=DIFF)
        if operation.key == "v1-get-a-function-body":
            return Answer(kind=f"multipart/form-data; boundary={BOUNDARY}", body="\r\n".join(SOURCE))
        if operation.key == "getSpaces" and "keys=NOBODY" in request.query:
            return Answer(body={"results": [], "_links": {}})
        if operation.key == "calendar.events.get" and request.path.endswith("/not-invited"):
            return Answer(body={"id": "not-invited", "attendees": [{"email": "boss@vendor.example"}]})
        if operation.key == "get-block-children":
            body = copy.deepcopy(self.recorded[module]["answers"][operation.key])
            if BELOW in request.path:
                body["results"] = body["results"][:3]
                return Answer(body=body)
            body["results"][0] |= {"id": BELOW, "has_children": True}
            return self.page(module, operation, request, Answer(body=body))
        return None

    def page(self, module: str, operation: Operation, request: Request, answer: Answer) -> Answer:
        """One page of a list; what is no list that comes page by page stays as it is."""
        name, elements = paging.listed(answer.body)
        asked = paging.asked(module, request)
        known = operation.names("query") | (set(asked) if module == "notion" else set())
        if not elements or not paging.CURSORS & known:
            return answer
        recorded = operation.key in self.recorded[module]["answers"]
        if len(elements) < ROWS and (self.long or not recorded):
            elements = rows(elements[0], ROWS)
        self.list = elements
        part = paging.part(asked, elements)
        if name:
            answer.body[name] = part.elements
        else:
            answer.body = part.elements
        answer.headers |= paging.lead(module, request, answer.body, known, name, part)
        return answer

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


class Handler(BaseHTTPRequestHandler):
    vendor: Vendor
    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        address = urlsplit(self.path)
        request = Request(self.command, address.path, address.query, dict(self.headers.items()), body)
        try:
            answer = self.vendor.answer(request)
        except Exception as error:  # A fault of the mock is told where it is looked at.
            self.vendor.note(request, [f"the mock failed: {error!r}"])
            answer = Answer(500, body={"message": "the mock failed"})
        content = answer.bytes()
        self.send_response(answer.status)
        if answer.status != 204:
            self.send_header("Content-Type", answer.kind)
            self.send_header("Content-Length", str(len(content)))
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if answer.status != 204:
            self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

    def log_message(self, *_) -> None:
        pass
