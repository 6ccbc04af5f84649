//! Real inputs to start from, as sent by clients and servers or written by people.

pub const MESSAGES: &[&str] = &[
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{"listChanged":true},"sampling":{},"elicitation":{}},"clientInfo":{"name":"claude-code","version":"2.0.1"}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    r#"{"method":"tools/call","params":{"name":"mcp__serena__find_symbol","arguments":{"name_path":"Foo/bar","depth":1},"_meta":{"progressToken":"p-1"}},"jsonrpc":"2.0","id":"a7"}"#,
    r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"caf\u00e9 \ud83d\ude00"}],"structuredContent":{"n":1.0e2},"isError":false}}"#,
    r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"Unknown tool: x","data":null}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":0.5,"total":1}}"#,
    r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}]"#,
    r#"{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{"cursor":"eyJvIjoxMH0="},"id":4}"#,
];

/// A schema, and its arguments on the next line.
pub const CHECKS: &[&str] = &[
    "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\",\"default\":1},\"b\":{\"type\":[\"string\",\"null\"],\"pattern\":\"^(?=x)[a-z]+$\"}},\"required\":[\"a\"],\"additionalProperties\":false}\n{\"a\":\"5\",\"b\":null}",
    "{\"$defs\":{\"n\":{\"type\":\"object\",\"properties\":{\"n\":{\"$ref\":\"#/$defs/n\"},\"v\":{\"enum\":[1,2]}}}},\"$ref\":\"#/$defs/n\"}\n{\"arguments\":{\"n\":{\"n\":{\"v\":\"2\"}}}}",
    "{\"$schema\":\"http://json-schema.org/draft-07/schema#\",\"properties\":{\"t\":{\"type\":\"array\",\"items\":[{\"type\":\"boolean\"}],\"uniqueItems\":true}},\"anyOf\":[{\"required\":[\"t\"]},{\"required\":[\"u\"]}]}\n\"{\\\"t\\\":[\\\"true\\\"]}\"",
    "[{\"name\":\"q\",\"type\":\"string\",\"required\":true,\"enum\":[\"a\"],\"default\":\"a\"},{\"name\":\"n\",\"type\":\"number\",\"minimum\":0,\"maximum\":9}]\n{\"n\":1.50e1}",
    "{\"type\":\"object\",\"allOf\":[{\"$ref\":\"#\"},{\"$ref\":\"#/$defs/a\"}],\"$defs\":{\"a\":{\"$ref\":\"#\",\"not\":{\"$dynamicRef\":\"#\"}}},\"unevaluatedProperties\":false}\n[]",
];

pub const OBJECTS: &[&str] = &[
    r#"{"name":"a", "x-vendor": {"n": 1.0e2,  "u":"\u00e9"} ,"z":[1, 2], "name":"b", "":null}"#,
    r#"{"type":"object","properties":{"path":{"type":"string","pattern":"^[^\\\\]*\\.rs$"}},"required":["path"],"additionalProperties":false,"$schema":"http://json-schema.org/draft-07/schema#"}"#,
    r#" [ {"type":"image","data":"aGVsbG8=","mimeType":"image/png"} , -0.0, 12345678901234567890123, "\t\"\/" ] "#,
    r#""{\"a\":1}""#,
];

pub const ANSWERS: &[&str] = &[
    r#"[{"id":1,"user":{"login":"octocat","site_admin":false},"title":"Crash, on start","labels":null},{"id":2,"user":{"login":"山田","site_admin":true},"title":"- item","labels":"a:b"}]"#,
    r##"{"servers":{"alpha":{"host":"a.example.org","port":8080},"beta":{"port":9090,"host":"#b"}},"total":2,"next":"","empty":{},"none":[]}"##,
    r#"{"items":[{"tags":["a","b,c"],"size":1.50},{"tags":[],"size":-1e21},[[1,2],[]],[{"x":1},{"x":2}],"true","05",{},null]}"#,
    r#"{"氏名":"山田 太郎","a.b":"\ufefftext","c d":["\u0001","\t"," x "],"n":[0.1,1e-7,18446744073709551615,-0.0]}"#,
    r#""\ufeff8""#,
];

