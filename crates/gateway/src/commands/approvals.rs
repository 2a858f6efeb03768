//! `callward approvals`: the calls that wait for an operator, and decisions about them.

use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Value, json};

use crate::api;
use crate::args::{Approvals, ApprovalsCommand};
use crate::commands::events;
use crate::commands::status::items;
use crate::config::show_duration;
use crate::error::Outcome;
use crate::output::{self, Tone};
use crate::state_dir::StateDir;
use crate::{plain, table};

const COLUMNS: &str = "id=short state set tool principal effect created left";

pub(crate) async fn run(args: Approvals, state: Option<&StateDir>) -> Outcome {
    let command = args
        .command
        .unwrap_or(ApprovalsCommand::List { all: false });
    let (which, verb, note) = match command {
        ApprovalsCommand::Watch => {
            return events::print(args.gateway, state, (&["approvals", "events"], changed)).await;
        }
        ApprovalsCommand::List { all } => {
            let (remote, _) = api::gateway(&args.gateway, state).await?;
            let mut listed = remote.approvals(all).await?;
            match args.gateway.json {
                true => output::json(&listed),
                false => list(&mut listed),
            }
            return Ok(ExitCode::SUCCESS);
        }
        ApprovalsCommand::Show(which) => (which, None, None),
        ApprovalsCommand::Approve(decide) => (decide.which, Some("approve"), decide.note),
        ApprovalsCommand::Deny(decide) => (decide.which, Some("deny"), decide.note),
    };
    let mut path = vec!["approvals", &which.id];
    path.extend(verb);
    let order = verb.map(|_| json!({ "note": note, "channel": "cli" }).to_string());
    let (remote, _) = api::gateway(&args.gateway, state).await?;
    let request: Value = remote.ask(&path, order.map(Into::into)).await?;
    if args.gateway.json {
        output::json(&request);
    } else if verb.is_none() {
        show(&request);
    } else {
        let shown = |name: &str| table::shown(name, &request[name]);
        output::line(format_args!(
            "{} is {}: {}.{} of {}",
            shown("id"),
            shown("state"),
            shown("set"),
            shown("tool"),
            shown("principal")
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn list(listed: &mut Value) {
    for row in listed.as_array_mut().into_iter().flatten() {
        row["left"] = left(row);
        row["short"] = short(row).into();
    }
    let rows = items(listed);
    match rows.is_empty() {
        true => output::note("no call waits for an operator"),
        false => table::print(COLUMNS, rows),
    }
}

/// Describes the state of a request that is new or has changed.
fn changed(request: &Value) -> (String, Option<Tone>) {
    if let Some(lost) = request["lost"].as_u64() {
        let line = format!("lost       {lost} events: this reader is too slow");
        return (line, Some(Tone::Doubtful));
    }
    let shown = |name: &str| table::shown(name, &request[name]);
    let tone = (request["state"] == "pending").then_some(Tone::Doubtful);
    let by = match &request["decision"]["by"] {
        Value::Null => shown("reason"),
        by => format!("decided by {}", table::shown("by", by)),
    };
    let line = format!(
        "{:<9}  {}  {}.{} of {}, {}: {by}",
        shown("state"),
        short(request),
        shown("set"),
        shown("tool"),
        shown("principal"),
        shown("effect")
    );
    (line, tone)
}

fn short(request: &Value) -> String {
    let id = request["id"].as_str().unwrap_or_default();
    id.chars().take(SHOWN_DIGITS).collect()
}

/// How long a request can still be decided, or run.
fn left(request: &Value) -> Value {
    let seconds = request["left_s"].as_u64();
    seconds.map_or(Value::Null, |seconds| {
        show_duration(Duration::from_secs(seconds)).into()
    })
}

/// How many digits of an id a table shows: enough to name it.
const SHOWN_DIGITS: usize = 8;

/// Shows each member in a line, and the arguments whole: what a person does not see, they cannot
/// approve.
fn show(request: &Value) {
    let names = "id state principal set tool effect reason created expires delivery decided";
    let members = names.split(' ').map(|name| (name, &request[name]));
    let left = left(request);
    let decision = ["by", "channel", "note"].map(|name| (name, &request["decision"][name]));
    let members = members.chain([("left", &left)]).chain(decision);
    for (name, value) in members.filter(|(_, value)| !value.is_null()) {
        output::line(format_args!("{name:<9}  {}", table::shown(name, value)));
    }
    let arguments = request["arguments"].as_str().unwrap_or_default();
    output::line(format_args!("arguments  {}", plain::lines(arguments)));
    if request["redacted"] == true {
        output::warning(&"values that are named like secrets, or look like them, are not shown");
    }
}
