// Gives each request to a host a bearer token: for programs that have no option for one.
//
// Usage: node --import bearer.mjs PROGRAM, with BEARER_HOST and BEARER_TOKEN in the environment.

const { BEARER_HOST, BEARER_TOKEN } = process.env;
const { fetch } = globalThis;

globalThis.fetch = (input, init) => {
  const request = new Request(input, init);
  if (new URL(request.url).host === BEARER_HOST) {
    request.headers.set("authorization", `Bearer ${BEARER_TOKEN}`);
  }
  return fetch(request);
};
