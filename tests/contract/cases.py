"""The cases of one provider: every tool with few and with all arguments, page by page, and refused by its vendor."""

import json
import math
import re
from pathlib import Path

import yaml

from mock import PROVIDERS, Answer, Vendor

HERE = Path(__file__).resolve().parent
MODULES = HERE.parent.parent / "hikite-modules/modules"
PAGING = {"fetch_all", "page_size", "max_items", "cursor"}
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
# These ask their vendor nothing.
SILENT = {"get_project_url"}
SECRET = "must-stay-hidden"


class Cases:
    """Runs the cases of the modules of one provider. What goes wrong is told, not raised."""

    def __init__(self, vendor: Vendor, call, tools: dict[str, dict[str, dict]]):
        self.vendor = vendor
        self.call = call
        self.tools = {module: tools[module] for module in PROVIDERS[vendor.provider]}
        self.passed = 0
        self.faults: list[str] = []
        self.reached: dict[str, set[str]] = {module: set() for module in self.tools}
        self.sizes: list[tuple[str, int, int]] = []
        # What a vendor says when it refuses, and which of its words a caller must be told.
        self.refusals = json.loads((HERE / "refusals.json").read_text())

    def run(self) -> None:
        for module, tools in self.tools.items():
            arguments = json.loads((HERE / "arguments" / f"{module}.json").read_text())
            self.complete(module, tools, arguments)
            for tool, cases in arguments.items():
                if tool in tools:
                    self.tool(module, tool, tools[tool], cases)
            self.requests(module)
        if "notion" in self.tools:
            self.long_text()

    def run_short(self) -> None:
        """For another kind of credential: what is sent is the same, but for where and with what."""
        for module, tools in self.tools.items():
            for tool, cases in json.loads((HERE / "arguments" / f"{module}.json").read_text()).items():
                self.answered(module, tool, "minimal", cases["minimal"])
                self.answered(
                    module, tool, "full", {name: value for name, value in cases["full"].items() if name != "site"}
                )

    def complete(self, module: str, tools: dict, arguments: dict) -> None:
        """No tool without a case, no parameter that is never used."""
        listed = yaml.safe_load((MODULES / f"{module}.yaml").read_text())["tools"]
        self.expect(
            set(tools) == set(listed),
            module,
            "",
            f"hikite offers {sorted(set(tools) ^ set(listed))} otherwise than the file says",
        )
        self.expect(
            set(arguments) == set(tools), module, "", f"cases and tools differ: {sorted(set(arguments) ^ set(tools))}"
        )
        for tool, schema in tools.items():
            cases = arguments.get(tool, {})
            used = {
                name
                for case in [cases.get("minimal", {}), cases.get("full", {}), *cases.get("more", [])]
                for name in case
            }
            missing = set(schema.get("properties", {})) - used - PAGING
            self.expect(not missing, module, tool, f"never used: {sorted(missing)}")
            unknown = used - set(schema.get("properties", {}))
            self.expect(not unknown, module, tool, f"no parameters: {sorted(unknown)}")

    def tool(self, module: str, tool: str, schema: dict, cases: dict) -> None:
        for number, case in enumerate([cases["minimal"], cases["full"], *cases.get("more", [])]):
            name = ("minimal", "full")[number] if number < 2 else f"more {number - 1}"
            result = self.answered(module, tool, name, case)
            if self.is_read(tool):
                self.compact(module, tool, name, case, result)
        if "fetch_all" in schema.get("properties", {}):
            self.pages(module, tool, cases.get("paged", cases["minimal"]))
        if tool not in SILENT:
            self.refused(module, tool, cases["minimal"])
        for case in cases.get("fails", []):
            self.fails(module, tool, case["arguments"], case["says"])

    def is_read(self, tool: str) -> bool:
        return tool.startswith(("get_", "list_", "search", "query_", "generate_", "run_read"))

    def answered(self, module: str, tool: str, name: str, arguments: dict, **options):
        """Calls a tool that is to succeed, and gives its result."""
        status, answer = self.call(module, tool, arguments, **options)
        seen = self.vendor.take()
        case = f"{tool} ({name})"
        faults = [fault for _, found in seen for fault in found]
        self.reached[module] |= {f"{request.method} {request.path}" for request, _ in seen}
        well = status == 200 and answer.get("success") is True
        self.expect(
            well and not faults, module, case, f"{status} {json.dumps(answer, ensure_ascii=False)[:400]} {faults}"
        )
        self.expect(bool(seen) != (tool in SILENT), module, case, f"{len(seen)} requests")
        self.expect(SECRET not in json.dumps(answer), module, case, "a secret was shown")
        self.seen = seen
        return answer.get("result")

    def compact(self, module: str, tool: str, name: str, arguments: dict, raw) -> str:
        text = self.answered(module, tool, f"{name}, compact", arguments, format="compact")
        case = f"{tool} ({name}, compact)"
        self.expect(isinstance(text, str) and text.strip() != "", module, case, f"no text: {text!r}")
        whole = json.dumps(raw, ensure_ascii=False, separators=(",", ":"))
        # What a description is made from is not a shape: an answer without one is the JSON again.
        self.expect(text != whole or len(whole) < 200, module, case, "no shape was used")
        self.expect(
            not re.search(r"(?m)^- \w+: null$|\(null\)", text or ""), module, case, f"a null in the text: {text}"
        )
        self.sizes.append((f"{module} {tool} ({name})", len(whole.encode()), len((text or "").encode())))
        return text

    def pages(self, module: str, tool: str, arguments: dict) -> None:
        """A list in three parts: all of them, the second alone, and no more than some."""
        self.vendor.long = True
        self.answered(module, tool, "whole", arguments)
        whole = self.vendor.list
        size = math.ceil(len(whole) / 3)
        result = self.answered(module, tool, "three pages", arguments | {"fetch_all": True, "page_size": size})
        asked = len([request for request, _ in self.seen if self.is_of_list(request, size)])
        self.expect(asked == 3, module, tool, f"three pages in {asked} requests")
        self.expect(holds(result, whole), module, tool, f"three pages do not give all {len(whole)} elements")
        text = self.answered(module, tool, "first page", arguments | {"page_size": size}, format="compact")
        cursor = re.search(r'next_cursor"?: *"?([^"\n]+?)"?,?$', text or "", re.M)
        self.expect(
            cursor is not None, module, tool, f"the first page does not say how to go on: {(text or '')[-200:]}"
        )
        if cursor:
            result = self.answered(module, tool, "second page", arguments | {"page_size": size, "cursor": cursor[1]})
            self.expect(
                holds(result, whole[size : 2 * size]), module, tool, "the cursor does not lead to the second page"
            )
        result = self.answered(
            module, tool, "no more than some", arguments | {"fetch_all": True, "page_size": size, "max_items": size + 1}
        )
        self.expect(
            holds(result, whole[: size + 1]) and not holds(result, whole[: size + 2]),
            module,
            tool,
            "max_items is not kept",
        )
        self.vendor.long = False

    def is_of_list(self, request, size: int) -> bool:
        sent = request.query + request.body.decode()
        return re.search(rf"(per_page|page_size|maxResults|limit|%24top|\$top)\"?[=:] ?{size}\b", sent) is not None

    def refused(self, module: str, tool: str, arguments: dict) -> None:
        refusal = self.refusals[module] if module in self.refusals else self.vendor.recorded[module]["error"]
        words = refusal.get("says") or refusal["body"]["message"]
        self.vendor.refusal = Answer(refusal["status"], body=refusal["body"])
        got, answer = self.call(module, tool, arguments)
        self.vendor.refusal = None
        seen = self.vendor.take()
        faults = [fault for _, found in seen for fault in found]
        told = got >= 400 and answer.get("success") is False and words in answer.get("error", "")
        self.expect(
            told and not faults,
            module,
            f"{tool} (refused)",
            f"{got} {json.dumps(answer, ensure_ascii=False)[:400]} {faults}",
        )

    def long_text(self) -> None:
        """More blocks than Notion takes at once go in parts, each behind the last block of the one before."""
        content = "\n\n".join(f"paragraph {number}" for number in range(250))
        self.answered(
            "notion",
            "append_blocks",
            "250 blocks",
            {"block_id": "393abc1eedcd81a09a08d7413a049dc8", "content": content},
        )
        bodies = [json.loads(request.body) for request, _ in self.seen]
        self.expect(
            [len(body["children"]) for body in bodies] == [100, 100, 50],
            "notion",
            "append_blocks",
            "250 blocks go otherwise than in three requests",
        )
        last = self.vendor.recorded["notion"]["answers"]["patch-block-children"]["results"][-1]["id"]
        behind = [body.get("position", {}).get("after_block", {}).get("id") for body in bodies]
        self.expect(behind == [None, last, last], "notion", "append_blocks", f"they are put behind {behind}")

    def fails(self, module: str, tool: str, arguments: dict, words: str) -> None:
        """What the module itself refuses: the reason is told, and nothing is changed."""
        status, answer = self.call(module, tool, arguments)
        sent = [f"{request.method} {request.path}" for request, _ in self.vendor.take() if request.method != "GET"]
        told = status >= 400 and words in answer.get("error", "") and not sent
        self.expect(told, module, f"{tool} (fails)", f"{status} {json.dumps(answer, ensure_ascii=False)[:400]} {sent}")

    def requests(self, module: str) -> None:
        """Every request that the file describes was sent."""
        file = yaml.safe_load((MODULES / f"{module}.yaml").read_text())
        prefix = "" if isinstance(file["base"], dict) else re.sub(r"https://[^/]+", "", file["base"])
        for tool, written in file["tools"].items():
            for method, path in described(written):
                pattern = re.escape(prefix) + ".+".join(map(re.escape, re.split(r"\{[^}]*\}", path)))
                reached = any(re.fullmatch(f"{method} {pattern}", one) for one in self.reached[module])
                self.expect(reached, module, tool, f"never sent: {method} {path}")

    def expect(self, well: bool, module: str, case: str, words: str) -> None:
        if well:
            self.passed += 1
        else:
            self.faults.append(f"{module} {case}: {words}")


def described(written):
    if isinstance(written, dict):
        for name, value in written.items():
            if name in METHODS and isinstance(value, str):
                yield name, value
            else:
                yield from described(value)
    elif isinstance(written, list):
        for each in written:
            yield from described(each)


def holds(value, elements: list) -> bool:
    """Whether a list with these elements is somewhere in a value; they may have got further members."""
    if isinstance(value, list) and len(value) == len(elements):
        if all(is_within(element, found) for element, found in zip(elements, value)):
            return True
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(holds(each, elements) for each in inner)


def is_within(part, whole) -> bool:
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(name in whole and is_within(value, whole[name]) for name, value in part.items())
    return part == whole
