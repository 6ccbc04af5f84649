// A small server on the TypeScript SDK 1.x that offers a session more once it is unlocked: a tool, a prompt and a
// resource are registered while it runs, in the instance of that session alone. It asks for the roots of its client, so
// that a gateway has to give each session a server of its own.
//
//   node dynamic_server.mjs NODE_MODULES stdio
//   node dynamic_server.mjs NODE_MODULES PORT      # streamable HTTP at /mcp
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";

const [modules, where] = process.argv.slice(2);
const load = createRequire(join(modules, "here.js"));
const { McpServer } = load("@modelcontextprotocol/sdk/server/mcp.js");
const { StdioServerTransport } = load("@modelcontextprotocol/sdk/server/stdio.js");
const { StreamableHTTPServerTransport } = load("@modelcontextprotocol/sdk/server/streamableHttp.js");
const { z } = load("zod");

const text = (words) => ({ content: [{ type: "text", text: words }] });

const make = () => {
  const server = new McpServer({ name: "dynamic", version: "1" }, { capabilities: { tools: { listChanged: true } } });
  server.registerTool("unlock", { description: "Offers more.", inputSchema: { word: z.string() } }, ({ word }) => {
    server.registerTool("treasure", { description: "Only after unlocking." }, () => text(`the treasure of ${word}`));
    server.registerPrompt("riddle", { description: "Only after unlocking." }, () => ({
      messages: [{ role: "user", content: { type: "text", text: `the riddle of ${word}` } }],
    }));
    server.registerResource("map", "vault://map", {}, (uri) => ({ contents: [{ uri: uri.href, text: `the map of ${word}` }] }));
    return text("unlocked");
  });
  // The first of each kind is there before anybody connects: then it is known that there may be more.
  server.registerPrompt("hello", { description: "Says hello." }, () => ({
    messages: [{ role: "user", content: { type: "text", text: "hello" } }],
  }));
  server.registerTool("greet", { description: "Says hello." }, () => text("hello"));
  // Nobody lists this; only the link says that it is there.
  server.registerTool("point", { description: "Gives a link." }, () => ({
    content: [{ type: "resource_link", uri: "vault://hidden", name: "hidden" }],
  }));
  server.registerResource("first", "vault://first", {}, (uri) => ({ contents: [{ uri: uri.href, text: "the first" }] }));
  server.server.oninitialized = () => {
    if (server.server.getClientCapabilities()?.roots) server.server.listRoots().catch(() => {});
  };
  return server;
};

if (where === "stdio") {
  await make().connect(new StdioServerTransport());
} else {
  const sessions = new Map();
  createServer(async (request, response) => {
    const known = sessions.get(request.headers["mcp-session-id"]);
    if (known) return known.handleRequest(request, response);
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => sessions.set(id, transport),
    });
    await make().connect(transport);
    return transport.handleRequest(request, response);
  }).listen(Number(where), "127.0.0.1");
}
