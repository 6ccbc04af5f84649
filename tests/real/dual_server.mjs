// A small server on the TypeScript SDK 2.x, which speaks the revisions with sessions and 2026-07-28.
//
//   node dual_server.mjs NODE_MODULES NAME stdio
//   node dual_server.mjs NODE_MODULES NAME PORT
//
// Over HTTP there are two: at /mcp for both eras, and at /modern, named NAME_only, for clients of
// 2026-07-28 only.
// dual_server.py is the same server on the Python SDK; see there.
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const [modules, name, where] = process.argv.slice(2);
const load = createRequire(join(modules, "here.js"));
const sdk = load("@modelcontextprotocol/server");
const { z } = load("zod");
const { inputRequired, inputResponse } = sdk;


const text = (words) => ({ content: [{ type: "text", text: words }] });

const questions = {
  person: () =>
    inputRequired.elicit({
      message: "Who is there?",
      requestedSchema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
    }),
  model: () =>
    inputRequired.createMessage({
      messages: [{ role: "user", content: { type: "text", text: "A colour?" } }],
      maxTokens: 20,
    }),
  roots: () => inputRequired.listRoots(),
};

// Asks for whatever of `kinds` this round has not brought, then answers.
const asking = (kinds, answer) => (_args, context) => {
  const answers = kinds.map((kind) => inputResponse(context.mcpReq.inputResponses, kind));
  if (answers.every(({ kind }) => kind !== "missing")) return text(answer(...answers));
  return inputRequired({ inputRequests: Object.fromEntries(kinds.map((kind) => [kind, questions[kind]()])) });
};

const said = (answer) => {
  const content = answer.result?.content ?? answer.content;
  return (Array.isArray(content) ? content[0] : content).text;
};

// `bus` is how an HTTP handler tells what has changed: there is an instance for each of its requests.
const make = (name, grown, bus) => () => {
  const note = `note://${name}`;
  const server = new sdk.McpServer(
    { name, version: "1" },
    {
      capabilities: {
        logging: {},
        tools: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
      },
      instructions: `This is ${name}.`,
    },
  );
  const tool = (called, handler) =>
    server.registerTool(called, { description: called, inputSchema: z.object({}) }, handler);

  tool("era", (_args, { mcpReq, http }) =>
    text(
      JSON.stringify({
        revision: mcpReq.envelope?.[sdk.PROTOCOL_VERSION_META_KEY] ?? "with a session",
        session: http?.req?.headers.get("mcp-session-id") ?? null,
      }),
    ),
  );
  tool(
    "ask_person",
    asking(["person"], ({ action, content }) =>
      action === "accept" ? `hello ${content.name}` : `it was ${action}`,
    ),
  );
  tool("ask_model", asking(["model"], (answer) => `${answer.result?.model ?? answer.model} answered ${said(answer)}`));
  tool("ask_roots", asking(["roots"], ({ roots }) => roots.map((root) => root.name).join(", ")));
  tool(
    "ask_all",
    asking(["person", "model", "roots"], (who, what, { roots }) => `${who.content.name}, ${said(what)}, ${roots[0].name}`),
  );
  tool("count", async (_args, { mcpReq }) => {
    const { progressToken } = mcpReq._meta ?? {};
    for (const progress of progressToken === undefined ? [] : [1, 2, 3]) {
      const params = { progressToken, progress, total: 3, message: `step ${progress}` };
      await mcpReq.notify({ method: "notifications/progress", params });
      // This SDK's client loses progress that it reads in one piece with the result.
      await sleep(50);
    }
    return text("counted");
  });
  tool("say", async (_args, { mcpReq }) => {
    for (const level of ["debug", "info", "error"]) await mcpReq.log(level, `${level} of ${name}`, "a-logger");
    return text("said");
  });
  tool("grow", () => {
    grown.push(`${name}_grown_${grown.length + 1}`);
    tool(grown.at(-1), () => text("grown"));
    bus()?.toolsChanged();
    return text(grown.at(-1));
  });
  tool("touch", async () => {
    if (bus()) bus().resourceUpdated(note);
    else await server.server.sendResourceUpdated({ uri: note });
    return text(note);
  });
  for (const called of grown) tool(called, () => text("grown"));

  server.registerResource(`${name}-note`, note, { mimeType: "text/plain" }, (uri) => ({
    contents: [{ uri: uri.href, mimeType: "text/plain", text: `a note of ${name}` }],
  }));
  server.registerPrompt(`${name}-prompt`, { argsSchema: z.object({ topic: z.string() }) }, ({ topic }) => ({
    messages: [{ role: "user", content: { type: "text", text: `Speak of ${topic}.` } }],
  }));
  return server;
};

function endpoint(called, options) {
  const { toNodeHandler } = load("@modelcontextprotocol/node");
  const handler = sdk.createMcpHandler(
    make(called, [], () => handler.notify),
    options,
  );
  return toNodeHandler(handler);
}

if (where === "stdio") {
  load("@modelcontextprotocol/server/stdio").serveStdio(make(name, [], () => null));
} else {
  const endpoints = { "/mcp": endpoint(name), "/modern": endpoint(`${name}_only`, { legacy: "reject" }) };
  const nowhere = (_request, response) => response.writeHead(404).end();
  createServer((request, response) => (endpoints[request.url] ?? nowhere)(request, response)).listen(
    Number(where),
    "127.0.0.1",
  );
}
