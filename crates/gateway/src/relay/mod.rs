//! Prompts, resources and completions: lists of all servers, and requests to the server that owns
//! what they are about.

mod rewrite;

use std::sync::Arc;

use bytes::Bytes;
use callward::core::{Members, Method};
use callward::registry::{Catalogue, uri};
use callward::{
    Caller, Delivery, ErrorKind, ReplicaSetId, Stack, Tool, ToolCall, ToolError, ToolOutput,
};
use callward_mcp::wire::object;
use futures_util::future::join_all;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The most pages of one server's list; more count as a loop.
const MAX_PAGES: usize = 100;
/// The longest list of all servers, in bytes.
const MAX_LIST: usize = 16 << 20;

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

/// Returns the result of a tool with the URIs that clients see.
pub(crate) fn of_tool(stack: &Stack, set: &ReplicaSetId, output: ToolOutput) -> ToolOutput {
    let catalogue = stack.catalogue();
    let prefix = catalogue.prefix(set);
    rewritten(Method::CallTool, prefix, output)
}

fn rewritten(method: Method, prefix: Option<&str>, output: ToolOutput) -> ToolOutput {
    let seen = prefix.and_then(|prefix| rewrite::result(method, output.body(), prefix));
    let seen = seen.and_then(|body| ToolOutput::from_json(body).ok());
    seen.unwrap_or(output)
}

