"""The category proxy in front of the real serena: the acceptance criteria of its specification.

Categories and overrides are the specification's own. It was written for an older serena, so
seven of the names it lists are gone in the release that is installed here; such names are
warned about and cannot be called, and all the others work.
"""

import json
import re
import time

import anyio
import pytest

from clients import direct, gateway_stdio, over_http, plain, text_of, tools_of, tools_with

pytestmark = pytest.mark.anyio

CATEGORIES = {
    "fs": ["read_file", "create_text_file", "list_dir", "find_file", "replace_regex", "search_for_pattern"],
    "code": ["get_symbols_overview", "find_symbol", "find_referencing_symbols", "replace_symbol_body",
             "insert_after_symbol", "insert_before_symbol", "rename_symbol"],
    "memory": ["write_memory", "read_memory", "list_memories", "delete_memory"],
    "session": ["execute_shell_command", "activate_project", "switch_modes", "get_current_config", "onboarding",
                "check_onboarding_performed", "prepare_for_new_conversation"],
    "meta": ["think_about_collected_information", "think_about_task_adherence", "think_about_whether_you_are_done",
             "initial_instructions"],
}  # fmt: skip
DESCRIPTIONS = {
    "fs": "ファイル/ディレクトリの読み書きと検索。",
    "code": "シンボル探索とコード編集。",
    "memory": "メモリ操作。",
    "session": "実行・初期化・構成。",
    "meta": "メタ思考/初期指示。",
}
OVERRIDES = {
    "fs": {
        "read_file": {"enabled": True, "description": "大きなファイルは部分読み取りを推奨。"},
        "replace_regex": {"enabled": True, "description": "正規表現の安全性に注意（バックトラッキング過多を避ける）。"},
    },
    "code": {"replace_symbol_body": {"enabled": False}},
    "session": {"execute_shell_command": {"enabled": False}},
}
DISABLED = {"replace_symbol_body", "execute_shell_command"}
# In serena 1.7.0.
TOOLS = 29
GONE = {
    "fs": {"replace_regex"},
    "session": {"switch_modes", "check_onboarding_performed", "prepare_for_new_conversation"},
    "meta": {"think_about_collected_information", "think_about_task_adherence", "think_about_whether_you_are_done"},
}
GONE_NAMES = sorted(name for names in GONE.values() for name in names)

# The example of the specification's section 11, with serena's way of starting to be filled in.
PREFIXED = """{
  // Names as an LLM client shows them.
  "$schema": "https://raw.githubusercontent.com/<you>/serena-module/refs/heads/main/config-schema.json",
  "mcpServers": {
    "serena": {
      "description": "社内コードベースを操作する高頻度 MCP（大規模ツール群）",
      "command": %(command)s,
      "args": %(args)s,
      "env": %(env)s
    }
  },
  "categories": {
    "fs": {
      "description": "ファイル/ディレクトリ操作と検索",
      "server": "serena",
      "tools": {
        "includeNames": [
          "mcp__serena__read_file",
          "mcp__serena__create_text_file",
          "mcp__serena__list_dir",
          "mcp__serena__find_file",
          "mcp__serena__replace_regex",
          "mcp__serena__search_for_pattern"
        ],
        "overrides": {
          "mcp__serena__read_file": {
            "description": "大きなファイルは範囲指定を推奨（O(n) 回避）。",
            "enabled": true
          },
          "mcp__serena__execute_shell_command": { "enabled": false }
        }
      }
    },
    "code": {
      "description": "シンボル探索とコード編集",
      "server": "serena",
      "tools": {
        "includeNames": [
          "mcp__serena__get_symbols_overview",
          "mcp__serena__find_symbol",
          "mcp__serena__find_referencing_symbols",
          "mcp__serena__replace_symbol_body",
          "mcp__serena__insert_after_symbol",
          "mcp__serena__insert_before_symbol",
          "mcp__serena__rename_symbol"
        ],
        "overrides": {
          "mcp__serena__replace_symbol_body": { "enabled": false }
        }
      }
    }
  }
}
"""


def categories_on(server: str) -> dict:
    return {
        name: {
            "description": DESCRIPTIONS[name],
            "server": server,
            "tools": {"includeNames": tools, "overrides": OVERRIDES.get(name, {})},
        }
        for name, tools in CATEGORIES.items()
    }


def new_serena(parts, folder):
    """A project of serena's with one file, and the server for it."""
    project = folder / "project"
    project.mkdir()
    (project / "greet.py").write_text("def greet(name):\n    return f'hello {name}'\n")
    (folder / "home").mkdir()
    return project, parts.serena(project, folder / "home")


