// Uses each feature of MCP through the TypeScript SDK (1.x in the legacy era, 2.x in the modern
// one); prints a line of JSON for each feature, as `features.py` does.
//
// Usage: features.mjs ERA stdio COMMAND ARGS...   or   features.mjs ERA http URL

import { createRequire } from "node:module";
import { join } from "node:path";

// The SDK is installed beside the servers, not beside this file.
const require = createRequire(join(process.env.INTEROP_HOME, "package.json"));
const [era, kind, ...target] = process.argv.slice(2);
const MODERN = era === "modern";
const SECONDS = 15;
const WATCHED = "test://watched-resource";
const LEVEL = { _meta: { "io.modelcontextprotocol/logLevel": "info" } };
const [logs, notices] = [[], []];

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

function check(right, words) {
  if (!right) throw new Error(words);
}

function sdk() {
  if (MODERN) {
    return {
      ...require("@modelcontextprotocol/client"), ...require("@modelcontextprotocol/client/stdio"),
      named: (method) => method,
    };
  }
  const types = require("@modelcontextprotocol/sdk/types.js");
  const schemas = {
    "sampling/createMessage": types.CreateMessageRequestSchema,
    "elicitation/create": types.ElicitRequestSchema,
    "roots/list": types.ListRootsRequestSchema,
    "notifications/message": types.LoggingMessageNotificationSchema,
    "notifications/tools/list_changed": types.ToolListChangedNotificationSchema,
    "notifications/resources/updated": types.ResourceUpdatedNotificationSchema,
  };
  return {
    ...require("@modelcontextprotocol/sdk/client/index.js"),
    ...require("@modelcontextprotocol/sdk/client/stdio.js"),
    ...require("@modelcontextprotocol/sdk/client/streamableHttp.js"),
    EmptyResultSchema: types.EmptyResultSchema,
    named: (method) => schemas[method],
  };
}

const { Client, StdioClientTransport, StreamableHTTPClientTransport, EmptyResultSchema, named } =
  sdk();

const client = new Client({ name: "callward-features", version: "1" }, {
  capabilities: { sampling: {}, roots: {}, elicitation: { form: {}, url: {} } },
  ...(MODERN && { versionNegotiation: { mode: { pin: "2026-07-28" } } }),
});

function call(name, args = {}, options = undefined, more = {}) {
  const params = { name, arguments: args, ...more };
  return MODERN ? client.callTool(params, options) : client.callTool(params, undefined, options);
}

async function text(name, args, options, more) {
  const result = await call(name, args, options, more);
  const words = result.content.map((part) => part.text ?? "").join("\n");
  check(!result.isError, `isError: ${words}`);
  return words;
}

async function has(tool, wanted, args) {
  const words = await text(tool, args);
  check(words.includes(wanted), `answered ${words}`);
}

// Calls a tool until what it triggers has been seen.
async function repeated(tool, wanted, filter) {
  notices.length = 0;
  const subscription = MODERN ? await client.listen(filter) : undefined;
  try {
    for (let turn = 0; turn < 20; turn += 1) {
      await text(tool, { turn });
      await sleep(300);
      if (notices.includes(wanted)) return;
    }
    throw new Error("no notification");
  } finally {
    await subscription?.close();
  }
}

