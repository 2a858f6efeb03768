//! What clients see of a tool, where the operator or a plugin changes it.

use std::borrow::Cow;

use bytes::Bytes;
use callward_core::{Members, ToolDefinition};
use serde_json::{Map, Value};

use crate::SetOptions;

/// What clients see of a tool, where that differs from what its server lists. Rules, caches and
/// logs know the tool by its own name and whole arguments.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Shown {
    /// Its name. Default: its own, behind the prefix of its set.
    pub name: Option<String>,
    /// Whether clients neither see nor call it. Default: no.
    pub hidden: bool,
    /// Its description. Default: its own. Hints are inferred from its own in any case.
    pub description: Option<String>,
    /// Arguments that every call has, with their values. Clients do not see them. Default: none.
    pub fixed: Map<String, Value>,
}

impl Shown {
    /// Returns what clients see of a tool: what the operator says, then what the last plugin does.
    pub(crate) fn of<'a>(options: &'a SetOptions, tool: &ToolDefinition) -> Option<Cow<'a, Self>> {
        let mut shown = options.shown.get(&tool.name).map(Cow::Borrowed);
        for overlay in tool.overlays.iter().rev() {
            let shown = shown.get_or_insert_default().to_mut();
            shown.hidden |= overlay.hidden;
            shown.name = shown.name.take().or_else(|| overlay.name.clone());
            let description = shown.description.take();
            shown.description = description.or_else(|| overlay.description.clone());
        }
        // else the definition is listed byte for byte
        shown.filter(|shown| **shown != Self::default())
    }

    /// Returns the definition as clients see it, but for the name.
    ///
    /// # Errors
    ///
    /// The parser's error if it is not a JSON object.
    pub(crate) fn apply(&self, definition: &[u8]) -> serde_json::Result<Bytes> {
        let mut definition: Map<String, Value> = serde_json::from_slice(definition)?;
        if let Some(description) = &self.description {
            definition.insert("description".into(), description.as_str().into());
        }
        if let Some(Value::Object(schema)) = definition.get_mut("inputSchema") {
            if let Some(Value::Object(properties)) = schema.get_mut("properties") {
                properties.retain(|name, _| !self.fixed.contains_key(name));
            }
            if let Some(Value::Array(required)) = schema.get_mut("required") {
                let is_fixed = |name: &str| self.fixed.contains_key(name);
                required.retain(|name| !name.as_str().is_some_and(is_fixed));
            }
        }
        serde_json::to_vec(&definition).map(Bytes::from)
    }

    /// Adds the fixed arguments to those of a call.
    ///
    /// # Errors
    ///
    /// What is wrong with the call: its arguments are not an object, or set a fixed one to another
    /// value.
    pub(crate) fn complete(&self, given: Bytes) -> Result<Bytes, String> {
        if self.fixed.is_empty() {
            return Ok(given);
        }
        let text = std::str::from_utf8(&given).unwrap_or_default().trim();
        let text = if given.is_empty() { "{}" } else { text };
        let (Ok(members), Some(rest)) = (Members::read(text), text.strip_prefix('{')) else {
            return Err("the arguments are not a JSON object".to_owned());
        };
        let mut whole = String::with_capacity(text.len() + 64);
        for (name, value) in &self.fixed {
            let mut set = members.iter().filter(|(set, _)| set == name).peekable();
            if set.peek().is_none() {
                whole.push(if whole.is_empty() { '{' } else { ',' });
                whole.push_str(&format!("{}:{value}", Value::from(name.as_str())));
            } else if !set
                .all(|(_, set)| serde_json::from_str(set.get()).is_ok_and(|it: Value| it == *value))
            {
                return Err(format!(
                    "the argument `{name}` is set by the operator: leave it out"
                ));
            }
        }
        if whole.is_empty() {
            return Ok(given);
        }
        if members.iter().next().is_some() {
            whole.push(',');
        }
        Ok((whole + rest).into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fixed(value: Value) -> Shown {
        let Value::Object(fixed) = value else {
            unreachable!("a test states an object")
        };
        Shown {
            fixed,
            ..Shown::default()
        }
    }

    #[test]
    fn fixed_arguments_are_added_and_not_changed() {
        let shown = fixed(json!({"repo": "a/b", "all": true}));
        for (given, expected) in [
            ("", Ok(r#"{"all":true,"repo":"a/b"}"#)),
            (" { } ", Ok(r#"{"all":true,"repo":"a/b" }"#)),
            (r#"{"id":1e2}"#, Ok(r#"{"all":true,"repo":"a/b","id":1e2}"#)),
            (
                r#"{"repo": "a/b","id":1}"#,
                Ok(r#"{"all":true,"repo": "a/b","id":1}"#),
            ),
            (
                r#"{"all":true,"repo":"a\/b"}"#,
                Ok(r#"{"all":true,"repo":"a\/b"}"#),
            ),
            (r#"{"repo":"a/c"}"#, Err("`repo` is set by the operator")),
            (r#"{"repo":"a/b","re\u0070o":"a/c"}"#, Err("`repo`")),
            ("[]", Err("not a JSON object")),
            ("{\"a\":", Err("not a JSON object")),
        ] {
            match (shown.complete(given.into()), expected) {
                (Ok(whole), Ok(expected)) => assert_eq!(whole, expected, "{given}"),
                (Err(why), Err(expected)) => assert!(why.contains(expected), "{why}"),
                (found, _) => panic!("{given}: {found:?}"),
            }
        }
    }

    #[test]
    fn clients_see_neither_fixed_arguments_nor_the_servers_description() {
        let shown = Shown {
            description: Some("Ours.".to_owned()),
            ..fixed(json!({"repo": "a/b"}))
        };
        let listed = json!({"name": "get", "description": "Theirs.", "inputSchema": {
            "type": "object",
            "properties": {"repo": {"type": "string"}, "id": {"type": "integer"}},
            "required": ["repo", "id"],
        }});
        let seen = shown.apply(listed.to_string().as_bytes()).unwrap();
        let expected = json!({"name": "get", "description": "Ours.", "inputSchema": {
            "type": "object",
            "properties": {"id": {"type": "integer"}},
            "required": ["id"],
        }});
        assert_eq!(serde_json::from_slice::<Value>(&seen).unwrap(), expected);
    }
}
