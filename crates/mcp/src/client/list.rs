//! `tools/list`, page by page.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use callward_core::{ServerId, ToolDefinition};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::ask::Ask;
use crate::wire::{Era, ParamHeaders, tasks, write};

/// More pages count as a loop.
const MAX_PAGES: usize = 1000;
/// No list of tools is longer than this, in bytes, all pages of it.
const MAX_BYTES: usize = 16 * 1024 * 1024;
/// No more tools of one list that cannot be used are kept, to say why: a list may have millions.
const MAX_FAULTY: usize = 1000;

/// Why a tool is not offered.
const ONLY_TASKS: &str = "it can be called as a task only (`execution.taskSupport` is \"required\"), \
                          and tasks of revision 2025-11-25 are not relayed";

/// No more tools than this are read: one more than are offered, so that it is seen that there are
/// more.
const MAX_TOOLS: usize = 10_001;

/// Puts the pages together. Pure: it returns the next request and takes the answers.
#[derive(Debug, Default)]
pub(super) struct Pages {
    /// The elements, as the server wrote them.
    pub(super) elements: Vec<Bytes>,
    cursors: HashSet<String>,
    pages: usize,
    pub(super) bytes: usize,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a> {
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
    #[serde(default)]
    next_cursor: Option<String>,
}

impl Pages {
    /// Takes a page; returns the request for the next one, nothing after the last.
    ///
    /// A cursor is opaque, and may be empty: only a missing one ends the list.
    pub(super) fn take(&mut self, page: &[u8]) -> Result<Option<Ask<'static>>, String> {
        self.bytes = self.bytes.saturating_add(page.len());
        if self.bytes > MAX_BYTES {
            return Err(format!("its list of tools exceeds {MAX_BYTES} bytes"));
        }
        let page: Page<'_> = serde_json::from_slice(page)
            .map_err(|error| format!("its list of tools cannot be read: {error}"))?;
        self.pages += 1;
        // copied one by one, so that a kept definition does not keep the whole page
        let tools = page.tools.iter().take(MAX_TOOLS - self.elements.len());
        let copies = tools.map(|tool| Bytes::copy_from_slice(tool.get().as_bytes()));
        self.elements.extend(copies);
        let Some(cursor) = page.next_cursor.filter(|_| self.elements.len() < MAX_TOOLS) else {
            return Ok(None);
        };
        if self.pages >= MAX_PAGES {
            return Err(format!("its list of tools has more than {MAX_PAGES} pages"));
        }
        let mut params = b"{\"cursor\":".to_vec();
        write::string(&mut params, &cursor);
        params.push(b'}');
        if !self.cursors.insert(cursor) {
            return Err("its list of tools goes in a circle: a cursor came twice".to_owned());
        }
        Ok(Some(Ask::new("tools/list", params)))
    }

    /// Reads the definitions. One that cannot be used has a [fault](ToolDefinition::fault), and
    /// hides no other.
    ///
    /// With `mirrored`, arguments are mirrored into headers: then a tool that marks
    /// them in a way the protocol forbids may not be used either. What a server of an earlier era
    /// says of tasks is about others than those that are relayed.
    pub(super) fn finish(self, server: &ServerId, mirrored: bool, era: Era) -> Listing {
        let mut listing = Listing::default();
        let mut faulty = 0_usize;
        for (at, raw) in self.elements.into_iter().enumerate() {
            let mut definition = ToolDefinition::from_list(raw, at + 1);
            if mirrored && let Some(schema) = &definition.input_schema {
                match ParamHeaders::from_schema(schema.get()) {
                    Ok(headers) => {
                        let name = definition.name.as_str().to_owned();
                        listing.headers.insert(name, Arc::new(headers));
                    }
                    Err(error) => definition = definition.with_fault(&error.to_string()),
                }
            }
            if era == Era::Legacy {
                if definition.requires_task {
                    definition = definition.with_fault(ONLY_TASKS);
                }
                if let Some(raw) = tasks::without_support(&definition.raw) {
                    definition.raw = raw;
                }
            }
            faulty += usize::from(definition.fault.is_some());
            if definition.fault.is_none() || faulty <= MAX_FAULTY {
                listing.tools.push(definition);
            }
        }
        if let Some(more @ 1..) = faulty.checked_sub(MAX_FAULTY) {
            tracing::warn!(%server, more, "listed tools are left out, beside those that are named");
        }
        listing
    }
}

