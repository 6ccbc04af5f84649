"""Requests that are wrong, each in one way: a judge that lets one of them pass judges nothing.

For each vendor a request that is right, and what is done to it. Of the right one nothing may be said.
"""

import json

from judge import NOTION_VERSION, Judge, Request

HEADERS = {
    "Authorization": "Bearer token",
    "User-Agent": "test",
    "Content-Type": "application/json",
    "Notion-Version": NOTION_VERSION,
    "X-GitHub-Api-Version": "2022-11-28",
}
PARAGRAPH = {"type": "paragraph", "content": [{"type": "text", "text": "a"}]}
DOCUMENT = {"type": "doc", "version": 1, "content": [PARAGRAPH]}
STORAGE = {"representation": "storage", "value": "<p>a &amp; b</p>"}
TEXT = [{"text": {"content": "a"}}]
PAGE = {"id": "1", "status": "current", "title": "t", "body": STORAGE, "version": {"number": 2}}
TASKS = "/v1.0/me/todo/lists/a/tasks"
REF = "abcdefghijklmnopqrst"

# module: method, path, query, body of what is right; then what is wrong: words, and what is put in the place of these.
REQUESTS = {
    "notion": (
        ("PATCH", "/v1/blocks/b/children", "", {"children": [{"paragraph": {"rich_text": TEXT}}]}),
        ("a type of block that there is not", {"body": {"children": [{"paragraf": {"rich_text": TEXT}}]}}),
        ("a text in place of a list", {"body": {"children": "a"}}),
        ("no children", {"body": {}}),
        ("an unknown member", {"body": {"children": [], "behind": "a"}}),
        ("an unknown address", {"path": "/v1/blocks/b/kids"}),
        ("an unknown parameter", {"query": "after=1"}),
        ("no version", {"without": "Notion-Version"}),
        ("no credential", {"without": "Authorization"}),
        ("a comment on nothing", {"method": "POST", "path": "/v1/comments", "body": {"rich_text": TEXT}}),
        (
            "a parent of no kind",
            {"method": "POST", "path": "/v1/pages", "body": {"parent": {"id": "a"}, "properties": {}}},
        ),
        (
            "a direction that there is not",
            {
                "method": "POST",
                "path": "/v1/data_sources/d/query",
                "body": {"sorts": [{"property": "a", "direction": "up"}]},
            },
        ),
        ("an edit of no kind", {"path": "/v1/pages/p/markdown", "body": {"type": "replace", "replace": {}}}),
        (
            "a search for databases",
            {"method": "POST", "path": "/v1/search", "body": {"filter": {"property": "object", "value": "database"}}},
        ),
    ),
    "github": (
        ("PATCH", "/repos/o/r/issues/1", "", {"state": "closed"}),
        ("a state that there is not", {"body": {"state": "shut"}}),
        ("a wrong type", {"body": {"labels": "bug"}}),
        ("an unknown member", {"body": {"condition": "closed"}}),
        ("a number that is none", {"path": "/repos/o/r/issues/one"}),
        ("an unknown address", {"path": "/repos/o/r/issue/1"}),
        ("an unknown parameter", {"query": "notify=1"}),
        ("no credential", {"without": "Authorization"}),
        ("a member that is missing", {"method": "POST", "path": "/repos/o/r/issues", "body": {"body": "a"}}),
        (
            "a page that is no number",
            {"method": "GET", "path": "/repos/o/r/issues", "query": "page=next", "body": None},
        ),
        ("a time that is none", {"method": "GET", "path": "/repos/o/r/issues", "query": "since=today", "body": None}),
        ("a search for nothing", {"method": "GET", "path": "/search/code", "query": "", "body": None}),
    ),
    "jira": (
        ("POST", "/rest/api/3/issue/A-1/comment", "", {"body": DOCUMENT}),
        ("a text in place of a document", {"body": {"body": "a"}}),
        (
            "a node that there is not",
            {"body": {"body": {"type": "doc", "version": 1, "content": [{"type": "paragraf"}]}}},
        ),
        (
            "a mark that there is not",
            {
                "body": {
                    "body": {
                        "type": "doc",
                        "version": 1,
                        "content": [
                            {
                                "type": "paragraph",
                                "content": [{"type": "text", "text": "a", "marks": [{"type": "bold"}]}],
                            }
                        ],
                    }
                }
            },
        ),
        ("an unknown member", {"body": {"body": DOCUMENT, "text": "a"}}),
        ("an unknown member of a work log", {"path": "/rest/api/3/issue/A-1/worklog", "body": {"timespent": "1h"}}),
        (
            "a text without letters",
            {
                "body": {
                    "body": {
                        "type": "doc",
                        "version": 1,
                        "content": [{"type": "paragraph", "content": [{"type": "text", "text": ""}]}],
                    }
                }
            },
        ),
        ("an unknown address", {"path": "/rest/api/3/issue/A-1/remark"}),
        ("an unknown parameter", {"query": "silent=true"}),
        ("no body", {"body": None}),
        ("no credential", {"without": "Authorization"}),
        (
            "more than there may be",
            {"method": "GET", "path": "/rest/api/3/project/search", "query": "maxResults=101", "body": None},
        ),
        (
            "an order that there is not",
            {"method": "GET", "path": "/rest/api/3/issue/A-1/comment", "query": "orderBy=author", "body": None},
        ),
    ),
    "confluence": (
        ("PUT", "/wiki/api/v2/pages/1", "", PAGE),
        ("no version", {"body": {name: value for name, value in PAGE.items() if name != "version"}}),
        ("a status that there is not", {"body": PAGE | {"status": "archived"}}),
        ("a wrong type", {"body": PAGE | {"version": {"number": "two"}}}),
        ("an unknown member", {"body": PAGE | {"text": "a"}}),
        ("a text that is no XML", {"body": PAGE | {"body": STORAGE | {"value": "<p>a"}}}),
        ("an unknown address", {"path": "/wiki/api/v2/page/1"}),
        ("an unknown parameter", {"query": "notify=1"}),
        ("no credential", {"without": "Authorization"}),
        (
            "more than there may be",
            {"method": "GET", "path": "/wiki/api/v2/spaces", "query": "limit=251", "body": None},
        ),
        ("a search for nothing", {"method": "GET", "path": "/wiki/rest/api/search", "body": None}),
        (
            "a label without a name",
            {"method": "POST", "path": "/wiki/rest/api/content/1/label", "body": [{"prefix": "global"}]},
        ),
    ),
    "supabase": (
        ("POST", f"/v1/projects/{REF}/database/query", "", {"query": "select 1"}),
        ("no query", {"body": {}}),
        ("an empty query", {"body": {"query": ""}}),
        ("a wrong type", {"body": {"query": "select 1", "parameters": "a"}}),
        ("an unknown member", {"body": {"query": "select 1", "readonly": True}}),
        ("a ref that is none", {"path": "/v1/projects/abc/database/query"}),
        ("an unknown address", {"path": f"/v1/projects/{REF}/database/queries"}),
        ("an unknown parameter", {"query": "a=1"}),
        ("no credential", {"without": "Authorization"}),
        (
            "a time that is none",
            {
                "method": "GET",
                "path": f"/v1/projects/{REF}/analytics/endpoints/logs.all",
                "query": "iso_timestamp_start=today",
                "body": None,
            },
        ),
    ),
    "google_calendar": (
        (
            "POST",
            "/calendar/v3/calendars/primary/events",
            "sendUpdates=all",
            {"summary": "a", "start": {"date": "2026-11-16"}, "end": {"date": "2026-11-17"}},
        ),
        ("a wrong type", {"body": {"summary": 1}}),
        ("a time that is none", {"body": {"start": {"dateTime": "ten o'clock"}}}),
        ("an unknown member", {"body": {"title": "a"}}),
        ("an unknown member below", {"body": {"start": {"day": "2026-11-16"}}}),
        ("a word that there is not", {"query": "sendUpdates=everyone"}),
        ("an unknown parameter", {"query": "notify=all"}),
        ("an unknown address", {"path": "/calendar/v3/calendars/primary/event"}),
        ("no credential", {"without": "Authorization"}),
        ("a page of nothing", {"method": "GET", "query": "maxResults=0", "body": None}),
        ("no text", {"path": "/calendar/v3/calendars/primary/events/quickAdd", "query": "", "body": None}),
    ),
    "microsoft_todo": (
        (
            "POST",
            TASKS,
            "",
            {"title": "a", "importance": "high", "dueDateTime": {"dateTime": "2026-11-16T00:00:00", "timeZone": "UTC"}},
        ),
        ("a word that there is not", {"body": {"title": "a", "importance": "urgent"}}),
        ("a wrong type", {"body": {"title": 1}}),
        ("an unknown member", {"body": {"title": "a", "due": "2026-11-16"}}),
        ("an unknown member below", {"body": {"title": "a", "dueDateTime": {"date": "2026-11-16"}}}),
        ("an unknown address", {"path": "/v1.0/me/todo/list/a/tasks"}),
        ("an unknown parameter", {"query": "notify=1"}),
        ("no body", {"body": None}),
        ("no credential", {"without": "Authorization"}),
        ("fewer than none", {"method": "GET", "query": "%24top=-1", "body": None}),
    ),
}


def check(judges: dict[str, Judge]) -> tuple[int, list[str]]:
    """How many were judged as they should be, and which were not."""
    right, faults = 0, []
    for module, (good, *wrong) in REQUESTS.items():
        told = judges[module].judge(made(good, {}))
        if told:
            faults.append(f"{module}: what is right is called wrong: {told}")
        right += not told
        for words, change in wrong:
            if judges[module].judge(made(good, change)):
                right += 1
            else:
                faults.append(f"{module}: let pass: {words}")
    return right, faults


def made(good: tuple, change: dict) -> Request:
    method, path, query, body = good
    body = change.get("body", body)
    headers = {name: value for name, value in HEADERS.items() if name != change.get("without")}
    content = b"" if body is None else json.dumps(body).encode()
    return Request(change.get("method", method), change.get("path", path), change.get("query", query), headers, content)
