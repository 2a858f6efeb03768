//! The schemas of arguments: what a listed one must be, and the check of a call against one.

use std::collections::HashSet;

use callward_core::{CheckArguments, one_line};
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;
use serde_json::value::RawValue;

/// How many faults of one schema or call are reported.
const MOST_FAULTS: usize = 5;
/// The longest text of one fault, in characters.
const MAX_FAULT: usize = 200;

/// Returns what is wrong with a listed schema: it must be valid JSON Schema, of the draft that it
/// states or else of 2020-12, and refer to nothing outside of itself.
pub(crate) fn faults(schema: &RawValue) -> Vec<String> {
    let Ok(schema) = serde_json::from_str::<Value>(schema.get()) else {
        return vec!["its inputSchema is not JSON".to_owned()];
    };
    let fault = |error: ValidationError<'_>| {
        let (place, why) = (error.instance_path().to_string(), error.to_string());
        one_line(
            &format!("its inputSchema is invalid at `{place}`: {why}"),
            MAX_FAULT,
        )
    };
    let mut faults = Vec::new();
    faults.extend(jsonschema::meta::validate(&schema).err().map(fault));
    let mut references = HashSet::new();
    outside(&schema, &mut references);
    let remote = |to| {
        one_line(
            &format!("its inputSchema refers to `{to}`, outside of itself"),
            MAX_FAULT,
        )
    };
    let mut remote: Vec<String> = references.into_iter().map(remote).collect();
    remote.sort_unstable();
    faults.extend(remote.into_iter().take(MOST_FAULTS));
    faults
}

/// Members whose values are data and not schemas.
const DATA: [&str; 5] = ["const", "default", "enum", "example", "examples"];

