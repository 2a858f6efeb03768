//! What the server asks the client before it answers: in requests of its own to a legacy client,
//! in results that ask for input to a modern one.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use futures_util::future::try_join_all;
use rmcp::model::{
    InputRequiredResult, InputResponses, JsonObject, ProtocolVersion, ServerRequest,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};

use crate::script::{Entry, Script, parse};

/// What the client sent along.
pub(crate) struct Sent {
    pub(crate) arguments: JsonObject,
    pub(crate) responses: Option<InputResponses>,
    pub(crate) state: Option<String>,
}

pub(crate) enum Rounds {
    /// With the values for the templates of the answer
    Over(JsonObject),
    Next(InputRequiredResult),
}

impl Rounds {
    pub(crate) async fn of(
        script: &Script,
        entry: &Entry,
        sent: Sent,
        context: &RequestContext<RoleServer>,
    ) -> Result<Self, ErrorData> {
        let capabilities = capabilities(context)?;
        if is_modern(context) {
            return Self::next(script, entry, sent, &capabilities);
        }
        let mut values = sent.arguments;
        for round in &entry.rounds {
            let requests: BTreeMap<_, _> = filled(script, round, &values)
                .filter(|(_, request)| can(&capabilities, request))
                .collect();
            if requests.is_empty() {
                let cannot = format!("the client can answer none of {:?}", round.keys());
                return Err(ErrorData::invalid_request(cannot, None));
            }
            let ask = async |request| {
                let request: ServerRequest = parse(request)?;
                let response = context.peer.send_request(request).await;
                response.map_err(|error| ErrorData::internal_error(format!("{error}"), None))
            };
            for response in try_join_all(requests.into_values().map(ask)).await? {
                add(&mut values, &json!(response));
            }
        }
        Ok(Self::Over(values))
    }

    /// The round after the one that the client has answered.
    fn next(
        script: &Script,
        entry: &Entry,
        sent: Sent,
        capabilities: &Value,
    ) -> Result<Self, ErrorData> {
        let mut values = sent.arguments;
        let responses = sent.responses.unwrap_or_default();
        let asked = |round| {
            let requests = filled(script, entry.rounds.get(round)?, &values);
            Some(requests.filter(|(_, request)| can(capabilities, request)))
        };
        let has = |key: String| responses.get(&key).is_some_and(Value::is_object);
        let answered = |round| asked(round).is_some_and(|mut all| all.all(|(key, _)| has(key)));
        let round = match sent.state {
            None if entry.sealed => None,
            Some(state) if entry.sealed => Some(open(&state)?),
            _ => Some(0),
        };
        let next = round.map_or(0, |round| round + usize::from(answered(round)));
        let requests: Option<BTreeMap<_, _>> = asked(next).map(Iterator::collect);
        let Some(requests) = requests else {
            for response in responses.values() {
                add(&mut values, response);
            }
            return Ok(Self::Over(values));
        };
        let state = entry.sealed.then(|| seal(next));
        let requests = parse(json!(requests))?;
        Ok(Self::Next(InputRequiredResult::new(Some(requests), state)))
    }
}

/// The requests of one round, or of a task.
pub(crate) fn filled(
    script: &Script,
    requests: &BTreeMap<String, Value>,
    values: &JsonObject,
) -> impl Iterator<Item = (String, Value)> {
    let filled = |(key, request): (&String, &Value)| (key.clone(), script.fill(request, values));
    requests.iter().map(filled)
}

pub(crate) fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

pub(crate) fn capabilities(context: &RequestContext<RoleServer>) -> Result<Value, ErrorData> {
    parse(json!(context.client_capabilities()))
}

fn can(capabilities: &Value, request: &Value) -> bool {
    let method = request["method"].as_str().unwrap_or_default();
    let capability = method.split('/').next().unwrap_or_default();
    capabilities.get(capability).is_some()
}

/// Adds the fields of a response, and those of its content, to the values of templates.
fn add(values: &mut JsonObject, response: &Value) {
    for fields in [Some(response), response.get("content")] {
        let fields = fields.and_then(Value::as_object).into_iter().flatten();
        values.extend(fields.map(|(key, value)| (key.clone(), value.clone())));
    }
}

/// States the number of a round so that another number is noticed. This does not protect it: the
/// key is public.
fn seal(round: usize) -> String {
    let mut hasher = DefaultHasher::new();
    ("conformance", round).hash(&mut hasher);
    format!("{round}.{:016x}", hasher.finish())
}

fn open(state: &str) -> Result<usize, ErrorData> {
    let round = state.split('.').next().and_then(|round| round.parse().ok());
    let round = round.filter(|round| seal(*round) == state);
    round.ok_or_else(|| ErrorData::invalid_params("the request state is not ours", None))
}
