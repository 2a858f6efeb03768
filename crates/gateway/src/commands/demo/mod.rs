//! `callward demo`: the same calls with the stack and without it, side by side.

mod chaos;
mod naive;

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::time::Duration;

use callward::{Caller, Stack, ToolCall, ToolError, ToolOutput, ToolServer};
use futures_util::future::join_all;
use serde::Serialize;
use serde_json::{Value, json};

use crate::args::Demo;
use crate::assemble::{self, Running};
use crate::config::Config;
use crate::error::{AppError, Outcome};
use crate::metrics::Telemetry;
use crate::output::{Cell, Screen, Table, took};
use crate::record::Recorder;
use crate::sample::{Embedded, SET};
use crate::view::CallView;

/// How long the embedded servers may take to connect; they need a few milliseconds.
const CONNECT: Duration = Duration::from_secs(10);
/// How many identical calls are made at once.
const MANY: usize = 64;

/// The stops that show what a write does to a cached read.
const FIRST_READ: &str = "read an order";
const LAST_READ: &str = "read it after that";

/// One stop of the tour.
struct Step {
    what: &'static str,
    tool: &'static str,
    arguments: Value,
    times: usize,
}

/// The calls of a stop, with the stack and without it.
#[derive(Debug, Serialize)]
struct Row {
    what: &'static str,
    tool: &'static str,
    calls: usize,
    effect: String,
    servers: BTreeSet<String>,
    cache: BTreeMap<String, usize>,
    attempts: u32,
    took_us: u64,
    executions: u64,
    answer: String,
    executions_without: u64,
    answer_without: String,
}

#[derive(Debug, Serialize)]
struct Sum {
    executions: u64,
    executions_without: u64,
}

fn steps() -> Vec<Step> {
    let step = |what, tool, arguments| Step {
        what,
        tool,
        arguments,
        times: 1,
    };
    vec![
        step(FIRST_READ, "get_order", json!({ "order_id": 1 })),
        step("the same read again", "get_order", json!({ "order_id": 1 })),
        Step {
            what: "64 identical slow reads",
            tool: "sales_report",
            arguments: json!({ "region": "north" }),
            times: MANY,
        },
        step(
            "set its status",
            "set_status",
            json!({ "order_id": 1, "status": "shipped" }),
        ),
        step(
            "the same set again",
            "set_status",
            json!({ "order_id": 1, "status": "shipped" }),
        ),
        step(LAST_READ, "get_order", json!({ "order_id": 1 })),
        step(
            "delete another order",
            "delete_order",
            json!({ "order_id": 3 }),
        ),
        step(
            "a read that fails once",
            "get_exchange_rate",
            json!({ "from": "EUR", "to": "USD" }),
        ),
        step(
            "a charge that fails once",
            "charge_card",
            json!({ "order_id": 2, "cents": 500 }),
        ),
    ]
}

pub(crate) async fn run(args: Demo, screen: &Screen) -> Outcome {
    if args.chaos {
        return chaos::run(args, screen).await;
    }
    let telemetry = Telemetry::new()?;
    let with = Embedded::start(&telemetry).await?;
    let config = Config::without_file(Vec::new());
    let Running { stack, startup, .. } = assemble::stack_over(
        &config,
        with.upstreams.to_vec(),
        with.servers()?,
        &telemetry,
    )?;
    startup.finished().await;
    let without = Embedded::start(&telemetry).await?;
    for upstream in &without.upstreams {
        upstream.ready(CONNECT).await?;
    }

    if !args.json {
        screen
            .heading("One shop, two MCP servers: a primary (weight 80) and a replica (weight 20).");
        screen.heading("The same calls through Callward, and straight to a server.");
        screen.out("");
    }
    let mut rows = Vec::new();
    for step in steps() {
        let row = Row::take(&step, &stack, &with, &without).await?;
        if args.json {
            screen.json(&row);
        }
        rows.push(row);
    }
    let sum = Sum {
        executions: with.orders.executions(),
        executions_without: without.orders.executions(),
    };
    if args.json {
        screen.json(&sum);
    } else {
        screen.table(&table(&rows));
        end(&rows, &sum, screen);
    }
    Ok(ExitCode::SUCCESS)
}

