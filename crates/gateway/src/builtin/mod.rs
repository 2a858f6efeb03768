//! Tools of the gateway itself. They are a server of the stack like any other, so that rules, the
//! audit log, limits and lists treat them by their names, `builtin.NAME`.
//!
//! To add one: its definition in a JSON file that [`PARTS`] names, a function from
//! [`Context`] and its arguments to a JSON value, or to a text that says what is wrong, and a line
//! in `add` of its module.

mod search;
mod toolsets;

use std::fmt::Display;
use std::sync::{Arc, OnceLock, Weak};

use callward::cache::StateGroup;
use callward::core::{Annotations, Caching, Trust};
use callward::registry::{Entry, KeptName};
use callward::{
    Delivery, ErrorKind, Server, Tool, ToolCall, ToolError, ToolOutput, ToolSpec, Tools,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tower::service_fn;

pub(crate) use self::search::{aim, allowed_first, is_finder, is_finder_name, with_finder};

use crate::config::{Config, ListingMode};
use crate::error::AppError;
use crate::runtime::Runtime;

/// The name of the server and of its set.
pub(crate) const SERVER: &str = "builtin";

/// What has built-in tools: their definitions, what adds them, and whether a config has them.
type Part = (
    &'static str,
    fn(Builtins) -> Result<Builtins, AppError>,
    fn(&Config) -> bool,
);

const PARTS: [Part; 2] = [
    (include_str!("toolsets.json"), toolsets::add, |config| {
        config.toolsets.open.is_some()
    }),
    (include_str!("search.json"), search::add, |config| {
        config.listing.mode != ListingMode::All
    }),
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Definition {
    name: String,
    description: String,
    input_schema: Value,
    annotations: Annotations,
}

/// Returns `true` if the gateway itself has this tool.
pub(crate) fn is_builtin(tool: &Tool) -> bool {
    tool.set().as_str() == SERVER
}

/// Reports why a built-in tool did nothing.
fn refusal(why: impl Display) -> ToolError {
    let why = why.to_string();
    // the position in the JSON is of no use to a model
    let why = why.rsplit_once(" at line ").map_or(&*why, |(why, _)| why);
    ToolError::new(ErrorKind::InvalidCall, Delivery::NotSent, why.to_owned()).with_code(-32602)
}

/// Makes a result for the model from such an error; `None` from others.
pub(crate) fn answer(runtime: &Runtime, name: &str, error: &ToolError) -> Option<ToolOutput> {
    let nothing_ran = error.kind == ErrorKind::InvalidCall && error.delivery == Delivery::NotSent;
    let catalogue = runtime.stack.catalogue();
    let is_ours = catalogue.find(name).is_some_and(|it| is_builtin(it.tool()));
    (nothing_ran && is_ours).then(|| ToolOutput::error_text(&error.message))
}

/// The way from the tools to the gateway that they are part of, once it runs.
#[derive(Default)]
pub(crate) struct Link(OnceLock<Weak<Runtime>>);

impl Link {
    pub(crate) fn set(&self, runtime: &Arc<Runtime>) {
        // set once, where the runtime is made
        let _ = self.0.set(Arc::downgrade(runtime));
    }
}

/// What a built-in tool works with: the gateway, and its own call, which has the caller.
struct Context {
    runtime: Arc<Runtime>,
    call: ToolCall,
}

impl Context {
    /// Returns `true` if the caller may know of a tool that is not built in. Its toolset may lack
    /// the tool.
    fn may_know(&self, entry: &Entry) -> bool {
        let (tool, policy) = (entry.tool(), self.runtime.stack.policy());
        !is_builtin(tool) && policy.is_none_or(|policy| policy.lists(self.call.caller(), tool))
    }
}

/// The answer of a built-in tool, or what is wrong.
type Answer = Result<Value, String>;

/// The server of the built-in tools, as it is put together.
struct Builtins {
    tools: Tools,
    definitions: Vec<Definition>,
    link: Arc<Link>,
}

impl Builtins {
    /// Adds a tool that is defined.
    fn add<A, F>(mut self, name: &str, run: fn(Context, A) -> F) -> Result<Self, AppError>
    where
        A: DeserializeOwned + Send + 'static,
        F: Future<Output = Answer> + Send + 'static,
    {
        let invalid = |why: String| AppError::Usage(format!("the built-in tool `{name}`: {why}"));
        let place = self.definitions.iter().position(|it| it.name == name);
        let place = place.ok_or_else(|| invalid("no definition".to_owned()))?;
        let Definition {
            name: _,
            description,
            input_schema,
            annotations,
        } = self.definitions.swap_remove(place);
        let spec = ToolSpec::new(name)
            .description(description)
            .schema(input_schema);
        let link = self.link.clone();
        let run = move |call: ToolCall| {
            let runtime = link.0.get().and_then(Weak::upgrade);
            async move {
                let runtime = runtime.ok_or_else(|| refusal("starting or stopping; call again"))?;
                let arguments = serde_json::from_slice(call.arguments())
                    .map_err(|error| refusal(format_args!("the arguments do not fit: {error}")))?;
                let answer = run(Context { runtime, call }, arguments).await;
                ToolOutput::json(&answer.map_err(refusal)?).map_err(refusal)
            }
        };
        let spec = spec.annotations(annotations);
        let tools = self.tools.service(spec, service_fn(run));
        self.tools = tools.map_err(|error| invalid(error.to_string()))?;
        Ok(self)
    }
}

/// Returns the parts that a config has.
fn parts(config: &Config) -> impl Iterator<Item = Part> {
    PARTS.into_iter().filter(|(_, _, is_on)| is_on(config))
}

fn definitions(config: &Config) -> Vec<Definition> {
    let read = |(text, _, _)| serde_json::from_str::<Vec<_>>(text).unwrap_or_default();
    parts(config).flat_map(read).collect()
}

/// Returns the server of the built-in tools, if there are some. It comes before all others: where
/// one of them has a tool with such a name, that one is renamed, and an event says so.
///
/// # Errors
///
/// [`AppError`] if a definition is missing or invalid, which a test would show.
pub(crate) fn server(config: &Config, link: &Arc<Link>) -> Result<Option<Server>, AppError> {
    if parts(config).next().is_none() {
        return Ok(None);
    }
    let builtins = Builtins {
        tools: Tools::new(SERVER)?,
        definitions: definitions(config),
        link: link.clone(),
    };
    let builtins = parts(config).try_fold(builtins, |builtins, (_, add, _)| add(builtins))?;
    let server = Server::new(builtins.tools)
        .prefix(None)
        .trust(Trust::Trusted)
        // answers depend on the session, and change with the toolsets
        .caching(Caching::Never)
        .state(StateGroup::Own);
    Ok(Some(server))
}

/// Takes the names of built-in tools from the tools of servers that had them in an earlier run.
pub(crate) fn free_names(config: &Config, kept: &mut Vec<KeptName>) {
    let ours = definitions(config);
    kept.retain(|kept| ours.iter().all(|ours| *ours.name != *kept.name));
}