@pytest.fixture(scope="module")
def serena(parts, tmp_path_factory):
    return new_serena(parts, tmp_path_factory.mktemp("serena"))


@pytest.fixture(scope="module")
def project(serena):
    return serena[0]


@pytest.fixture(scope="module")
async def own_tools(serena):
    """What serena lists when nothing stands between. Its first run also lays out the project's folder."""
    async with direct(serena[1]) as client:
        return await tools_of(client)


@pytest.fixture(scope="module")
async def gateway(start_gateway, serena, own_tools):
    gateway = start_gateway({"mcpServers": {"serena": serena[1]}, "categories": categories_on("serena")})
    await until_loaded(gateway)
    return gateway


@pytest.fixture(scope="module")
async def prefixed(start_gateway, parts, tmp_path_factory):
    project, server = new_serena(parts, tmp_path_factory.mktemp("prefixed"))
    gateway = start_gateway(PREFIXED % {key: json.dumps(server[key]) for key in ("command", "args", "env")})
    await until_loaded(gateway)
    return gateway, project


@pytest.fixture(scope="module")
def unconnected(start_gateway):
    """Every category on a server that cannot be started."""
    absent = {"description": "Not here", "command": "hikite-no-such-command", "args": []}
    return start_gateway({"mcpServers": {"absent": absent}, "categories": categories_on("absent")})


async def until_loaded(gateway, seconds: float = 60):
    """A slow machine may need longer for serena's first start than one request waits."""
    deadline = time.monotonic() + seconds
    async with over_http(gateway, "categories") as client:
        while (answer := await get_tools(client, category="fs")).get("isError"):
            assert time.monotonic() < deadline, f"{answer}\n{gateway.log_end()}"
            await anyio.sleep(0.5)


async def get_tools(client, **arguments) -> dict:
    return plain(await client.call_tool("get-category-tools", arguments))


async def call(client, category: str, name: str, **args) -> dict:
    return plain(await client.call_tool("call-category-tool", {"category": category, "name": name, "args": args}))


def content_of(result: dict) -> dict:
    """The structured answer of `get-category-tools`, which is in the text as well."""
    assert not result.get("isError"), result
    assert json.loads(text_of(result)) == result["structuredContent"]
    return result["structuredContent"]


def error_of(result: dict) -> str:
    """The name of the error that a result must be."""
    assert result.get("isError"), result
    error = result["structuredContent"]["error"]
    assert error["code"] and error["message"] and error["hint"], error
    assert error["message"] in "".join(block.get("text", "") for block in result["content"])
    return error["name"]


async def test_the_seven_names_that_are_gone_are_these(own_tools):
    assert len(own_tools) == TOOLS
    gone = {category: set(names) - own_tools.keys() for category, names in CATEGORIES.items()}
    assert {category: names for category, names in gone.items() if names} == GONE
    assert len(GONE_NAMES) == 7


async def test_1_the_description_lists_every_category_and_what_it_is_for(gateway):
    async with over_http(gateway, surface=None) as client:
        tools = await tools_of(client)
    assert set(tools) == {"get-category-tools", "call-category-tool"}
    description = tools["get-category-tools"]["description"]
    for category, purpose in DESCRIPTIONS.items():
        assert re.search(rf"\b{category}\b", description)
        assert purpose in description
    assert "relative_path" not in description, "no schema of a tool of serena's"
    assert "get-category-tools" in tools["call-category-tool"]["description"]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("category", CATEGORIES)
async def test_2_a_category_answers_with_the_schemas_of_its_enabled_tools_only(gateway, own_tools, category, mode):
    async with over_http(gateway, "categories", mode) as client:
        answer = content_of(await get_tools(client, category=category))
    expected = set(CATEGORIES[category]) - GONE.get(category, set()) - DISABLED
    assert set(answer["tools"]) == expected
    assert answer["meta"]["category"] == category
    assert answer["meta"]["sourceServer"] == "serena"
    assert set(answer["meta"].get("unavailableTools", [])) <= GONE.get(category, set())
    for name, tool in answer["tools"].items():
        override = OVERRIDES.get(category, {}).get(name, {})
        assert tool["description"] == override.get("description", own_tools[name]["description"])
        assert tool["inputSchema"] == own_tools[name]["inputSchema"]


