//! The answer to `tools/list`, written once for each generation, when a client first asks.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use memchr::memmem;

use super::answer::one_line;
use super::intro;
use super::{Backend, Introduction, ToolListing};
use crate::wire::{Era, ParamHeaders, meta, object, write};

/// The current list, kept until its generation changes. A request costs one comparison, however
/// many tools there are.
#[derive(Debug, Default)]
pub(super) struct Listings {
    current: ArcSwapOption<Written>,
}

/// One generation of the list. Calls only look up which of their headers to check: a long list is
/// written for those who ask for it.
#[derive(Debug)]
pub(super) struct Written {
    listing: Arc<ToolListing>,
    info: Introduction,
    legacy: OnceLock<Bytes>,
    modern: OnceLock<Bytes>,
    mirrored: HashMap<String, ParamHeaders>,
}

impl Listings {
    /// Returns the list as of now.
    pub(super) fn current(&self, backend: &impl Backend) -> Arc<Written> {
        let listing = backend.tools();
        if let Some(written) = self.current.load_full()
            && written.listing.generation == listing.generation
        {
            return written;
        }
        // two requests may both do it, and neither waits for the other
        let written = Arc::new(Written::new(listing, backend.info()));
        self.current.store(Some(Arc::clone(&written)));
        written
    }
}

impl Written {
    fn new(listing: Arc<ToolListing>, info: Introduction) -> Self {
        let mirroring = |tool: &&Bytes| memmem::find(tool, b"x-mcp-header").is_some();
        let mirrored = listing.tools.iter().filter(mirroring);
        let mirrored = mirrored
            .filter_map(|tool| mirrored_of(&object::members(tool).ok()?))
            .collect();
        Self {
            listing,
            info,
            legacy: OnceLock::new(),
            modern: OnceLock::new(),
            mirrored,
        }
    }

    /// Returns the whole result object. One with a `_meta` of its own is written for its request.
    pub(super) fn result(&self, era: Era, meta: Option<&Bytes>) -> Bytes {
        let kept = match (era, meta) {
            (_, Some(meta)) => return self.write(era, meta),
            (Era::Legacy, None) => &self.legacy,
            (Era::Modern, None) => &self.modern,
        };
        kept.get_or_init(|| self.write(era, b"{}")).clone()
    }

    /// Writes the list. What a client may see depends on who it is, so it is never called public.
    fn write(&self, era: Era, meta: &[u8]) -> Bytes {
        let listed = &self.listing.tools;
        let mut tools = Vec::with_capacity(listed.iter().map(|tool| tool.len() + 1).sum());
        tools.push(b'[');
        for tool in listed {
            // one unreadable definition must not make the whole list unreadable
            if object::check(tool).is_err() {
                tracing::warn!(
                    bytes = tool.len(),
                    "a tool that is not a JSON object is not listed"
                );
                continue;
            }
            if tools.len() > 1 {
                tools.push(b',');
            }
            tools.extend_from_slice(tool);
        }
        tools.push(b']');
        let meta = self.meta(era, &object::members(meta).unwrap_or_default());
        let mut out = Vec::with_capacity(tools.len() + meta.len() + 128);
        out.push(b'{');
        if era == Era::Modern {
            write::member(&mut out, "resultType", b"\"complete\"");
        }
        write::member(&mut out, "tools", &tools);
        if era == Era::Modern {
            write::member(&mut out, "ttlMs", b"0");
            write::member(&mut out, "cacheScope", b"\"private\"");
        }
        if meta.len() > 2 {
            write::member(&mut out, "_meta", &meta);
        }
        out.push(b'}');
        one_line(out.into())
    }

    fn meta(&self, era: Era, listed: &[object::Member<'_>]) -> Vec<u8> {
        let mut out = vec![b'{'];
        if era == Era::Modern {
            let server = intro::implementation(&self.info).to_string();
            write::member(&mut out, meta::SERVER_INFO, server.as_bytes());
        }
        for (name, value) in listed {
            if name != meta::SERVER_INFO {
                write::member(&mut out, name, value);
            }
        }
        out.push(b'}');
        out
    }

    /// Returns which arguments of a tool must come mirrored in headers, if any.
    pub(super) fn mirrored(&self, tool: &str) -> Option<&ParamHeaders> {
        self.mirrored.get(tool)
    }
}

fn mirrored_of(members: &[object::Member<'_>]) -> Option<(String, ParamHeaders)> {
    let value = |wanted: &str| {
        let (_, value) = members.iter().find(|(name, _)| name == wanted)?;
        std::str::from_utf8(value).ok()
    };
    let name: String = serde_json::from_str(value("name")?).ok()?;
    match ParamHeaders::from_schema(value("inputSchema")?) {
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

    fn text(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }

    #[test]
    fn tools_are_listed_byte_for_byte_and_a_broken_one_is_left_out() {
        let listing = ToolListing::new(
            1,
            vec![
                Bytes::from_static(b"{ \"name\" : \"a\", \"x\": 1e2 }"),
                Bytes::from_static(b"{\"name\":"),
                Bytes::from_static(b"{\"name\":\"b\"}"),
            ],
        );
        let info = Introduction::new("gate", "1");
        let written = Written::new(Arc::new(listing), info);
        assert!(written.mirrored("a").is_none());
        // a call looks up its headers, and a long list is not written for that
        assert_eq!((written.legacy.get(), written.modern.get()), (None, None));
        assert_eq!(
            text(&written.result(Era::Legacy, None)),
            r#"{"tools":[{ "name" : "a", "x": 1e2 },{"name":"b"}]}"#
        );
        assert_eq!(
            text(&written.result(Era::Modern, None)),
            concat!(
                r#"{"resultType":"complete","tools":[{ "name" : "a", "x": 1e2 },{"name":"b"}],"#,
                r#""ttlMs":0,"cacheScope":"private","#,
                r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"gate","version":"1"}}}"#
            )
        );
    }

    #[test]
    fn the_list_s_own_metadata_is_kept_beside_ours() {
        let listing = ToolListing::new(1, Vec::new());
        let written = Written::new(Arc::new(listing), Introduction::new("gate", "1"));
        let meta = Bytes::from_static(br#"{"x/y":[1], "z":false}"#);
        assert_eq!(
            text(&written.result(Era::Legacy, Some(&meta))),
            r#"{"tools":[],"_meta":{"x/y":[1],"z":false}}"#
        );
        let modern = written.result(Era::Modern, Some(&meta));
        assert!(text(&modern).ends_with(r#""x/y":[1],"z":false}}"#));
    }
}
