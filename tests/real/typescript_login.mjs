// Logs in with the TypeScript SDK, lists the tools and makes one call, then once more with a refreshed token.
//
//   node typescript_login.mjs NODE_MODULES '{"sdk", "url", "call"}'
//
// Prints {"authorize": URL} and waits for the query of the callback as a line of JSON on stdin; then prints
// {"tools", "result", "refreshed"}.
import { createInterface } from "node:readline";
import { createRequire } from "node:module";
import { join } from "node:path";

const task = JSON.parse(process.argv[3]);
const load = createRequire(join(process.argv[2], "here.js"));
const sdk =
  task.sdk === "1.x"
    ? {
        ...load("@modelcontextprotocol/sdk/client/index.js"),
        ...load("@modelcontextprotocol/sdk/client/streamableHttp.js"),
        ...load("@modelcontextprotocol/sdk/client/auth.js"),
      }
    : load("@modelcontextprotocol/client");

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const kept = {};
let query;
const provider = {
  redirectUrl: "http://127.0.0.1:33418/callback",
  clientMetadata: {
    client_name: "TypeScript SDK",
    redirect_uris: ["http://127.0.0.1:33418/callback"],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
  },
  state: () => "a-state",
  clientInformation: () => kept.client,
  saveClientInformation: (client) => void (kept.client = client),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => void (kept.tokens = tokens),
  saveCodeVerifier: (verifier) => void (kept.verifier = verifier),
  codeVerifier: () => kept.verifier,
  async redirectToAuthorization(url) {
    console.log(JSON.stringify({ authorize: String(url) }));
    query = JSON.parse((await lines.next()).value);
  },
};

const url = new URL(task.url);
const transport = () => new sdk.StreamableHTTPClientTransport(url, { authProvider: provider });
const client = () => new sdk.Client({ name: "hikite-tests", version: "1" }, { capabilities: {} });

const first = transport();
try {
  await client().connect(first);
  throw new Error("it connected without a login");
} catch (error) {
  if (!(error instanceof sdk.UnauthorizedError)) throw error;
}
await first.finishAuth(query.code, query.iss);

const second = client();
await second.connect(transport());
const tools = (await second.listTools()).tools.map((tool) => tool.name);
const result = await second.callTool(task.call);
await second.close();

// A token that is no longer taken is replaced without a person.
const before = kept.tokens;
kept.tokens = { ...before, access_token: before.access_token.slice(0, -8) + "AAAAAAAA" };
const third = client();
await third.connect(transport());
await third.listTools();
await third.close();
const refreshed =
  kept.tokens.refresh_token !== before.refresh_token && kept.tokens.access_token !== before.access_token;
console.log(JSON.stringify({ tools, result, refreshed }));
process.exit(0);
