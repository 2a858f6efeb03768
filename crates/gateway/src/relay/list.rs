//! Lists of all servers: each has its share, and none hides or delays the others.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use callward::core::{Members, Method, nest_ours, readable};
use callward::registry::Catalogue;
use callward::{CallRecord, ErrorKind, Tool, ToolCall, ToolError, ToolOutput};
use futures_util::FutureExt as _;
use futures_util::future::join_all;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::time::timeout;

use super::{About, Request, failed};
use crate::assemble::with;

/// The code of an unknown method.
const METHOD_NOT_FOUND: i64 = -32601;
/// More pages of one set's list count as a loop.
const MAX_PAGES: usize = 100;
/// The longest list of all sets together, in bytes: each has an equal share.
const MAX_LIST: usize = 16 << 20;
/// How long the list of one set may delay those of others.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);
/// The largest element of a list, in bytes; and the longest of its names.
const MAX_ELEMENT: usize = 256 << 10;
const MAX_NAME: usize = 8 << 10;

impl Request<'_> {
    /// Lists what all sets have, in their order. A set that fails is left out, unless all fail.
    pub(super) async fn list<F>(&self, run: impl Fn(ToolCall) -> F) -> Result<ToolOutput, ToolError>
    where
        F: Future<Output = Result<ToolOutput, ToolError>>,
    {
        let catalogue = self.stack.catalogue();
        let answering: Vec<_> = self.answering(catalogue.methods()).collect();
        let most = MAX_LIST / answering.len().max(1);
        // a list alone delays no other
        let limit = match answering.len() {
            1 => Duration::MAX,
            _ => LIST_TIMEOUT,
        };
        let lists = answering.iter().map(|tool| {
            let pages = timeout(limit, self.pages(tool, &catalogue, most, &run));
            pages.map(|listed| {
                let late = |_| Err(failed(format!("no list within {limit:?}")));
                listed.unwrap_or_else(late)
            })
        });
        let (mut elements, mut names) = (Vec::new(), HashSet::new());
        let (mut failure, mut any_answered) = (None, false);
        for (listed, tool) in join_all(lists).await.into_iter().zip(&answering) {
            match listed {
                Ok(listed) => {
                    any_answered = true;
                    // of two sets without a prefix, the first one gets the requests
                    let new = listed
                        .into_iter()
                        .filter(|(name, _)| names.insert(name.clone()));
                    elements.extend(new.map(|(_, element)| element));
                }
                Err(error) => {
                    let (set, method) = (tool.set(), self.method);
                    match error.kind {
                        ErrorKind::Protocol => {
                            tracing::warn!(%set, %method, %error, "its list is left out");
                        }
                        // a server that is down is in the log already
                        _ => tracing::debug!(%set, %method, %error, "its list is left out"),
                    }
                    failure = failure.or(Some(error));
                }
            }
        }
        if let Some(error) = failure.filter(|_| !any_answered) {
            return Err(error);
        }
        let member = self.method.result_member().unwrap_or_default();
        let elements: Vec<_> = elements.iter().map(|element| element.get()).collect();
        let list = format!(r#"{{"{member}":[{}]}}"#, elements.join(","));
        let list = ToolOutput::from_json(list).map_err(|error| failed(error.to_string()));
        list.map(|list| self.with_own_scope(list))
    }

    /// Lists what one set has under its names, all pages of it, from one server. A server need not
    /// have templates of resources.
    async fn pages<F>(
        &self,
        tool: &Arc<Tool>,
        catalogue: &Catalogue,
        most: usize,
        run: &impl Fn(ToolCall) -> F,
    ) -> Result<Vec<(String, Box<RawValue>)>, ToolError>
    where
        F: Future<Output = Result<ToolOutput, ToolError>>,
    {
        let member = self.method.result_member().unwrap_or_default();
        let is_prefixed = catalogue.prefix(tool.set()).is_some();
        let (mut elements, mut size) = (Vec::new(), 0);
        let (mut params, mut cursors) = (json!({}), HashSet::new());
        let mut pin = None;
        loop {
            let record = Arc::new(CallRecord::for_counting());
            let call = self.stack.prepare_method(tool.clone(), params.to_string());
            let call = with(call.with_record(record.clone()), pin, ToolCall::pinned_to);
            let page = match run(call).await {
                Err(error) if error.reported_code() == Some(METHOD_NOT_FOUND) => {
                    return Ok(elements);
                }
                page => page?,
            };
            size += page.body().len();
            if size > most {
                return Err(failed(format!("its list has more than {most} bytes")));
            }
            let page = std::str::from_utf8(page.body()).map(Members::read);
            let Ok(Ok(page)) = page else {
                return Err(failed("its list cannot be read"));
            };
            let listed = page.last(member).map_or("[]", RawValue::get);
            let listed: Vec<&RawValue> =
                serde_json::from_str(listed).map_err(|error| failed(error.to_string()))?;
            let reserved = (!is_prefixed).then_some(catalogue);
            let offered = listed.into_iter();
            elements.extend(offered.filter_map(|element| self.offered(element, reserved)));
            let next = page.last("nextCursor").map_or("null", RawValue::get);
            let Ok(Some(next)) = serde_json::from_str::<Option<String>>(next) else {
                return Ok(elements);
            };
            params = json!({ "cursor": next });
            if !cursors.insert(next) || cursors.len() >= MAX_PAGES {
                return Err(failed("its list has no end"));
            }
            // another server of the set does not know the cursor
            pin = record.facts().server.map(|(server, _)| server);
        }
    }

    /// Returns an element of a list as clients see it, with its name or URI; `None` if strict
    /// clients could not read the list with it, or if that is one of another set of this catalogue.
    fn offered(
        &self,
        element: &RawValue,
        reserved: Option<&Catalogue>,
    ) -> Option<(String, Box<RawValue>)> {
        let place = match self.method {
            Method::ListPrompts => "name",
            Method::ListTemplates => "uriTemplate",
            _ => "uri",
        };
        let raw = element.get();
        if raw.len() > MAX_ELEMENT || readable::check_definition(raw.as_bytes()).is_err() {
            return None;
        }
        let members = Members::read(raw).ok()?;
        let text = |name: &str| {
            let mut found = members.iter().filter(|(known, _)| *known == name);
            let (Some((_, text)), None) = (found.next(), found.next()) else {
                return None;
            };
            let text = serde_json::from_str::<String>(text.get()).ok()?;
            let is_usable = !text.is_empty() && text.len() <= MAX_NAME;
            (is_usable && !text.contains(char::is_control)).then_some(text)
        };
        text("name")?;
        let about = About::new(place, text(place)?, self.method != Method::ListPrompts);
        if reserved.is_some_and(|catalogue| about.owner(catalogue).is_some()) {
            return None;
        }
        let element = match nest_ours(raw.as_bytes()).ok()? {
            Some(nested) => serde_json::from_slice(&nested).ok()?,
            None => element.to_owned(),
        };
        Some((about.name, element))
    }
}
