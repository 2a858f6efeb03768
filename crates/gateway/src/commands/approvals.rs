//! `callward approvals`: the calls that wait for an operator, and decisions about them.

use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Value, json};

use crate::api::{self, Remote};
use crate::args::{Approvals, ApprovalsCommand, Decide};
use crate::commands::status::items;
use crate::commands::{events, grants};
use crate::config::show_duration;
use crate::error::Outcome;
use crate::output::{self, Tone};
use crate::state_dir::StateDir;
use crate::{plain, table};

const COLUMNS: &str = "id=short state set tool principal effect created left";
/// Of decisions about several requests.
const RESULTS: &str = "id=short state set tool principal error";

pub(crate) async fn run(args: Approvals, state: Option<&StateDir>) -> Outcome {
    let command = args
        .command
        .unwrap_or(ApprovalsCommand::List { all: false });
    if let ApprovalsCommand::Watch = command {
        return events::print(args.gateway, state, (&["approvals", "events"], changed)).await;
    }
    let (remote, _) = api::gateway(&args.gateway, state).await?;
    let json = args.gateway.json;
    match command {
        // its gateway may end before it does
        ApprovalsCommand::Watch => {}
        ApprovalsCommand::List { all } => {
            let listed = remote.approvals(all).await?;
            list(listed, COLUMNS, "no call waits for an operator", json);
        }
        ApprovalsCommand::Show(which) => {
            let request: Value = remote.ask(&["approvals", &which.id], None).await?;
            match json {
                true => output::json(&request),
                false => show(&request),
            }
        }
        ApprovalsCommand::Approve(decide) => {
            return decided(&remote, "approve", decide, json).await;
        }
        ApprovalsCommand::Deny(decide) => return decided(&remote, "deny", decide, json).await,
        ApprovalsCommand::Digest => grants::digest(&remote, json).await?,
        ApprovalsCommand::Grant(grant) => grants::give(&remote, grant, json).await?,
        ApprovalsCommand::Grants => grants::list(&remote, json).await?,
        ApprovalsCommand::Revoke(which) => grants::revoke(&remote, &which.id, json).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Decides requests: one, or several with a result for each.
async fn decided(remote: &Remote, verb: &str, decide: Decide, json: bool) -> Outcome {
    let mut order = json!({ "note": decide.note, "channel": "cli" });
    if let [id] = &decide.ids[..] {
        let path = ["approvals", id, verb];
        let request: Value = remote.ask(&path, Some(order.to_string().into())).await?;
        let shown = |name: &str| table::shown(name, &request[name]);
        match json {
            true => output::json(&request),
            false => output::line(format_args!(
                "{} is {}: {}.{} of {}",
                shown("id"),
                shown("state"),
                shown("set"),
                shown("tool"),
                shown("principal")
            )),
        }
        return Ok(ExitCode::SUCCESS);
    }
    order["ids"] = decide.ids.into();
    let order = Some(order.to_string().into());
    let results: Value = remote.ask(&["approvals", verb], order).await?;
    let is_failed = |result: &&Value| result.get("error").is_some();
    let failed = items(&results).iter().any(is_failed);
    list(results, RESULTS, "", json);
    Ok(ExitCode::from(u8::from(failed)))
}

/// Shows rows, each with a short id and the time that is left, or says that there are none.
pub(super) fn list(mut listed: Value, columns: &str, none: &str, json: bool) {
    if json {
        return output::json(&listed);
    }
    for row in listed.as_array_mut().into_iter().flatten() {
        row["left"] = left(row);
        row["short"] = short(row).into();
    }
    let rows = items(&listed);
    match rows.is_empty() {
        true => output::note(none),
        false => table::print(columns, rows),
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