/// Collects references that do not start with `#`.
fn outside<'a>(schema: &'a Value, found: &mut HashSet<&'a str>) {
    match schema {
        Value::Object(members) => {
            for (name, value) in members {
                match (name.as_str(), value) {
                    ("$ref" | "$dynamicRef", Value::String(to)) if !to.starts_with('#') => {
                        found.insert(to);
                    }
                    (name, _) if DATA.contains(&name) => {}
                    _ => outside(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| outside(item, found)),
        _ => {}
    }
}

/// The check of a tool's arguments against its schema.
#[derive(Debug)]
pub(crate) struct SchemaCheck {
    validator: Validator,
    /// How many references one level of the arguments may follow back into a schema around them.
    cycles: u32,
}

impl SchemaCheck {
    /// Compiles a schema.
    ///
    /// # Errors
    ///
    /// Why it cannot be used to check arguments: it is invalid, or too large once all references
    /// are followed.
    pub(crate) fn compile(schema: &RawValue) -> Result<Self, String> {
        let schema: Value =
            serde_json::from_str(schema.get()).map_err(|error| error.to_string())?;
        let mut size = Size::default();
        size.add(&schema, &schema, &mut Vec::new())?;
        if size.patterns > MAX_PATTERNS {
            return Err(format!("it has more than {MAX_PATTERNS} patterns"));
        }
        let patterns = PatternOptions::fancy_regex()
            .backtrack_limit(BACKTRACKS)
            .size_limit(MAX_PATTERN);
        let compiled = jsonschema::options()
            .with_pattern_options(patterns)
            .build(&schema)
            .map_err(|error| one_line(&error.to_string(), MAX_FAULT))?;
        Ok(Self {
            validator: compiled,
            cycles: size.cycles,
        })
    }
}

impl CheckArguments for SchemaCheck {
    fn check(&self, arguments: &[u8]) -> Result<(), String> {
        let read = serde_json::from_slice::<Value>(arguments);
        let arguments = read.map_err(|error| format!("they are not JSON: {error}"))?;
        let work = self.cycles.max(1).checked_pow(depth(&arguments));
        if work.is_none_or(|work| work > MAX_WORK) {
            // the server decides
            return Ok(());
        }
        let fault = |error: ValidationError<'_>| {
            let place = error.instance_path().to_string();
            let place = if place.is_empty() { "/" } else { &place };
            one_line(&format!("`{place}`: {}", error.masked()), MAX_FAULT)
        };
        let faults = self.validator.iter_errors(&arguments).take(MOST_FAULTS);
        let faults: Vec<String> = faults.map(fault).collect();
        match faults.is_empty() {
            true => Ok(()),
            false => Err(faults.join("; ")),
        }
    }
}

/// How often a pattern may go back in a text, and how large a compiled one may be, in bytes.
const BACKTRACKS: usize = 10_000;
const MAX_PATTERN: usize = 256 << 10;
/// How many patterns one schema may have.
const MAX_PATTERNS: usize = 100;
/// How many schemas there may be once all references are followed.
const MAX_SCHEMAS: usize = 10_000;
/// How many ways through a recursive schema the check of a call may take.
const MAX_WORK: u32 = 10_000;

/// The size of a schema once all references are followed.
#[derive(Default)]
struct Size {
    schemas: usize,
    patterns: usize,
    /// References to a schema that the reference is part of.
    cycles: u32,
}

impl Size {
    fn add<'a>(
        &mut self,
        root: &'a Value,
        part: &'a Value,
        around: &mut Vec<&'a str>,
    ) -> Result<(), String> {
        self.schemas += 1;
        if self.schemas > MAX_SCHEMAS {
            return Err(format!(
                "it has more than {MAX_SCHEMAS} schemas once references are followed"
            ));
        }
        match part {
            Value::Object(members) => {
                for (name, value) in members {
                    match (name.as_str(), value) {
                        ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(to)) => {
                            let pointer = to.strip_prefix('#').unwrap_or(to);
                            match root.pointer(pointer).filter(|_| !around.contains(&pointer)) {
                                Some(target) if !pointer.is_empty() => {
                                    around.push(pointer);
                                    self.add(root, target, around)?;
                                    around.pop();
                                }
                                // to the whole schema, to one around it, or to an anchor
                                _ => self.cycles += 1,
                            }
                        }
                        ("$defs" | "definitions", _) => {}
                        ("pattern", Value::String(_)) => self.patterns += 1,
                        ("patternProperties", Value::Object(by_pattern)) => {
                            self.patterns += by_pattern.len();
                            self.add(root, value, around)?;
                        }
                        (name, _) if DATA.contains(&name) => {}
                        _ => self.add(root, value, around)?,
                    }
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.add(root, item, around)?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Returns how deep the arrays and objects of a value nest.
fn depth(value: &Value) -> u32 {
    let of_all = |values: &mut dyn Iterator<Item = &Value>| values.map(depth).max();
    match value {
        Value::Array(items) => 1 + of_all(&mut items.iter()).unwrap_or_default(),
        Value::Object(members) => 1 + of_all(&mut members.values()).unwrap_or_default(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_schema_is_valid_and_refers_to_nothing_outside() {
        for (schema, expected) in [
            (r#"{"type":"object"}"#, ""),
            (
                r#"{"type":"object","properties":{"a":{"type":"text"}}}"#,
                "at `/properties/a/type`",
            ),
            (r#"{"type":"object","required":true}"#, "at `/required`"),
            (
                r#"{"$schema":"http://json-schema.org/draft-04/schema#","minimum":1,"exclusiveMinimum":true}"#,
                "",
            ),
            (
                r#"{"minimum":1,"exclusiveMinimum":true}"#,
                "at `/exclusiveMinimum`",
            ),
            (
                r#"{"$schema":"https://example.com/mine"}"#,
                "https://example.com/mine",
            ),
            (
                r##"{"properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{}}}"##,
                "",
            ),
            (
                r#"{"properties":{"a":{"$ref":"https://example.com/b"}}}"#,
                "`https://example.com/b`, outside",
            ),
            (r#"{"properties":{"$ref":{"const":{"$ref":"data"}}}}"#, ""),
        ] {
            let found = faults(&raw(schema)).join("; ");
            assert_eq!(found.is_empty(), expected.is_empty(), "{schema}: {found}");
            assert!(found.contains(expected), "{schema}: {found}");
        }
    }

    #[test]
    fn arguments_that_do_not_fit_are_named_by_place_without_their_values() {
        let schema = r##"{"type":"object","required":["id"],"additionalProperties":false,
            "properties":{"id":{"type":"integer"},"note":{"$ref":"#/$defs/n"}},
            "$defs":{"n":{"type":"string","pattern":"^[a-z]+$"}}}"##;
        let check = SchemaCheck::compile(&raw(schema)).unwrap();
        for (arguments, expected) in [
            (r#"{"id":1,"note":"abc"}"#, None),
            (
                r#"{"id":"hunter2"}"#,
                Some("`/id`: value is not of type \"integer\""),
            ),
            ("{}", Some("`/`: \"id\" is a required property")),
            (
                r#"{"id":1,"note":"hunter2"}"#,
                Some("`/note`: value does not match"),
            ),
            (r#"{"id":1,"other":"hunter2"}"#, Some("other")),
            ("{", Some("not JSON")),
        ] {
            let found = check.check(arguments.as_bytes());
            assert_eq!(found.is_err(), expected.is_some(), "{arguments}: {found:?}");
            let text = found.err().unwrap_or_default();
            assert!(text.contains(expected.unwrap_or_default()), "{text}");
            assert!(!text.contains("hunter2"), "{text}");
        }
    }

    #[test]
    fn schemas_that_would_take_too_long_are_not_compiled_or_not_followed() {
        let chain = |link: &str| {
            let links: Vec<_> = (0..100)
                .map(|at| {
                    link.replace("AT", &at.to_string())
                        .replace("TO", &(at + 1).to_string())
                })
                .collect();
            format!(
                r##"{{"$ref":"#/$defs/d0","$defs":{{{},"d100":{{"type":"object"}}}}}}"##,
                links.join(",")
            )
        };
        let once = chain(r##""dAT":{"$ref":"#/$defs/dTO"}"##);
        assert_eq!(
            SchemaCheck::compile(&raw(&once)).unwrap().check(b"{}"),
            Ok(())
        );
        let twice = chain(r##""dAT":{"allOf":[{"$ref":"#/$defs/dTO"},{"$ref":"#/$defs/dTO"}]}"##);
        for schema in [
            twice,
            r#"{"pattern":"^(\\w{500}){500}$"}"#.to_owned(),
            format!(
                r#"{{"allOf":[{}]}}"#,
                vec![r#"{"pattern":"a"}"#; 101].join(",")
            ),
        ] {
            assert!(SchemaCheck::compile(&raw(&schema)).is_err(), "{schema}");
        }
        let tree = r##"{"type":"object","allOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}]}"##;
        let tree = SchemaCheck::compile(&raw(tree)).unwrap();
        assert!(tree.check(br#"{"a":{"a":1}}"#).is_err());
        let deep = format!("{}1{}", r#"{"a":"#.repeat(100), "}".repeat(100));
        assert_eq!(tree.check(deep.as_bytes()), Ok(()), "left to the server");
    }
}
