//! The answer to `tools/list`, written once for each generation of the list.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use memchr::memmem;

use super::answer::one_line;
use super::intro::{self, Implementation};
use super::{Backend, FaceInfo, ToolListing};
use crate::wire::{Era, ParamHeaders, meta, object, write};

/// The written list, kept until its generation changes. A request costs one comparison, however
/// many tools there are.
#[derive(Debug, Default)]
pub(super) struct Listings {
    current: ArcSwapOption<Written>,
}

/// One generation of the list, ready to be sent.
#[derive(Debug)]
pub(super) struct Written {
    generation: u64,
    legacy: Bytes,
    modern: Bytes,
    mirrored: HashMap<String, ParamHeaders>,
}

impl Listings {
    /// Returns the list as of now.
    pub(super) fn current(&self, backend: &impl Backend) -> Arc<Written> {
        let listing = backend.tools();
        if let Some(written) = self.current.load_full()
            && written.generation == listing.generation
        {
            return written;
        }
        // two requests may both write it: neither waits for the other
        let written = Arc::new(Written::new(&listing, &backend.info()));
        self.current.store(Some(Arc::clone(&written)));
        written
    }
}

impl Written {
    fn new(listing: &ToolListing, info: &FaceInfo) -> Self {
        let mut tools = Vec::with_capacity(listing.tools.iter().map(|tool| tool.len() + 1).sum());
        let mut mirrored = HashMap::new();
        for tool in &listing.tools {
            // one unreadable definition must not make the whole list unreadable
            let Ok(members) = object::members(tool) else {
                tracing::warn!(
                    bytes = tool.len(),
                    "a tool that is no JSON object is not listed"
                );
                continue;
            };
            if !tools.is_empty() {
                tools.push(b',');
            }
            tools.extend_from_slice(tool);
            if memmem::find(tool, b"x-mcp-header").is_some() {
                mirrored.extend(mirrored_of(&members));
            }
        }
        let listed = listing.meta.as_deref().unwrap_or_default();
        let listed = object::members(listed).unwrap_or_default();
        Self {
            generation: listing.generation,
            legacy: legacy(&tools, &listed),
            modern: modern(&tools, &listed, info),
            mirrored,
        }
    }

    /// Returns the whole result object.
    pub(super) fn result(&self, era: Era) -> &Bytes {
        match era {
            Era::Legacy => &self.legacy,
            Era::Modern => &self.modern,
        }
    }

    /// Returns which arguments of a tool must come mirrored in headers, if any.
    pub(super) fn mirrored(&self, tool: &str) -> Option<&ParamHeaders> {
        self.mirrored.get(tool)
    }
}

fn legacy(tools: &[u8], listed: &[object::Member<'_>]) -> Bytes {
    let mut out = Vec::with_capacity(tools.len() + 64);
    out.extend_from_slice(b"{\"tools\":[");
    out.extend_from_slice(tools);
    out.push(b']');
    if !listed.is_empty() {
        write::member(&mut out, "_meta", &meta_object(None, listed));
    }
    out.push(b'}');
    one_line(out.into())
}

/// What a client may see depends on who it is, so the list is never called public.
fn modern(tools: &[u8], listed: &[object::Member<'_>], info: &FaceInfo) -> Bytes {
    let server = intro::json(&Implementation::of(info));
    let ttl = u64::try_from(info.list_ttl.as_millis()).unwrap_or(u64::MAX);
    let mut out = Vec::with_capacity(tools.len() + server.len() + 192);
    out.extend_from_slice(b"{\"resultType\":\"complete\",\"tools\":[");
    out.extend_from_slice(tools);
    out.push(b']');
    write::member(&mut out, "ttlMs", ttl.to_string().as_bytes());
    write::member(&mut out, "cacheScope", b"\"private\"");
    write::member(&mut out, "_meta", &meta_object(Some(&server), listed));
    out.push(b'}');
    one_line(out.into())
}

fn meta_object(server: Option<&[u8]>, listed: &[object::Member<'_>]) -> Vec<u8> {
    let mut out = vec![b'{'];
    if let Some(server) = server {
        write::member(&mut out, meta::SERVER_INFO, server);
    }
    for (name, value) in listed {
        if name != meta::SERVER_INFO {
            write::member(&mut out, name, value);
        }
    }
    out.push(b'}');
    out
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
    use std::time::Duration;

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
        let info = FaceInfo::new("gate", "1").with_list_ttl(Duration::from_secs(2));
        let written = Written::new(&listing, &info);
        assert_eq!(
            text(written.result(Era::Legacy)),
            r#"{"tools":[{ "name" : "a", "x": 1e2 },{"name":"b"}]}"#
        );
        assert_eq!(
            text(written.result(Era::Modern)),
            concat!(
                r#"{"resultType":"complete","tools":[{ "name" : "a", "x": 1e2 },{"name":"b"}],"#,
                r#""ttlMs":2000,"cacheScope":"private","#,
                r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"gate","version":"1"}}}"#
            )
        );
    }

    #[test]
    fn the_list_s_own_metadata_is_kept_beside_ours() {
        let listing = ToolListing::new(1, Vec::new())
            .with_meta(Bytes::from_static(br#"{"x/y":[1], "z":false}"#));
        let written = Written::new(&listing, &FaceInfo::new("gate", "1"));
        assert_eq!(
            text(written.result(Era::Legacy)),
            r#"{"tools":[],"_meta":{"x/y":[1],"z":false}}"#
        );
        assert!(text(written.result(Era::Modern)).ends_with(r#""x/y":[1],"z":false}}"#));
    }
}
