// One hikite process, started from a config and stopped again; and what tests need from the installed packages.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, openSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const cache = process.env.HIKITE_TEST_CACHE;
export const modules = join(cache, "node", "node_modules");
export const load = createRequire(join(modules, "here.js"));
const SECONDS = 30;

export async function until(what, look, seconds = SECONDS) {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > end) throw new Error(`not within ${seconds} s: ${what}`);
    await new Promise((go) => setTimeout(go, 50));
  }
}

export class Gateway {
  static async start(config, environment = {}) {
    const gateway = new Gateway();
    gateway.folder = mkdtempSync(join(tmpdir(), "hikite-ui-"));
    gateway.logFile = join(gateway.folder, "stderr.log");
    const file = join(gateway.folder, "hikite.json");
    writeFileSync(file, JSON.stringify(config, null, 2));
    const log = openSync(gateway.logFile, "w");
    const settings = { PATH: process.env.PATH, HOME: gateway.folder, ...environment };
    const words = ["serve", "--config", file, "--listen", "127.0.0.1:0", "--data", join(gateway.folder, "data")];
    gateway.process = spawn(process.env.HIKITE_BIN, words, { stdio: ["ignore", "ignore", log], env: settings });
    gateway.ended = new Promise((end) => gateway.process.on("exit", end));
    const [, url] = await until("hikite listens", () => gateway.log().match(/listening on (https?:\/\/127\.0\.0\.1:\d+)/));
    gateway.url = url;
    return gateway;
  }

  log() {
    return readFileSync(this.logFile, "utf8");
  }

  /** The link that a new hikite prints. */
  async link() {
    return (await until("the set-up link", () => this.log().match(/https?:\/\/\S+\/setup\?\S+/)))[0];
  }

  get token() {
    return readFileSync(join(this.folder, "data", "token"), "utf8").trim();
  }

  /** The REST API as the owner; the UI can do no more than this. */
  async api(method, path, body) {
    const answer = await fetch(this.url + path, {
      method,
      headers: { authorization: `Bearer ${this.token}`, ...(body && { "content-type": "application/json" }) },
      body: body && JSON.stringify(body),
    });
    const text = await answer.text();
    return { status: answer.status, body: text ? JSON.parse(text) : null };
  }

  async stop() {
    this.process.kill("SIGTERM");
    await this.ended;
  }
}

/** A real MCP client that is connected with a token. */
export async function client(url, token) {
  const { Client } = load("@modelcontextprotocol/sdk/client/index.js");
  const { StreamableHTTPClientTransport } = load("@modelcontextprotocol/sdk/client/streamableHttp.js");
  const one = new Client({ name: "ui-test-client", version: "1" });
  const headers = { authorization: `Bearer ${token}` };
  await one.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
  return one;
}
