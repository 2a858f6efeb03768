// Logs in to the gateway through the OAuth client of a TypeScript SDK, as an agent would, and steps
// up when a call needs more.
//
// Usage: oauth.mjs 1|2 URL
// The number is the SDK's: 1 speaks revisions up to 2025-11-25, 2 speaks 2026-07-28. Prints a line
// a check. INTEROP_DIR is the sandbox of the server `files`; INTEROP_TOKENS is where tokens go, a
// line each.

import { appendFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

// The SDKs are installed beside the servers, not beside this file.
const require = createRequire(join(process.env.INTEROP_HOME, "package.json"));
const [sdk, target] = process.argv.slice(2);
const parts = sdk === "1"
  ? ["sdk/client/index.js", "sdk/client/streamableHttp.js", "sdk/client/auth.js"] : ["client"];
const { Client, StreamableHTTPClientTransport, UnauthorizedError, auth } =
  Object.assign({}, ...parts.map((part) => require(`@modelcontextprotocol/${part}`)));

const DIR = process.env.INTEROP_DIR;
const url = new URL(target);
let failed = 0;

function check(name, right, seen = "") {
  if (!right) failed += 1;
  const shown = typeof seen === "string" ? seen : JSON.stringify(seen) ?? "";
  const line = shown.replaceAll("\n", " ").slice(0, 300);
  console.log(right ? `ok ${name}` : `FAIL ${name}: ${line}`);
}

/** The challenges of the gateway, and what was asked of whom. */
const challenges = [], asked = [];

async function observed(input, init) {
  asked.push({ url: String(input?.url ?? input), body: String(init?.body ?? "") });
  const answer = await fetch(input, init);
  const challenge = answer.headers.get("www-authenticate");
  if (challenge) challenges.push(`${answer.status} ${challenge}`);
  return answer;
}

/** Keeps what a client keeps; its browser follows redirects, and comes back with a code. */
class Provider {
  redirectUrl = "http://127.0.0.1:1/callback";
  clientMetadata = {
    client_name: sdk === "1" ? "SDK 1 (RS256)" : "SDK 2 (ES256)",
    redirect_uris: [this.redirectUrl],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
    application_type: "native",
  };
  cookies = new Map();
  logins = 0;
  clientInformation() { return this.client; }
  saveClientInformation(client) { this.client = client; }
  tokens() { return this.kept; }
  saveTokens(tokens) {
    this.kept = tokens;
    const secrets = [tokens.access_token, tokens.refresh_token].filter(Boolean);
    appendFileSync(process.env.INTEROP_TOKENS, `${secrets.join("\n")}\n`);
  }
  saveCodeVerifier(verifier) { this.verifier = verifier; }
  codeVerifier() { return this.verifier; }
  saveDiscoveryState(state) { this.discovered = state; }
  discoveryState() { return this.discovered; }
  state() { return "of this login"; }

  async redirectToAuthorization(at) {
    this.logins += 1;
    this.started = at;
    let next = at;
    for (let hops = 0; next.pathname !== "/callback"; hops += 1) {
      if (hops === 20) throw new Error(`no end of redirects: ${next}`);
      const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
      const answer = await fetch(next, { redirect: "manual", headers: { cookie } });
      for (const set of answer.headers.getSetCookie()) {
        const [, name, value] = /^([^=]+)=([^;]*)/.exec(set);
        this.cookies.set(name, value);
      }
      const location = answer.headers.get("location");
      if (!location) throw new Error(`no redirect but ${answer.status}: ${await answer.text()}`);
      next = new URL(location, next);
    }
    this.callback = next.searchParams;
  }
}

const provider = new Provider();
const options = { authProvider: provider, fetch: observed };
let client, transport;

/** Connects; until there is a token, that is refused. */
async function connect() {
  transport = new StreamableHTTPClientTransport(url, options);
  client = new Client({ name: "callward-interop-oauth", version: "1" },
    { versionNegotiation: { mode: sdk === "1" ? undefined : "auto" } });
  await client.connect(transport);
}

/** Does something that needs a login first, and then again. */
async function afterLogin(what, again) {
  const refused = await again().then(() => "no error", (error) => error);
  const isUnauthorized = refused instanceof UnauthorizedError;
  check(`${what} needs a login`, isUnauthorized, String(refused));
  if (!isUnauthorized) throw refused;
  const { state } = Object.fromEntries(provider.callback);
  check(`${what}: the login ends with a code`,
    provider.callback.has("code") && state === provider.state(), String(provider.callback));
  await transport.finishAuth(sdk === "1" ? provider.callback.get("code") : provider.callback);
  return again();
}

async function call(name, args) {
  const result = await client.callTool({ name: `files__${name}`, arguments: args });
  if (result.isError) throw new Error(JSON.stringify(result.content));
  return result.content[0].text;
}

const read = () => call("read_text_file", { path: `${DIR}/a.txt` });

function challenged(status, error, scope) {
  const metadata = new URL(`/.well-known/oauth-protected-resource${url.pathname}`, url);
  const named = `resource_metadata="${metadata}"`;
  const scopes = `scope="${scope}"`;
  const expected = { 401: `${named}, ${scopes}`, 403: `${error}, ${scopes}, ${named}` }[status];
  const last = challenges.at(-1);
  check(`the challenge of ${status} names ${scope}`, last === `${status} Bearer ${expected}`, last);
}

try {
  await afterLogin("connecting", connect);
  challenged(401, "", "tools:read");
  const registered = asked.some((one) => one.url.endsWith("/reg"));
  check("the client registers itself", registered, asked.map((one) => one.url));
  const first = Object.fromEntries(provider.started.searchParams);
  check("the login is for the gateway, with PKCE",
    first.resource === target && first.code_challenge_method === "S256", first);
  const redeemed = new URLSearchParams(asked.findLast((one) => one.url.endsWith("/token")).body);
  check("the code is redeemed for the gateway", redeemed.get("resource") === target);
  const header = Buffer.from(provider.kept.access_token.split(".")[0], "base64url");
  const { alg } = JSON.parse(header.toString());
  const { client_name: name } = provider.clientMetadata;
  check("the token is signed as its client wants", name.includes(alg), alg);
  const { tools } = await client.listTools();
  check("all tools are listed", ["read_text_file", "create_directory", "move_file"].every(
    (name) => tools.some((tool) => tool.name === `files__${name}`)), tools.map(({ name }) => name));
  check("a read runs", await read() === "first\n");
  const isModern = asked.findLast((one) => one.url === target).body.includes("2026-07-28");
  check("it speaks the revision of its SDK", isModern === (sdk === "2"));

  const error = 'error="insufficient_scope"';
  const made = `${DIR}/of-sdk-${sdk}`;
  await afterLogin("a write", () => call("create_directory", { path: made }));
  challenged(403, error, "tools:read tools:write");
  const moved = { source: made, destination: `${made}-moved` };
  await afterLogin("a destructive call", () => call("move_file", moved));
  challenged(403, error, "tools:read tools:write tools:destroy");
  const { logins } = provider;
  await read();
  await call("create_directory", { path: made });
  check("a login for more keeps what was granted", provider.logins === logins, challenges.at(-1));

  const scope = "tools:read offline_access";
  const asks = { serverUrl: url, fetchFn: observed };
  await auth(provider, { ...asks, scope, forceReauthorization: true });
  await transport.finishAuth(sdk === "1" ? provider.callback.get("code") : provider.callback);
  const before = provider.kept.access_token;
  const outcome = await auth(provider, asks);
  check("the token is refreshed without a login",
    outcome === "AUTHORIZED" && provider.kept.access_token !== before, outcome);
  check("a read runs with the new token", await read() === "first\n");
} catch (error) {
  check("runs to its end", false, String(error.stack ?? error));
}
await client?.close();
process.exitCode = failed ? 1 : 0;
