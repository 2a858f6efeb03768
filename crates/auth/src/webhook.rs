//! Asks a service of the operator whether a call is allowed.
//!
//! Each question is a POST of JSON, [signed](crate::signed). The service answers with status 200
//! and `{"allow": true}`, or `{"allow": false, "reason": "..."}`. Every other answer, and none
//! within the deadline, refuses the call. Answers are kept for a stated time and for equal calls of
//! the same principal; failures are not kept.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use callward_core::{
    BoxFuture, CredentialKind, Delivery, Effect, ErrorKind, ToolCall, ToolError, human, one_line,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::Semaphore;

use crate::signed::SignedClient;
use crate::tokens::Secret;
use crate::tokens::jwt::object;
use crate::tokens::known::{Known, digest_of};
use crate::{Decide, hex};

/// The longest answer, in bytes.
const MAX_ANSWER: usize = 4 << 10;
/// The longest `reason` that clients are shown, in characters.
const MAX_REASON: usize = 200;
/// How many questions are open at a time; more wait, within their deadline.
const MAX_RUNNING: usize = 256;
/// When a call may be made again that got no answer.
const AGAIN: Duration = Duration::from_secs(1);

/// Which service is asked, and for how long its answers hold.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "a config, built by its fields")]
pub struct WebhookConfig {
    /// Its URL: HTTPS, or HTTP on loopback.
    pub url: String,
    /// What questions are signed with: `whsec_` and Base64 of the key, or the key as text; at least
    /// 24 bytes.
    pub secret: Secret,
    /// How long a call waits for the answer. Default: `1s`.
    #[serde(default = "one_second", with = "human::duration")]
    pub timeout: Duration,
    /// How long an answer holds for equal calls of a principal; `0s` asks about each call. Default:
    /// `10s`.
    #[serde(default = "ten_seconds", with = "human::duration")]
    pub cache: Duration,
}

fn one_second() -> Duration {
    Duration::from_secs(1)
}

fn ten_seconds() -> Duration {
    Duration::from_secs(10)
}

/// A question. Equal ones have equal answers.
#[derive(Serialize)]
struct Question<'a> {
    principal: &'a str,
    credential: CredentialKind,
    name: &'a Option<String>,
    roles: Vec<&'a str>,
    server: &'a str,
    tool: &'a str,
    effect: Effect,
    arguments: &'a RawValue,
}

/// Whether the call is allowed, or why not.
type Verdict = Result<(), String>;

/// Reads an answer. It is an object: in an array, members would count by their places.
fn read(body: &[u8]) -> Option<Verdict> {
    let answer = object(body).ok()?;
    if answer.get("allow")?.as_bool()? {
        return Some(Ok(()));
    }
    let reason = answer.get("reason").and_then(Value::as_str);
    let reason = reason.unwrap_or("the authorization webhook refuses it");
    Some(Err(one_line(reason, MAX_REASON)))
}

/// The service. Clones are the same.
#[derive(Clone)]
pub struct Webhook(Arc<Inner>);

struct Inner {
    service: Signed,
    keep: Duration,
    known: Known<Verdict>,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.service.fmt(f)
    }
}

/// A service that is asked with signed questions, within a deadline.
pub struct Signed {
    /// What it is, for the log.
    name: &'static str,
    client: SignedClient,
    timeout: Duration,
    running: Semaphore,
    /// Whether the last question failed; the first failure in a row is logged.
    failed: AtomicBool,
}

impl fmt::Debug for Signed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Signed").field(&self.client).finish()
    }
}

impl Webhook {
    /// Asks this service. Nothing is sent before the first call.
    ///
    /// # Errors
    ///
    /// Which setting cannot be used, why, and what is expected.
    pub fn new(config: &WebhookConfig) -> Result<Self, String> {
        let name = "authorization webhook";
        let service = Signed::new(name, &config.url, &config.secret, config.timeout)?;
        Ok(Self::of(service, config.cache))
    }

    fn of(service: Signed, keep: Duration) -> Self {
        let known = Known::new(keep);
        Self(Arc::new(Inner {
            service,
            keep,
            known,
        }))
    }
}

