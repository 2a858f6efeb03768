//! Commands that ask a running gateway: one question, its answer as JSON or as tables.

use std::process::ExitCode;
use std::time::Duration;

use serde_json::Value;

use crate::api;
use crate::args::Gateway;
use crate::error::Outcome;
use crate::output::{self, Cell, took};
use crate::state_dir::StateDir;

/// Asks at a path below `/api`, or gives an order there, and shows the answer.
pub(super) async fn ask(
    path: &[&str],
    order: Option<Value>,
    gateway: &Gateway,
    state: Option<&StateDir>,
    show: fn(&Value),
) -> Outcome {
    let (remote, _) = api::gateway(gateway, state).await?;
    let order = order.map(|order| order.to_string().into());
    let answer: Value = remote.ask(path, order).await?;
    match gateway.json {
        true => output::json(&answer),
        false => show(&answer),
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the elements of a list, or the one element itself.
pub(super) fn items(answer: &Value) -> &[Value] {
    match answer {
        Value::Array(items) => items,
        Value::Null => &[],
        one => std::slice::from_ref(one),
    }
}

/// Returns a text or a number as it is shown; `-` for nothing.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() => float.to_string(),
            _ => number.to_string(),
        },
        other => other.to_string(),
    }
}

pub(super) fn cell(value: &Value) -> Cell {
    Cell::plain(text(value))
}

pub(super) fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

/// A number that stands out unless it is 0.
pub(super) fn refusals(value: &Value) -> Cell {
    Cell::warn(text(value), count(value) > 0)
}

/// A word of the API, such as a state, that stands out unless all is well.
pub(super) fn word(value: &Value, is_well: bool) -> Cell {
    Cell::warn(text(value).replace('_', " "), !is_well)
}

/// Shows milliseconds with the unit that fits.
pub(super) fn millis(value: &Value) -> Cell {
    Cell::plain(duration(value))
}

pub(super) fn duration(millis: &Value) -> String {
    let time = millis
        .as_f64()
        .map(|millis| Duration::try_from_secs_f64(millis / 1e3));
    time.and_then(Result::ok).map_or_else(|| "-".into(), took)
}
