//! Prompts, resources and completions: lists of all servers, and requests to the server that owns
//! what they are about.

mod rewrite;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use callward::core::{Members, Method, nest_ours, readable};
use callward::registry::{Catalogue, uri};
use callward::{
    CallRecord, Caller, Delivery, ErrorKind, ReplicaSetId, Stack, Tool, ToolCall, ToolError,
    ToolOutput,
};
use callward_mcp::wire::object;
use futures_util::FutureExt as _;
use futures_util::future::join_all;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::assemble::with;

/// More pages of one set's list count as a loop.
const MAX_PAGES: usize = 100;
/// The longest list of all sets together, in bytes: each has an equal share.
const MAX_LIST: usize = 16 << 20;
/// How long the list of one set may delay those of others.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);
/// The largest element of a list, in bytes; and the longest of its names.
const MAX_ELEMENT: usize = 256 << 10;
const MAX_NAME: usize = 8 << 10;

/// A request of a method other than `tools/call`.
pub(crate) struct Request<'a> {
    pub(crate) stack: &'a Stack,
    pub(crate) caller: &'a Arc<Caller>,
    pub(crate) method: Method,
    /// The name of a prompt or the URI of a resource, as clients see it.
    pub(crate) name: &'a str,
    pub(crate) params: &'a Bytes,
    /// Whether the client speaks 2026-07-28.
    pub(crate) is_modern: bool,
}

/// Returns the methods that some server answers this caller.
pub(crate) fn methods(stack: &Stack, caller: &Caller) -> Vec<Method> {
    let catalogue = stack.catalogue();
    let visible = catalogue.methods().iter().map(|entry| entry.tool());
    let visible = visible.filter(|tool| is_visible(stack, caller, tool));
    let mut methods: Vec<_> = visible.map(|tool| tool.definition.method).collect();
    methods.sort_unstable();
    methods.dedup();
    methods
}

fn is_visible(stack: &Stack, caller: &Caller, tool: &Tool) -> bool {
    let policy = stack.policy();
    policy.is_none_or(|policy| policy.lists(caller, tool))
}

/// Returns the result of a tool with the URIs that clients see, if its set has resources.
pub(crate) fn of_tool(stack: &Stack, set: &ReplicaSetId, output: ToolOutput) -> ToolOutput {
    if !rewrite::may_have_uris(output.body()) {
        return output;
    }
    let catalogue = stack.catalogue();
    let mut methods = catalogue.methods().iter().map(|entry| entry.tool());
    let reads =
        |tool: &Arc<Tool>| tool.definition.method == Method::ReadResource && tool.set() == set;
    match catalogue.prefix(set) {
        Some(prefix) if methods.any(reads) => rewritten(Method::CallTool, Some(prefix), output),
        _ => output,
    }
}

fn rewritten(method: Method, prefix: Option<&str>, output: ToolOutput) -> ToolOutput {
    let seen = prefix.and_then(|prefix| rewrite::result(method, output.body(), prefix));
    let seen = seen.and_then(|body| ToolOutput::from_json(body).ok());
    seen.unwrap_or(output)
}

