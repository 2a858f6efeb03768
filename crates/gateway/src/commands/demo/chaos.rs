//! `callward demo --chaos`: the same calls to failing servers, with the stack and with naive
//! retries, and the executions that the servers counted.
//!
//! The servers are in memory and the clock advances only while all tasks wait, so that hours of
//! outages take seconds.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use callward::retry::RetryConfig;
use callward::{
    Delivery, ErrorKind, ReplicaSetId, Server, ServerId, Stack, ToolCall, ToolDefinition,
    ToolError, ToolOutput, ToolServer,
};
use callward_chaos::{Chaos, ChaosServer, Ledger};
use futures_util::future::try_join_all;
use serde_json::{Value, json};

use crate::args::Demo;
use crate::commands::on_a_thread;
use crate::error::{AppError, Outcome};
use crate::output;
use crate::sample::{self, SET};
use crate::table;

/// How many servers there are, all of one replica set.
const SERVERS: u64 = 3;
/// How many clients call at once.
const CLIENTS: u64 = 40;
/// The longest a client thinks before its next call.
const THINKS: Duration = Duration::from_secs(4);
/// The longest duration of a call without a fault.
const LATENCY: Duration = Duration::from_millis(200);
/// How many calls of a thousand meet a fault, each time they are tried.
const SHARE: u32 = 150;

/// The tools of the shop that are called, equally often.
const TOOLS: [&str; 5] = [
    "get_order",
    "set_status",
    "add_note",
    "charge_card",
    "delete_order",
];

/// The calls of one tool on one side, counted. Executions are by the servers' own count; `repeated`
/// are those beyond the first of a call, and `duplicates` these of calls that are unsafe to retry.
type Side = BTreeMap<&'static str, u64>;

/// The side of all tools together.
const ALL: &str = "";

pub(super) async fn run(args: Demo) -> Outcome {
    let definitions = sample::definitions().await?;
    on_a_thread(move || {
        // what the router draws
        fastrand::seed(args.seed);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .map_err(AppError::io("the runtime does not start"))?;
        runtime.block_on(show(&args, &definitions))
    })
    .await
}

async fn show(args: &Demo, definitions: &[ToolDefinition]) -> Outcome {
    if !args.json {
        output::heading(&format!(
            "{SERVERS} servers that refuse, break off, hang, answer errors, die and come back; {} calls.\n\
             Each failure tried again, {ATTEMPTS} attempts; and the same calls through Callward.\n",
            args.calls
        ));
    }
    let (rows, sum) = rows(args, definitions).await?;
    if args.json {
        rows.iter().for_each(output::json);
        output::json(&sum);
        return Ok(ExitCode::SUCCESS);
    }
    let sides: Vec<_> = rows
        .iter()
        .flat_map(|row| SIDES.map(|by| side(row, by)))
        .collect();
    let columns = "tool effect calls by ran=executions duplicates done errors unknown";
    table::print(columns, &sides);
    let [naive, callward] = SIDES.map(|by| &sum[by]);
    output::line(format_args!(
        "\nOf {} calls that must not run twice, servers ran {} once more than asked for with naive \
         retries, and {} with Callward.",
        sum["unsafe_calls"], naive["duplicates"], callward["duplicates"]
    ));
    output::line(format_args!(
        "{} callers got an unknown outcome from Callward, so that they check before they try \
         again. The same seed ({}) fails the same calls.",
        callward["unknown"], args.seed
    ));
    Ok(ExitCode::SUCCESS)
}

const SIDES: [&str; 2] = ["naive", "callward"];

/// The row of one side; what may be repeated has no duplicates.
fn side(row: &Value, by: &str) -> Value {
    let mut side = row[by].clone();
    side["by"] = by.into();
    for member in ["tool", "effect"] {
        side[member] = row[member].clone();
    }
    if side["unsafe_calls"] == 0 {
        side["duplicates"] = Value::Null;
    }
    side
}

/// Makes all calls on both sides; returns a row for each tool, and the sum.
async fn rows(
    args: &Demo,
    definitions: &[ToolDefinition],
) -> Result<(Vec<Value>, Value), AppError> {
    let set = ReplicaSetId::new(SET)?;
    let (ours, our_ledger) = servers(args.seed, definitions)?;
    let mut retry = RetryConfig::default();
    retry.seed = Some(args.seed);
    let mut builder = Stack::builder().retry(retry);
    for server in &ours {
        builder = builder.server(Server::new(server.clone()).in_set(set.clone()));
    }
    let stack = builder.build().await?;
    let ours = (&ours[..], &our_ledger);
    let callward = call_all(args, &stack, ours, |call| stack.run(call)).await?;
    let (theirs, their_ledger) = servers(args.seed, definitions)?;
    let turn = Cell::default();
    let make = |call| naive(&theirs, &turn, call);
    let naive = call_all(args, &stack, (&theirs, &their_ledger), make).await?;
    let mut rows = Vec::new();
    for tool in TOOLS {
        if let Some(side) = callward.get(tool) {
            rows.push(json!({
                "tool": tool,
                "effect": plan(&stack, tool, String::new())?.plan().effect,
                "calls": side.get("calls"),
                "naive": naive.get(tool),
                "callward": side,
            }));
        }
    }
    let all = callward.get(ALL);
    let sum = json!({
        "seed": args.seed,
        "calls": args.calls,
        "unsafe_calls": all.and_then(|all| all.get("unsafe_calls")),
        "naive": naive.get(ALL),
        "callward": all,
    });
    Ok((rows, sum))
}