impl Request<'_> {
    /// Answers the request with calls, which `run` makes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidCall`] if no server has what it is about, or what the server answers.
    pub(crate) async fn answer<F>(
        &self,
        run: impl Fn(ToolCall) -> F,
    ) -> Result<ToolOutput, ToolError>
    where
        F: Future<Output = Result<ToolOutput, ToolError>>,
    {
        if self.method.is_list() {
            return self.list(run).await;
        }
        let mut failed = None;
        for (tool, prefix, params) in self.owners()? {
            let method = tool.definition.method;
            match run(self.stack.prepare_method(tool, params)).await {
                Ok(output) => {
                    let output = rewritten(method, prefix.as_deref(), output);
                    return Ok(self.with_hints(output));
                }
                // another set without a prefix may have it
                Err(error) if is_not_found(&error) => failed = Some(error),
                Err(error) => return Err(error),
            }
        }
        let failed = failed.filter(|error| error.kind != ErrorKind::UnknownTool);
        Err(match failed {
            Some(error) if self.is_modern => error.with_code(INVALID_PARAMS),
            Some(error) => error,
            None => self.not_found(),
        })
    }

    /// Returns the tools of the method that the caller may use, one for each set.
    fn answering<'a>(&self, catalogue: &'a Catalogue) -> impl Iterator<Item = &'a Arc<Tool>> {
        let methods = catalogue.methods().iter().map(|entry| entry.tool());
        let answering = methods.filter(|tool| tool.definition.method == self.method);
        answering.filter(|tool| is_visible(self.stack, self.caller, tool))
    }

    /// Returns the sets that may have what the request is about, with its parameters as they know
    /// it: the set whose prefix it has, or all sets without a prefix.
    fn owners(&self) -> Result<Vec<(Arc<Tool>, Option<String>, Bytes)>, ToolError> {
        let (place, named, is_uri) = self.about()?;
        let catalogue = self.stack.catalogue();
        let answering = self.answering(&catalogue);
        let mut owners = Vec::new();
        for tool in answering {
            let Some(prefix) = catalogue.prefix(tool.set()) else {
                owners.push((tool.clone(), None, self.params.clone()));
                continue;
            };
            let own = match is_uri {
                true => uri::without_prefix(&named, prefix),
                false => named
                    .strip_prefix(prefix)
                    .and_then(|name| name.strip_prefix("__")),
            };
            if let Some(own) = own {
                let params = self.renamed(place, own)?;
                return Ok(vec![(tool.clone(), Some(prefix.to_owned()), params)]);
            }
        }
        Ok(owners)
    }

    /// Returns the member that names what the request is about, the name, and whether it is a URI.
    fn about(&self) -> Result<(&'static str, String, bool), ToolError> {
        if let Some(place) = self.method.named_by() {
            return Ok((
                place,
                self.name.to_owned(),
                self.method == Method::ReadResource,
            ));
        }
        let about = || {
            let reference = object::get_member(self.params, "ref").ok()??;
            let text = |name| {
                let text = object::get_member(reference, name).ok()??;
                serde_json::from_slice::<String>(text).ok()
            };
            match text("type")?.as_str() {
                "ref/prompt" => Some(("name", text("name")?, false)),
                "ref/resource" => Some(("uri", text("uri")?, true)),
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

    /// Lists what all servers have, in the order of their sets. A server that fails is left out,
    /// unless all fail.
    async fn list<F>(&self, run: impl Fn(ToolCall) -> F) -> Result<ToolOutput, ToolError>
    where
        F: Future<Output = Result<ToolOutput, ToolError>>,
    {
        let catalogue = self.stack.catalogue();
        let answering = self.answering(&catalogue);
        let lists = answering.map(|tool| self.pages(tool, catalogue.prefix(tool.set()), &run));
        let mut out = Vec::new();
        let (mut failed, mut is_listed) = (None, false);
        for list in join_all(lists).await {
            match list {
                Ok(elements) => {
                    is_listed = true;
                    out.extend(elements);
                }
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        if let Some(error) = failed {
            if !is_listed {
                return Err(error);
            }
            tracing::warn!(%error, method = %self.method, "a server's list is left out");
        }
        let mut size = 0;
        out.retain(|element| {
            size += element.get().len();
            size <= MAX_LIST
        });
        let member = self.method.result_member().unwrap_or_default();
        let listed: Vec<_> = out.iter().map(|element| element.get()).collect();
        let output = ToolOutput::from_json(format!(r#"{{"{member}":[{}]}}"#, listed.join(",")));
        let output = output.map_err(|error| {
            ToolError::new(ErrorKind::Protocol, Delivery::Answered, error.to_string())
        });
        output.map(|output| self.with_hints(output))
    }

    /// Lists what one set has, all pages of it. A server need not have the templates of resources.
    async fn pages<F>(
        &self,
        tool: &Arc<Tool>,
        prefix: Option<&str>,
        run: &impl Fn(ToolCall) -> F,
    ) -> Result<Vec<Box<RawValue>>, ToolError>
    where
        F: Future<Output = Result<ToolOutput, ToolError>>,
    {
        let protocol = |why: String| ToolError::new(ErrorKind::Protocol, Delivery::Answered, why);
        let member = self.method.result_member().unwrap_or_default();
        let mut elements = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let params = match &cursor {
                Some(cursor) => json!({ "cursor": cursor }),
                None => json!({}),
            };
            let call = self.stack.prepare_method(tool.clone(), params.to_string());
            let page = match run(call).await {
                Err(error) if error.reported_code() == Some(METHOD_NOT_FOUND) => break,
                page => rewritten(self.method, prefix, page?),
            };
            let page = std::str::from_utf8(page.body()).map(Members::read);
            let Ok(Ok(page)) = page else {
                return Err(protocol("the server's list cannot be read".to_owned()));
            };
            if let Some(listed) = page.last(member) {
                let listed = serde_json::from_str::<Vec<Box<RawValue>>>(listed.get());
                elements.extend(listed.map_err(|error| protocol(error.to_string()))?);
            }
            let next = page.last("nextCursor");
            let next = next.and_then(|next| serde_json::from_str(next.get()).ok());
            if next.is_none() {
                return Ok(elements);
            }
            cursor = next;
        }
        Ok(elements)
    }

    /// Adds the hints that a modern result has to have: it may not be kept.
    fn with_hints(&self, output: ToolOutput) -> ToolOutput {
        if !self.is_modern || !self.method.is_cacheable() {
            return output;
        }
        let add = |body: Bytes, name, value: &[u8]| match object::get_member(&body, name) {
            Ok(None) => object::set_member(&body, name, value).unwrap_or(body),
            _ => body,
        };
        let body = add(output.body().clone(), "ttlMs", b"0");
        let body = add(body, "cacheScope", br#""private""#);
        ToolOutput::from_json(body).unwrap_or(output)
    }

    fn not_found(&self) -> ToolError {
        let what = match self.method {
            Method::GetPrompt => "prompt",
            Method::ReadResource => "resource",
            _ => "prompt or template",
        };
        let name: String = self.name.chars().take(200).collect();
        let error = invalid(format!("no {what} {name:?}: list what there is"));
        match self.method {
            Method::ReadResource if !self.is_modern => error.with_code(RESOURCE_NOT_FOUND),
            _ => error,
        }
    }
}

/// The code of a prompt that is unknown, and from 2026-07-28 on of such a resource.
const INVALID_PARAMS: i64 = -32602;
/// The code of an unknown method.
const METHOD_NOT_FOUND: i64 = -32601;
/// The code of an unknown resource in the revisions before 2026-07-28.
const RESOURCE_NOT_FOUND: i64 = -32002;

fn invalid(why: impl Into<String>) -> ToolError {
    ToolError::new(ErrorKind::InvalidCall, Delivery::NotSent, why.into())
}

fn is_not_found(error: &ToolError) -> bool {
    error.kind == ErrorKind::UnknownTool
        || matches!(
            error.reported_code(),
            Some(INVALID_PARAMS | RESOURCE_NOT_FOUND)
        )
}