/// A whole listing.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) tools: Vec<ToolDefinition>,
    /// Which arguments to mirror, by tool.
    pub(super) headers: HashMap<String, Arc<ParamHeaders>>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::ask::Style;
    use crate::client::carried::Carried;

    fn names(listing: &Listing) -> Vec<&str> {
        let names = listing.tools.iter().map(|tool| tool.name.as_str());
        names.collect()
    }

    #[test]
    fn no_more_is_read_than_is_offered_and_one() {
        let page = format!(r#"{{"tools":[{}1],"nextCursor":"a"}}"#, "1,".repeat(5999));
        let mut pages = Pages::default();
        assert!(pages.take(page.as_bytes()).unwrap().is_some());
        assert!(pages.take(page.as_bytes()).unwrap().is_none());
        assert_eq!(pages.elements.len(), 10_001);
    }

    #[test]
    fn an_empty_cursor_is_a_cursor_and_a_missing_one_the_end() {
        let mut pages = Pages::default();
        let first = br#"{"tools":[{"name":"a"}],"nextCursor":""}"#;
        let next = pages.take(first).unwrap().unwrap();
        let asked = next.to_message(1, &Style::unknown(Era::Legacy), &Carried::default());
        let asked = String::from_utf8(asked).unwrap();
        assert!(asked.contains(r#""params":{"cursor":""}"#), "{asked}");
        let last = br#"{"tools":[{"name":"b"}],"nextCursor":null}"#;
        assert!(pages.take(last).unwrap().is_none());
        let listing = pages.finish(&ServerId::new("s").unwrap(), false, Era::Modern);
        assert_eq!(names(&listing), ["a", "b"]);
    }

    #[test]
    fn a_circle_and_an_endless_list_are_errors() {
        let large = " ".repeat(MAX_BYTES / 4);
        for (is_same, content, pages_taken, word) in [
            (true, "", 1, "circle"),
            (false, "", MAX_PAGES - 1, "1000 pages"),
            (false, &large, 3, "bytes"),
        ] {
            let mut pages = Pages::default();
            let mut page = |number: usize| {
                let cursor = if is_same { 0 } else { number };
                let page = format!(r#"{{"tools":[{content}],"nextCursor":"{cursor}"}}"#);
                pages
                    .take(page.as_bytes())
                    .map(|next| assert!(next.is_some()))
            };
            for number in 0..pages_taken {
                assert_eq!(page(number), Ok(()), "{word}");
            }
            assert!(page(pages_taken).unwrap_err().contains(word));
        }
    }

    /// Reads a list of one page.
    fn listed(tools: &str, mirrored: bool) -> Listing {
        let mut pages = Pages::default();
        let page = format!(r#"{{"tools":[{tools}]}}"#);
        assert!(pages.take(page.as_bytes()).unwrap().is_none());
        pages.finish(&ServerId::new("s").unwrap(), mirrored, Era::Legacy)
    }

    #[test]
    fn a_broken_definition_hides_no_other_and_the_rest_keep_their_bytes() {
        let odd = r#"{ "name":"b", "inputSchema":{"type":"object"} , "x-vendor": 1e2 }"#;
        let bad = r#"{"name":"c","inputSchema":{"type":"object","properties":{"n":
            {"type":"number","x-mcp-header":"N"}}}}"#;
        let page = format!(r#"{{"name":7}},{odd},{bad},3"#);
        let listing = listed(&page, true);
        assert_eq!(names(&listing), ["#1", "b", "c", "#4"]);
        assert_eq!(&listing.tools[1].raw[..], odd.as_bytes());
        for (mirrored, expected) in [
            (true, [false, true, false, false]),
            (false, [false, true, true, false]),
        ] {
            let listing = listed(&page, mirrored);
            let usable = listing.tools.iter().map(|tool| tool.fault.is_none());
            assert_eq!(Vec::from_iter(usable), expected, "mirrored: {mirrored}");
        }
    }

    #[test]
    fn of_a_legacy_server_tools_that_need_tasks_are_not_offered() {
        let tool = |support| format!(r#"{{"name":"a","inputSchema":{{}},"execution":{support}}}"#);
        for (support, usable) in [("required", false), ("optional", true), ("forbidden", true)] {
            let said = format!(r#"{{"taskSupport":"{support}"}}"#);
            let listing = listed(&tool(said.clone()), false);
            assert_eq!(listing.tools[0].fault.is_none(), usable);
            let left = if support == "forbidden" {
                said
            } else {
                "{}".to_owned()
            };
            assert_eq!(&listing.tools[0].raw[..], tool(left).as_bytes());
        }
    }

    #[test]
    fn of_many_broken_definitions_a_thousand_are_kept_and_all_others() {
        let good = r#"{"name":"a","inputSchema":{}}"#;
        let listing = listed(&format!("{}{good}", "0,".repeat(5000)), false);
        assert_eq!(listing.tools.len(), MAX_FAULTY + 1);
        assert_eq!(names(&listing)[MAX_FAULTY], "a");
    }
}