impl Request<'_> {
    /// Answers the request with calls, which `run` makes. Errors of a request without a call pass
    /// `refused`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidCall`] if no server has what it is about, or what the server answers.
    pub(crate) async fn answer<F>(
        &self,
        run: impl Fn(ToolCall) -> F,
        refused: impl Fn(ToolError) -> ToolError,
    ) -> Result<ToolOutput, ToolError>
    where
        F: Future<Output = Result<ToolOutput, ToolError>>,
    {
        if self.method.is_list() {
            return self.list(run).await;
        }
        let about = self.about().map_err(&refused)?;
        let mut failed = None;
        for (tool, prefix, params) in self.owners(&about).map_err(&refused)? {
            match run(self.stack.prepare_method(tool, params)).await {
                Ok(output) => {
                    let output = rewritten(self.method, prefix.as_deref(), output);
                    return Ok(self.with_hints(output));
                }
                // a rule on what it is about denies it
                Err(error) if error.kind == ErrorKind::UnknownTool => {}
                // another set without a prefix may have it
                Err(error) if is_not_found(&error) => failed = failed.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        Err(match failed {
            Some(error) if self.is_modern && error.code == Some(RESOURCE_NOT_FOUND) => {
                error.with_code(INVALID_PARAMS)
            }
            Some(error) => error,
            None => refused(self.not_found(&about.name)),
        })
    }

    /// Returns the tools of the method that the caller may use, one for each set.
    fn answering<'a>(&self, catalogue: &'a Catalogue) -> impl Iterator<Item = &'a Arc<Tool>> {
        let methods = catalogue.methods().iter().map(|entry| entry.tool());
        let answering = methods.filter(|tool| tool.definition.method == self.method);
        answering.filter(|tool| is_visible(self.stack, self.caller, tool))
    }

    /// Returns the sets that may have what the request is about, with its parameters as they know
    /// it: the set whose prefix it has, or else all sets without a prefix.
    fn owners(&self, about: &About) -> Result<Vec<(Arc<Tool>, Option<String>, Bytes)>, ToolError> {
        let catalogue = self.stack.catalogue();
        let answering = self.answering(&catalogue);
        let Some((set, prefix, own)) = about.owner(&catalogue) else {
            let without = answering.filter(|tool| catalogue.prefix(tool.set()).is_none());
            let owner = |tool: &Arc<Tool>| (tool.clone(), None, self.params.clone());
            return Ok(without.map(owner).collect());
        };
        let params = self.renamed(about.place, own)?;
        let owner = answering.filter(|tool| tool.set() == set);
        let owner = owner.map(|tool| (tool.clone(), Some(prefix.to_owned()), params.clone()));
        Ok(owner.collect())
    }

    /// Returns what the request is about.
    fn about(&self) -> Result<About, ToolError> {
        if let Some(place) = self.method.named_by() {
            let is_uri = self.method == Method::ReadResource;
            return Ok(About::new(place, self.name.to_owned(), is_uri));
        }
        let about = || {
            let reference = object::get_member(self.params, "ref").ok()??;
            let text = |name| {
                let text = object::get_member(reference, name).ok()??;
                serde_json::from_slice::<String>(text).ok()
            };
            match text("type")?.as_str() {
                "ref/prompt" => Some(About::new("name", text("name")?, false)),
                "ref/resource" => Some(About::new("uri", text("uri")?, true)),
                _ => None,
            }
        };
        about().ok_or_else(|| {
            invalid("`ref` must be a `ref/prompt` with a `name` or a `ref/resource` with a `uri`")
        })
    }

    /// Returns the parameters with the server's own name of what they are about.
    fn renamed(&self, place: &str, own: &str) -> Result<Bytes, ToolError> {
        let own = Value::from(own).to_string();
        let set = |raw: &[u8], name: &str, value: &[u8]| {
            let set = object::set_member(raw, name, value);
            set.map_err(|error| invalid(error.to_string()))
        };
        if self.method != Method::Complete {
            return set(self.params, place, own.as_bytes());
        }
        let reference = object::get_member(self.params, "ref").ok().flatten();
        let reference = set(reference.unwrap_or(b"{}"), place, own.as_bytes())?;
        set(self.params, "ref", &reference)
    }

    /// Lists what all sets have, in their order. A set that fails is left out, unless all fail.
    async fn list<F>(&self, run: impl Fn(ToolCall) -> F) -> Result<ToolOutput, ToolError>
    where
        F: Future<Output = Result<ToolOutput, ToolError>>,
    {
        let catalogue = self.stack.catalogue();
        let answering: Vec<_> = self.answering(&catalogue).collect();
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
        list.map(|list| self.with_hints(list))
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
        let (member, prefix) = (
            self.method.result_member().unwrap_or_default(),
            catalogue.prefix(tool.set()),
        );
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
                page => rewritten(self.method, prefix, page?),
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
            let reserved = prefix.is_none().then_some(catalogue);
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

    /// Adds the hints that a modern result has to have. Without those of its server, it may not be
    /// kept; where there are rules, not for others either.
    fn with_hints(&self, output: ToolOutput) -> ToolOutput {
        let has_hints = self.method.is_list() || self.method == Method::ReadResource;
        if !self.is_modern || !has_hints {
            return output;
        }
        let set =
            |body: Bytes, name, value: &[u8], always: bool| match object::get_member(&body, name) {
                Ok(Some(_)) if !always => body,
                _ => object::set_member(&body, name, value).unwrap_or(body),
            };
        let is_ruled = self.stack.policy().is_some();
        let body = set(output.body().clone(), "ttlMs", b"0", false);
        let body = set(body, "cacheScope", br#""private""#, is_ruled);
        ToolOutput::from_json(body).unwrap_or(output)
    }

    fn not_found(&self, name: &str) -> ToolError {
        let what = match self.method {
            Method::GetPrompt => "prompt",
            Method::ReadResource => "resource",
            _ => "prompt or template",
        };
        let name: String = name.chars().take(200).collect();
        let error = invalid(format!("no {what} {name:?}: list what there is"));
        match self.method {
            Method::ReadResource if !self.is_modern => error.with_code(RESOURCE_NOT_FOUND),
            _ => error,
        }
    }
}

/// What a request is about.
struct About {
    /// The member that names it.
    place: &'static str,
    /// The name or the URI, as clients see it.
    name: String,
    is_uri: bool,
}

impl About {
    fn new(place: &'static str, name: String, is_uri: bool) -> Self {
        Self {
            place,
            name,
            is_uri,
        }
    }

    /// Returns the set whose prefix the name has, the prefix, and the set's own name.
    fn owner<'a>(
        &'a self,
        catalogue: &'a Catalogue,
    ) -> Option<(&'a ReplicaSetId, &'a str, &'a str)> {
        catalogue.prefixes().find_map(|(set, prefix)| {
            let own = match self.is_uri {
                true => uri::without_prefix(&self.name, prefix),
                false => self.name.strip_prefix(prefix)?.strip_prefix("__"),
            };
            Some((set, prefix, own?))
        })
    }
}

/// The code of a prompt that is unknown, and from 2026-07-28 on of such a resource.
const INVALID_PARAMS: i64 = -32602;
/// The code of an unknown method.
const METHOD_NOT_FOUND: i64 = -32601;
/// The code of an unknown resource in the revisions before 2026-07-28.
const RESOURCE_NOT_FOUND: i64 = -32002;

fn failed(why: impl Into<String>) -> ToolError {
    ToolError::new(ErrorKind::Protocol, Delivery::Answered, why.into())
}

fn invalid(why: impl Into<String>) -> ToolError {
    ToolError::new(ErrorKind::InvalidCall, Delivery::NotSent, why.into())
}

/// Returns `true` if the server may not have what the request is about: servers say so by any code.
fn is_not_found(error: &ToolError) -> bool {
    (error.kind, error.delivery) == (ErrorKind::InvalidCall, Delivery::Answered)
}
