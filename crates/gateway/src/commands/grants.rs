//! `callward approvals grant`, `grants`, `revoke` and `digest`.

use serde_json::{Value, json};

use crate::api::Remote;
use crate::args::Grant;
use crate::commands::approvals;
use crate::commands::status::items;
use crate::config::show_duration;
use crate::error::AppError;
use crate::{output, plain, table};

const COLUMNS: &str = "id=short state set tool when principal uses used by left";

/// Gives a grant.
pub(super) async fn give(remote: &Remote, grant: Grant, json: bool) -> Result<(), AppError> {
    let order = json!({
        "tool": grant.tool,
        "when": grant.when,
        "for": grant.principal,
        "uses": grant.uses,
        "until": show_duration(grant.until),
    });
    let order = Some(order.to_string().into());
    let given: Value = remote.ask(&["approvals", "grants"], order).await?;
    approvals::list(shown(json!([given]), json), COLUMNS, "", json);
    Ok(())
}

pub(super) async fn list(remote: &Remote, json: bool) -> Result<(), AppError> {
    let listed: Value = remote.ask(&["approvals", "grants"], None).await?;
    approvals::list(shown(listed, json), COLUMNS, "no grant", json);
    Ok(())
}

pub(super) async fn revoke(remote: &Remote, id: &str, json: bool) -> Result<(), AppError> {
    let gone: Value = remote.delete(&["approvals", "grants", id]).await?;
    match json {
        true => output::json(&gone),
        false => output::line(format_args!(
            "{} is revoked",
            table::shown("id", &gone["id"])
        )),
    }
    Ok(())
}

/// Writes what is not limited in words, and conditions as JSON.
fn shown(mut listed: Value, json: bool) -> Value {
    for row in listed
        .as_array_mut()
        .into_iter()
        .flatten()
        .filter(|_| !json)
    {
        for (name, all) in [("uses", "unlimited"), ("principal", "each")] {
            if row[name].is_null() {
                row[name] = all.into();
            }
        }
        if row["when"].is_object() {
            row["when"] = row["when"].to_string().into();
        }
    }
    listed
}

/// Shows what is always approved, and the commands that grant it.
pub(super) async fn digest(remote: &Remote, json: bool) -> Result<(), AppError> {
    let listed: Value = remote.ask(&["approvals", "digest"], None).await?;
    approvals::list(
        listed.clone(),
        "set tool asked",
        "no tool is always approved",
        json,
    );
    for row in items(&listed).into_iter().filter(|_| !json) {
        let Some(grant) = row["grant"].as_object() else {
            let tool = table::shown("tool", &row["tool"]);
            output::note(format_args!(
                "the calls of {} have no argument in common",
                plain::line(&tool)
            ));
            continue;
        };
        let mut command = "callward approvals grant".to_owned();
        for name in ["tool", "when", "for", "uses", "until"] {
            let value = match &grant[name] {
                Value::Null => continue,
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            if name != "tool" {
                command += &format!(" --{name}");
            }
            command += &format!(" {}", quoted(&value));
        }
        output::line(plain::lines(&command));
    }
    Ok(())
}

/// Quotes a word for a shell, if it needs that.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/:#@".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}
