//! Prompts, resources and completions: lists of all servers, and requests to the server that owns
//! what they are about.

mod list;
mod rewrite;

pub(crate) use rewrite::Prefixed;

use std::sync::Arc;

use bytes::Bytes;
use callward::core::Method;
use callward::registry::{Catalogue, uri};
use callward::{
    Caller, Delivery, ErrorKind, ReplicaSetId, Stack, Tool, ToolCall, ToolError, ToolOutput,
};
use callward_mcp::wire::object;
use serde_json::Value;

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

/// The tool of a set, and the parameters as the set knows them.
pub(crate) type Owner = (Arc<Tool>, Bytes);

impl Request<'_> {
    /// Answers the request with calls, which `run` makes; returns who has what it is about, too.
    /// Lists are of all. Errors of a request without a call pass
    /// `refused`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidCall`] if no server has what it is about, or what the server answers.
    pub(crate) async fn answer<F>(
        &self,
        run: impl Fn(ToolCall) -> F,
        refused: impl Fn(ToolError) -> ToolError,
    ) -> Result<(Option<Owner>, ToolOutput), ToolError>
    where
        F: Future<Output = Result<ToolOutput, ToolError>>,
    {
        if self.method.is_list() {
            return Ok((None, self.list(run).await?));
        }
        let about = self.about().map_err(&refused)?;
        let mut failed = None;
        for owner in self.owners(&about).map_err(&refused)? {
            let (tool, params) = owner.clone();
            match run(self.stack.prepare_method(tool, params)).await {
                Ok(output) => return Ok((Some(owner), self.with_hints(output))),
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
    fn owners(&self, about: &About) -> Result<Vec<Owner>, ToolError> {
        let catalogue = self.stack.catalogue();
        let answering = self.answering(&catalogue);
        let Some((set, own)) = about.owner(&catalogue) else {
            let without = answering.filter(|tool| catalogue.prefix(tool.set()).is_none());
            let owner = |tool: &Arc<Tool>| (tool.clone(), self.params.clone());
            return Ok(without.map(owner).collect());
        };
        let params = self.renamed(about.place, own)?;
        let owner = answering.filter(|tool| tool.set() == set);
        let owner = owner.map(|tool| (tool.clone(), params.clone()));
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

    /// Returns the set whose prefix the name has, and the set's own name.
    fn owner<'a>(&'a self, catalogue: &'a Catalogue) -> Option<(&'a ReplicaSetId, &'a str)> {
        catalogue.prefixes().find_map(|(set, prefix)| {
            let own = match self.is_uri {
                true => uri::without_prefix(&self.name, prefix),
                false => self.name.strip_prefix(prefix)?.strip_prefix("__"),
            };
            Some((set, own?))
        })
    }
}

/// The code of a prompt that is unknown, and from 2026-07-28 on of such a resource.
const INVALID_PARAMS: i64 = -32602;
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
