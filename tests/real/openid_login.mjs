// A strict OAuth client that knows nothing of MCP: openid-client. Discovers, registers, logs in with PKCE, refreshes,
// revokes.
//
//   node openid_login.mjs NODE_MODULES '{"issuer", "resource"}'
//
// Prints {"authorize": URL}, waits for the address of the callback as a line of JSON on stdin, and prints what it got.
import { createInterface } from "node:readline";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const task = JSON.parse(process.argv[3]);
const load = createRequire(join(process.argv[2], "here.js"));
const oauth = await import(pathToFileURL(load.resolve("openid-client")).href);

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const redirect_uri = "http://127.0.0.1:33419/callback";
const config = await oauth.dynamicClientRegistration(
  new URL(task.issuer),
  { client_name: "openid-client", redirect_uris: [redirect_uri], token_endpoint_auth_method: "none" },
  oauth.None(),
  { execute: [oauth.allowInsecureRequests], algorithm: "oauth2" },
);
const verifier = oauth.randomPKCECodeVerifier();
const state = oauth.randomState();
const url = oauth.buildAuthorizationUrl(config, {
  redirect_uri,
  scope: "read call",
  code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
  code_challenge_method: "S256",
  resource: task.resource,
  state,
});
console.log(JSON.stringify({ authorize: url.href }));
const back = new URL(JSON.parse((await lines.next()).value));
const checks = { pkceCodeVerifier: verifier, expectedState: state };
const tokens = await oauth.authorizationCodeGrant(config, back, checks, { resource: task.resource });
const newer = await oauth.refreshTokenGrant(config, tokens.refresh_token, { resource: task.resource });
const use = (token) =>
  oauth.fetchProtectedResource(config, token, new URL(`${task.issuer}/v1/me`), "GET").then((answer) => answer.json());
const me = await use(newer.access_token);
await oauth.tokenRevocation(config, newer.refresh_token);
const after = await fetch(`${task.issuer}/v1/me`, { headers: { authorization: `Bearer ${newer.access_token}` } });
console.log(JSON.stringify({ me, scope: tokens.scope, after: after.status, expires: tokens.expires_in }));
process.exit(0);
