//! The attempts behind an error.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize, Serializer};

use super::{Delivery, ErrorKind, ToolError};
use crate::ServerId;

/// One failed attempt of a call, as listed by an error of several attempts.
///
/// As JSON its keys are in camel case and its times in milliseconds, as in the `data` of an error
/// that a client sees: `{"server": "a", "kind": "timeout", "delivery": "unknown", "code": null,
/// "message": "no answer", "pauseMs": 0}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FailedAttempt {
    /// The server that was asked, if one was chosen.
    pub server: Option<ServerId>,
    /// The kind of failure.
    pub kind: ErrorKind,
    /// How far the attempt got.
    pub delivery: Delivery,
    /// The code the server answered with.
    pub code: Option<i64>,
    /// What the attempt's own error said.
    pub message: Cow<'static, str>,
    /// The pause before the attempt; none before the first.
    #[serde(rename = "pauseMs", serialize_with = "millis")]
    pub pause: Duration,
}

impl FailedAttempt {
    /// Takes the description of an attempt from its error.
    pub fn new(error: &ToolError, pause: Duration) -> Self {
        Self {
            server: error.0.server.clone(),
            kind: error.0.kind,
            delivery: error.0.delivery,
            code: error.0.code,
            message: error.0.message.clone(),
            pause,
        }
    }

    /// Returns how many attempts the `data` of an error lists, as another instance of this runtime
    /// does. A server that lists some without having made them only loses our retries.
    pub fn told_by_peer(data: &[u8]) -> usize {
        #[derive(Deserialize)]
        struct Data {
            history: Vec<IgnoredAny>,
        }
        serde_json::from_slice(data).map_or(0, |Data { history }| history.len())
    }
}

/// The short form: `a timeout`, or `timeout` where no server was chosen.
impl fmt::Display for FailedAttempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(server) = &self.server {
            write!(f, "{server} ")?;
        }
        write!(f, "{}", self.kind)
    }
}

pub(super) fn millis<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    u64::try_from(time.as_millis())
        .unwrap_or(u64::MAX)
        .serialize(serializer)
}
