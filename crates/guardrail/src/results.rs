//! The layer that counts executions and checks results.

use std::borrow::Cow;
use std::future::ready;
use std::task::{Context, Poll};

use callward_core::redact::credentials;
use callward_core::trail::{Decision, Stage, Verdict};
use callward_core::{
    BoxFuture, Delivery, ErrorKind, Members, Method, OutputStatus, ToolCall, ToolError, ToolOutput,
    ToolService,
};
use futures_util::future::Either;
use serde_json::value::RawValue;
use tower_layer::Layer;
use tower_service::Service;

use crate::executions::Execution;
use crate::{Guardrails, Handling, Size};

/// The key in the `_meta` of results that are not to be trusted, with the value `true`: the tool
/// reaches into an open world, so that others may have written what it returns.
pub const UNTRUSTED_META: &str = "io.callward/untrusted";

/// Puts a [`ResultGuard`] around a service. The default checks nothing.
#[derive(Debug, Clone, Default)]
pub struct ResultGuardLayer(Option<Guardrails>);

impl ResultGuardLayer {
    /// Makes a layer of these rules.
    #[must_use]
    pub const fn new(guardrails: Guardrails) -> Self {
        Self(Some(guardrails))
    }
}

impl<S> Layer<S> for ResultGuardLayer {
    type Service = ResultGuard<S>;

    fn layer(&self, inner: S) -> ResultGuard<S> {
        let guardrails = self.0.clone();
        ResultGuard { inner, guardrails }
    }
}

/// Refuses calls beyond the limits of executions, and rewrites or withholds results.
#[derive(Debug, Clone)]
pub struct ResultGuard<S> {
    inner: S,
    guardrails: Option<Guardrails>,
}

type Answer = Result<ToolOutput, ToolError>;

impl<S: ToolService> Service<ToolCall> for ResultGuard<S> {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = Either<S::Future, BoxFuture<'static, Answer>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        let Some(guardrails) = &self.guardrails else {
            return Either::Left(self.inner.call(call));
        };
        let execution = match guardrails.admit(&call) {
            Ok(execution) => execution,
            Err(error) => return Either::Right(Box::pin(ready(Err(error)))),
        };
        if execution.is_none() && !guardrails.look_at_result(&call) {
            return Either::Left(self.inner.call(call));
        }
        let sent = self.inner.call(call.clone());
        Either::Right(Box::pin(finish(guardrails.clone(), call, execution, sent)))
    }
}

async fn finish(
    guardrails: Guardrails,
    call: ToolCall,
    execution: Option<Execution>,
    sent: impl Future<Output = Answer>,
) -> Answer {
    let result = sent.await;
    if let Some(execution) = execution {
        execution.end(&result);
    }
    let output = match result {
        Ok(output) => output,
        Err(error) => return Err(guardrails.without_credentials(&call, error)),
    };
    let output = match guardrails.screened(&call, output).await {
        Ok(output) => output,
        Err(why) => withheld(&call, &why)?,
    };
    if !call.plan().audit.open_world {
        return Ok(output);
    }
    let marked = output.with_meta(UNTRUSTED_META, RawValue::TRUE);
    // what cannot be marked is shown to no one
    marked.or_else(|error| withheld(&call, &error.to_string()))
}

impl Guardrails {
    fn look_at_result(&self, call: &ToolCall) -> bool {
        let mut rules = self.concerning(call);
        call.plan().audit.open_world || rules.any(|(_, rule)| rule.looks_at_results())
    }

    /// Returns the result as the rules and the service have it, or why it is withheld.
    async fn screened(&self, call: &ToolCall, output: ToolOutput) -> Result<ToolOutput, String> {
        let output = self.settled(call, output)?;
        let asks = self.concerning(call).any(|(_, rule)| rule.webhook);
        let Some(screen) = self.0.screen.as_ref().filter(|_| asks) else {
            return Ok(output);
        };
        match screen.result(call, &output).await? {
            Some(replaced) => self.settled(call, replaced),
            None => Ok(output),
        }
    }

    /// Applies the rules to a result.
    fn settled(&self, call: &ToolCall, mut output: ToolOutput) -> Result<ToolOutput, String> {
        for (number, rule) in self.concerning(call) {
            let size = output.body().len();
            if let Some(Size(max)) = rule.max_bytes.results
                && size as u64 > max
            {
                return Err(format!(
                    "it has {size} bytes, and guardrail {number} allows {max}"
                ));
            }
            let Some(handling) = rule.credentials.results else {
                continue;
            };
            if let Some((first, text)) = shown(&output) {
                if handling == Handling::Refuse {
                    return Err(format!(
                        "it holds what looks like {first} (guardrail {number})"
                    ));
                }
                output = ToolOutput::from_json(text).map_err(|error| error.to_string())?;
            }
        }
        Ok(output)
    }

    /// Leaves credentials out of the texts of an error, if a rule looks for them in results.
    fn without_credentials(&self, call: &ToolCall, mut error: ToolError) -> ToolError {
        let mut rules = self.concerning(call);
        if rules.any(|(_, rule)| rule.credentials.results.is_some()) {
            clean(&mut error.message);
            let attempts = error.history.iter().cloned().map(|mut attempt| {
                clean(&mut attempt.message);
                attempt
            });
            error.history = attempts.collect();
            let data = error.data.as_deref().map(String::from_utf8_lossy);
            if let Some(found) = data.and_then(|data| credentials(&data)) {
                error.data = Some(found.text.into());
            }
        }
        error
    }
}

/// Leaves credentials out of a text.
fn clean(text: &mut Cow<'static, str>) {
    let quoted = serde_json::Value::from(&**text).to_string();
    let found = credentials(&quoted);
    if let Some(kept) = found.and_then(|found| serde_json::from_str::<String>(&found.text).ok()) {
        *text = kept.into();
    }
}

/// Returns what the first credential of a result is, and the result without any. The state of a
/// further round stays: clients do not read it, and its server does.
fn shown(output: &ToolOutput) -> Option<(&'static str, String)> {
    let body = String::from_utf8_lossy(output.body());
    let members = Members::read(&body).ok();
    let state = members
        .as_ref()
        .and_then(|members| members.last("requestState"));
    let state = state.filter(|_| output.status() == OutputStatus::InputRequired);
    let Some(state) = state.map(RawValue::get) else {
        return credentials(&body).map(|found| (found.first, found.text));
    };
    let start = state.as_ptr().addr().checked_sub(body.as_ptr().addr())?;
    let (before, rest) = body.split_at_checked(start)?;
    let after = rest.get(state.len()..)?;
    let found = [before, after].map(credentials);
    let first = found.iter().flatten().next()?.first;
    let [before, after] = [(found[0].as_ref(), before), (found[1].as_ref(), after)]
        .map(|(found, part)| found.map_or(part, |found| &found.text));
    Some((first, [before, state, after].concat()))
}

/// Answers that a call has run and its result is withheld.
fn withheld(call: &ToolCall, why: &str) -> Answer {
    let text = format!(
        "`{}` has run, and its result is withheld: {why}",
        call.tool().name()
    );
    call.decided(|| Decision::new(Stage::Guardrail, Verdict::Refused, text.clone()));
    match call.tool().definition.method {
        Method::CallTool => Ok(ToolOutput::error_text(text)),
        _ => Err(ToolError::new(
            ErrorKind::Unauthorized,
            Delivery::Answered,
            text,
        )),
    }
}
