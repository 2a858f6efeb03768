//! `x-mcp-header`: arguments that a tool wants mirrored into HTTP headers (2026-07-28).

use serde_json::Value;

use super::header;
use super::object::{self, InvalidObject};

const ANNOTATION: &str = "x-mcp-header";

/// Which arguments of a tool travel in which header.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ParamHeaders(Vec<ParamHeader>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct ParamHeader {
    /// Member names from the root of the arguments to the value.
    path: Vec<String>,
    header: String,
}

/// An `x-mcp-header` the protocol does not allow. The tool may not be offered over HTTP.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("x-mcp-header {0}")]
pub(crate) struct InvalidParamHeader(String);

impl ParamHeaders {
    /// Reads the annotations of a raw input schema.
    ///
    /// # Errors
    ///
    /// [`InvalidParamHeader`] names the property and the rule: a header name is a token, there once
    /// (in any case), on a string, integer or boolean that is reached through `properties` alone.
    pub(crate) fn from_schema(schema: &str) -> Result<Self, InvalidParamHeader> {
        // nearly every schema has none: one search instead of a parse
        if memchr::memmem::find(schema.as_bytes(), ANNOTATION.as_bytes()).is_none() {
            return Ok(Self::default());
        }
        let schema: Value = serde_json::from_str(schema)
            .map_err(|error| InvalidParamHeader(format!("cannot be read: {error}")))?;
        let mut found = Self::default();
        if let Value::Object(root) = &schema {
            if root.contains_key(ANNOTATION) {
                return Err(InvalidParamHeader(
                    "must mark a property, not the schema itself".to_owned(),
                ));
            }
            found.walk(root, &mut Vec::new())?;
        }
        Ok(found)
    }

    /// Returns `true` if no argument is mirrored.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns full header name (lower case) and encoded value for each argument that is there.
    ///
    /// # Errors
    ///
    /// [`InvalidObject`] if the raw arguments are not an object, or have a mirrored member twice.
    pub(crate) fn values(&self, arguments: &[u8]) -> Result<Vec<(String, String)>, InvalidObject> {
        let mut values = Vec::with_capacity(self.0.len());
        for ParamHeader { path, header } in &self.0 {
            if let Some(text) = value_at(arguments, path)? {
                let name = format!("{}{}", header::PARAM_PREFIX, header.to_ascii_lowercase());
                values.push((name, header::encode_value(&text)));
            }
        }
        Ok(values)
    }

    /// Walks the objects that `properties` alone lead to.
    fn walk(
        &mut self,
        schema: &serde_json::Map<String, Value>,
        path: &mut Vec<String>,
    ) -> Result<(), InvalidParamHeader> {
        for (key, value) in schema {
            match key.as_str() {
                ANNOTATION => self.add(schema, value, path)?,
                "properties" => {
                    for (name, property) in value.as_object().into_iter().flatten() {
                        if let Value::Object(property) = property {
                            path.push(name.clone());
                            self.walk(property, path)?;
                            path.pop();
                        }
                    }
                }
                // instance data: a member of this name in there means nothing
                "default" | "const" | "enum" | "examples" => {}
                _ if holds_annotation(key, value) => {
                    return Err(InvalidParamHeader(format!(
                        "below {key:?} cannot be mirrored: only `properties` may lead to it"
                    )));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn add(
        &mut self,
        schema: &serde_json::Map<String, Value>,
        value: &Value,
        path: &[String],
    ) -> Result<(), InvalidParamHeader> {
        let property = path.join(".");
        let fault = |rule: &str| Err(InvalidParamHeader(format!("of {property:?} {rule}")));
        let Some(name) = value.as_str() else {
            return fault("must be a string");
        };
        if name.is_empty() || http::HeaderName::from_bytes(name.as_bytes()).is_err() {
            return fault("must be a header name");
        }
        let mut others = self.0.iter();
        if others.any(|other| other.header.eq_ignore_ascii_case(name)) {
            return fault("uses a name that is taken");
        }
        let kind = schema.get("type").and_then(Value::as_str);
        if !matches!(kind, Some("string" | "integer" | "boolean")) {
            return fault("must mark a string, integer or boolean");
        }
        self.0.push(ParamHeader {
            path: path.to_vec(),
            header: name.to_owned(),
        });
        Ok(())
    }
}

/// Returns `true` if a subschema holds the annotation anywhere. `key` is the keyword it stands
/// under.
fn holds_annotation(key: &str, value: &Value) -> bool {
    // these map names to schemas, so a member of the annotation's name is a name there
    let names = matches!(
        key,
        "$defs" | "definitions" | "dependentSchemas" | "patternProperties" | "properties"
    );
    match value {
        Value::Object(members) => members.iter().any(|(name, member)| match name.as_str() {
            _ if names => holds_annotation("", member),
            ANNOTATION => true,
            "default" | "const" | "enum" | "examples" => false,
            name => holds_annotation(name, member),
        }),
        Value::Array(items) => items.iter().any(|item| holds_annotation("", item)),
        _ => false,
    }
}

fn value_at(arguments: &[u8], path: &[String]) -> Result<Option<String>, InvalidObject> {
    let mut value = arguments;
    for (depth, name) in path.iter().enumerate() {
        if depth > 0 && value.first() != Some(&b'{') {
            return Ok(None);
        }
        match object::get_member(value, name)? {
            Some(member) => value = member,
            None => return Ok(None),
        }
    }
    Ok(match value.first() {
        Some(b'"') => serde_json::from_slice(value).ok(),
        Some(b't' | b'f' | b'-' | b'0'..=b'9') => {
            std::str::from_utf8(value).ok().map(str::to_owned)
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marked_arguments_become_headers() {
        let schema = r#"{"type":"object","properties":{
            "region":{"type":"string","x-mcp-header":"Region"},
            "deep":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}},
            "plain":{"type":"string","default":{"x-mcp-header":"no"}}}}"#;
        let headers = ParamHeaders::from_schema(schema).unwrap();
        let arguments = br#"{"region":"\u00fc","deep":{"n":12345678901234567890},"plain":"x"}"#;
        let mut values = headers.values(arguments).unwrap();
        values.sort_unstable();
        let expected = [
            ("mcp-param-n", "12345678901234567890"),
            ("mcp-param-region", "=?base64?w7w=?="),
        ];
        assert_eq!(
            values,
            expected.map(|(name, value)| (name.into(), value.into()))
        );
        let none = headers.values(br#"{"region":null,"deep":3}"#).unwrap();
        assert!(none.is_empty(), "{none:?}");
        assert!(headers.values(br#"{"region":"a","region":"b"}"#).is_err());
    }

    #[test]
    fn a_broken_annotation_says_which_rule() {
        let property = |rest: &str| format!(r#"{{"properties":{{"a":{{{rest}}}}}}}"#);
        let items = r#""type":"array","items":{"type":"string","x-mcp-header":"A"}"#;
        let twice =
            r#""type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a""#;
        let cases = [
            (r#"{"x-mcp-header":"A"}"#.to_owned(), "property"),
            (property(r#""type":"string","x-mcp-header":7"#), "a string"),
            (property(r#""type":"string","x-mcp-header":"a b""#), "name"),
            (property(r#""type":"number","x-mcp-header":"A""#), "integer"),
            (property(items), "items"),
            (property(twice), "taken"),
        ];
        for (schema, word) in cases {
            let error = ParamHeaders::from_schema(&schema)
                .expect_err(&schema)
                .to_string();
            assert!(error.contains(word), "{schema}: {error}");
        }
    }
}