fn end(rows: &[Row], sum: &Sum, screen: &Screen) {
    let answer = |what: &str| {
        rows.iter()
            .find(|row| row.what == what)
            .map_or("", |row| row.answer.as_str())
    };
    screen.out("");
    screen.out(format_args!(
        "The servers ran {} calls with Callward, {} without.",
        sum.executions, sum.executions_without
    ));
    screen.out(format_args!(
        "Before the write the read said \"{}\", after it \"{}\": what is cached is never older than \
         your own write.",
        answer(FIRST_READ),
        answer(LAST_READ)
    ));
    screen.out(
        "The read that fails once was tried again. The charge was not: it had happened, and a retry \
         would have charged twice.",
    );
    screen.out("");
    screen.heading("Next:");
    screen.out("  callward demo --chaos                   calls to servers that fail all the time");
    screen.out("  callward serve                          the same sample, for your MCP client");
    screen.out("  callward run -- COMMAND ARGS...         your own MCP server behind the stack");
    screen.out("  callward explain delete_order -- callward sample");
}

impl Row {
    async fn take(
        step: &Step,
        stack: &Stack,
        with: &Embedded,
        without: &Embedded,
    ) -> Result<Self, AppError> {
        let name = format!("{SET}.{}", step.tool);
        let arguments = step.arguments.to_string();
        let before = with.orders.executions();
        let unrecorded = Recorder::default();
        let one = || {
            let caller = Caller::local();
            CallView::make(stack, &unrecorded, &name, arguments.clone(), caller, None)
        };
        let views = join_all((0..step.times).map(|_| one())).await;
        let views = views.into_iter().collect::<Result<Vec<_>, _>>()?;
        let executions = with.orders.executions() - before;

        let before = without.orders.executions();
        let answer_without =
            straight(step, stack.prepare(&name, arguments.clone())?, without).await;
        let mut cache = BTreeMap::new();
        for view in &views {
            *cache.entry(view.cache.clone()).or_default() += 1;
        }
        Ok(Self {
            what: step.what,
            tool: step.tool,
            calls: step.times,
            effect: views
                .first()
                .map(|view| view.effect.clone())
                .unwrap_or_default(),
            servers: views
                .iter()
                .filter_map(|view| view.server.clone())
                .collect(),
            cache,
            attempts: views.iter().map(|view| view.attempts).sum(),
            took_us: views
                .iter()
                .map(|view| view.took_us)
                .max()
                .unwrap_or_default(),
            executions,
            answer: views.first().map(answer).unwrap_or_default(),
            executions_without: without.orders.executions() - before,
            answer_without,
        })
    }
}

/// Makes a stop's calls the way a client without a gateway does: each is sent, once.
async fn straight(step: &Step, call: ToolCall, without: &Embedded) -> String {
    let [primary, _] = &without.upstreams;
    let answers = join_all((0..step.times).map(|_| primary.call(call.clone()))).await;
    match answers.into_iter().next() {
        Some(Ok(output)) => gist(&output),
        Some(Err(error)) => failure(&error),
        None => String::new(),
    }
}

fn answer(view: &CallView) -> String {
    match (view.output(), &view.error) {
        (Some(output), _) => gist(&output),
        (None, Some(error)) => format!("error: {}", error["kind"].as_str().unwrap_or_default()),
        (None, None) => String::new(),
    }
}

fn failure(error: &ToolError) -> String {
    format!("error: {}", error.kind())
}

/// The one member of a result that the tour is about.
fn gist(output: &ToolOutput) -> String {
    let value: Value = output.parse().unwrap_or_default();
    ["status", "rate", "deleted"]
        .iter()
        .find_map(|name| Some(format!("{name} {}", plain(value.get(name)?))))
        .unwrap_or_else(|| "ok".into())
}

fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(&[
        "call", "effect", "server", "cache", "attempts", "time", "result", "ran", "without",
    ]);
    for row in rows {
        let failed = row.answer.starts_with("error");
        table.row(vec![
            Cell::plain(row.what),
            Cell::effect(&row.effect),
            Cell::plain(servers(row)),
            Cell::plain(cache(row)),
            Cell::plain(row.attempts),
            Cell::plain(took(Duration::from_micros(row.took_us))),
            Cell::warn(if failed { "error" } else { "ok" }, failed),
            Cell::plain(row.executions),
            Cell::plain(row.executions_without),
        ]);
    }
    table
}

/// The servers' names without what all of them share.
fn servers(row: &Row) -> String {
    let short = |name: &String| {
        name.strip_prefix(SET)
            .map_or(name.as_str(), |rest| rest.trim_start_matches('-'))
            .to_owned()
    };
    let names: Vec<_> = row.servers.iter().map(short).collect();
    if names.is_empty() {
        "-".into()
    } else {
        names.join(", ")
    }
}

/// The word alone for one call; words with counts for many.
fn cache(row: &Row) -> String {
    let words = row.cache.iter().map(|(word, count)| match row.calls {
        1 => word.clone(),
        _ => format!("{count} {word}"),
    });
    words.collect::<Vec<_>>().join(", ")
}
