"""How each vendor gives a list page by page: where the elements are, which of them are asked for, and what leads on."""

import json
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, urlencode

from judge import Request

# Where vendors keep the elements of a list.
LISTS = ("results", "items", "workflows", "workflow_runs", "jobs", "values", "issues", "comments", "worklogs", "value")
SIZES = ("per_page", "page_size", "maxResults", "limit", "$top")
STARTS = ("start_cursor", "startAt", "nextPageToken", "cursor", "pageToken", "$skip")
# An operation that knows one of these gives its list page by page.
CURSORS = {"per_page", "page_size", *STARTS}
# How our own cursors begin: they are to be given back as they are.
MARK = "at-"


@dataclass
class Part:
    elements: list
    start: int
    size: int
    total: int

    @property
    def end(self) -> int:
        return self.start + self.size

    @property
    def more(self) -> bool:
        return self.end < self.total


def listed(body) -> tuple[str | None, list]:
    """The member that has the elements, if the answer is not the list itself; and the elements."""
    if isinstance(body, list):
        return None, body
    name = next((name for name in LISTS if isinstance(body, dict) and isinstance(body.get(name), list)), None)
    return name, body[name] if name else []


def asked(module: str, request: Request) -> dict:
    return json.loads(request.body) if request.body and module == "notion" else dict(parse_qsl(request.query))


def part(asked: dict, elements: list) -> Part:
    size = int(next((asked[name] for name in SIZES if name in asked), len(elements)))
    start = next((str(asked[name]).removeprefix(MARK) for name in STARTS if asked.get(name)), "0")
    start = (int(asked["page"]) - 1) * size if "page" in asked else int(start)
    return Part(elements[start : start + size], start, size, len(elements))


def lead(module: str, request: Request, body, known: set, name: str | None, part: Part) -> dict[str, str]:
    """Says in the body, or in the headers that it gives, how to go on after this page."""
    cursor = f"{MARK}{part.end}"
    query = dict(parse_qsl(request.query))
    if module == "github":
        return of_github(body, query, name, part)
    if module == "notion":
        body |= {"has_more": part.more, "next_cursor": cursor if part.more else None}
    elif module == "jira" and "nextPageToken" in known:
        body["isLast"] = not part.more
        put(body, "nextPageToken", cursor if part.more else None)
    elif module == "jira" and name:
        body |= {"startAt": part.start, "maxResults": part.size, "total": part.total}
        put(body, "isLast", not part.more if name == "values" else None)
    elif module == "confluence":
        further = f"{request.path}?{urlencode(query | {'cursor': cursor})}"
        put(body.setdefault("_links", {}), "next", further if part.more else None)
        put(body, "totalSize", part.total if "totalSize" in body else None)
    elif module == "google_calendar":
        put(body, "nextPageToken", cursor if part.more else None)
    elif module == "microsoft_todo":
        further = f"https://graph.microsoft.com{quote(request.path)}?{urlencode(query | {'$skip': part.end})}"
        put(body, "@odata.nextLink", further if part.more else None)
    return {}


def of_github(body, query: dict, name: str | None, part: Part) -> dict[str, str]:
    if name:
        body["total_count"] = part.total
    if not part.more:
        return {}
    # GitHub leads to another path, by the number of the repository.
    further = urlencode(query | {"page": part.start // part.size + 2})
    first = f'<https://api.github.com/repositories/1000/x?{further}>; rel="next"'
    return {"Link": f'{first}, <https://api.github.com/repositories/1000/x?page=9>; rel="last"'}


def put(body: dict, name: str, value) -> None:
    body.pop(name, None)
    if value is not None:
        body[name] = value
