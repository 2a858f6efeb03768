//! Commands that ask a running gateway: one question, its answer as JSON or as tables.

use std::process::ExitCode;
use std::time::Duration;

use serde_json::Value;

use crate::api;
use crate::args::Gateway;
use crate::error::Outcome;
use crate::output::{self, Cell, took};
use crate::state_dir::StateDir;

/// What a command asks, below `/api`.
pub(super) enum Question {
    Get(&'static str),
    Post(Vec<String>, Value),
}

/// Asks, and shows the answer.
pub(super) async fn ask(
    question: Question,
    gateway: &Gateway,
    state: Option<&StateDir>,
    show: Option<fn(&Value)>,
) -> Outcome {
    let (remote, _) = api::gateway(gateway, state).await?;
    let answer: Value = match question {
        Question::Get(what) => remote.get(&[what]).await?,
        Question::Post(path, body) => {
            let path: Vec<_> = path.iter().map(String::as_str).collect();
            remote.post(&path, &body).await?
        }
    };
    match show {
        Some(show) => show(&answer),
        None => output::json(&answer),
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

/// Shows milliseconds with the unit that fits.
pub(super) fn millis(value: &Value) -> String {
    let time = value
        .as_f64()
        .map(|millis| Duration::try_from_secs_f64(millis / 1e3));
    time.and_then(Result::ok).map_or_else(|| "-".into(), took)
}