const features = {
  async tools() {
    check((await client.listTools()).tools.length > 0, "no tool");
    await has("test_simple_text", "simple text");
  },
  async progress() {
    const steps = [];
    await text("test_tool_with_progress", {}, { onprogress: ({ progress }) => steps.push(progress) });
    check(steps.join() === "0,50,100", `progress ${steps}`);
  },
  async prompts() {
    check((await client.listPrompts()).prompts.length > 0, "no prompt");
    const { messages } = await client.getPrompt({ name: "test_simple_prompt" });
    check(messages.length > 0, "no message");
  },
  async resources() {
    check((await client.listResources()).resources.length > 0, "no resource");
    const { contents } = await client.readResource({ uri: "test://static-text" });
    check(contents[0].text, "no text");
  },
  async "resource templates"() {
    const { resourceTemplates } = await client.listResourceTemplates();
    check(resourceTemplates.length > 0, "no template");
    const { contents } = await client.readResource({ uri: "test://template/7/data" });
    check(contents[0].text.includes("ID: 7"), contents[0].text);
  },
  async completion() {
    const ref = { type: "ref/prompt", name: "test_prompt_with_arguments" };
    const { completion } = await client.complete({ ref, argument: { name: "arg1", value: "t" } });
    check(completion.values.length > 0, "no value");
  },
  async logging() {
    logs.length = 0;
    if (!MODERN) await client.setLoggingLevel("info");
    await text("test_tool_with_logging", {}, undefined, MODERN ? LEVEL : {});
    await sleep(300);
    check(logs.length === 3, `${logs.length} messages of 3`);
  },
  sampling: () => has("test_sampling", "a reply", { prompt: "Hi" }),
  "elicitation, form": () => has("test_elicitation", "accept", { message: "?" }),
  "elicitation, URL": () => has("test_elicitation_url", "accept"),
  roots: () => has("test_input_required_result_list_roots", ""),
  async "several rounds"() {
    await has("test_input_required_result_multi_round", "");
    await has("test_input_required_result_multiple_inputs", "");
  },
  async cancellation() {
    const before = Number(await text("test_cancelled_calls", { turn: -1 }));
    const stop = new AbortController();
    const ended = call("test_reconnection", { seconds: 60 }, { signal: stop.signal }).catch(() => {});
    await sleep(500);
    stop.abort();
    await ended;
    // the gateway awaits the answer of a write for 5 s once its client has left
    for (let turn = 0; turn < 40; turn += 1) {
      await sleep(200);
      if (Number(await text("test_cancelled_calls", { turn })) > before) return;
    }
    throw new Error("the server is not notified");
  },
  "lists changed": () =>
    repeated("test_trigger_tool_change", "notifications/tools/list_changed",
      { toolsListChanged: true }),
  async "resource subscriptions"() {
    if (!MODERN) await client.subscribeResource({ uri: WATCHED });
    await repeated("test_trigger_resource_update", `notifications/resources/updated ${WATCHED}`,
      { resourceSubscriptions: [WATCHED] });
    if (!MODERN) await client.unsubscribeResource({ uri: WATCHED });
  },
  tasks: undefined,
  async "unknown method"() {
    // any schema of the kind that the SDK takes: there is no result
    const any = { "~standard": { version: 1, vendor: "none", validate: (value) => ({ value }) } };
    await client.request({ method: "example/unknown", params: {} }, MODERN ? any : EmptyResultSchema);
  },
  "ping, discover": () => (MODERN ? client.discover() : client.ping()),
};

client.setRequestHandler(named("sampling/createMessage"), () =>
  ({ role: "assistant", model: "m", content: { type: "text", text: "a reply" } }));
client.setRequestHandler(named("roots/list"), () =>
  ({ roots: [{ uri: "file:///work", name: "work" }] }));
client.setRequestHandler(named("elicitation/create"), ({ params }) => {
  if (params.mode === "url") return { action: "accept" };
  const fields = Object.entries(params.requestedSchema.properties);
  const content = fields.map(([name, { type }]) => [name, type === "boolean" ? true : "text"]);
  return { action: "accept", content: Object.fromEntries(content) };
});
client.setNotificationHandler(named("notifications/message"), ({ params }) => logs.push(params));
client.setNotificationHandler(named("notifications/tools/list_changed"), ({ method }) =>
  notices.push(method));
client.setNotificationHandler(named("notifications/resources/updated"), ({ method, params }) =>
  notices.push(`${method} ${params.uri}`));

function words(error) {
  // over HTTP, where the status is no 200
  const answer = error.message.match(/\{"jsonrpc".*\}/)?.[0];
  if (answer) return words(JSON.parse(answer).error);
  const said = error.message.replace(/^MCP error -?\d+: /, "");
  return typeof error.code === "number" ? `${error.code} ${said}` : said;
}

const transport = kind === "http"
  ? new StreamableHTTPClientTransport(new URL(target[0]))
  : new StdioClientTransport({ command: target[0], args: target.slice(1), env: process.env });
await client.connect(transport, { timeout: 60_000 });
for (const [feature, use] of Object.entries(features)) {
  let answer = "–";
  if (use) {
    const late = sleep(SECONDS * 1000).then(() => { throw new Error(`no answer in ${SECONDS} s`); });
    answer = await Promise.race([use(), late]).then(() => "yes", words);
    late.catch(() => {});
  }
  console.log(JSON.stringify({ feature, answer }));
}
await client.close();
process.exit();
