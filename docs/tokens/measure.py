#!/usr/bin/env python3
"""Counts what a model reads of the same servers with and without hikite. See ../tokens.md.

usage: measure.py HIKITE FIXTURE_UPSTREAM COUNT FOLDER

HIKITE            the hikite program
FIXTURE_UPSTREAM  the program of hikite-testkit that replays a recorded list
COUNT             a program that prints the number of tokens of its stdin
FOLDER            recorded lists, one JSON file per server: {"tools": [...], ...}
"""

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

DESCRIPTIONS = {
    "airtable": "Read and change Airtable bases, tables, fields, records and comments.",
    "atlassian": "Jira issues, boards and sprints; Confluence pages, comments and search.",
    "aws-docs": "Search and read the AWS documentation.",
    "brave": "Search the web, news, images, videos and places with Brave.",
    "chrome-devtools": "Drive a Chrome browser and inspect its network, console and performance.",
    "context7": "Current documentation of programming libraries.",
    "desktop-commander": "Files, processes and terminal commands on this computer.",
    "everything": "The protocol's own test server: one tool for every feature.",
    "excel": "Read, write, format and chart Excel workbooks.",
    "fetch": "Fetch a web page as Markdown.",
    "filesystem": "Read, write, move and search files in the allowed folders.",
    "firecrawl": "Scrape, crawl, map and extract data from web sites.",
    "git": "Status, diff, commit, branches and log of a local Git repository.",
    "github": "GitHub repositories, files, issues, pull requests and code search.",
    "google-calendar": "Google Calendar: events, free time, calendars and answers to invitations.",
    "google-maps": "Geocoding, places, distances, elevation and directions.",
    "kubernetes": "Look at and change a Kubernetes cluster with kubectl and Helm.",
    "memory": "A knowledge graph that outlives a conversation.",
    "mongodb": "Query and administer MongoDB databases and Atlas clusters.",
    "n8n": "Find n8n nodes; build, check and run n8n workflows.",
    "notion": "Notion pages, blocks, databases, comments and users.",
    "playwright": "Drive a browser: navigate, click, type, take snapshots.",
    "sequential-thinking": "Think through a problem in numbered steps.",
    "serena1": "Navigate and edit code by its symbols; project memories.",
    "slack": "Slack channels, messages, threads, reactions and users.",
    "sqlite": "Query and change a SQLite database.",
    "supabase": "Supabase projects, SQL, migrations, edge functions, logs and branches.",
    "tavily": "Search, extract, crawl and map the web with Tavily.",
    "time": "The current time, and conversion between time zones.",
}


def main():
    hikite, fixture, counter, folder = sys.argv[1:]
    files = sorted(pathlib.Path(folder).glob("*.json"))
    servers, categories = {}, {}
    for file in files:
        command = {"command": fixture, "args": ["--stdio", "--replay", str(file.resolve())]}
        description = DESCRIPTIONS.get(file.stem, f"The tools of {file.stem}.")
        servers[file.stem] = {"description": description, **command}
        categories[file.stem] = {"description": description, "server": file.stem}
    with tempfile.TemporaryDirectory() as scratch:
        config = pathlib.Path(scratch, "hikite.json")
        limits = {"all_lists": "60s"}  # wait for every server, also on a slow machine
        config.write_text(json.dumps({"mcpServers": servers, "categories": categories, "limits": limits}))
        program = [hikite, "--config", str(config), "--data", f"{scratch}/data", "--log", "error", "stdio"]
        flat = talk([*program, "--surface", "direct"], [("tools/list", {})])[0]["tools"]
        opened = [("tools/call", {"name": "get-category-tools", "arguments": {"category": name}}) for name in categories]
        answers = talk(program, [("tools/list", {}), *opened])
    recorded = sum(len(json.loads(file.read_text())["tools"]) for file in files)
    assert len(flat) == recorded, f"{len(flat)} tools of {recorded} came through"
    meta = answers[0]["tools"]
    assert [tool["name"] for tool in meta] == ["get-category-tools", "call-category-tool"], meta
    texts = [answer["content"][0]["text"] for answer in answers[1:]]
    per_category = [count(counter, text) for text in texts]
    before, after = count(counter, compact(flat)), count(counter, compact(meta))
    print(f"servers                          {len(files):>9,}")
    print(f"tools                            {len(flat):>9,}")
    print(f"flat tools/list                  {before:>9,} tokens")
    print(f"the two meta tools               {after:>9,} tokens  ({100 * (1 - after / before):.1f} % less)")
    print(f"one opened category, median      {statistics.median(per_category):>9,.0f} tokens")
    largest = max(zip(per_category, categories))
    print(f"one opened category, largest     {largest[0]:>9,} tokens  ({largest[1]})")
    print(f"all categories opened            {sum(per_category):>9,} tokens")


def talk(program, requests):
    """Speaks MCP over stdio, one request after the other, and returns the results."""
    process = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "measure", "version": "1"}}
    results = []
    for number, (method, params) in enumerate([("initialize", hello), *requests]):
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        print(compact(message), file=process.stdin, flush=True)
        while (answer := json.loads(process.stdout.readline())).get("id") != number:
            pass
        results.append(answer["result"])
        if number == 0:
            print(compact({"jsonrpc": "2.0", "method": "notifications/initialized"}), file=process.stdin, flush=True)
    process.stdin.close()
    process.wait()
    return results[1:]


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def count(counter, text):
    return int(subprocess.run([counter], input=text, capture_output=True, text=True, check=True).stdout)


main()
