//! Results that ask for input (2026-07-28), for a client that is asked by requests.

use std::time::Duration;

use bytes::Bytes;
use callward_core::{
    ClientCapabilities, ClientMethod, Delivery, ErrorKind, Members, Round, ToolError, ToolOutput,
};
use futures_util::future::try_join_all;
use serde_json::value::RawValue;

use super::asked::Asker;
use crate::wire::{code, write};

/// How many rounds one call may have.
pub(super) const MAX_ROUNDS: usize = 10;
/// How many questions one round may have.
const MAX_QUESTIONS: usize = 16;
/// How long to wait before the next round of a result that has a state only: it is not ready yet.
const STATE_ONLY: Duration = Duration::from_secs(1);

/// What a result asks for.
pub(super) struct InputRequired {
    questions: Vec<(String, ClientMethod, Bytes)>,
    state: Option<Bytes>,
}

impl InputRequired {
    /// Reads a result that asks for input of a client with these capabilities.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Protocol`] if it cannot be read; [`ErrorKind::InvalidCall`] if it asks for what
    /// the client did not declare.
    pub(super) fn read(
        output: &ToolOutput,
        capabilities: ClientCapabilities,
    ) -> Result<Self, ToolError> {
        let unreadable = |_| fault("the server asks for input in a form that cannot be read");
        let body = std::str::from_utf8(output.body()).unwrap_or_default();
        let members = Members::read(body).map_err(unreadable)?;
        let requests = members.last("inputRequests").map_or("{}", RawValue::get);
        let mut questions = Vec::new();
        for (name, request) in Members::read(requests).map_err(unreadable)?.iter() {
            let request = Members::read(request.get()).map_err(unreadable)?;
            let method = request.last("method").map_or("null", RawValue::get);
            let method: String = serde_json::from_str(method).map_err(unreadable)?;
            let params = request.last("params").map_or("{}", RawValue::get);
            let asked = ClientMethod::by_name(&method);
            match asked.filter(|asked| capabilities.allow(*asked, params.as_bytes())) {
                Some(asked) => {
                    let params = Bytes::copy_from_slice(params.as_bytes());
                    questions.push((name.to_owned(), asked, params));
                }
                None => {
                    let method: String = method.chars().take(64).collect();
                    let text =
                        format!("the server asks for {method:?}, which the client did not declare");
                    // not a fault of the server that counts: any client could cause it
                    let error = ToolError::new(ErrorKind::InvalidCall, Delivery::Answered, text);
                    return Err(error.with_code(code::MISSING_CLIENT_CAPABILITY));
                }
            }
        }
        if questions.len() > MAX_QUESTIONS {
            return Err(fault(format!(
                "the server asks more than {MAX_QUESTIONS} questions at once"
            )));
        }
        let state = members.last("requestState");
        if state.is_some_and(|state| !state.get().starts_with('"')) {
            return Err(fault("the server's `requestState` is not a string"));
        }
        if questions.is_empty() && state.is_none() {
            return Err(fault(
                "the server asks for input, and for none in particular",
            ));
        }
        let state = state.map(|state| Bytes::copy_from_slice(state.get().as_bytes()));
        Ok(Self { questions, state })
    }

    /// Asks the client all questions at the same time.
    ///
    /// # Errors
    ///
    /// There is no client, or it gives no answer to one of them.
    pub(super) async fn answered(self, client: Option<Asker>) -> Result<Round, ToolError> {
        if self.questions.is_empty() {
            tokio::time::sleep(STATE_ONLY).await;
            let (responses, state) = (None, self.state);
            return Ok(Round { responses, state });
        }
        let client = client.ok_or_else(unanswerable)?;
        let answers = self.questions.iter().map(async |(name, method, params)| {
            let answer = client.ask(*method, params.clone()).await;
            let answer = answer.map_err(|refusal| {
                let text = format!("the client did not answer {method}: {}", refusal.message);
                let error = ToolError::new(ErrorKind::InvalidCall, Delivery::Answered, text);
                let error = error.with_code(refusal.code);
                match refusal.data {
                    Some(data) => error.with_data(data),
                    None => error,
                }
            })?;
            Ok::<_, ToolError>((name, answer))
        });
        let answers = try_join_all(answers).await?;
        let mut responses = vec![b'{'];
        for (name, answer) in answers {
            write::member(&mut responses, name, &answer);
        }
        responses.push(b'}');
        Ok(Round {
            responses: Some(responses.into()),
            state: self.state,
        })
    }
}

/// The error of a call whose client cannot be asked.
fn unanswerable() -> ToolError {
    let text = "the server asks for input before it goes on, and the client cannot be asked: give \
                all the arguments that it may need";
    ToolError::new(ErrorKind::InvalidCall, Delivery::Answered, text)
}

/// The error of a server of a revision without rounds that answers with one.
pub(super) fn of_legacy() -> ToolError {
    fault("the server asks for input by a round, which its revision of MCP does not have")
}

pub(super) fn too_many() -> ToolError {
    fault(format!(
        "the server asks for input in more than {MAX_ROUNDS} rounds"
    ))
}

fn fault(text: impl Into<String>) -> ToolError {
    ToolError::new(ErrorKind::Protocol, Delivery::Answered, text.into())
}
