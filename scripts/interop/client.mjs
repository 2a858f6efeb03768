// Uses one MCP server through the TypeScript SDK, as an agent would.
//
// Usage: client.mjs SERVER stdio COMMAND ARGS...   or   client.mjs SERVER http URL
// Prints a line a check. INTEROP_DIR is the server's sandbox, INTEROP_PREFIX what stands before
// each tool's name.

import { createRequire } from "node:module";
import { join } from "node:path";

// The SDK is installed beside the servers, not beside this file.
const require = createRequire(join(process.env.INTEROP_HOME, "package.json"));
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
const { StreamableHTTPClientTransport } =
  require("@modelcontextprotocol/sdk/client/streamableHttp.js");
const { ElicitRequestSchema } = require("@modelcontextprotocol/sdk/types.js");

const DIR = process.env.INTEROP_DIR ?? "";
const PREFIX = process.env.INTEROP_PREFIX ?? "";
let failed = 0;

function check(name, right, seen = "") {
  if (!right) failed += 1;
  const shown = (typeof seen === "string" ? seen : JSON.stringify(seen) ?? "").replaceAll("\n", " ");
  console.log(right ? `ok ${name}` : `FAIL ${name}: ${shown.slice(0, 300)}`);
}

let client;

function call(name, args, onprogress) {
  return client.callTool({ name: PREFIX + name, arguments: args }, undefined,
    { timeout: 60_000, onprogress });
}

async function text(name, args) {
  const result = await call(name, args);
  const joined = result.content.map((part) => part.text ?? "").join("\n");
  if (result.isError) throw new Error(`${name}: ${joined}`);
  return joined;
}

async function filesystem() {
  const [a, b] = [`${DIR}/a.txt`, `${DIR}/b.txt`];
  let listing = await text("list_directory", { path: DIR });
  check("list_directory shows the file", listing.includes("a.txt"), listing);
  const first = await text("read_text_file", { path: a });
  const again = await text("read_text_file", { path: a });
  check("read_text_file twice gives the same", first === "first\n" && again === first, [first, again]);
  await text("write_file", { path: a, content: "second\n" });
  let read = await text("read_text_file", { path: a });
  check("a read after write_file is fresh", read === "second\n", read);
  await text("edit_file", { path: a, edits: [{ oldText: "second", newText: "third" }] });
  read = await text("read_text_file", { path: a });
  check("a read after edit_file is fresh", read === "third\n", read);
  await text("move_file", { source: a, destination: b });
  listing = await text("list_directory", { path: DIR });
  check("a listing after move_file is fresh",
    listing.includes("b.txt") && !listing.includes("a.txt"), listing);
  const gone = await call("read_text_file", { path: a });
  check("reading the moved file is an error result", gone.isError === true, gone);
}

async function memory() {
  let graph = await text("read_graph", {});
  check("read_graph is empty at first", !graph.includes("Ada"), graph);
  const ada = { name: "Ada", entityType: "person", observations: ["writes programs"] };
  await text("create_entities", { entities: [ada] });
  graph = await text("read_graph", {});
  check("read_graph after create_entities is fresh", graph.includes("Ada"), graph);
  await text("add_observations", {
    observations: [{ entityName: "Ada", contents: ["met Babbage"] }],
  });
  const found = await text("search_nodes", { query: "Babbage" });
  check("search_nodes after add_observations is fresh", found.includes("Ada"), found);
  await text("delete_entities", { entityNames: ["Ada"] });
  graph = await text("read_graph", {});
  check("read_graph after delete_entities is fresh", !graph.includes("Ada"), graph);
}

async function git() {
  const status = await text("git_status", { repo_path: DIR });
  check("git_status shows the untracked file", status.includes("untracked.txt"), status);
  const log = await text("git_log", { repo_path: DIR, max_count: 5 });
  check("git_log shows the commit", log.includes("the first commit"), log);
  await text("git_add", { repo_path: DIR, files: ["untracked.txt"] });
  const staged = await text("git_status", { repo_path: DIR });
  check("git_status after git_add is fresh", staged.includes("new file"), staged);
}

async function time() {
  const now = await text("get_current_time", { timezone: "UTC" });
  check("get_current_time answers", now.includes("UTC"), now);
  const converted = await text("convert_time",
    { source_timezone: "UTC", time: "12:00", target_timezone: "Asia/Tokyo" });
  check("convert_time answers", converted.includes("21:00"), converted);
}

async function everything() {
  const echoed = await text("echo", { message: "grüße, 世界" });
  check("echo answers", echoed.includes("grüße, 世界"), echoed);
  const summed = await text("get-sum", { a: 2, b: 40 });
  check("get-sum answers", summed.includes("42"), summed);
  const weather = await call("get-structured-content", { location: "Chicago" });
  check("structured content arrives", weather.structuredContent !== undefined, weather);
  const steps = [];
  const result = await call("trigger-long-running-operation", { duration: 1, steps: 4 },
    ({ progress }) => steps.push(progress));
  check("a long operation ends well", result.isError !== true, result);
  const rising = steps.every((step, at) => at === 0 || step > steps[at - 1]);
  check("its progress arrives, rising", steps.length >= 2 && rising, steps);
  try {
    const wrong = await call("get-sum", { a: "two" });
    check("wrong arguments are an error", wrong.isError === true, wrong);
  } catch (error) { // a protocol error is as good an answer
    check("wrong arguments are an error", !/timed out/i.test(error.message), error.message);
  }
}

const scenarios = { filesystem, memory, git, time, everything };
const [server, kind, ...target] = process.argv.slice(2);
client = new Client({ name: "callward-interop-ts", version: "1" },
  { capabilities: { elicitation: { form: {} } } });
// Says yes to whatever is asked: the gateway may ask before a destructive call.
client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
  const fields = Object.entries(params.requestedSchema?.properties ?? {});
  const yes = fields.filter(([, field]) => field.type === "boolean").map(([name]) => [name, true]);
  return { action: "accept", content: Object.fromEntries(yes) };
});
const transport = kind === "http"
  ? new StreamableHTTPClientTransport(new URL(target[0]))
  : new StdioClientTransport({ command: target[0], args: target.slice(1), env: process.env });
try {
  await client.connect(transport, { timeout: 60_000 });
  const { tools } = await client.listTools(undefined, { timeout: 60_000 });
  const mine = tools.filter(({ name }) => name.startsWith(PREFIX));
  check("lists tools", mine.length > 0, tools.map(({ name }) => name));
  await scenarios[server]();
} catch (error) {
  check("runs to its end", false, String(error));
}
await client.close();
process.exitCode = failed ? 1 : 0;