async def test_2_some_tools_of_a_category_can_be_asked_for_by_name(gateway):
    async with over_http(gateway, "categories") as client:
        answer = content_of(await get_tools(client, category="fs", toolNames=["list_dir", "find_file"]))
    assert set(answer["tools"]) == {"list_dir", "find_file"}


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_3_a_tool_runs_in_serena_and_its_result_comes_back_as_it_is(gateway, serena, own_tools, mode):
    arguments = {"relative_path": ".", "recursive": False}
    async with direct(serena[1]) as client:
        own = plain(await client.call_tool("list_dir", arguments))
    async with over_http(gateway, "categories", mode) as client:
        relayed = await call(client, "fs", "list_dir", **arguments)
    assert "greet.py" in text_of(relayed)
    for field in ("content", "structuredContent", "isError"):
        assert relayed.get(field) == own.get(field)


async def test_3_a_tool_can_be_called_before_its_schema_was_loaded(start_gateway, parts, tmp_path):
    _, server = new_serena(parts, tmp_path)
    gateway = start_gateway({"mcpServers": {"serena": server}, "categories": categories_on("serena")})
    async with over_http(gateway, "categories") as client:
        assert "greet.py" in text_of(await call(client, "fs", "list_dir", relative_path=".", recursive=False))


@pytest.mark.parametrize("callbacks_named", [[], ["elicitation_callback", "list_roots_callback"]], ids=["plain", "askable"])
async def test_serena_without_a_known_list_is_started_once(start_gateway, parts, tmp_path, callbacks_named):
    """Reading its tools and the first call take one process, also for a client that can be asked."""
    _, server = new_serena(parts, tmp_path)
    starts = tmp_path / "starts"
    script = f'echo started >> "{starts}"; exec "$0" "$@"'
    counted = server | {"command": "/bin/sh", "args": ["-c", script, server["command"], *server["args"]]}
    gateway = start_gateway({"mcpServers": {"serena": counted}, "categories": categories_on("serena")})
    callbacks = dict.fromkeys(callbacks_named, never_asked)
    async with over_http(gateway, "categories", **callbacks) as client:
        deadline = time.monotonic() + 60
        while (answer := await get_tools(client, category="fs")).get("isError"):
            assert time.monotonic() < deadline, f"{answer}\n{gateway.log_end()}"
            await anyio.sleep(0.5)
        assert "greet.py" in text_of(await call(client, "fs", "list_dir", relative_path=".", recursive=False))
    assert starts.read_text().split() == ["started"]


async def never_asked(*_):
    raise AssertionError("serena asks nothing")


async def test_3_a_memory_is_written_and_read(gateway, project):
    async with over_http(gateway, "categories") as client:
        text_of(await call(client, "memory", "write_memory", memory_name="tea", content="at four"))
        assert "tea" in text_of(await call(client, "memory", "list_memories"))
        assert text_of(await call(client, "memory", "read_memory", memory_name="tea")) == "at four"
    assert (project / ".serena" / "memories" / "tea.md").read_text() == "at four"


async def test_3_a_file_is_written_and_read(gateway, project):
    async with over_http(gateway, "categories") as client:
        text_of(await call(client, "fs", "create_text_file", relative_path="note.txt", content="一行目\n"))
        assert "一行目" in text_of(await call(client, "fs", "read_file", relative_path="note.txt"))
    assert (project / "note.txt").read_text() == "一行目\n"


async def test_3_an_error_of_serena_is_an_error_of_the_call(gateway):
    async with over_http(gateway, "categories") as client:
        result = await call(client, "fs", "read_file", relative_path="no-such-file.txt")
    assert result["isError"]
    assert "no-such-file.txt" in str(result["content"])


async def test_4_a_disabled_tool_is_neither_listed_nor_run(gateway, project):
    marker = project / "ran"
    source = (project / "greet.py").read_text()
    async with over_http(gateway, "categories") as client:
        for category, name in (("code", "replace_symbol_body"), ("session", "execute_shell_command")):
            asked_by_name = await get_tools(client, category=category, toolNames=[name])
            assert name not in asked_by_name.get("structuredContent", {}).get("tools", {})
        shell = await call(client, "session", "execute_shell_command", command=f"touch {marker}")
        body = {"name_path": "greet", "relative_path": "greet.py", "body": "gone"}
        replaced = await call(client, "code", "replace_symbol_body", **body)
    assert error_of(shell) == "ToolDisabled"
    assert error_of(replaced) == "ToolDisabled"
    assert not marker.exists()
    assert (project / "greet.py").read_text() == source


async def test_4_a_disabled_tool_is_disabled_on_every_surface(gateway, own_tools):
    async with over_http(gateway, "direct") as client:
        listed = await tools_with(client, own_tools.keys() - DISABLED)
    assert not DISABLED & listed.keys()


