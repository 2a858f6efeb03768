//! The service that authorizes calls.

use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};

use callward_core::trail::{Decision, Stage, Verdict as Word};
use callward_core::{
    Ask, Authorization, BoxFuture, Delivery, ErrorKind, ToolCall, ToolError, ToolOutput,
    ToolService,
};
use futures_util::future::Either;
use tower_service::Service;

use crate::layer::AuthorizeLayer;
use crate::rules::{Policy, SCOPES, Verdict};

/// Passes on the calls that the policy allows, and refuses all others before they are sent.
#[derive(Debug, Clone)]
pub struct Authorize<S> {
    pub(crate) inner: S,
    pub(crate) layer: Arc<AuthorizeLayer>,
}

type Answer = Result<ToolOutput, ToolError>;

/// The response future of [`Authorize`].
pub type AuthorizeFuture<S> =
    Either<<S as Service<ToolCall>>::Future, Either<Ready<Answer>, BoxFuture<'static, Answer>>>;

impl<S: ToolService> Service<ToolCall> for Authorize<S> {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = AuthorizeFuture<S>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut call: ToolCall) -> Self::Future {
        let layer = &self.layer;
        match check(layer, &call).inspect_err(|error| layer.note(&call, error)) {
            Ok(None) => {}
            Ok(ask) => call.context_mut().ask = ask,
            Err(error) => return Either::Right(Either::Left(ready(Err(error)))),
        }
        let Some(decide) = &layer.decide else {
            return Either::Left(self.inner.call(call));
        };
        let (answer, layer) = (decide.decide(&call), layer.clone());
        let next = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, next);
        Either::Right(Either::Right(Box::pin(async move {
            if let Err(mut error) = answer.await {
                refused_outside(&call, &mut error, &layer.policy);
                layer.note(&call, &error);
                return Err(error);
            }
            inner.call(call).await
        })))
    }
}

impl AuthorizeLayer {
    fn note(&self, call: &ToolCall, error: &ToolError) {
        if let Some(refused) = &self.refused {
            refused(call, error);
        }
    }
}

/// Writes into the record of a call, and into the error, that it was refused outside.
fn refused_outside(call: &ToolCall, error: &mut ToolError, policy: &Policy) {
    let by = Arc::new(Authorization {
        rule: "webhook".into(),
        policy: policy.revision().cloned(),
    });
    if let Some(record) = &call.record {
        let why = || error.message.clone();
        record.with(|facts| facts.authorization = Some(by.clone()));
        record.decided(|| Decision::new(Stage::Authorize, Word::Refused, why()));
    }
    error.authorization = Some(by);
}

/// Decides about a call, and writes the decision into its record. Returns the rule that asks.
fn check(layer: &AuthorizeLayer, call: &ToolCall) -> Result<Option<Arc<Ask>>, ToolError> {
    let policy = &layer.policy;
    let is_limited = call.caller().credential.scopes.is_some();
    if policy.is_open() && !is_limited {
        return Ok(None);
    }
    let tool = call.tool();
    let ruling = policy.decide(call.caller(), tool, call.applied(), call.arguments());
    if let Some(record) = &call.record {
        record.with(|facts| facts.authorization = Some(ruling.by.clone()));
        record.decided(|| ruling.decision(layer.can_ask));
    }
    let refused = |kind, text: String| ToolError::new(kind, Delivery::NotSent, text);
    let mut error = match ruling.verdict {
        Verdict::Allow => return Ok(None),
        Verdict::Ask if layer.can_ask => return Ok(ruling.ask),
        Verdict::Deny if policy.lists(call.caller(), tool) => refused(
            ErrorKind::Unauthorized,
            "a rule denies the call with these arguments; with others it may pass".to_owned(),
        ),
        Verdict::Deny => {
            let own = || format!("{}.{}", tool.set(), tool.name());
            let asked = call.asked_as.as_deref();
            unknown_tool(&asked.map_or_else(own, str::to_owned))
        }
        Verdict::Ask => refused(
            ErrorKind::Unauthorized,
            "a person must approve this call, and approvals are not configured".to_owned(),
        ),
        Verdict::NeedsScope(scopes) => {
            let named = scopes.join(" ");
            let text = format!("the call needs a credential with the scope `{named}`");
            let mut error = refused(ErrorKind::InsufficientScope, text);
            // before 2026-07-28 a client asks for these alone, and would lose what it has
            let held = call.caller().credential.scopes.as_ref();
            let has = |scope: &str| held.is_some_and(|held| held.contains(scope));
            let to_ask = |scope: &&str| scopes.contains(scope) || has(scope);
            error.scopes = SCOPES.into_iter().filter(to_ask).collect();
            error
        }
    };
    error.authorization = Some(ruling.by);
    Err(error)
}

/// The error for a name that no tool has, and for a tool that the caller may not call. Where there
/// are rules, nothing else answers such a name: names that are similar, or servers that are down,
/// would tell of what is not listed.
#[must_use]
pub fn unknown_tool(name: &str) -> ToolError {
    ToolError::unknown_tool(name, "the list of tools has all that you may call")
}
