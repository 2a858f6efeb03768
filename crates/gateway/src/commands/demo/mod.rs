//! `callward demo`: the same calls with and without the stack, side by side.

mod chaos;
mod naive;

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::time::Duration;

use callward::{Caller, Stack, ToolOutput, ToolServer};
use futures_util::future::join_all;
use serde::Serialize;
use serde_json::{Value, json};

use crate::args::Demo;
use crate::assemble::{self, Running};
use crate::commands::ask::text;
use crate::config::Config;
use crate::error::{AppError, Outcome};
use crate::metrics::Telemetry;
use crate::output::{self, Cell, Column, Table, took};
use crate::record::Recorder;
use crate::sample::{Embedded, SET, columns};
use crate::view::CallView;

/// The stops of the tour: what is shown, the tool, how many calls at once, and their arguments.
const STEPS: [&str; 9] = [
    r#"read an order | get_order | 1 | {"order_id":1}"#,
    r#"the same read again | get_order | 1 | {"order_id":1}"#,
    r#"64 identical slow reads | sales_report | 64 | {"region":"north"}"#,
    r#"set its status | set_status | 1 | {"order_id":1,"status":"shipped"}"#,
    r#"the same set again | set_status | 1 | {"order_id":1,"status":"shipped"}"#,
    r#"read it after that | get_order | 1 | {"order_id":1}"#,
    r#"delete another order | delete_order | 1 | {"order_id":3}"#,
    r#"a read that fails once | get_exchange_rate | 1 | {"from":"EUR","to":"USD"}"#,
    r#"a charge that fails once | charge_card | 1 | {"cents":500,"order_id":2}"#,
];
/// The steps that show the effect of a write on a cached read.
const READS: [usize; 2] = [0, 5];

/// The calls of a step, with and without the stack.
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

pub(crate) async fn run(args: Demo) -> Outcome {
    if args.chaos {
        return chaos::run(args).await;
    }
    let telemetry = Telemetry::exporting(None)?;
    let (with, without) = (Embedded::new()?, Embedded::new()?);
    let config = Config::without_file(Vec::new());
    let servers = with.replica_set()?;
    let Running { stack, startup, .. } =
        assemble::stack_over(&config, Vec::new(), servers, &telemetry)?;
    startup.finished().await;

    if !args.json {
        output::heading("One shop, two servers: a primary (weight 80) and a replica (weight 20).");
        output::heading("The same calls through Callward, and straight to a server.");
        output::line("");
    }
    let mut rows = Vec::new();
    for step in STEPS {
        let row = Row::take(step, &stack, &with, &without).await?;
        if args.json {
            output::json(&row);
        }
        rows.push(row);
    }
    let executions = [&with, &without].map(|shop| shop.orders.executions());
    if args.json {
        let [with, without] = executions;
        output::json(&json!({ "executions": with, "executions_without": without }));
    } else {
        output::table(&Table::of(&COLUMNS, &rows));
        end(&rows, executions);
    }
    Ok(ExitCode::SUCCESS)
}

fn end(rows: &[Row], [with, without]: [u64; 2]) {
    let answer = |at: usize| rows.get(at).map_or("", |row| row.answer.as_str());
    let [before, after] = READS.map(answer);
    output::line("");
    output::line(format_args!(
        "The servers ran {with} calls with Callward, {without} without."
    ));
    output::line(format_args!(
        "Before the write the read said \"{before}\", after it \"{after}\": what is cached is never \
         older than your own write."
    ));
    output::line(
        "The read that fails once was tried again. The charge was not: it had happened, and a retry \
         would have charged twice.",
    );
    output::line("");
    output::heading("Next:");
    output::line(
        "  callward demo --chaos                   calls to servers that fail all the time",
    );
    output::line("  callward serve                          the same sample, for your MCP client");
    output::line("  callward run -- COMMAND ARGS...         your own MCP server behind the stack");
    output::line("  callward explain delete_order -- callward sample");
}

impl Row {
    async fn take(
        step: &'static str,
        stack: &Stack,
        with: &Embedded,
        without: &Embedded,
    ) -> Result<Self, AppError> {
        let [what, tool, calls, arguments] = columns(step);
        let calls = calls.parse().unwrap_or(1);
        let name = format!("{SET}.{tool}");
        let before = with.orders.executions();
        let unrecorded = Recorder::default();
        let one = |_| CallView::make(stack, &unrecorded, &name, arguments, Caller::local(), None);
        let views = join_all((0..calls).map(one)).await;
        let views = views.into_iter().collect::<Result<Vec<_>, _>>()?;
        let executions = with.orders.executions() - before;
        // the way a client without a gateway calls: each call is sent, once
        let before = without.orders.executions();
        let call = stack.prepare(&name, arguments)?;
        let [primary, _] = &without.servers;
        let answers = join_all((0..calls).map(|_| primary.call(call.clone()))).await;
        let answer_without = match answers.into_iter().next() {
            Some(Ok(output)) => gist(&output),
            Some(Err(error)) => format!("error: {}", error.kind()),
            None => String::new(),
        };
        let mut cache = BTreeMap::new();
        for view in &views {
            *cache.entry(view.cache.clone()).or_default() += 1;
        }
        let servers = views.iter().filter_map(|view| view.server.clone());
        let first = views.first();
        Ok(Self {
            what,
            tool,
            calls,
            effect: first.map(|view| view.effect.clone()).unwrap_or_default(),
            servers: servers.collect(),
            cache,
            attempts: views.iter().map(|view| view.attempts).sum(),
            took_us: views.iter().map(|view| view.took_us).max().unwrap_or(0),
            executions,
            answer: first.map(answer).unwrap_or_default(),
            executions_without: without.orders.executions() - before,
            answer_without,
        })
    }
}

fn answer(view: &CallView) -> String {
    match (view.output(), &view.error) {
        (Some(output), _) => gist(&output),
        (None, Some(error)) => format!("error: {}", error["kind"].as_str().unwrap_or_default()),
        (None, None) => String::new(),
    }
}

/// The one member of a result that the tour is about.
fn gist(output: &ToolOutput) -> String {
    let value: Value = output.parse().unwrap_or_default();
    ["status", "rate", "deleted"]
        .iter()
        .find_map(|name| Some(format!("{name} {}", text(value.get(name)?))))
        .unwrap_or_else(|| "ok".into())
}

const COLUMNS: [Column<Row>; 9] = [
    ("call", |row| Cell::plain(row.what)),
    ("effect", |row| Cell::effect(&row.effect)),
    ("server", |row| Cell::plain(servers(row))),
    ("cache", |row| Cell::plain(cache(row))),
    ("attempts", |row| Cell::plain(row.attempts)),
    ("time", |row| {
        Cell::plain(took(Duration::from_micros(row.took_us)))
    }),
    ("result", |row| {
        let failed = row.answer.starts_with("error");
        Cell::warn(if failed { "error" } else { "ok" }, failed)
    }),
    ("ran", |row| Cell::plain(row.executions)),
    ("without", |row| Cell::plain(row.executions_without)),
];

/// The servers' names without what all of them share.
fn servers(row: &Row) -> String {
    let short = |name: &String| {
        name.strip_prefix(SET)
            .map_or(name.as_str(), |rest| rest.trim_start_matches('-'))
            .to_owned()
    };
    let names: Vec<_> = row.servers.iter().map(short).collect();
    match names.is_empty() {
        true => "-".into(),
        false => names.join(", "),
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
