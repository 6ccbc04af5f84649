// The same calls by the TypeScript SDK, in turns: all at once at their server, and as one batch through hikite.
//
//   node typescript.mjs NODE_MODULES SERVER_URL HIKITE_URL CALLS SECONDS
//
// Prints {"direct", "batch"}: the milliseconds of each turn.
import assert from "node:assert";
import { createRequire } from "node:module";
import { join } from "node:path";

const WARM_UP = 5;
const [modules, server, hikite, count, seconds] = process.argv.slice(2);
const load = createRequire(join(modules, "here.js"));
const { Client } = load("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = load("@modelcontextprotocol/sdk/client/streamableHttp.js");

async function connect(url) {
  const client = new Client({ name: "bench", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return client;
}

const numbers = [...Array(Number(count)).keys()];
const text = (number) => `marker-${number}`;
const commands = numbers.map((number) => ({
  id: `t${number}`,
  module: "bench",
  tool: "echo",
  params: { text: text(number) },
  raw_output: true,
}));

const direct = await connect(server);
const gateway = await connect(hikite);
const sides = {
  direct: async () => {
    const echo = (number) => direct.callTool({ name: "echo", arguments: { text: text(number) } });
    const results = await Promise.all(numbers.map(echo));
    return results.map((result) => result.content[0].text);
  },
  batch: async () => {
    const result = await gateway.callTool({ name: "batch", arguments: { commands } });
    return result.structuredContent.tasks.map((task) => task.result);
  },
};

const times = { direct: [], batch: [] };
const expected = numbers.map(text);
const until = performance.now() + Number(seconds) * 1000;
for (let turn = 0; turn < 2 * WARM_UP || performance.now() < until; turn += 1) {
  for (const [name, run] of Object.entries(sides)) {
    const started = performance.now();
    const seen = await run();
    const took = performance.now() - started;
    assert.deepStrictEqual(seen, expected);
    if (turn >= WARM_UP) times[name].push(took);
  }
}
console.log(JSON.stringify(times));
process.exit(0);
