//! `callward demo`: the same calls with and without the stack, side by side.

mod approvals;
mod chaos;

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use callward::approval::ApprovalLayer;
use callward::{Stack, ToolServer};
use futures_util::future::try_join_all;
use serde_json::{Value, json};

use crate::api::Remote;
use crate::args::Demo;
use crate::assemble;
use crate::config::Config;
use crate::error::{AppError, Outcome};
use crate::metrics::Telemetry;
use crate::output;
use crate::record::Recorder;
use crate::runtime::Runtime;
use crate::sample::{Embedded, SET};
use crate::shutdown::Stop;
use crate::table::{self, shown, split};

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

pub(crate) async fn run(args: Demo) -> Outcome {
    if args.chaos {
        return chaos::run(args).await;
    }
    if args.approvals {
        return approvals::run(&args).await;
    }
    let telemetry = Telemetry::exporting(None)?;
    let (with, without) = (Embedded::new()?, Embedded::new()?);
    let config = Config::without_file(Vec::new());
    let (set, asks) = (with.replica_set()?, ApprovalLayer::default());
    let running = assemble::stack_over(&config, Vec::new(), set, &telemetry, asks)?;
    let recorder = Recorder::default();
    let runtime = Runtime::new(&config, running, telemetry, recorder, Stop::default(), None);
    let remote = Remote::here(runtime.clone())?;
    if !args.json {
        output::heading("One shop, two servers: a primary (weight 80) and a replica (weight 20).");
        output::heading("The same calls through Callward, and straight to a server.");
        output::line("");
    }
    let mut rows = Vec::new();
    for step in STEPS {
        let row = take(step, &remote, &runtime.stack, [&with, &without]).await?;
        if args.json {
            output::json(&row);
        }
        rows.push(row);
    }
    let [with, without] = [&with, &without].map(|shop| shop.orders.executions());
    if args.json {
        output::json(&json!({ "executions": with, "executions_without": without }));
        return Ok(ExitCode::SUCCESS);
    }
    let columns = "call=what effect server=servers cache attempts time=took_us result=answer \
                   ran=executions without=executions_without";
    table::print(columns, &rows);
    let [before, after] = READS.map(|at| rows.get(at).map(|row| shown("", &row["answer"])));
    let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
    output::line(format_args!(
        "
The servers ran {with} calls with Callward, {without} without.
Before the write the read said \"{before}\", after it \"{after}\": what is cached is never older \
         than your own write.
The read that fails once was tried again. The charge was not: it had happened, and a retry would \
         have charged twice.
"
    ));
    output::heading("Next:");
    output::line(NEXT);
    Ok(ExitCode::SUCCESS)
}

const NEXT: &str = "  callward demo --approvals               an operator approves calls
  callward demo --chaos                   calls to servers that fail all the time
  callward serve                          the same sample, for your MCP client
  callward run -- COMMAND ARGS...         your own MCP server behind the stack
  callward explain delete_order -- callward sample";

/// Makes the calls of a step with and without the stack, and describes them.
async fn take(
    step: &'static str,
    remote: &Remote,
    stack: &Stack,
    shops: [&Embedded; 2],
) -> Result<Value, AppError> {
    let [what, tool, calls, arguments] = split(step);
    let calls = calls.parse().unwrap_or(1_u64);
    let name = format!("{SET}.{tool}");
    let before = shops.map(|shop| shop.orders.executions());
    let one = |_| remote.call(&name, arguments.into(), None);
    let answers = try_join_all((0..calls).map(one)).await?;
    // the way a client without a gateway calls: each call is sent, once
    let call = stack.prepare(&name, arguments)?;
    let [primary, _] = &shops[1].servers;
    let direct = (0..calls).map(|_| primary.call(call.clone()));
    let without = match try_join_all(direct).await {
        Ok(outputs) => {
            let first = outputs.first().and_then(|output| output.parse().ok());
            gist(&first.unwrap_or_default())
        }
        Err(error) => format!("error: {}", error.kind),
    };
    let [ran, ran_without] = shops.map(|shop| shop.orders.executions());
    let answers: Vec<Value> = answers.into_iter().map(|(answer, _)| answer).collect();
    let all = |name: &'static str| answers.iter().map(move |answer| &answer[name]);
    let number = |name| all(name).filter_map(Value::as_u64);
    let mut cache = BTreeMap::<&str, u64>::new();
    for status in all("cache").filter_map(Value::as_str) {
        *cache.entry(status).or_default() += 1;
    }
    let servers: BTreeSet<_> = all("server").filter_map(Value::as_str).collect();
    let first = answers.first().unwrap_or(&Value::Null);
    let with = match first["error"]["kind"].as_str() {
        Some(kind) => format!("error: {kind}"),
        None => gist(&first["result"]["structuredContent"]),
    };
    Ok(json!({
        "what": what,
        "tool": tool,
        "calls": calls,
        "effect": first["effect"],
        "servers": servers,
        "cache": cache,
        "attempts": number("attempts").sum::<u64>(),
        "took_us": number("took_us").max(),
        "executions": ran - before[0],
        "answer": with,
        "executions_without": ran_without - before[1],
        "answer_without": without,
    }))
}

/// The one member of a result that the tour is about.
fn gist(result: &Value) -> String {
    ["status", "rate", "deleted"]
        .iter()
        .find_map(|name| Some(format!("{name} {}", shown("", result.get(name)?))))
        .unwrap_or_else(|| "ok".into())
}
