//! `callward demo --chaos`: the same calls to failing servers, with the stack and with naive
//! retries, and the executions that the servers counted.
//!
//! The servers are in memory and the clock advances only while all tasks wait, so that hours of
//! outages take seconds.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use callward::retry::RetryConfig;
use callward::{
    Effect, ErrorKind, ReplicaSetId, Server, ServerId, Stack, ToolCall, ToolDefinition, ToolError,
    ToolOutput,
};
use callward_chaos::{Chaos, ChaosServer, Ledger};
use futures_util::future::join_all;
use serde::Serialize;
use serde_json::{Value, json};

use super::naive::{ATTEMPTS, Naive};
use crate::args::Demo;
use crate::commands::on_a_thread;
use crate::error::{AppError, Outcome};
use crate::output::{self, Cell, Column, Table, Tone};
use crate::sample::{self, SET};

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

/// The calls of one tool on one side.
#[derive(Debug, Default, Clone, Copy, Serialize)]
struct Side {
    /// Executions, by the servers' own count.
    executions: u64,
    /// Executions beyond the first of a call.
    repeated: u64,
    /// The same, of calls that are not safe to retry.
    duplicates: u64,
    /// Callers that got a result.
    done: u64,
    /// Callers that got an error.
    errors: u64,
    /// Callers that got `outcome_unknown`, which asks them to check before a retry.
    unknown: u64,
}

#[derive(Debug, Serialize)]
struct Row {
    tool: &'static str,
    effect: Effect,
    calls: u64,
    naive: Side,
    callward: Side,
}

#[derive(Debug, Default, Serialize)]
struct Sum {
    seed: u64,
    calls: u64,
    unsafe_calls: u64,
    naive: Side,
    callward: Side,
}

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
            "{SERVERS} servers that refuse, break off, hang, answer errors, die and come back; {} calls.",
            args.calls
        ));
        output::heading(&format!(
            "Each failure tried again, {ATTEMPTS} attempts; and the same calls through Callward."
        ));
        output::line("");
    }
    let (rows, sum) = rows(args, definitions).await?;
    if args.json {
        rows.iter().for_each(output::json);
        output::json(&sum);
    } else {
        output::table(&table(&rows));
        end(&sum);
    }
    Ok(ExitCode::SUCCESS)
}

async fn rows(args: &Demo, definitions: &[ToolDefinition]) -> Result<(Vec<Row>, Sum), AppError> {
    let (ours, theirs) = (Ledger::new(), Ledger::new());
    let set = ReplicaSetId::new(SET)?;
    let servers = servers(args.seed, definitions, &ours)?;
    let mut retry = RetryConfig::default();
    retry.seed = Some(args.seed);
    let mut builder = Stack::builder().retry(retry);
    for server in &servers {
        builder = builder.server(Server::new(server.clone()).in_set(set.clone()));
    }
    let stack = builder.build().await?;
    let ours_ended = call_all(args, &stack, |call| stack.run(call)).await?;
    settled(&servers).await;
    let servers = self::servers(args.seed, definitions, &theirs)?;
    let naive = Naive::new(servers.clone());
    let naive = |call| naive.call(call);
    let theirs_ended = call_all(args, &stack, naive).await?;
    settled(&servers).await;
    let mut sum = Sum {
        seed: args.seed,
        calls: args.calls,
        ..Sum::default()
    };
    let mut rows = BTreeMap::new();
    for (ended, ledger, is_ours) in [(ours_ended, ours, true), (theirs_ended, theirs, false)] {
        for (call, tool, ended) in ended {
            let plan = stack.prepare(&format!("{SET}.{tool}"), "")?;
            let plan = plan.plan();
            let row = rows.entry(tool).or_insert_with(|| Row {
                tool,
                effect: plan.effect,
                calls: 0,
                naive: Side::default(),
                callward: Side::default(),
            });
            let sides = if is_ours {
                row.calls += 1;
                sum.unsafe_calls += u64::from(row.is_unsafe());
                [&mut row.callward, &mut sum.callward]
            } else {
                [&mut row.naive, &mut sum.naive]
            };
            for side in sides {
                side.add(&ended, ledger.of(call).executions, plan.is_retryable());
            }
        }
    }
    let in_order = |tool| rows.remove(tool);
    Ok((TOOLS.iter().filter_map(in_order).collect(), sum))
}

