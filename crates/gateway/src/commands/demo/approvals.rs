//! `callward demo --approvals`: an agent deletes orders, and an operator decides.

use std::io::{IsTerminal, stdout};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use callward::approval::{
    APPROVAL_META, ApprovalConfig, ApprovalLayer, Approvals, Decision, Grant, LocalStore,
};
use callward::{Caller, Principal, Stack};
use serde_json::{Value, json};

use crate::args::Demo;
use crate::assemble;
use crate::config::Config;
use crate::error::{AppError, Outcome};
use crate::metrics::Telemetry;
use crate::output;
use crate::sample::{Embedded, SET};
use crate::table::{self, split};

/// What the agent does, the tool and its arguments, and what the operator does about it.
const STEPS: [&str; 8] = [
    r#"a read | get_order | {"order_id":1} | is not asked"#,
    r#"a deletion | delete_order | {"order_id":1} | denies"#,
    r#"the same again | delete_order | {"order_id":1} | is not asked"#,
    r#"another one | delete_order | {"order_id":2} | approves"#,
    r#"the same again | delete_order | {"order_id":2} | is away"#,
    r#"other arguments | delete_order | {"order_id":3} | is away"#,
    r#"what a grant is for | delete_order | {"order_id":4} | is not asked"#,
    r#"what it is not for | delete_order | {"order_id":5} | is away"#,
];
/// The arguments that the grant is for.
const GRANTED: &str = r#"{"order_id":4}"#;
/// How long a call waits for an operator who is away.
const HOLD: Duration = Duration::from_millis(500);
/// How long a person may read a row before the next.
const PAUSE: Duration = Duration::from_secs(2);

pub(super) async fn run(args: &Demo) -> Outcome {
    let telemetry = Telemetry::exporting(None)?;
    let shop = Embedded::new()?;
    let mut settings = ApprovalConfig::default();
    settings.hold = HOLD;
    let approvals = Approvals::open(LocalStore::default(), settings).await?;
    let config = Config::without_file(Vec::new());
    let (set, layer) = (shop.replica_set()?, ApprovalLayer::from(approvals.clone()));
    let running = assemble::stack_over(&config, Vec::new(), set, &telemetry, layer)?;
    running.startup.finished().await;
    if !args.json {
        output::heading("An agent deletes orders of the shop. An operator approves, or does not.");
    }
    let mut rows = Vec::new();
    for step in STEPS {
        let row = take(step, &running.stack, &approvals, &shop).await?;
        if args.json {
            output::json(&row);
        } else if stdout().is_terminal() {
            let shown = ["what", "tool", "arguments", "operator", "answer"];
            let [what, tool, arguments, operator, answer] =
                shown.map(|it| table::shown(it, &row[it]));
            output::line(format_args!(
                "{what}: {tool} {arguments}; the operator {operator} → {answer}"
            ));
            tokio::time::sleep(PAUSE).await;
        }
        rows.push(row);
    }
    if args.json {
        return Ok(ExitCode::SUCCESS);
    }
    output::line("");
    table::print("agent=what tool arguments operator answer deleted", &rows);
    output::line(
        "
One approval runs one call, with exactly the arguments that were approved. To be asked:
",
    );
    output::line(
        "  [approvals] in the config of `callward serve`, then `callward approvals watch`, and
  callward approvals approve ID           or deny ID --note TEXT
  callward approvals grant SET.TOOL --when CONDITIONS",
    );
    Ok(ExitCode::SUCCESS)
}

async fn take(
    step: &'static str,
    stack: &Stack,
    approvals: &Approvals,
    shop: &Embedded,
) -> Result<Value, AppError> {
    let [what, tool, arguments, operator] = split(step);
    let agent = Arc::new(Caller::new(Principal::new("agent")));
    let call = stack.prepare(&format!("{SET}.{tool}"), arguments)?;
    let call = call.with_caller(agent);
    if arguments == GRANTED {
        let mut grant = Grant::new(call.tool(), by())?;
        let when: Value = serde_json::from_str(GRANTED).unwrap_or_default();
        grant.when = when.try_into().ok();
        approvals.grant(grant).await?;
    }
    let mut events = approvals.events();
    let decides = async {
        let decision = Decision {
            approves: operator == "approves",
            by: by(),
            roles: Vec::new(),
            channel: "demo".to_owned(),
            note: (operator == "denies").then(|| "archive it instead".to_owned()),
        };
        if ["approves", "denies"].contains(&operator)
            && let Ok(request) = events.recv().await
        {
            let _ = approvals.decide(&request.id, decision).await;
        }
    };
    let (answer, ()) = tokio::join!(stack.run(call), decides);
    let answer: Value = serde_json::from_slice(answer?.body()).unwrap_or_default();
    let approval = &answer["_meta"][APPROVAL_META];
    let answer = match (approval["state"].as_str(), approval["note"].as_str()) {
        (Some(state), Some(note)) => format!("{state}: {note}"),
        (Some(state), None) => state.to_owned(),
        (None, _) => super::gist(&answer["structuredContent"]),
    };
    Ok(json!({
        "what": what,
        "tool": tool,
        "arguments": arguments,
        "operator": operator,
        "answer": answer,
        "deleted": shop.orders.runs().get("delete_order").map_or(0, |run| run.executions),
    }))
}

fn by() -> Principal {
    Principal::new("operator")
}