fn plan(stack: &Stack, tool: &str, arguments: String) -> Result<ToolCall, ToolError> {
    stack.prepare(&format!("{SET}.{tool}"), arguments)
}

/// Returns new servers, and where they count.
fn servers(
    seed: u64,
    definitions: &[ToolDefinition],
) -> Result<(Vec<ChaosServer>, Ledger), AppError> {
    let ledger = Ledger::new();
    let server = |n| {
        let chaos = Chaos::everything(seed.wrapping_mul(SERVERS).wrapping_add(n))
            .with_share(SHARE)
            .with_latency(LATENCY);
        let id = ServerId::new(format!("{SET}-{n}"))?;
        let tools = definitions.to_vec();
        Ok::<_, AppError>(ChaosServer::new(id, tools, chaos, ledger.clone()))
    };
    let servers: Result<_, _> = (0..SERVERS).map(server).collect();
    Ok((servers?, ledger))
}

/// Makes all calls; returns the counts of each tool, and of all. Both sides draw the same calls.
async fn call_all<F>(
    args: &Demo,
    stack: &Stack,
    (servers, ledger): (&[ChaosServer], &Ledger),
    make: impl Fn(ToolCall) -> F,
) -> Result<BTreeMap<&'static str, Side>, AppError>
where
    F: Future<Output = Result<ToolOutput, ToolError>>,
{
    let client = async |client: u64| {
        let mut rng = fastrand::Rng::with_seed(args.seed ^ (client << 32));
        let mut ended = Vec::new();
        let mut call = client;
        while call < args.calls {
            let tool = rng.choice(TOOLS).unwrap_or("get_order");
            let prepared = plan(stack, tool, arguments(call))?;
            let is_safe = prepared.plan().is_retryable();
            let answer = make(prepared).await;
            let is_done = answer.as_ref().is_ok_and(|output| !output.is_error());
            // it asks the caller to check before a retry
            let is_unknown = answer.is_err_and(|error| error.kind == ErrorKind::OutcomeUnknown);
            ended.push((call, tool, is_safe, is_done, is_unknown));
            tokio::time::sleep(THINKS.mul_f64(rng.f64())).await;
            call += CLIENTS;
        }
        Ok::<_, AppError>(ended)
    };
    let ended = try_join_all((0..CLIENTS).map(client)).await?;
    for server in servers {
        server.settled().await;
    }
    let mut sides = BTreeMap::new();
    for (call, tool, is_safe, is_done, is_unknown) in ended.into_iter().flatten() {
        let executions = ledger.of(call).executions;
        let repeated = executions.saturating_sub(1);
        let counts = [
            ("calls", 1),
            ("unsafe_calls", u64::from(!is_safe)),
            ("executions", executions),
            ("repeated", repeated),
            ("duplicates", if is_safe { 0 } else { repeated }),
            ("done", u64::from(is_done)),
            ("errors", u64::from(!is_done && !is_unknown)),
            ("unknown", u64::from(is_unknown)),
        ];
        for key in [tool, ALL] {
            let side: &mut Side = sides.entry(key).or_default();
            for (what, count) in counts {
                *side.entry(what).or_default() += count;
            }
        }
    }
    Ok(sides)
}

/// What any tool of the shop takes, and which call it is.
fn arguments(call: u64) -> String {
    let order: Value = json!({
        "call": call, "order_id": call % 5 + 1, "status": "shipped", "text": "a note", "cents": 500,
    });
    order.to_string()
}

/// How often each call is tried.
const ATTEMPTS: u32 = 3;
/// How long one attempt may take: as long as with the stack.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The pause before the first retry; each further one is twice as long.
const PAUSE: Duration = Duration::from_millis(500);

/// Calls the next server in turn, and retries any error.
async fn naive(
    servers: &[ChaosServer],
    turn: &Cell<usize>,
    call: ToolCall,
) -> Result<ToolOutput, ToolError> {
    let late = || ToolError::new(ErrorKind::Timeout, Delivery::Unknown, "no answer in time");
    let mut pause = PAUSE;
    for attempt in 1.. {
        let server = servers.get(turn.get() % servers.len().max(1));
        turn.set(turn.get() + 1);
        let answer = tokio::time::timeout(TIMEOUT, server.ok_or_else(late)?.call(call.clone()));
        let answer = answer.await.unwrap_or_else(|_| Err(late()));
        if answer.is_ok() || attempt == ATTEMPTS {
            return answer;
        }
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
    Err(late())
}