impl Decide for Webhook {
    fn decide(&self, call: &ToolCall) -> BoxFuture<'static, Result<(), ToolError>> {
        let caller = call.caller();
        let question = serde_json::from_slice(call.arguments()).and_then(|arguments| {
            serde_json::to_string(&Question {
                principal: caller.principal.as_str(),
                credential: caller.credential.kind,
                name: &caller.credential.name,
                roles: caller.credential.roles.iter().map(String::as_str).collect(),
                server: call.tool().set().as_str(),
                tool: call.tool().name().as_str(),
                effect: call.plan().effect,
                arguments,
            })
        });
        let this = self.0.clone();
        Box::pin(async move {
            let not_json = |_| {
                let text = "the call is not authorized: its arguments are not JSON";
                ToolError::new(ErrorKind::InvalidCall, Delivery::NotSent, text)
            };
            let question = question.map_err(not_json)?;
            let digest = digest_of(&question);
            let unauthorized = |why: String| {
                let text = format!("the call is not authorized: {why}");
                ToolError::new(ErrorKind::Unauthorized, Delivery::NotSent, text)
            };
            if let Some(known) = this.known.get(&digest) {
                return known.map_err(unauthorized);
            }
            let read = |body: Vec<u8>| {
                let expected = "its answer is not `{\"allow\": true}` or the like";
                read(&body).ok_or_else(|| expected.to_owned())
            };
            let allowed = this.service.ask(question, MAX_ANSWER, read).await?;
            this.known.keep(digest, allowed.clone(), this.keep);
            allowed.map_err(unauthorized)
        })
    }
}

impl Signed {
    /// Takes the URL of a service, and what questions are signed with. Its name is for errors and
    /// the log. Nothing is sent before the first question.
    ///
    /// # Errors
    ///
    /// Which setting cannot be used, why, and what is expected.
    pub fn new(
        name: &'static str,
        url: &str,
        secret: &Secret,
        timeout: Duration,
    ) -> Result<Self, String> {
        Self::with(name, SignedClient::new(url, secret)?, timeout)
    }

    fn with(name: &'static str, client: SignedClient, timeout: Duration) -> Result<Self, String> {
        if timeout.is_zero() {
            return Err("`timeout` must not be 0".to_owned());
        }
        Ok(Self {
            name,
            client,
            timeout,
            running: Semaphore::new(MAX_RUNNING),
            failed: AtomicBool::new(false),
        })
    }

    /// Asks a question, JSON, and reads its answer of at most `limit` bytes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Overloaded`] if there is no answer in time, or none that can be read.
    pub async fn ask<T>(
        &self,
        question: String,
        limit: usize,
        read: impl FnOnce(Vec<u8>) -> Result<T, String>,
    ) -> Result<T, ToolError> {
        let sent = tokio::time::timeout(self.timeout, self.send(question, limit)).await;
        let sent = sent.unwrap_or_else(|_| Err("it does not answer".to_owned()));
        let answer = sent.and_then(read);
        let failed_before = self.failed.swap(answer.is_err(), Ordering::Relaxed);
        answer.map_err(|error| {
            let name = self.name;
            if !failed_before {
                tracing::warn!(%error, "the {name} fails");
            }
            let text = format!("the {name} gives no answer; nothing was sent");
            let error = ToolError::new(ErrorKind::Overloaded, Delivery::NotSent, text);
            error.with_retry_after(AGAIN)
        })
    }

    async fn send(&self, question: String, limit: usize) -> Result<Vec<u8>, String> {
        let permit = self.running.acquire().await;
        let _permit = permit.map_err(|error| error.to_string())?;
        self.client.send(&id()?, question, limit).await
    }
}

