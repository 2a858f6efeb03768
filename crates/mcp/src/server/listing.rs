//! The answer to `tools/list`, written once for each listing, when a client first asks.

use std::collections::HashMap;
use std::sync::OnceLock;

use bytes::Bytes;
use memchr::memmem;
use serde_json::{Map, Value};

use super::intro;
use super::{Introduction, ToolListing};
use crate::wire::{Era, ParamHeaders, object, write};

/// What is written of one listing. Calls only look up which of their headers to check: a long list
/// is written for those who ask for it.
#[derive(Debug)]
pub(super) struct Written {
    info: Introduction,
    legacy: OnceLock<Bytes>,
    modern: OnceLock<Bytes>,
    mirrored: HashMap<String, ParamHeaders>,
}

impl ToolListing {
    fn written(&self, info: impl FnOnce() -> Introduction) -> &Written {
        self.written.get_or_init(|| {
            let mirroring = |tool: &&Bytes| memmem::find(tool, b"x-mcp-header").is_some();
            let mirrored = self.tools().iter().filter(mirroring);
            Written {
                info: info(),
                legacy: OnceLock::new(),
                modern: OnceLock::new(),
                mirrored: mirrored.filter_map(|tool| mirrored_of(tool)).collect(),
            }
        })
    }

    /// Returns the whole result object. One with a `_meta` of its own is written for its request.
    pub(super) fn result(
        &self,
        info: impl FnOnce() -> Introduction,
        era: Era,
        meta: Option<Map<String, Value>>,
    ) -> Bytes {
        let written = self.written(info);
        let kept = match (era, meta) {
            (_, Some(meta)) => return self.write(&written.info, era, meta),
            (Era::Legacy, None) => &written.legacy,
            (Era::Modern, None) => &written.modern,
        };
        kept.get_or_init(|| self.write(&written.info, era, Map::new()))
            .clone()
    }

    fn write(&self, info: &Introduction, era: Era, meta: Map<String, Value>) -> Bytes {
        let listed = self.tools();
        let length = listed.iter().map(|tool| tool.len() + 1).sum::<usize>();
        let mut out = intro::result(era, info, meta).to_string().into_bytes();
        out.reserve(length + 12);
        // what the tools are added to
        out.pop();
        write::member(&mut out, "tools", b"[");
        for tool in listed {
            // one unreadable definition must not make the whole list unreadable
            if object::check(tool).is_err() {
                tracing::warn!(
                    bytes = tool.len(),
                    "a tool that is not a JSON object is not listed"
                );
                continue;
            }
            if out.last() != Some(&b'[') {
                out.push(b',');
            }
            out.extend_from_slice(tool);
        }
        out.extend_from_slice(b"]}");
        out.into()
    }

    /// Returns which arguments of a tool must come mirrored in headers, if any.
    pub(super) fn mirrored(
        &self,
        info: impl FnOnce() -> Introduction,
        tool: &str,
    ) -> Option<&ParamHeaders> {
        self.written(info).mirrored.get(tool)
    }
}

fn mirrored_of(tool: &[u8]) -> Option<(String, ParamHeaders)> {
    let members = object::members(tool).ok()?;
    let name: String = serde_json::from_str(members.last("name")?.get()).ok()?;
    match ParamHeaders::from_schema(members.last("inputSchema")?.get()) {
        Ok(headers) if !headers.is_empty() => Some((name, headers)),
        Ok(_) => None,
        Err(error) => {
            tracing::warn!(tool = name, %error, "mirrored headers of this tool are not checked");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate() -> Introduction {
        Introduction::new("gate", "1")
    }

    #[test]
    fn tools_are_listed_byte_for_byte_and_a_broken_one_is_left_out() {
        let raw = [
            "{ \"name\" : \"a\", \"x\": 1e2 }",
            "{\"name\":",
            "{\"name\":\"b\"}",
        ];
        let listing = ToolListing::new(1, raw.map(Bytes::from).into());
        assert!(listing.mirrored(gate, "a").is_none());
        // a call looks up its headers, and a long list is not written for that
        let written = listing.written(gate);
        assert_eq!((written.legacy.get(), written.modern.get()), (None, None));
        let tools = r#""tools":[{ "name" : "a", "x": 1e2 },{"name":"b"}]}"#;
        let server = r#""io.modelcontextprotocol/serverInfo":{"name":"gate","version":"1"}"#;
        let modern = r#"},"cacheScope":"private","resultType":"complete","ttlMs":0,"#;
        for (era, is_own, before) in [
            (Era::Legacy, false, String::new()),
            (Era::Legacy, true, r#""_meta":{"x/y":1},"#.to_owned()),
            (Era::Modern, false, format!(r#""_meta":{{{server}{modern}"#)),
            (
                Era::Modern,
                true,
                format!(r#""_meta":{{{server},"x/y":1{modern}"#),
            ),
        ] {
            let own = is_own.then(|| Map::from_iter([("x/y".to_owned(), Value::from(1))]));
            assert_eq!(listing.result(gate, era, own), format!("{{{before}{tools}"));
        }
    }
}
