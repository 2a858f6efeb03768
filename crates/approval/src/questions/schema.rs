//! The JSON Schemas that forms of MCP can have, and the check of answers against them.

use callward_core::one_line;
use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value, json};

/// The most members of a form, characters of a text, and options of a choice.
const MAX_MEMBERS: usize = 32;
const MAX_CHARS: usize = 4096;
const MAX_OPTIONS: usize = 256;
/// How large a compiled pattern may be: it may come from a server.
const MAX_PATTERN: usize = 1 << 20;

/// What the `format` of a text may be.
const FORMATS: [&str; 4] = ["email", "uri", "date", "date-time"];

/// Why an answer does not fit, or a schema cannot be used.
pub(super) type Fit = Result<(), String>;

pub(super) fn ensure(fits: bool, reason: impl FnOnce() -> String) -> Fit {
    if fits { Ok(()) } else { Err(reason()) }
}

fn members(form: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let all = form.get("properties").and_then(Value::as_object);
    all.into_iter().flatten()
}

/// Adds the name of a member to what is wrong with it.
fn of_member(name: &str, fit: Fit) -> Fit {
    fit.map_err(|why| format!("`{}` {why}", one_line(name, 64)))
}

fn required(form: &Value) -> impl Iterator<Item = &Value> {
    let all = form.get("required").and_then(Value::as_array);
    all.into_iter().flatten()
}

/// Checks that a form is flat, and that it is known how to check what it asks for.
pub(super) fn validate_form(form: &Value) -> Fit {
    let mut keys = form.as_object().map(Map::keys).into_iter().flatten();
    let known = keys.all(|key| ["type", "properties", "required"].contains(&key.as_str()));
    ensure(known && form["type"] == "object", || {
        "a form has `type` (`object`), `properties` and `required` only".to_owned()
    })?;
    ensure((1..=MAX_MEMBERS).contains(&members(form).count()), || {
        format!("a form has 1 to {MAX_MEMBERS} members")
    })?;
    let known = required(form).all(|one| members(form).any(|(name, _)| one == name));
    ensure(known, || "a required member has no schema".to_owned())?;
    members(form).try_for_each(|(name, schema)| of_member(name, validate(schema)))
}

/// Checks that the schema of a member is one that forms can have.
pub(super) fn validate(schema: &Value) -> Fit {
    let kind = schema.get("type").and_then(Value::as_str);
    let keywords: &[&str] = match kind.unwrap_or_default() {
        "boolean" => &[],
        "string" if schema.get("enum").is_some() => &["enum"],
        "string" => &["minLength", "maxLength", "pattern", "format"],
        "number" | "integer" => &["minimum", "maximum"],
        "array" if schema.get("items").is_some() => &["items", "minItems", "maxItems"],
        _ => return Err("is neither a primitive value nor a choice".to_owned()),
    };
    let mut all = schema.as_object().into_iter().flatten();
    all.try_for_each(|(key, value)| {
        let fits = match key.as_str() {
            "type" => true,
            "title" | "description" => value.is_string(),
            "default" => check(schema, value).is_ok(),
            key if !keywords.contains(&key) => false,
            "enum" => are_options(value),
            "items" => are_options(&value["enum"]) && *value == choice(&value["enum"]),
            "pattern" => compiled(value).is_some(),
            "format" => FORMATS.iter().any(|format| value == format),
            "minimum" | "maximum" => value.is_number(),
            _ => value.is_u64(),
        };
        ensure(fits, || format!("cannot be asked for: `{key}` is {value}"))
    })
}

/// Returns the schema of one of some options.
pub(super) fn choice(options: &Value) -> Value {
    json!({"type": "string", "enum": options})
}

fn are_options(options: &Value) -> bool {
    let options = options.as_array();
    options.is_some_and(|all| {
        (1..=MAX_OPTIONS).contains(&all.len()) && all.iter().all(Value::is_string)
    })
}

fn compiled(pattern: &Value) -> Option<Regex> {
    let pattern = RegexBuilder::new(pattern.as_str()?)
        .size_limit(MAX_PATTERN)
        .build();
    pattern.ok()
}

/// Checks the answer to a form.
pub(super) fn check_form(form: &Value, answer: &Value) -> Fit {
    let given = answer.as_object().ok_or("must be an object")?;
    for name in given.keys() {
        let known = members(form).any(|(known, _)| known == name);
        of_member(name, ensure(known, || "is not asked for".to_owned()))?;
    }
    members(form).try_for_each(|(name, schema)| {
        let fit = match given.get(name) {
            Some(value) => check(schema, value),
            None => ensure(required(form).all(|one| one != name), || {
                "is missing".to_owned()
            }),
        };
        of_member(name, fit)
    })
}

/// Checks a value. The reason does not show the value: it may be secret.
pub(super) fn check(schema: &Value, value: &Value) -> Fit {
    let kind = schema["type"].as_str().unwrap_or_default();
    let is_option = |options: &Value, one| options.as_array().is_some_and(|all| all.contains(one));
    let (keys, count, most) = match (kind, value) {
        ("boolean", Value::Bool(_)) => return Ok(()),
        ("string", Value::String(_)) if schema.get("enum").is_some() => {
            let options = &schema["enum"];
            return ensure(is_option(options, value), || {
                format!("must be one of {options}")
            });
        }
        ("string", Value::String(text)) => {
            let pattern = schema.get("pattern");
            let matches = |it| compiled(it).is_some_and(|pattern| pattern.is_match(text));
            ensure(pattern.is_none_or(matches), || {
                format!("must match {}", schema["pattern"])
            })?;
            let chars = text.chars().count();
            (["minLength", "maxLength"], as_f64(chars), as_f64(MAX_CHARS))
        }
        ("number" | "integer", Value::Number(number))
            if kind == "number" || number.is_i64() || number.is_u64() =>
        {
            let number = number.as_f64().unwrap_or(f64::NAN);
            (["minimum", "maximum"], number, f64::INFINITY)
        }
        ("array", Value::Array(chosen)) => {
            let options = &schema["items"]["enum"];
            let mut chosen_before = chosen.iter().enumerate();
            let fit = chosen_before
                .all(|(at, one)| is_option(options, one) && !chosen[..at].contains(one));
            ensure(fit, || format!("must be different ones of {options}"))?;
            (
                ["minItems", "maxItems"],
                as_f64(chosen.len()),
                f64::INFINITY,
            )
        }
        _ => return Err(format!("must be of type {kind}")),
    };
    let [min, max] = keys.map(|key| schema.get(key).and_then(Value::as_f64));
    let (min, max) = (
        min.unwrap_or(f64::NEG_INFINITY),
        max.unwrap_or(most).min(most),
    );
    ensure((min..=max).contains(&count), || {
        format!(
            "must keep to `{}` and `{}`, {min} to {max}",
            keys[0], keys[1]
        )
    })
}

/// Returns a small count as numbers of JSON are compared.
fn as_f64(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::INFINITY, f64::from)
}
