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

/// Puts an [`ArgumentGuard`] around a service. The default checks nothing but the
/// [schemas](callward_core::Tool::argument_check) of tools that have such a check.
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

    /// Returns why a call is refused for its arguments, if it is. The service is not asked, and
    /// limits of executions are left aside.
    #[must_use]
    pub fn refusal(&self, call: &ToolCall) -> Option<Decision> {
        // without its record: the call is not made
        let why = match checked(self.0.as_ref(), call.in_background()).err()? {
            Ok(misfit) => misfit.to_text().into(),
            Err(error) => error.message.clone(),
        };
        Some(Decision::new(Stage::Guardrail, Verdict::Refused, why))
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
        let checked = match checked(self.guardrails.as_ref(), call) {
            Ok(checked) => checked,
            Err(answer) => return Either::Right(Box::pin(ready(answer))),
        };
        if !checked.asks && checked.permits.is_empty() {
            return Either::Left(self.inner.call(checked.call));
        }
        // what was made ready goes: a call that waits for the service holds no permit
        let inner = self.inner.clone();
        self.inner = inner.clone();
        Either::Right(Box::pin(run(self.guardrails.clone(), inner, checked)))
    }
}

/// Checks the arguments by the rules, and then against the tool's schema if it has such a check.
///
/// # Errors
///
/// The answer of a call that is not sent. Arguments that do not fit the schema are a failure that
/// the model reads and mends: the specification of MCP wants a result with `isError`
/// ([SEP-1303](https://github.com/modelcontextprotocol/modelcontextprotocol/issues/1303)).
fn checked(guardrails: Option<&Guardrails>, call: ToolCall) -> Result<Checked, Answer> {
    let checked = match guardrails {
        Some(guardrails) => guardrails.check(call).map_err(Err)?,
        None => Checked::unchanged(call),
    };
    let call = &checked.call;
    let fits = match &call.tool().argument_check {
        Some(check) => check.check(call.arguments()),
        None => Ok(()),
    };
    fits.map_err(|why| {
        let text = format!("the arguments do not fit the tool's input schema: {why}");
        call.decided(|| Decision::new(Stage::Guardrail, Verdict::Refused, text.clone()));
        Ok(ToolOutput::error_text(text))
    })?;
    Ok(checked)
}

async fn run<S: ToolService>(
    guardrails: Option<Guardrails>,
    mut inner: S,
    mut checked: Checked,
) -> Answer {
    let rules = guardrails.as_ref().map(|it| &it.0);
    let screen = rules.and_then(|rules| rules.screen.as_ref());
    if let Some(screen) = screen.filter(|_| checked.asks) {
        let screened = screen.arguments(&checked.call).await;
        let screened = screened.inspect_err(|error| {
            let why = || error.message.clone();
            let refused = || Decision::new(Stage::Guardrail, Verdict::Refused, why());
            checked.call.decided(refused);
        });
        if let Some(arguments) = screened? {
            let call = checked.call.with_arguments(arguments);
            checked = match self::checked(guardrails.as_ref(), call) {
                Ok(checked) => checked,
                Err(answer) => return answer,
            };
        }
    }
    poll_fn(|cx| inner.poll_ready(cx)).await?;
    let result = inner.call(checked.call).await;
    let succeeded =
        |output: &ToolOutput| !output.is_error() && output.status() == OutputStatus::Complete;
    if result.as_ref().is_ok_and(succeeded) {
        for key in checked.permits {
            if let Some(rules) = rules {
                rules.dry_runs.add(key);
            }
        }
    }
    result
}
