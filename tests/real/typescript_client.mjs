// Lists all tools of a gateway and makes some calls with the TypeScript SDK.
//
//   node typescript_client.mjs NODE_MODULES < {"sdk", "url", "headers", "calls"}
//
// `sdk` is "1.x" (@modelcontextprotocol/sdk) or "2.x" (@modelcontextprotocol/client, which tries
// the newest revision first). Prints {"version", "tools", "results"} as JSON.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const task = JSON.parse(readFileSync(0, "utf8"));
const load = createRequire(join(process.argv[2], "here.js"));
const sdk =
  task.sdk === "1.x"
    ? {
        ...load("@modelcontextprotocol/sdk/client/index.js"),
        ...load("@modelcontextprotocol/sdk/client/streamableHttp.js"),
      }
    : load("@modelcontextprotocol/client");

const client = new sdk.Client(
  { name: "hikite-tests", version: "1" },
  { capabilities: {}, ...(task.sdk === "2.x" && { versionNegotiation: { mode: "auto" } }) },
);
const transport = new sdk.StreamableHTTPClientTransport(new URL(task.url), {
  requestInit: { headers: task.headers },
});

async function listTools() {
  const names = [];
  let cursor;
  do {
    const page = await client.listTools(cursor ? { cursor } : undefined);
    names.push(...page.tools.map((tool) => tool.name));
    cursor = page.nextCursor;
  } while (cursor);
  return names;
}

await client.connect(transport);
const tools = await listTools();
const results = [];
for (const [name, args] of task.calls) {
  results.push(await client.callTool({ name, arguments: args }));
}
const version =
  client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion;
console.log(JSON.stringify({ version, tools, results }));
await client.close();