/// Returns the id of a new question.
fn id() -> Result<String, String> {
    let mut id = [0; 16];
    let random = ring::rand::SystemRandom::new();
    let filled = ring::rand::SecureRandom::fill(&random, &mut id);
    filled.map_err(|_| "there are no random numbers".to_owned())?;
    Ok(hex(id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::http::{Ask, Http, Post};
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use callward_testkit::{call, tool};
    use parking_lot::Mutex;
    use ring::hmac;
    use serde_json::json;
    use url::Url;

    /// Answers each question after a time, and keeps it.
    #[derive(Clone)]
    struct Service {
        answer: Arc<Mutex<(Duration, Result<&'static str, &'static str>)>>,
        asked: Arc<Mutex<Vec<Post>>>,
    }

    impl Http for Service {
        fn send(&self, ask: Ask) -> BoxFuture<'static, Result<Vec<u8>, String>> {
            assert_eq!(ask.url.as_str(), "https://policy.example/");
            self.asked.lock().extend(ask.post);
            let (after, answer) = *self.answer.lock();
            Box::pin(async move {
                tokio::time::sleep(after).await;
                answer.map(Into::into).map_err(Into::into)
            })
        }
    }

    const SECRET: &str = "a secret of at least 24 bytes";

    fn config(secret: &str) -> WebhookConfig {
        let config = json!({"url": "https://policy.example/", "secret": secret});
        serde_json::from_value(config).unwrap()
    }

    fn webhook() -> (Webhook, Service) {
        let service = Service {
            answer: Arc::new(Mutex::new((Duration::ZERO, Ok(r#"{"allow":true}"#)))),
            asked: Arc::default(),
        };
        let (config, http) = (config(SECRET), Box::new(service.clone()));
        let url = Url::parse(&config.url).unwrap();
        let client = SignedClient::with(url, &config.secret, http).unwrap();
        let signed = Signed::with("webhook", client, config.timeout).unwrap();
        (Webhook::of(signed, config.cache), service)
    }

    fn about(arguments: Value) -> ToolCall {
        call(&tool("remove").destructive().build(), arguments)
    }

    #[tokio::test(start_paused = true)]
    async fn only_an_answer_that_allows_lets_a_call_pass() {
        let unasked = (ErrorKind::Overloaded, "gives no answer");
        let denied = |why| Err((ErrorKind::Unauthorized, why));
        let late = Duration::from_millis(1001);
        for (after, answer, expected) in [
            (Duration::ZERO, Ok(r#"{"allow":true,"more":1}"#), Ok(())),
            (Duration::from_millis(999), Ok(r#"{"allow":true}"#), Ok(())),
            (late, Ok(r#"{"allow":true}"#), Err(unasked)),
            (
                Duration::ZERO,
                Ok(r#"{"allow":false}"#),
                denied("refuses it"),
            ),
            (
                Duration::ZERO,
                Ok(r#"{"allow":false,"reason":"no\u0000\u001b[2J\nway"}"#),
                denied("not authorized: no [2J way"),
            ),
            (Duration::ZERO, Ok(r#"{"allow":"true"}"#), Err(unasked)),
            (Duration::ZERO, Ok(r#"{"reason":"yes"}"#), Err(unasked)),
            (
                Duration::ZERO,
                Ok(r#"{"allow":false,"allow":true}"#),
                Err(unasked),
            ),
            (Duration::ZERO, Ok("[true]"), Err(unasked)),
            (Duration::ZERO, Ok("[true,null]"), Err(unasked)),
            (Duration::ZERO, Ok(""), Err(unasked)),
            (Duration::ZERO, Err("it answered 500"), Err(unasked)),
        ] {
            let (webhook, service) = webhook();
            *service.answer.lock() = (after, answer);
            let decided = webhook.decide(&about(json!({}))).await;
            match (decided, expected) {
                (Ok(()), Ok(())) => {}
                (Err(error), Err((kind, part))) => {
                    assert_eq!(error.kind, kind, "{answer:?}");
                    assert!(error.message.contains(part), "{error}");
                }
                (decided, _) => panic!("{answer:?}: {decided:?}"),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn answers_hold_for_equal_calls_and_failures_do_not() {
        let (webhook, service) = webhook();
        let count = || service.asked.lock().len();
        *service.answer.lock() = (Duration::ZERO, Err("it is down"));
        for asked in [1, 2] {
            assert!(webhook.decide(&about(json!({"a": 1}))).await.is_err());
            assert_eq!(count(), asked);
        }
        *service.answer.lock() = (Duration::ZERO, Ok(r#"{"allow":true}"#));
        for (arguments, asked) in [(1, 3), (1, 3), (2, 4)] {
            assert!(
                webhook
                    .decide(&about(json!({"a": arguments})))
                    .await
                    .is_ok()
            );
            assert_eq!(count(), asked);
        }
        tokio::time::advance(Duration::from_secs(10)).await;
        assert!(webhook.decide(&about(json!({"a": 1}))).await.is_ok());
        assert_eq!(count(), 5);
    }

    #[tokio::test]
    async fn a_question_is_signed_and_describes_the_call() {
        let (webhook, service) = webhook();
        webhook.decide(&about(json!({"path": "/a"}))).await.unwrap();
        let Post { headers, body } = service.asked.lock().remove(0);
        let header = |name: &str| headers[name].to_str().unwrap();
        let signed = format!(
            "{}.{}.{body}",
            header("webhook-id"),
            header("webhook-timestamp")
        );
        let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
        let signature = header("webhook-signature").strip_prefix("v1,").unwrap();
        let signature = STANDARD.decode(signature).unwrap();
        assert!(hmac::verify(&key, signed.as_bytes(), &signature).is_ok());
        let question: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(question["tool"], "remove");
        assert_eq!(question["effect"], "destructive");
        assert_eq!(question["arguments"], json!({"path": "/a"}));
        assert!(!format!("{webhook:?}").contains(SECRET));
    }

    #[test]
    fn a_webhook_needs_a_secure_url_and_a_long_secret() {
        let with = |url: &str, secret: &str| {
            let mut config = config(secret);
            config.url = url.to_owned();
            Webhook::new(&config).map(drop)
        };
        let url = "http://127.0.0.1:1/";
        assert_eq!(with(url, SECRET), Ok(()));
        assert_eq!(
            with(url, &format!("whsec_{}", STANDARD.encode(SECRET))),
            Ok(())
        );
        for (url, secret, wrong) in [
            ("http://policy.example/", SECRET, "`url`"),
            (url, "short", "`secret`"),
            (url, "whsec_?", "`secret`"),
            (url, "whsec_YWJj", "`secret`"),
        ] {
            assert!(with(url, secret).unwrap_err().contains(wrong));
        }
    }
}