async def test_5_an_unknown_category_is_named_so(gateway):
    async with over_http(gateway, "categories") as client:
        assert error_of(await get_tools(client, category="kitchen")) == "UnknownCategory"
        assert error_of(await call(client, "kitchen", "list_dir", relative_path=".")) == "UnknownCategory"


@pytest.mark.parametrize("name", ["no_such_tool", "write_memory"])
async def test_5_a_tool_that_is_not_in_the_category_is_unknown(gateway, name):
    async with over_http(gateway, "categories") as client:
        assert error_of(await call(client, "fs", name)) == "UnknownTool"


async def test_5_a_configured_tool_that_serena_does_not_have_is_unknown(gateway):
    async with over_http(gateway, "categories") as client:
        for category, names in GONE.items():
            for name in names:
                assert error_of(await call(client, category, name)) == "UnknownTool"


async def test_5_each_configured_tool_that_serena_does_not_have_is_warned_about(gateway):
    warnings = "\n".join(line for line in gateway.log().splitlines() if re.search(r"\bwarn", line, re.IGNORECASE))
    unnamed = [name for name in GONE_NAMES if not re.search(rf"\b{name}\b", warnings)]
    assert not unnamed, f"no warning names {unnamed}:\n{gateway.log_end()}"
    assert not re.search(r"\blist_dir\b", warnings), "a tool that exists is not warned about"


async def test_6_the_categories_are_visible_while_their_server_is_not(unconnected):
    async with over_http(unconnected, surface=None) as client:
        tools = await tools_of(client)
        got = await get_tools(client, category="fs")
        called = await call(client, "fs", "list_dir", relative_path=".")
        disabled = await call(client, "session", "execute_shell_command", command="true")
    description = tools["get-category-tools"]["description"]
    for category, purpose in DESCRIPTIONS.items():
        assert re.search(rf"\b{category}\b", description)
        assert purpose in description
    assert error_of(got) == "UpstreamUnavailable"
    assert error_of(called) in {"UpstreamUnavailable", "UpstreamCallError"}
    assert error_of(disabled) == "ToolDisabled"


async def test_names_may_be_written_as_an_llm_client_shows_them(prefixed):
    gateway, _ = prefixed
    async with over_http(gateway, surface=None) as client:
        assert set(await tools_of(client)) == {"get-category-tools", "call-category-tool"}
        fs = content_of(await get_tools(client, category="fs"))["tools"]
        code = content_of(await get_tools(client, category="code"))["tools"]
        some = content_of(await get_tools(client, category="fs", toolNames=["mcp__serena__list_dir"]))["tools"]
        arguments = {"relative_path": ".", "recursive": False}
        for name in ("list_dir", "mcp__serena__list_dir"):
            assert "greet.py" in text_of(await call(client, "fs", name, **arguments))
    assert set(fs) == set(CATEGORIES["fs"]) - GONE["fs"]
    assert fs["read_file"]["description"] == "大きなファイルは範囲指定を推奨（O(n) 回避）。"
    assert set(code) == set(CATEGORIES["code"]) - {"replace_symbol_body"}
    assert set(some) == {"list_dir"}


@pytest.mark.parametrize("prefix", ["", "mcp__serena__"])
async def test_a_tool_disabled_by_its_prefixed_name_is_not_run(prefixed, prefix):
    gateway, project = prefixed
    marker = project / "ran"
    async with over_http(gateway, "categories") as client:
        body = {"name_path": "greet", "relative_path": "greet.py", "body": "gone"}
        replaced = await call(client, "code", f"{prefix}replace_symbol_body", **body)
        # Disabled, and not among the category's tools either: both names are true.
        shell = await call(client, "fs", f"{prefix}execute_shell_command", command=f"touch {marker}")
    assert error_of(replaced) == "ToolDisabled"
    assert error_of(shell) in {"ToolDisabled", "UnknownTool"}
    assert not marker.exists()


async def test_over_stdio_a_client_sees_two_tools_loads_a_category_and_calls(gateway, tmp_path):
    async with gateway_stdio(gateway, tmp_path / "data", surface="categories") as client:
        assert set(await tools_of(client)) == {"get-category-tools", "call-category-tool"}
        answer = content_of(await get_tools(client, category="memory"))
        assert set(answer["tools"]) == set(CATEGORIES["memory"])
        assert "greet.py" in text_of(await call(client, "fs", "list_dir", relative_path=".", recursive=False))
