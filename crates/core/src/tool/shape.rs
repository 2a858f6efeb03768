//! Checks the members of a listed tool that clients receive unchanged. Strict clients refuse a
//! whole list of tools if one member breaks the protocol.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::members::{Members, Text};

/// Checks the members that are not read otherwise. `null` is the same as absent, but for the schema
/// of the arguments.
pub(super) fn check(tool: &Members<'_>) -> Result<(), String> {
    for (name, value) in tool.iter() {
        let checked = match name {
            "inputSchema" => schema(value),
            _ if is_null(value) => Ok(()),
            "outputSchema" | "_meta" => members(value).map(drop),
            "icons" => icons(value),
            "execution" => execution(value),
            _ => Ok(()),
        };
        checked.map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(())
}

fn schema(schema: &RawValue) -> Result<(), String> {
    let members = members(schema)?;
    let mut types = members.iter().filter(|(name, _)| *name == "type");
    match types.all(|(_, value)| is_one_of(value, &["object"])) {
        true => Ok(()),
        false => Err("its `type` is not \"object\"".to_owned()),
    }
}

fn execution(execution: &RawValue) -> Result<(), String> {
    const WORDS: [&str; 3] = ["forbidden", "optional", "required"];
    let is_wrong = |(name, value): (&str, &RawValue)| {
        name == "taskSupport" && !is_null(value) && !is_one_of(value, &WORDS)
    };
    match members(execution)?.iter().any(is_wrong) {
        true => Err(format!("its `taskSupport` is not one of {WORDS:?}")),
        false => Ok(()),
    }
}

/// Returns `true` if an `execution` allows calls as a task only.
pub(super) fn requires_task(execution: &RawValue) -> bool {
    let members = Members::read(execution.get());
    let support = members.ok().and_then(|members| members.last("taskSupport"));
    support.is_some_and(|support| is_one_of(support, &["required"]))
}

fn icons(icons: &RawValue) -> Result<(), String> {
    let icons: Vec<&RawValue> =
        serde_json::from_str(icons.get()).map_err(|_| "not an array".to_owned())?;
    for icon in icons {
        let members = members(icon)?;
        let is_wrong = |(name, value): &(&str, &RawValue)| match *name {
            "src" => !is::<Text<'_>>(value),
            "mimeType" => !is_null(value) && !is::<Text<'_>>(value),
            "theme" => !is_null(value) && !is_one_of(value, &["light", "dark"]),
            "sizes" => !is_null(value) && !is::<Vec<Text<'_>>>(value),
            _ => false,
        };
        if let Some((name, _)) = members.iter().find(is_wrong) {
            return Err(format!("the `{name}` of one has the wrong type"));
        }
        if !members.iter().any(|(name, _)| name == "src") {
            return Err("one has no `src`".to_owned());
        }
    }
    Ok(())
}

pub(super) fn members(value: &RawValue) -> Result<Members<'_>, String> {
    Members::read(value.get()).map_err(|_| "not an object".to_owned())
}

fn is_null(value: &RawValue) -> bool {
    value.get() == "null"
}

fn is<'a, T: Deserialize<'a>>(value: &'a RawValue) -> bool {
    serde_json::from_str::<T>(value.get()).is_ok()
}

fn is_one_of(value: &RawValue, words: &[&str]) -> bool {
    let text = serde_json::from_str::<Text<'_>>(value.get());
    text.is_ok_and(|Text(text)| words.contains(&&*text))
}