pub const LINES: &[&str] = &[
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n",
    "INFO starting server on stdio\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\r\n",
    "0123456789012345678901234567890123456789012345678901234567890123\r\n01234567890123456789012345678901234567890123456789012345678901234\n",
    "\n\n \r\r\n\0\n",
];

pub const STREAMS: &[&str] = &[
    "event: endpoint\ndata: /messages?sessionId=abc\n\n",
    "\u{feff}: ping\r\nid: 7\r\nevent: message\r\ndata: {\"jsonrpc\":\"2.0\",\r\ndata: \"id\":1,\"result\":{}}\r\n\r\n",
    "id: 0\nretry: 3000\ndata:\n\ndata\ndata\n\n:\n\nevent: x\n\n",
    "data: a\rdata:  b\r\rdata: c\n\r\n\r",
];

pub const PLANS: &[&str] = &[
    "{\"id\":\"search\",\"module\":\"notion\",\"tool\":\"search\",\"params\":{\"query\":\"設計\"}}\n{\"id\":\"page\",\"module\":\"notion\",\"tool\":\"get_page_content\",\"params\":{\"page_id\":\"${search.results[0].id}\"},\"after\":[\"search\"],\"output\":true}\r\n",
    r#"[{"id":"a","toolKey":"m:t","params":"{\"v\":\"${b[-1]?}\"}","on_error":"continue"},{"id":"b","module":"m","tool_name":"t","args":{"x":["no. ${c[*].n} $${c}"]},"if":"${c.n} > 0 && !(${c.s} == 'x')"},{"id":"c","module":"m","tool":"t","for_each":[1,"${d}"],"arguments":{"i":"${item.x}","n":"${index}"}},{"id":"d","module":"m","tool":"t","timeout_ms":5,"select":"a,b","account":"x","raw_output":true}]"#,
    r#"[{"id":"a","module":"m","tool":"t","after":"b"},{"id":"b","module":"m","tool":"t","after":["c","a"]},{"id":"c","module":"m","tool":"t","on_error":"fail_fast"},{"id":"名","module":"m","tool":"t","params":{"v":"${c[\"k.\"]['x'].名}"}}]"#,
];

pub const CONFIGS: &[&str] = &[
    include_str!("../../hikite.example.json"),
    r#"{ "mcpServers": { "time": { "command": "uvx", "args": ["mcp-server-time"], "env": { "TZ": "${TZ:-UTC}" } } } }"#,
    "\u{feff}// 日本語\n{ /* a */ \"server\": { \"listen\": \"127.0.0.1:0\", \"surface\": [\"direct\"], }, \"auth\": { \"mode\": \"none\" } }\n",
    r#"{ "mcpServers": { "a": { "url": "https://x.example/mcp", "headers": { "Authorization": "Bearer ${T}" }, "timeout": "5m", "rate": "10/s", "tools": { "includePatterns": ["find_*", "/^a(b|c)$/"] } } },
  "categories": { "fs": { "description": "d", "server": ["a", "b"], "tools": { "includeNames": ["a:x", "mcp__a__y", "x"], "overrides": { "x": { "enabled": false, "arguments": { "p": { "default": 1, "hidden": true } } } } }, "skill": "s" } },
  "limits": { "body_bytes": "8MiB", "first_list": "10s", "sessions": 1 } }"#,
];

/// Tokens that the parsers treat specially.
pub const WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\"",
    "\\",
    "\n",
    "\r",
    "\r\n",
    "\n\n",
    " ",
    "//",
    "/*",
    "*/",
    "null",
    "true",
    "-",
    "0",
    "1e999",
    "\\u",
    "\\ud800",
    "\u{feff}",
    "日本",
    "\u{1F600}",
    "${",
    "$${",
    "${a.",
    "[*]",
    "?}",
    " && ",
    "\"after\":\"a\",",
    "\"for_each\":[],",
    "data:",
    "id: ",
    "retry: ",
    "event:",
    "\0",
    "\"id\":null,",
    "\"jsonrpc\":\"2.0\",",
    "\"method\":\"x\",",
    "\"result\":{},",
    "\"params\":[],",
    "18446744073709551616",
    "[[[[[[[[",
    "]]]]]]]]",
    "\"enabled\":0,",
    "\"*\"",
    "\"/(/\"",
    "\"server\":",
    "\"tools\":{}",
    "999999999999s",
    "16EiB",
];
