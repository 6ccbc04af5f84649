// Holds the conversation of talk.py with the TypeScript SDK, and prints the same record.
//
//   node typescript_talk.mjs NODE_MODULES < {"sdk", "mode", "url", "headers" | "command", "args", "env", "steps"}
//
// `sdk` is "1.x" (@modelcontextprotocol/sdk) or "2.x" (@modelcontextprotocol/client, whose `mode` is
// "auto" or "legacy"). Prints {"revision", "records"} as JSON.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const LOG_LEVEL = "io.modelcontextprotocol/logLevel";
const LIST_SECONDS = 30;
const HEAR_SECONDS = 8;

const task = JSON.parse(readFileSync(0, "utf8"));
const load = createRequire(join(process.argv[2], "here.js"));
const is_old = task.sdk === "1.x";
const sdk = is_old
  ? {
      ...load("@modelcontextprotocol/sdk/client/index.js"),
      ...load("@modelcontextprotocol/sdk/client/streamableHttp.js"),
      ...load("@modelcontextprotocol/sdk/client/stdio.js"),
      ...load("@modelcontextprotocol/sdk/types.js"),
    }
  : { ...load("@modelcontextprotocol/client"), ...load("@modelcontextprotocol/client/stdio") };

const client = new sdk.Client(
  { name: "hikite-tests", version: "1" },
  {
    capabilities: { elicitation: {}, sampling: {}, roots: {} },
    ...(!is_old && { versionNegotiation: { mode: task.mode } }),
  },
);

let record = newRecord();
function newRecord() {
  return { asked: [], progress: [], logs: [], events: [] };
}

// The older SDK names a message by its schema, the newer one by its method.
const named = (method, schema) => (is_old ? sdk[schema] : method);

client.setRequestHandler(named("elicitation/create", "ElicitRequestSchema"), ({ params }) => {
  record.asked.push(params.message);
  const known = { name: "Ada", check: true, integer: 7 };
  const wanted = Object.keys(params.requestedSchema.properties).filter((key) => key in known);
  return { action: "accept", content: Object.fromEntries(wanted.map((key) => [key, known[key]])) };
});
client.setRequestHandler(named("sampling/createMessage", "CreateMessageRequestSchema"), ({ params }) => {
  const content = params.messages[0].content;
  record.asked.push((Array.isArray(content) ? content[0] : content).text);
  return { role: "assistant", content: { type: "text", text: "blue" }, model: "a-model", stopReason: "endTurn" };
});
client.setRequestHandler(named("roots/list", "ListRootsRequestSchema"), () => {
  record.asked.push("roots");
  return { roots: [{ uri: "file:///somewhere/work", name: "work" }] };
});
client.setNotificationHandler(named("notifications/message", "LoggingMessageNotificationSchema"), ({ params }) => {
  record.logs.push([params.level, params.data]);
});
client.setNotificationHandler(named("notifications/tools/list_changed", "ToolListChangedNotificationSchema"), () => {
  record.events.push("tools");
});
client.setNotificationHandler(
  named("notifications/resources/updated", "ResourceUpdatedNotificationSchema"),
  ({ params }) => {
    record.events.push(params.uri);
  },
);

const transport = task.url
  ? new sdk.StreamableHTTPClientTransport(new URL(task.url), { requestInit: { headers: task.headers } })
  : new sdk.StdioClientTransport({ command: task.command, args: task.args, env: task.env, stderr: "ignore" });
await client.connect(transport);
const revision = client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion ?? "unknown";
const is_modern = revision.startsWith("2026");

async function until(condition, seconds) {
  for (const from = Date.now(); !(await condition()) && Date.now() - from < seconds * 1000; ) await sleep(50);
}

async function listTools() {
  const names = [];
  let cursor;
  do {
    const page = await client.request(
      { method: "tools/list", params: cursor ? { cursor } : {} },
      ...(is_old ? [sdk.ListToolsResultSchema] : []),
    );
    names.push(...page.tools.map((tool) => tool.name));
    cursor = page.nextCursor;
  } while (cursor);
  return names;
}

async function call({ call: name, arguments: args = {}, level, progress }) {
  const params = { name, arguments: args };
  if (level && is_modern) params._meta = { [LOG_LEVEL]: level };
  if (level && !is_modern) await client.setLoggingLevel(level);
  const onprogress = (step) => record.progress.push([step.progress, step.total, step.message]);
  const options = progress ? { onprogress } : {};
  const result = await (is_old ? client.callTool(params, undefined, options) : client.callTool(params, options));
  const words = result.content.map((block) => block.text).join("\n");
  return result.isError ? { error: words } : { text: words };
}

const kinds = {
  async list({ list: expected }) {
    let tools = [];
    const isThere = async () => {
      tools = await listTools();
      return expected.every((name) => tools.includes(name));
    };
    await until(isThere, LIST_SECONDS);
    return { tools };
  },

  async call(step) {
    const outcome = await call(step);
    await until(() => record.logs.length >= (step.awaits ?? 0), HEAR_SECONDS);
    return outcome;
  },

  async read({ read: uri }) {
    return { text: (await client.readResource({ uri })).contents[0].text };
  },

  async prompt({ prompt: name, arguments: args }) {
    return { text: (await client.getPrompt({ name, arguments: args })).messages[0].content.text };
  },

  // Listens for the tool list and one resource while some calls are made.
  async hear({ hear: uri, calls, awaits }) {
    const filter = { toolsListChanged: true, resourceSubscriptions: [uri] };
    const subscription = is_modern && (await client.listen(filter));
    if (!is_modern) await client.subscribeResource({ uri });
    const texts = [];
    for (const step of calls) texts.push(await call(step));
    await until(() => awaits.every((event) => record.events.includes(event)), HEAR_SECONDS);
    if (subscription) await subscription.close();
    else await client.unsubscribeResource({ uri });
    return { texts, ...(subscription && { honored: subscription.honoredFilter }) };
  },
};

const records = {};
for (const step of task.steps) {
  record = newRecord();
  const kind = Object.keys(kinds).find((key) => key in step);
  let outcome;
  try {
    outcome = await kinds[kind](step);
  } catch (error) {
    outcome = { error: String(error) };
  }
  records[step.id] = { ...record, ...outcome };
}
console.log(JSON.stringify({ revision, records }));
await client.close();