fn servers(
    seed: u64,
    definitions: &[ToolDefinition],
    ledger: &Ledger,
) -> Result<Vec<ChaosServer>, AppError> {
    let server = |n| {
        let chaos = Chaos::everything(seed.wrapping_mul(SERVERS).wrapping_add(n))
            .with_share(SHARE)
            .with_latency(LATENCY);
        let id = ServerId::new(format!("{SET}-{n}"))?;
        Ok(ChaosServer::new(
            id,
            definitions.to_vec(),
            chaos,
            ledger.clone(),
        ))
    };
    (0..SERVERS).map(server).collect()
}

async fn settled(servers: &[ChaosServer]) {
    for server in servers {
        server.settled().await;
    }
}

/// Makes all calls; returns the outcome of each. Both sides draw the same calls.
async fn call_all<F>(
    args: &Demo,
    stack: &Stack,
    make: impl Fn(ToolCall) -> F,
) -> Result<Vec<(u64, &'static str, Side)>, AppError>
where
    F: Future<Output = Result<ToolOutput, ToolError>>,
{
    let client = async |client: u64| {
        let mut rng = fastrand::Rng::with_seed(args.seed ^ (client << 32));
        let mut ended = Vec::new();
        let mut call = client;
        while call < args.calls {
            let tool = rng.choice(TOOLS).unwrap_or("get_order");
            let prepared = stack.prepare(&format!("{SET}.{tool}"), arguments(call))?;
            ended.push((call, tool, Side::of(&make(prepared).await)));
            tokio::time::sleep(THINKS.mul_f64(rng.f64())).await;
            call += CLIENTS;
        }
        Ok::<_, AppError>(ended)
    };
    let ended = join_all((0..CLIENTS).map(client)).await.into_iter();
    let ended: Result<Vec<_>, AppError> = ended.collect();
    Ok(ended?.into_iter().flatten().collect())
}

/// What any tool of the shop takes, and which call it is.
fn arguments(call: u64) -> String {
    let order: Value = json!({
        "call": call, "order_id": call % 5 + 1, "status": "shipped", "text": "a note", "cents": 500,
    });
    order.to_string()
}

impl Side {
    /// Counts what the caller got.
    fn of(answer: &Result<ToolOutput, ToolError>) -> Self {
        let mut side = Self::default();
        let count = match answer {
            Ok(output) if !output.is_error() => &mut side.done,
            Err(error) if error.kind() == ErrorKind::OutcomeUnknown => &mut side.unknown,
            _ => &mut side.errors,
        };
        *count = 1;
        side
    }

    /// Adds a call that was executed so often.
    fn add(&mut self, call: &Self, executions: u64, repeatable: bool) {
        let repeated = executions.saturating_sub(1);
        self.executions += executions;
        self.repeated += repeated;
        self.duplicates += if repeatable { 0 } else { repeated };
        self.done += call.done;
        self.errors += call.errors;
        self.unknown += call.unknown;
    }
}

impl Row {
    fn is_unsafe(&self) -> bool {
        matches!(self.effect, Effect::Mutating | Effect::Destructive)
    }
}

fn table(rows: &[Row]) -> Table {
    let columns: [Column<(&str, &Row, &Side)>; 9] = [
        ("tool", |(_, row, _)| Cell::plain(row.tool)),
        ("effect", |(_, row, _)| Cell::effect(row.effect.as_str())),
        ("calls", |(_, row, _)| Cell::plain(row.calls)),
        ("by", |(by, ..)| Cell::plain(by)),
        ("ran", |(.., side)| Cell::plain(side.executions)),
        ("duplicates", |(_, row, side)| {
            match (row.is_unsafe(), side.duplicates) {
                // what may be repeated has none
                (false, _) => Cell::plain("-"),
                (true, 0) => Cell::toned(0, Some(Tone::Good)),
                (true, some) => Cell::toned(some, Some(Tone::Bad)),
            }
        }),
        ("done", |(.., side)| Cell::plain(side.done)),
        ("errors", |(.., side)| Cell::plain(side.errors)),
        ("unknown", |(.., side)| Cell::plain(side.unknown)),
    ];
    let mut sides = Vec::new();
    for row in rows {
        sides.extend([("naive", row, &row.naive), ("callward", row, &row.callward)]);
    }
    Table::of(&columns, &sides)
}

fn end(sum: &Sum) {
    output::line("");
    output::line(format_args!(
        "Of {} calls that must not run twice, servers ran {} once more than asked for with naive \
         retries, and {} with Callward.",
        sum.unsafe_calls, sum.naive.duplicates, sum.callward.duplicates
    ));
    output::line(format_args!(
        "{} callers got an unknown outcome from Callward, so that they check before they try \
         again. The same seed ({}) fails the same calls.",
        sum.callward.unknown, sum.seed
    ));
}
