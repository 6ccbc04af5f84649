// A server for the conformance suite on the TypeScript SDK 2.x: of both eras, at one address.
//
//   node typescript_server_2.mjs NODE_MODULES PORT
//
// Clients of 2025-11-25 get sessions, clients of 2026-07-28 the SDK's own handler, as its documentation advises.
import { randomBytes, randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";

import { offer, text } from "./typescript_offer.mjs";
import { offerRounds } from "./typescript_rounds.mjs";

const [modules, port] = process.argv.slice(2);
const load = createRequire(join(modules, "here.js"));
const sdk = load("@modelcontextprotocol/server");
const { NodeStreamableHTTPServerTransport, toNodeHandler } = load("@modelcontextprotocol/node");
const { z } = load("zod");

const states = sdk.createRequestStateCodec({ key: randomBytes(32) });

function make() {
  const server = new sdk.McpServer(
    { name: "typescript-2", version: "1" },
    {
      capabilities: {
        logging: {},
        tools: { listChanged: true },
        prompts: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
      },
      requestState: { verify: states.verify },
    },
  );
  const kit = {
    ...sdk,
    z,
    states,
    prompted: (shape) => z.object(shape),
    meta: (context) => context.mcpReq._meta,
    notify: (context, notification) => context.mcpReq.notify(notification),
    log: (context, data) => context.mcpReq.log("info", data),
    closeStream: (context) => context.http?.closeSSE?.(),
    elicit: (context, params) => context.mcpReq.elicitInput(params),
    sample: (context, params) => context.mcpReq.requestSampling(params),
    toolsChanged: () => modern.notify.toolsChanged(),
    promptsChanged: () => modern.notify.promptsChanged(),
    schemaTool: (_, name, schema, handler) =>
      server.registerTool(name, { description: name, inputSchema: sdk.fromJsonSchema(schema) }, handler),
  };
  offer(server, kit);
  offerRounds(server, kit);
  const region = z.string().default("none").meta({ "x-mcp-header": "Region" });
  server.registerTool("test_x_mcp_header", { description: "has a header", inputSchema: z.object({ region }) }, (args) =>
    text(`region=${args.region}`),
  );
  server.server.setRequestHandler("resources/subscribe", () => ({}));
  server.server.setRequestHandler("resources/unsubscribe", () => ({}));
  return server;
}

const modern = sdk.createMcpHandler(make, { legacy: "reject" });
const answerModern = toNodeHandler(modern);
const sessions = new Map();

async function answerLegacy(request, response, body) {
  const id = request.headers["mcp-session-id"];
  const known = sessions.get(id);
  if (known) return known.handleRequest(request, response, body);
  if (id) return response.writeHead(404).end();
  const transport = new NodeStreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (opened) => void sessions.set(opened, transport),
    onsessionclosed: (closed) => void sessions.delete(closed),
  });
  await make().connect(transport);
  return transport.handleRequest(request, response, body);
}

async function read(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts).toString();
}

function parsed(body) {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

const OWN_HOSTS = [`127.0.0.1:${port}`, `localhost:${port}`];

async function answer(request, response) {
  const { host, origin } = request.headers;
  const isForeign = !OWN_HOSTS.includes(host) || (origin && !OWN_HOSTS.includes(new URL(origin).host));
  if (isForeign) return response.writeHead(403).end();
  const body = request.method === "POST" ? parsed(await read(request)) : undefined;
  // The predicate reads headers and the parsed body alone.
  const shown = new Request(`http://${host}${request.url}`, { method: request.method, headers: request.headers });
  if (await sdk.isLegacyRequest(shown, body)) return answerLegacy(request, response, body);
  return answerModern(request, response, body);
}

createServer(answer).listen(Number(port), "127.0.0.1", () => console.error(`listening on ${port}`));
