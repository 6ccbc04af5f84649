// A server for the conformance suite on the TypeScript SDK 1.x, with sessions.
//
//   node typescript_server_1.mjs NODE_MODULES PORT
//
// Forms are asked for without a related request, so they go to the client on its GET stream; samples go out on the
// stream of the call. Both are legal, and a gateway has to carry both.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";

import { offer } from "./typescript_offer.mjs";

const [modules, port] = process.argv.slice(2);
const load = createRequire(join(modules, "here.js"));
const { McpServer, ResourceTemplate } = load("@modelcontextprotocol/sdk/server/mcp.js");
const { StreamableHTTPServerTransport } = load("@modelcontextprotocol/sdk/server/streamableHttp.js");
const { completable } = load("@modelcontextprotocol/sdk/server/completable.js");
const types = load("@modelcontextprotocol/sdk/types.js");
const { z } = load("zod");

function make() {
  const server = new McpServer(
    { name: "typescript-1", version: "1" },
    { capabilities: { logging: {}, resources: { subscribe: true, listChanged: true } } },
  );
  // What the handler of `tools/list` is to say instead of what the SDK makes of a schema.
  const schemas = new Map();
  const kit = {
    z,
    ResourceTemplate,
    completable,
    prompted: (shape) => shape,
    meta: (context) => context._meta,
    notify: (context, notification) => context.sendNotification(notification),
    log: (context, data) => context.sendNotification({ method: "notifications/message", params: { level: "info", data } }),
    closeStream: (context) => context.closeSSEStream?.(),
    elicit: (_, params) => server.server.elicitInput(params),
    sample: (context, params) =>
      context.sendRequest({ method: "sampling/createMessage", params }, types.CreateMessageResultSchema),
    toolsChanged: () => server.sendToolListChanged(),
    promptsChanged: () => server.sendPromptListChanged(),
    schemaTool: (_, name, schema, handler) => {
      server.registerTool(name, { description: name, inputSchema: z.object({}).passthrough() }, handler);
      schemas.set(name, schema);
    },
  };
  offer(server, kit);
  const listed = server.server._requestHandlers.get("tools/list");
  server.server.setRequestHandler(types.ListToolsRequestSchema, async (request, context) => {
    const page = await listed(request, context);
    return { ...page, tools: page.tools.map((tool) => ({ ...tool, inputSchema: schemas.get(tool.name) ?? tool.inputSchema })) };
  });
  server.server.setRequestHandler(types.SubscribeRequestSchema, () => ({}));
  server.server.setRequestHandler(types.UnsubscribeRequestSchema, () => ({}));
  return server;
}

// What went out on a stream, for a client that comes back with `Last-Event-ID`.
const sent = [];
const eventStore = {
  async storeEvent(stream, message) {
    sent.push({ stream, message });
    return String(sent.length);
  },
  async replayEventsAfter(last, { send }) {
    const { stream } = sent[Number(last) - 1];
    for (const [at, event] of sent.entries()) {
      const isDue = at >= Number(last) && event.stream === stream && Object.keys(event.message).length > 0;
      if (isDue) await send(String(at + 1), event.message);
    }
    return stream;
  },
};

const sessions = new Map();

async function answer(request, response) {
  const known = sessions.get(request.headers["mcp-session-id"]);
  if (known) return known.handleRequest(request, response);
  if (request.headers["mcp-session-id"]) return response.writeHead(404).end();
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    eventStore,
    retryInterval: 100,
    enableDnsRebindingProtection: true,
    allowedHosts: [`127.0.0.1:${port}`, `localhost:${port}`],
    allowedOrigins: [`http://127.0.0.1:${port}`, `http://localhost:${port}`],
    onsessioninitialized: (id) => void sessions.set(id, transport),
    onsessionclosed: (id) => void sessions.delete(id),
  });
  await make().connect(transport);
  return transport.handleRequest(request, response);
}

createServer(answer).listen(Number(port), "127.0.0.1", () => console.error(`listening on ${port}`));
