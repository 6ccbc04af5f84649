// A client for the conformance suite on either line of the TypeScript SDK.
//
//   MCP_CONFORMANCE_SCENARIO=tools_call node typescript_client.mjs NODE_MODULES 1|2 URL
//
// With HIKITE_STDIO (a command as a JSON list) the server is that program instead of the address.
import { createRequire } from "node:module";
import { join } from "node:path";

const [modules, line, url] = process.argv.slice(2);
const load = createRequire(join(modules, "here.js"));
const isOld = line === "1";
const sdk = isOld
  ? {
      ...load("@modelcontextprotocol/sdk/client/index.js"),
      ...load("@modelcontextprotocol/sdk/client/streamableHttp.js"),
      ...load("@modelcontextprotocol/sdk/client/stdio.js"),
      ...load("@modelcontextprotocol/sdk/types.js"),
    }
  : { ...load("@modelcontextprotocol/client"), ...load("@modelcontextprotocol/client/stdio") };

const scenario = process.env.MCP_CONFORMANCE_SCENARIO;
const isModern = !isOld && process.env.MCP_CONFORMANCE_PROTOCOL_VERSION === "2026-07-28";

// Who is asked says yes; for fields that have a default the SDK fills it in.
const client = new sdk.Client(
  { name: `typescript-${line}`, version: "1" },
  {
    capabilities: { elicitation: { form: { applyDefaults: true } } },
    ...(!isOld && { versionNegotiation: { mode: isModern ? "auto" : "legacy" } }),
  },
);
client.setRequestHandler(isOld ? sdk.ElicitRequestSchema : "elicitation/create", ({ params }) => {
  const fields = Object.entries(params.requestedSchema.properties);
  const open = fields.filter(([, field]) => !("default" in field)).map(([name]) => [name, true]);
  return { action: "accept", content: Object.fromEntries(open) };
});

const call = (name, args = {}) => client.callTool({ name, arguments: args });
const SAMPLES = { integer: 0, number: 0, boolean: false, object: {}, array: [] };
const sample = ({ inputSchema }) =>
  Object.fromEntries((inputSchema.required ?? []).map((name) => [name, SAMPLES[inputSchema.properties?.[name]?.type] ?? "x"]));
// Refusals are what some scenarios are about.
const attempt = (name, args) => call(name, args).catch((error) => console.error(`${name}: ${error.message}`));

const plans = {
  initialize: () => {},
  "json-schema-ref-no-deref": () => {},
  tools_call: () => call("add_numbers", { a: 5, b: 3 }),
  "request-metadata": () => call("add_numbers", { a: 5, b: 3 }),
  "sse-retry": () => call("test_reconnection"),
  "elicitation-sep1034-client-defaults": () => call("test_client_elicitation_defaults"),
  async "sep-2322-client-request-state"() {
    for (const name of ["echo_state", "unrelated", "no_state", "no_result_type"]) await call(`test_mrtr_${name}`);
  },
  "json-schema-2020-12-preservation": (tools) =>
    call("json_schema_echo", { schema: tools.find(({ name }) => name === "json_schema_2020_12_tool").inputSchema }),
  async "http-invalid-tool-headers"(tools) {
    for (const tool of tools) await attempt(tool.name, sample(tool));
  },
  async "http-custom-headers"(tools) {
    const { toolCalls } = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT);
    for (const { name, arguments: args } of toolCalls)
      if (tools.some((tool) => tool.name === name)) await attempt(name, args);
  },
  async "http-standard-headers"(tools) {
    if (tools[0]) await call(tools[0].name, sample(tools[0]));
    const { resources } = await client.listResources();
    if (resources[0]) await client.readResource({ uri: resources[0].uri });
    const { prompts } = await client.listPrompts();
    if (prompts[0]) await client.getPrompt({ name: prompts[0].name });
  },
};

function transport() {
  if (!process.env.HIKITE_STDIO) return new sdk.StreamableHTTPClientTransport(new URL(url));
  const [command, ...args] = JSON.parse(process.env.HIKITE_STDIO);
  return new sdk.StdioClientTransport({ command, args, env: process.env, stderr: "inherit" });
}

await client.connect(transport());
const { tools } = await client.listTools();
await plans[scenario](tools);
await client.close();
