// A small server on the TypeScript SDK 1.x, with sessions, over HTTP. Its tools ask without naming the
// request that they ask for, so that each question goes to the GET stream of the session; where there is
// none the SDK drops it.
//
//   node asking_server.mjs NODE_MODULES PORT
//
// GET /order says which messages came in each session, in their order.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";

const [modules, port] = process.argv.slice(2);
const load = createRequire(join(modules, "here.js"));
const { McpServer } = load("@modelcontextprotocol/sdk/server/mcp.js");
const { StreamableHTTPServerTransport } = load("@modelcontextprotocol/sdk/server/streamableHttp.js");

const sessions = new Map();
const order = [];

const said = (answer) => ({ content: [{ type: "text", text: JSON.stringify(answer) }] });

function serve() {
  const mcp = new McpServer({ name: "asking", version: "1" });
  const question = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
  mcp.registerTool("ask_person", { description: "Asks a person" }, async () =>
    said(await mcp.server.elicitInput({ message: "Who is there?", requestedSchema: question })));
  mcp.registerTool("ask_model", { description: "Asks a model" }, async () => {
    const messages = [{ role: "user", content: { type: "text", text: "Who is there?" } }];
    return said(await mcp.server.createMessage({ messages, maxTokens: 5 }));
  });
  mcp.registerTool("ask_roots", { description: "Asks for roots" }, async () => said(await mcp.server.listRoots()));
  return mcp;
}

async function body(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  return parts.length > 0 ? JSON.parse(Buffer.concat(parts).toString()) : undefined;
}

createServer(async (request, response) => {
  if (request.url === "/order") return response.end(JSON.stringify(order));
  const message = await body(request);
  let session = sessions.get(request.headers["mcp-session-id"]);
  if (!session && message?.method === "initialize") {
    session = { seen: [] };
    order.push(session.seen);
    session.transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      onsessioninitialized: (id) => sessions.set(id, session),
    });
    await serve().connect(session.transport);
  }
  if (!session) {
    response.statusCode = 400;
    return response.end();
  }
  session.seen.push(request.method === "POST" ? (message.method ?? "answer") : request.method);
  await session.transport.handleRequest(request, response, message);
}).listen(Number(port), "127.0.0.1");
