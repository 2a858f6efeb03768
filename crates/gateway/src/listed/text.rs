//! From JSON text to tools: one object a line, a list of tools, or the answer to `tools/list`.

use std::collections::HashMap;

use serde_json::value::RawValue;

use super::{Found, Listed};

/// Some editors write it at the beginning.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// Splits a text. Each line is an object; if the first is not complete, all of it may be one.
pub(super) fn split(name: &str, bytes: &[u8]) -> Vec<Found> {
    let bytes = bytes.strip_prefix(BOM).unwrap_or(bytes);
    let mut reader = Reader::default();
    if let Some(document) = document(bytes) {
        reader.value(name.to_owned(), document.as_bytes());
        return reader.found;
    }
    for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
        let line = line.trim_ascii();
        if !line.is_empty() {
            reader.value(format!("{name}:{number}"), line);
        }
    }
    reader.found
}

/// Takes the text as one value over several lines.
fn document(bytes: &[u8]) -> Option<&str> {
    let text = bytes.trim_ascii();
    let first = text.split(|byte| *byte == b'\n').next()?;
    if first.len() == text.len() || serde_json::from_slice::<&RawValue>(first).is_ok() {
        return None;
    }
    let whole = serde_json::from_slice::<&RawValue>(text).ok();
    whole.map(RawValue::get)
}

#[derive(Default)]
struct Reader {
    found: Vec<Found>,
    servers: HashMap<String, usize>,
    groups: usize,
}

impl Reader {
    /// Reads one value: a tool, or a list of tools in one of its forms.
    fn value(&mut self, place: String, bytes: &[u8]) {
        let read = Listed::read(bytes);
        let list = match &read {
            Ok(read) => list(read),
            Err(_) => serde_json::from_slice(bytes)
                .ok()
                .map(|tools| (tools, None)),
        };
        let Some((tools, server)) = list else {
            let tool = read.and_then(Listed::into_tool);
            let server = tool.as_ref().ok().and_then(|tool| tool.server.as_deref());
            let group = self.group(server);
            self.found.push(Found { place, group, tool });
            return;
        };
        // they are of one server, named or not
        let all = self.group(server);
        for (at, raw) in (1..).zip(tools) {
            let mut tool = Listed::read(raw.get().as_bytes()).and_then(Listed::into_tool);
            let mut group = all;
            if let Ok(tool) = &mut tool {
                match tool.server.as_deref() {
                    None => tool.server = server.map(ToOwned::to_owned),
                    own => group = self.group(own),
                }
            }
            let place = format!("{place}: tool {at}");
            self.found.push(Found { place, group, tool });
        }
    }

    /// Returns the group of a server. A tool without a server is a group of its own.
    fn group(&mut self, server: Option<&str>) -> usize {
        let next = self.groups;
        let group = match server {
            Some(server) => *self.servers.entry(server.to_owned()).or_insert(next),
            None => next,
        };
        if group == next {
            self.groups += 1;
        }
        group
    }
}

/// Takes the tools out of `{"tools": [...]}` or `{"result": {"tools": [...]}}`.
fn list(read: &Listed) -> Option<(Vec<Box<RawValue>>, Option<&str>)> {
    let (server, is_named) = (read.server.as_deref(), read.name.is_some());
    let tools = |raw: &RawValue| serde_json::from_str::<Vec<Box<RawValue>>>(raw.get()).ok();
    if let Some(raw) = &read.tools {
        let tools = tools(raw)?;
        // a tool may have a member of this name too, and must not be lost
        let objects = !tools.is_empty() && tools.iter().all(|tool| tool.get().starts_with('{'));
        return (objects || !is_named).then_some((tools, server));
    }
    let inner: Listed = serde_json::from_str(read.result.as_ref()?.get()).ok()?;
    let tools = tools(inner.tools.as_ref()?)?;
    (!is_named).then_some((tools, server))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        split("f", text.as_bytes())
            .iter()
            .map(|found| match &found.tool {
                Ok(tool) => tool.name().to_owned(),
                Err(fault) => format!("{}: {fault}", found.place),
            })
            .collect()
    }

    const LISTS: &str = include_str!("../../tests/golden/lists.txt");

    #[test]
    fn every_form_of_a_list_is_read_and_what_is_no_tool_is_said_at_its_place() {
        for list in LISTS.split("---\n").skip(1) {
            let (text, expected) = list.split_once("=>\n").unwrap();
            assert_eq!(names(text), expected.lines().collect::<Vec<_>>(), "{text}");
        }
        let marked = "\u{feff}{\"name\":\"a\"}\r\n\r\n  \n{\"name\":\"b\"}\r\n";
        assert_eq!(names(marked), ["a", "b"]);
        let found = split("f", b"{\"name\":\"a\"}\n{\"name\":\"\xff\"}\n");
        let said = found[1].tool.as_ref().unwrap_err().to_string();
        assert!(
            found[0].tool.is_ok() && said.starts_with("is not UTF-8"),
            "{said}"
        );
    }

    #[test]
    fn both_spellings_of_the_schema_are_read_but_not_together() {
        for name in ["inputSchema", "input_schema"] {
            let text = format!(r#"{{"name":"a","{name}":{{"type":"object"}},"description":null}}"#);
            let found = split("f", text.as_bytes());
            let tool = found[0].tool.as_ref().unwrap();
            assert!(tool.subject().input_schema.is_some(), "{name}");
            assert_eq!(tool.subject().description, None);
        }
        let both = names(r#"{"name":"a","inputSchema":{},"input_schema":{}}"#);
        assert!(
            both[0].contains("duplicate field `inputSchema`"),
            "{both:?}"
        );
    }

    #[test]
    fn tools_of_one_server_are_one_group_wherever_they_stand() {
        let text = "{\"name\":\"a\",\"server\":\"x\"}\n{\"name\":\"b\"}\n\
             {\"tools\":[{\"name\":\"c\"},{\"name\":\"d\"}]}\n{\"name\":\"e\",\"server\":\"x\"}\n\
             {\"server\":\"x\",\"tools\":[{\"name\":\"f\"},{\"name\":\"g\",\"server\":\"y\"}]}\n{\"name\":\"h\"}";
        let groups: Vec<_> = split("f", text.as_bytes())
            .iter()
            .map(|found| found.group)
            .collect();
        assert_eq!(groups, [0, 1, 2, 2, 0, 0, 3, 4]);
    }

    #[test]
    fn hints_of_the_wrong_type_are_named() {
        let text =
            r#"{"name":"a","annotations":{"readOnlyHint":"yes","costHint":true,"title":"t"}}"#;
        let found = split("f", text.as_bytes());
        let fault = found[0].tool.as_ref().unwrap().declared().unwrap_err();
        assert_eq!(
            fault.to_string(),
            "tool \"a\": annotations.costHint is true, not a number; \
             annotations.readOnlyHint is \"yes\", not true or false"
        );
        for twice in [
            r#"{"readOnly":true,"readOnlyHint":false}"#,
            r#"{"costHint":1e999}"#,
        ] {
            let text = format!(r#"{{"name":"a","annotations":{twice}}}"#);
            let found = split("f", text.as_bytes());
            let said = found[0].tool.as_ref().unwrap().declared().unwrap_err();
            assert!(said.to_string().contains(": annotations"), "{said}");
        }
    }
}
