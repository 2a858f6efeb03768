// NeuroLink has no MCP server of its own for the tools of others. This front reads a request, calls
// `executeTool`, and writes the answer: JSON-RPC over HTTP, without sessions, as little as there can be.
//
//   node front.mjs PORT UPSTREAM[,UPSTREAM] [cache]

import http from "node:http";
import { NeuroLink } from "@juspay/neurolink";

const [port, upstreams, cache] = process.argv.slice(2);
// What it logs while it works would be counted as its work.
for (const level of ["log", "info", "debug", "warn"]) console[level] = () => {};

const neurolink = new NeuroLink(cache ? { mcp: { cache: { enabled: true, maxSize: 100_000 } } } : {});
for (const [place, url] of upstreams.split(",").entries()) {
  const name = `up${place}`;
  const added = await neurolink.addExternalMCPServer(name, {
    id: name,
    name,
    description: "the upstream",
    transport: "http",
    status: "initializing",
    tools: [],
    url,
    // The default is 60 calls a minute, which would be all there is to see.
    rateLimiting: { requestsPerMinute: 1e9, maxBurst: 1e9 },
  });
  if (!added.success) throw new Error(added.error);
}

const tools = neurolink.getExternalMCPTools().map((tool) => ({
  name: tool.name,
  description: tool.description,
  inputSchema: tool.inputSchema ?? { type: "object" },
  ...(tool.annotations && { annotations: tool.annotations }),
}));

function asResult(value) {
  if (Array.isArray(value?.content)) return value;
  const text = typeof value === "string" ? value : JSON.stringify(value ?? null);
  return { content: [{ type: "text", text }] };
}

async function answer(message) {
  switch (message.method) {
    case "initialize":
      return {
        protocolVersion: "2025-11-25",
        capabilities: { tools: {} },
        serverInfo: { name: "neurolink-front", version: "1" },
      };
    case "tools/list":
      return { tools };
    case "tools/call":
      try {
        const { name, arguments: args } = message.params;
        return asResult(await neurolink.executeTool(name, args));
      } catch (error) {
        return { content: [{ type: "text", text: String(error?.message ?? error) }], isError: true };
      }
    default:
      return {};
  }
}

http
  .createServer((request, response) => {
    if (request.method !== "POST") return void response.writeHead(405).end();
    const parts = [];
    request.on("data", (part) => parts.push(part));
    request.on("end", async () => {
      const message = JSON.parse(Buffer.concat(parts));
      if (message.id === undefined) return void response.writeHead(202).end();
      const result = await answer(message);
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ jsonrpc: "2.0", id: message.id, result }));
    });
  })
  .listen(Number(port), "127.0.0.1");
