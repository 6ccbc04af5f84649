// An OAuth provider: a page with one button, a code for it, and a token for the code.
import { createServer } from "node:http";

export async function provider() {
  const seen = { tokens: 0 };
  const server = createServer((request, response) => {
    const url = new URL(request.url, "http://provider");
    if (url.pathname === "/authorize") {
      const back = new URL(url.searchParams.get("redirect_uri"));
      back.searchParams.set("code", "the-code");
      back.searchParams.set("state", url.searchParams.get("state"));
      response.setHeader("content-type", "text/html");
      const link = back.href.replaceAll("&", "&amp;");
      response.end(`<!doctype html><html lang="en"><title>Provider</title><a id="allow" href="${link}">Allow</a>`);
    } else if (url.pathname === "/token") {
      seen.tokens += 1;
      response.setHeader("content-type", "application/json");
      const token = { access_token: "at-canary", refresh_token: "rt-canary", token_type: "Bearer", expires_in: 3600 };
      response.end(JSON.stringify(token));
    } else {
      response.statusCode = 404;
      response.end();
    }
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  return { url: `http://127.0.0.1:${server.address().port}`, seen, stop: () => server.close() };
}
