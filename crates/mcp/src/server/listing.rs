//! The answer to `tools/list`, written once for each listing, when a client first asks.

use std::collections::HashMap;
use std::sync::OnceLock;

use bytes::Bytes;
use memchr::memmem;
use serde_json::{Map, Value};

use super::intro;
use super::{Introduction, ToolListing};
use crate::wire::{Era, ParamHeaders, object, tasks, write};

/// What is written of one listing. Calls only look up which of their headers to check: a long list
/// is written for those who ask for it.
#[derive(Debug)]
pub(super) struct Written {
    info: Introduction,
    /// For each audience.
    results: [OnceLock<Bytes>; Audience::COUNT],
    mirrored: HashMap<String, ParamHeaders>,
}

/// Whom a list is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Audience {
    Legacy,
    Modern,
    /// Modern clients that understand tasks.
    TakesTasks,
}

impl Audience {
    const COUNT: usize = 3;

    pub(super) fn new(era: Era, take_tasks: bool) -> Self {
        match (era, take_tasks) {
            (Era::Legacy, _) => Self::Legacy,
            (Era::Modern, false) => Self::Modern,
            (Era::Modern, true) => Self::TakesTasks,
        }
    }

    const fn era(self) -> Era {
        match self {
            Self::Legacy => Era::Legacy,
            Self::Modern | Self::TakesTasks => Era::Modern,
        }
    }

    /// Returns a tool as these clients see it; `None` if they cannot use it. What a legacy client
    /// reads of tasks is about others than those that are relayed.
    fn sees(self, tool: &Bytes) -> Option<Bytes> {
        if self != Self::TakesTasks && tasks::are_required(tool) {
            return None;
        }
        let without = (self == Self::Legacy).then(|| tasks::without_support(tool));
        Some(without.flatten().unwrap_or_else(|| tool.clone()))
    }
}

impl ToolListing {
    fn written(&self, info: impl FnOnce() -> Introduction) -> &Written {
        self.written.get_or_init(|| {
            let mirroring = |tool: &&Bytes| memmem::find(tool, b"x-mcp-header").is_some();
            let mirrored = self.tools().iter().filter(mirroring);
            Written {
                info: info(),
                results: Default::default(),
                mirrored: mirrored.filter_map(|tool| mirrored_of(tool)).collect(),
            }
        })
    }

    /// Returns the whole result object. One with a `_meta` of its own is written for its request.
    pub(super) fn result(
        &self,
        info: impl FnOnce() -> Introduction,
        audience: Audience,
        meta: Option<Map<String, Value>>,
    ) -> Bytes {
        let written = self.written(info);
        let write = |meta| self.write(&written.info, audience, meta);
        match meta {
            Some(meta) => write(meta),
            None => written.results[audience as usize]
                .get_or_init(|| write(Map::new()))
                .clone(),
        }
    }

    fn write(&self, info: &Introduction, audience: Audience, meta: Map<String, Value>) -> Bytes {
        let listed = self.tools();
        let length = listed.iter().map(|tool| tool.len() + 1).sum::<usize>();
        let mut out = intro::result(audience.era(), info, meta)
            .to_string()
            .into_bytes();
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
            let Some(tool) = audience.sees(tool) else {
                continue;
            };
            if out.last() != Some(&b'[') {
                out.push(b',');
            }
            out.extend_from_slice(&tool);
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
        assert!(written.results.iter().all(|list| list.get().is_none()));
        let tools = r#""tools":[{ "name" : "a", "x": 1e2 },{"name":"b"}]}"#;
        let server = r#""io.modelcontextprotocol/serverInfo":{"name":"gate","version":"1"}"#;
        let modern = r#"},"cacheScope":"private","resultType":"complete","ttlMs":0,"#;
        for (audience, is_own, before) in [
            (Audience::Legacy, false, String::new()),
            (Audience::Legacy, true, r#""_meta":{"x/y":1},"#.to_owned()),
            (
                Audience::Modern,
                false,
                format!(r#""_meta":{{{server}{modern}"#),
            ),
            (
                Audience::TakesTasks,
                true,
                format!(r#""_meta":{{{server},"x/y":1{modern}"#),
            ),
        ] {
            let own = is_own.then(|| Map::from_iter([("x/y".to_owned(), Value::from(1))]));
            assert_eq!(
                listing.result(gate, audience, own),
                format!("{{{before}{tools}")
            );
        }
    }

    #[test]
    fn each_audience_sees_the_tools_that_it_can_use() {
        let tool = |name| format!(r#"{{"name":"{name}","execution":{{"taskSupport":"{name}"}}}}"#);
        let listing = ["required", "optional"].map(tool).map(Bytes::from).into();
        let listing = ToolListing::new(1, listing);
        for (audience, seen) in [
            (
                Audience::Legacy,
                r#"{"name":"optional","execution":{}}"#.to_owned(),
            ),
            (Audience::Modern, tool("optional")),
            (
                Audience::TakesTasks,
                format!("{},{}", tool("required"), tool("optional")),
            ),
        ] {
            let list = listing.result(gate, audience, None);
            let tools = format!(r#""tools":[{seen}]}}"#);
            assert!(list.ends_with(tools.as_bytes()), "{audience:?}: {list:?}");
        }
    }
}
