// An MCP server over stdio that says what a file tells it to: tools that change, and tools with evil names and texts.
//
//   node actor.mjs NODE_MODULES FILE
//
// FILE holds {"tools": [{name, description, …}], "answer": text, "stderr": text}; it is read anew for every list.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [modules, file] = process.argv.slice(2);
const load = createRequire(join(modules, "here.js"));
const { Server } = load("@modelcontextprotocol/sdk/server/index.js");
const { StdioServerTransport } = load("@modelcontextprotocol/sdk/server/stdio.js");
const { CallToolRequestSchema, ListToolsRequestSchema } = load("@modelcontextprotocol/sdk/types.js");

const script = () => JSON.parse(readFileSync(file, "utf8"));
const server = new Server({ name: "actor", version: "1" }, { capabilities: { tools: {} } });
server.setRequestHandler(ListToolsRequestSchema, () => ({
  tools: script().tools.map((tool) => ({ inputSchema: { type: "object", properties: {} }, ...tool })),
}));
server.setRequestHandler(CallToolRequestSchema, () => ({ content: [{ type: "text", text: script().answer ?? "done" }] }));
process.stderr.write(`${script().stderr ?? "the actor is on stage"}\n`);
await server.connect(new StdioServerTransport());
