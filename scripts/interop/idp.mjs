// An OAuth authorization server for one resource: `oidc-provider`, with registration of clients.
//
// Usage: idp.mjs PORT RESOURCE
// Whoever comes is `ada` and consents. Access tokens are JWTs for RESOURCE, signed by ES256 for
// clients that have that in their name and by RS256 for others.

import { generateKeyPairSync } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

// It is installed beside the servers, not beside this file.
const require = createRequire(join(process.env.INTEROP_HOME, "package.json"));
const { default: Provider, errors } = await import(pathToFileURL(require.resolve("oidc-provider")));

const [port, RESOURCE] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;
const scope = "tools:read tools:write tools:destroy";

function key(type, options) {
  const { privateKey } = generateKeyPairSync(type, options);
  return { ...privateKey.export({ format: "jwk" }), use: "sig", kid: type };
}

const provider = new Provider(issuer, {
  jwks: { keys: [key("rsa", { modulusLength: 2048 }), key("ec", { namedCurve: "P-256" })] },
  cookies: { keys: ["of the tests"] },
  scopes: ["openid", "offline_access"],
  pkce: { required: () => true },
  interactions: { url: (_, { uid }) => `/interaction/${uid}` },
  findAccount: (_, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
  features: {
    devInteractions: { enabled: false },
    registration: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: (_, resource, client) => {
        if (resource !== RESOURCE) throw new errors.InvalidTarget(`no such resource: ${resource}`);
        const alg = client.clientName?.includes("ES256") ? "ES256" : "RS256";
        return { scope, audience: RESOURCE, accessTokenFormat: "jwt", jwt: { sign: { alg } } };
      },
    },
  },
});

/** Answers a question of the provider for its user. */
async function interact(request, response) {
  const { prompt, params, session } = await provider.interactionDetails(request, response);
  if (prompt.name === "login") {
    const login = { accountId: "ada" };
    return provider.interactionFinished(request, response, { login });
  }
  const grant = new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  grant.addOIDCScope("openid offline_access");
  grant.addResourceScope(RESOURCE, params.scope);
  const consent = { grantId: await grant.save() };
  return provider.interactionFinished(request, response, { consent });
}

const serve = provider.callback();
createServer(async (request, response) => {
  if (request.url.startsWith("/interaction/")) return interact(request, response);
  if (request.url === "/reg") {
    // Clients register with the scope of their first request, which would bind them to it for good.
    let text = "";
    for await (const chunk of request) text += chunk;
    const { scope: _, ...body } = JSON.parse(text);
    request.body = body;
  }
  return serve(request, response);
}).listen(Number(port), "127.0.0.1");
