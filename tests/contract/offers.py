"""What modules offer beside tools: every resource is read and every prompt got, over MCP, in either language."""

import json
import re
import urllib.parse
import urllib.request

import yaml

from cases import HERE, MODULES

REVISION = "2025-06-18"
READ_SECONDS = 60


class Session:
    """The little of an MCP client that is needed here."""

    def __init__(self, url: str, token: str):
        self.url = f"{url}/mcp?surface=direct"
        self.headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": REVISION,
        }
        who = {"name": "contract", "version": "1"}
        self.ask("initialize", {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": who})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def ask(self, method: str, params: dict) -> dict:
        text = self.send({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        if not text.startswith("{"):
            text = [line[5:] for line in text.splitlines() if line.startswith("data:")][-1]
        return json.loads(text)

    def send(self, message: dict) -> str:
        request = urllib.request.Request(self.url, json.dumps(message).encode(), self.headers)
        with urllib.request.urlopen(request, timeout=READ_SECONDS) as answer:
            if session := answer.headers.get("Mcp-Session-Id"):
                self.headers["Mcp-Session-Id"] = session
            return answer.read().decode()


class Offers:
    """The resources, prompts and words of some modules."""

    def __init__(self, url: str, token: str, vendors: list, language: str):
        self.session = Session(url, token)
        self.vendors = {module: vendor for vendor in vendors for module in vendor.judges}
        self.language = language
        self.passed = 0
        self.faults: list[str] = []

    def run(self) -> None:
        tools = {tool["name"]: tool for tool in self.session.ask("tools/list", {})["result"]["tools"]}
        prompts = {prompt["name"]: prompt for prompt in self.session.ask("prompts/list", {})["result"]["prompts"]}
        templates = {
            one["uriTemplate"]: one
            for one in self.session.ask("resources/templates/list", {})["result"]["resourceTemplates"]
        }
        for module in self.vendors:
            file = yaml.safe_load((MODULES / f"{module}.yaml").read_text())
            for name, tool in file["tools"].items():
                shown = named(tools, module, name)
                words = shown.get("description", "")
                self.expect(
                    words.startswith(tool["description"][self.language]),
                    f"{module} {name}",
                    f"is described as {words!r}",
                )
                self.hints(module, name, tool["risk"], shown)
            for name, resource in file["resources"].items():
                said = templates.get(resource["uri"], {})
                self.expect(
                    said.get("title") == resource["title"][self.language],
                    f"{module} {name}",
                    f"is called {said.get('title')!r}",
                )
                self.resource(module, name, resource)
            for name, prompt in file["prompts"].items():
                said = named(prompts, module, name)
                self.expect(
                    said.get("title") == prompt["title"][self.language],
                    f"{module} {name}",
                    f"is called {said.get('title')!r}",
                )
                self.prompt(said.get("name", ""), prompt)

    def hints(self, module: str, name: str, risk: str, tool: dict) -> None:
        said = tool.get("annotations", {})
        well = said.get("readOnlyHint") == (risk == "read") and said.get("destructiveHint") == (risk == "destructive")
        self.expect(well, f"{module} {name}", f"its risk is {risk}, its annotations say {said}")

    def resource(self, module: str, name: str, resource: dict) -> None:
        cases = json.loads((HERE / "arguments" / f"{module}.json").read_text())[resource["tool"]]
        known = cases["minimal"] | cases["full"]
        uri = resource["uri"]
        for plus, argument in re.findall(r"\{(\+?)(\w+)\}", uri):
            value = urllib.parse.quote(str(known[argument]), safe="/" if plus else "")
            uri = uri.replace(f"{{{plus}{argument}}}", value)
        answer = self.session.ask("resources/read", {"uri": uri})
        faults = [fault for _, found in self.vendors[module].take() for fault in found]
        contents = answer.get("result", {}).get("contents", [{}])
        well = contents[0].get("mimeType") == resource["mime"] and contents[0].get("text", "").strip()
        self.expect(
            bool(well) and not faults,
            f"{module} {name}",
            f"{uri} gives {json.dumps(answer, ensure_ascii=False)[:300]} {faults}",
        )

    def prompt(self, key: str, prompt: dict) -> None:
        values = {argument: f"<{argument}>" for argument in prompt["arguments"]}
        answer = self.session.ask("prompts/get", {"name": key, "arguments": values})
        text = told(answer)
        wanted = re.sub(r"\{(\w+)\}", lambda found: values[found[1]], prompt["text"][self.language])
        self.expect(text.strip() == wanted.strip(), key, f"says {text!r}")
        needed = {
            argument: value
            for argument, value in values.items()
            if prompt["arguments"][argument].split("|")[0].strip().endswith("!")
        }
        text = told(self.session.ask("prompts/get", {"name": key, "arguments": needed}))
        self.expect(
            text != "" and "{" not in text and "null" not in text, key, f"without what may be missing: {text!r}"
        )
        if needed:
            refused = self.session.ask("prompts/get", {"name": key, "arguments": {}})
            self.expect("error" in refused, key, "needs no argument")

    def expect(self, well: bool, what: str, words: str) -> None:
        if well:
            self.passed += 1
        else:
            self.faults.append(f"{what} ({self.language}): {words}")


def named(shown: dict, module: str, name: str) -> dict:
    """Names that only one module has may be shown bare."""
    return shown.get(f"{module}__{name}") or shown.get(name, {})


def told(answer: dict) -> str:
    messages = answer.get("result", {}).get("messages", [])
    return messages[0]["content"]["text"] if messages else ""
