//! The guardrails of a config, and the service that screens calls and results.
//!
//! A question is what the authorization webhook is asked, with `phase`: `before`, or `after` with
//! the `result`. The answer has `allow`, and a `reason` if that is `false`; else `arguments` or
//! `result`, if they are to be replaced.

use std::sync::Arc;

use bytes::Bytes;
use callward::core::{BoxFuture, FingerprintKey, Members, one_line};
use callward::guardrail::{Guardrails, Screen};
use callward::{Delivery, Effect, ErrorKind, ToolCall, ToolError, ToolOutput};
use callward_auth::webhook::Signed;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::config::{self, OnFailure, Screening};
use crate::error::AppError;

/// The longest question and the longest answer, in bytes.
const MOST: usize = 4 << 20;
/// The longest `reason` that clients are shown, in characters.
const MAX_REASON: usize = 200;

/// Makes the guardrails of a config, if it has rules.
///
/// # Errors
///
/// [`AppError::Usage`] if a setting cannot be used.
pub(crate) fn open(config: &config::Guardrails) -> Result<Option<Guardrails>, AppError> {
    if config.rules.is_empty() {
        return Ok(None);
    }
    let screen = config.webhook.as_ref().map(|webhook| {
        let service = Arc::new(service(webhook)?);
        let on_failure = webhook.on_failure;
        let screener: Arc<dyn Screen> = Arc::new(Screener {
            service,
            on_failure,
        });
        Ok(screener)
    });
    let screen = screen.transpose().map_err(AppError::Usage)?;
    let guardrails = Guardrails::new(config.rules.clone(), screen);
    guardrails
        .map(Some)
        .map_err(|error| AppError::Usage(error.to_string()))
}

/// Makes the client of the service.
pub(crate) fn service(config: &Screening) -> Result<Signed, String> {
    Signed::new(
        "guardrail webhook",
        &config.url,
        &config.secret,
        config.timeout,
    )
}

struct Screener {
    service: Arc<Signed>,
    on_failure: OnFailure,
}

#[derive(Serialize)]
struct Question<'a> {
    phase: &'static str,
    principal: &'a str,
    server: &'a str,
    tool: &'a str,
    effect: Effect,
    arguments: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawValue>,
}

/// What replaces something, if anything does, or why it is refused.
type Verdict<T> = Result<Option<T>, String>;

impl Screener {
    /// Asks about a call, or about its result. The future fails if there is no answer that counts.
    fn ask<T: Send + 'static>(
        &self,
        call: &ToolCall,
        output: Option<&ToolOutput>,
        take: fn(&str) -> Result<T, String>,
    ) -> BoxFuture<'static, Result<Verdict<T>, ToolError>> {
        let (phase, member) = match output {
            None => ("before", "arguments"),
            Some(_) => ("after", "result"),
        };
        let result = output.map(|output| serde_json::from_slice(output.body()));
        let question = result.transpose().and_then(|result| {
            serde_json::to_string(&Question {
                phase,
                principal: call.caller().principal.as_str(),
                server: call.tool().set().as_str(),
                tool: call.tool().name().as_str(),
                effect: call.plan().effect,
                arguments: serde_json::from_slice(call.arguments())?,
                result,
            })
        });
        let (service, passes) = (self.service.clone(), self.on_failure == OnFailure::Open);
        Box::pin(async move {
            let refused = |kind, text| ToolError::new(kind, Delivery::NotSent, text);
            let not_json = |_| refused(ErrorKind::InvalidCall, "the arguments are not JSON");
            let question = question.map_err(not_json)?;
            let answer = match question.len() > MOST {
                true => Err(refused(
                    ErrorKind::InvalidCall,
                    "the guardrail webhook is asked about 4 MiB at most",
                )),
                false => {
                    let read = |body: Vec<u8>| read(&body, member, take);
                    service.ask(question, MOST, read).await
                }
            };
            answer.or_else(|error| if passes { Ok(Ok(None)) } else { Err(error) })
        })
    }
}

impl Screen for Screener {
    fn arguments(&self, call: &ToolCall) -> BoxFuture<'static, Result<Option<Bytes>, ToolError>> {
        let asked = self.ask(call, None, |raw| match raw.starts_with('{') {
            true => Ok(Bytes::copy_from_slice(raw.as_bytes())),
            false => Err("its `arguments` are not an object".to_owned()),
        });
        Box::pin(async move {
            asked.await?.map_err(|why| {
                let text = format!("the guardrail webhook refuses the call: {why}");
                ToolError::new(ErrorKind::Unauthorized, Delivery::NotSent, text)
            })
        })
    }

    fn result(
        &self,
        call: &ToolCall,
        output: &ToolOutput,
    ) -> BoxFuture<'static, Result<Option<ToolOutput>, String>> {
        let asked = self.ask(call, Some(output), |raw| {
            ToolOutput::from_json(raw.to_owned()).map_err(|error| error.to_string())
        });
        Box::pin(async move {
            let asked = asked.await;
            asked.unwrap_or_else(|_| Err("the guardrail webhook gives no answer".to_owned()))
        })
    }
}

/// Reads an answer. One that two parsers may read differently does not count.
fn read<T>(
    body: &[u8],
    replaces: &str,
    take: fn(&str) -> Result<T, String>,
) -> Result<Verdict<T>, String> {
    let text = FingerprintKey::fixed()
        .json(body)
        .and_then(|_| str::from_utf8(body).ok());
    let answer = text.and_then(|text| Members::read(text).ok());
    let answer = answer.ok_or("its answer is not a JSON object with each member once")?;
    let member = |name| answer.last(name).map(RawValue::get);
    match member("allow") {
        Some("true") => Ok(Ok(member(replaces).map(take).transpose()?)),
        Some("false") => {
            let reason = member("reason").and_then(|raw| serde_json::from_str::<String>(raw).ok());
            let reason = reason.as_deref().unwrap_or("it states no reason");
            Ok(Err(one_line(reason, MAX_REASON)))
        }
        _ => Err("its answer has no `allow`: true or false".to_owned()),
    }
}
