//! Prompts, resources and completions: lists of all servers, and requests to the server that owns
//! what they are about.

mod list;
mod rewrite;

pub(crate) use rewrite::Prefixed;

use std::sync::Arc;

use bytes::Bytes;
use callward::core::Method;
use callward::registry::{Catalogue, Entry};
use callward::{
    Caller, Delivery, ErrorKind, ReplicaSetId, ServerId, Stack, Tool, ToolCall, ToolError,
    ToolOutput,
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
    /// The only server that may answer, if there is only one.
    pub(crate) pin: Option<&'a ServerId>,
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

/// Returns `true` if some server answers the method to this caller.
pub(crate) fn answers(stack: &Stack, caller: &Caller, method: Method) -> bool {
    let catalogue = stack.catalogue();
    let mut tools = catalogue.methods().iter().map(|entry| entry.tool());
    tools.any(|tool| tool.definition.method == method && is_visible(stack, caller, tool))
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
            if !self.may_answer(tool.set()) {
                continue;
            }
            match run(self.stack.prepare_method(tool, params)).await {
                Ok(output) => return Ok((Some(owner), self.with_own_scope(output))),
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

    fn may_answer(&self, set: &ReplicaSetId) -> bool {
        let Some(pin) = self.pin else {
            return true;
        };
        let mut servers = self.stack.servers().into_iter();
        servers.any(|server| server.id == *pin && server.set == *set)
    }

    /// Returns the tools of the method that the caller may use, one for each set.
    fn answering<'a>(&self, entries: &'a [Arc<Entry>]) -> impl Iterator<Item = &'a Arc<Tool>> {
        let methods = entries.iter().map(|entry| entry.tool());
        let answering = methods.filter(|tool| tool.definition.method == self.method);
        answering.filter(|tool| is_visible(self.stack, self.caller, tool))
    }

    /// Returns the sets that may have what the request is about, with its parameters as they know
    /// it: the set whose prefix it has, or else all sets without a prefix.
    fn owners(&self, about: &About) -> Result<Vec<Owner>, ToolError> {
        let catalogue = self.stack.catalogue();
        let Some((set, own)) = about.owner(&catalogue) else {
            let answering = self.answering(catalogue.methods());
            let without = answering.filter(|tool| catalogue.prefix(tool.set()).is_none());
            let owner = |tool: &Arc<Tool>| (tool.clone(), self.params.clone());
            return Ok(without.map(owner).collect());
        };
        let params = self.renamed(about.place, own)?;
        let owner = self.answering(catalogue.methods_of(set));
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

    /// Lets no client keep for others what rules may deny them.
    fn with_own_scope(&self, output: ToolOutput) -> ToolOutput {
        let is_ruled = self.stack.policy().is_some();
        let is_kept = self.is_modern && self.method.has_hints() && is_ruled;
        let private = is_kept.then(|| {
            let body = object::set_member(output.body(), "cacheScope", br#""private""#).ok()?;
            ToolOutput::from_json(body).ok()
        });
        private.flatten().unwrap_or(output)
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
        match self.is_uri {
            true => catalogue.owner_of_uri(&self.name),
            false => catalogue.owner_of_name(&self.name),
        }
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
