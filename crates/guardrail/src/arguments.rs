//! The layer that checks arguments.

use std::future::{poll_fn, ready};
use std::task::{Context, Poll};

use callward_core::trail::{Decision, Stage, Verdict};
use callward_core::{BoxFuture, OutputStatus, ToolCall, ToolError, ToolOutput, ToolService};
use futures_util::future::Either;
use tower_layer::Layer;
use tower_service::Service;

use crate::Guardrails;
use crate::guardrails::Checked;

/// Puts an [`ArgumentGuard`] around a service. The default checks nothing.
///
/// ```
/// use callward_core::{Tool, ToolCall, When};
/// use callward_guardrail::{ArgumentGuardLayer, Guardrails, Rule};
/// use callward_testkit::MockService;
/// use tower::{ServiceBuilder, ServiceExt};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut rule = Rule::default();
/// rule.deny = serde_json::from_str(r#"{"path": {"matches": "/etc/.*"}}"#)?;
/// let guardrails = Guardrails::new(vec![rule], None)?;
/// let server = MockService::counting();
/// let service = ServiceBuilder::new()
///     .layer(ArgumentGuardLayer::new(guardrails))
///     .service(server.clone());
///
/// let write = ToolCall::new(Tool::destructive("write_file")?, r#"{"path":"/etc/hosts"}"#);
/// assert!(service.oneshot(write).await.is_err());
/// assert_eq!(server.started(), 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct ArgumentGuardLayer(Option<Guardrails>);

impl ArgumentGuardLayer {
    /// Makes a layer of these rules.
    #[must_use]
    pub const fn new(guardrails: Guardrails) -> Self {
        Self(Some(guardrails))
    }

    /// Returns the rules; `None` if the layer checks nothing.
    #[must_use]
    pub const fn guardrails(&self) -> Option<&Guardrails> {
        self.0.as_ref()
    }
}

impl<S> Layer<S> for ArgumentGuardLayer {
    type Service = ArgumentGuard<S>;

    fn layer(&self, inner: S) -> ArgumentGuard<S> {
        let guardrails = self.0.clone();
        ArgumentGuard { inner, guardrails }
    }
}

/// Refuses calls for their arguments, or rewrites these.
#[derive(Debug, Clone)]
pub struct ArgumentGuard<S> {
    inner: S,
    guardrails: Option<Guardrails>,
}

type Answer = Result<ToolOutput, ToolError>;

impl<S: ToolService> Service<ToolCall> for ArgumentGuard<S> {
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
        let checked = match guardrails.check(call) {
            Ok(checked) => checked,
            Err(error) => return Either::Right(Box::pin(ready(Err(error)))),
        };
        if !checked.asks && checked.permits.is_empty() {
            return Either::Left(self.inner.call(checked.call));
        }
        // what was made ready goes: a call that waits for the service holds no permit
        let inner = self.inner.clone();
        self.inner = inner.clone();
        Either::Right(Box::pin(run(guardrails.clone(), inner, checked)))
    }
}

async fn run<S: ToolService>(guardrails: Guardrails, mut inner: S, mut checked: Checked) -> Answer {
    if let Some(screen) = guardrails.0.screen.as_ref().filter(|_| checked.asks) {
        let screened = screen.arguments(&checked.call).await;
        let screened = screened.inspect_err(|error| {
            let why = || error.message.clone();
            let refused = || Decision::new(Stage::Guardrail, Verdict::Refused, why());
            checked.call.decided(refused);
        });
        if let Some(arguments) = screened? {
            checked = guardrails.check(checked.call.with_arguments(arguments))?;
        }
    }
    poll_fn(|cx| inner.poll_ready(cx)).await?;
    let result = inner.call(checked.call).await;
    let succeeded =
        |output: &ToolOutput| !output.is_error() && output.status() == OutputStatus::Complete;
    if result.as_ref().is_ok_and(succeeded) {
        for key in checked.permits {
            guardrails.0.dry_runs.add(key);
        }
    }
    result
}
