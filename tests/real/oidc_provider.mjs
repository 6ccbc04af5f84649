// An issuer of OpenID Connect: `oidc-provider` with the pages it brings along, where any name is let in.
//
//   node oidc_provider.mjs PORT REDIRECT_URI
//
// `hikite` is a client whose people log in; `machine` gets tokens for whatever resource it names.
import Provider from "oidc-provider";

const [port, redirect] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;
const provider = new Provider(issuer, {
  clients: [
    { client_id: "hikite", client_secret: "of+hikite/&", redirect_uris: [redirect] },
    {
      client_id: "machine",
      client_secret: "of-machine",
      redirect_uris: [],
      response_types: [],
      grant_types: ["client_credentials"],
    },
  ],
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["preferred_username"] },
  conformIdTokenClaims: false,
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, email: `${id}@example.com`, email_verified: true, preferred_username: id }),
  }),
  pkce: { required: () => true },
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_, resource) => ({
        scope: "read call",
        audience: resource,
        accessTokenFormat: "jwt",
        accessTokenTTL: 600,
      }),
    },
  },
});
provider.listen(Number(port), "127.0.0.1", () => console.log("ready"));
