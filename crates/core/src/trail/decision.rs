//! One decision about a call.

use std::borrow::Cow;
use std::fmt::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Stage, Verdict};
use crate::{Attempt, CacheStatus, RouteDecision, ServerId, millis};

/// What one stage decided about a call, and why.
///
/// As JSON, unknown members are left out, and times are milliseconds:
/// `{"stage":"retry","verdict":"retry","reason":"…","attempt":1,"waited_ms":104.2}`.
#[must_use]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Decision {
    /// The stage that decided.
    pub stage: Stage,
    /// The verdict, one of [`Stage::verdicts`].
    pub verdict: Verdict,
    /// The reason, as text. Never contains arguments or results of the call.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub reason: Cow<'static, str>,
    /// The attempt, from 1; `None` for the call as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Whether that attempt runs beside a slow one of the same number.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub beside: bool,
    /// The server that it concerns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerId>,
    /// How long it delayed the call: a pause, or the time in a queue.
    #[serde(default, rename = "waited_ms", with = "millis::optional")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waited: Option<Duration>,
    /// How long it took: of an attempt or an answer, from its start.
    #[serde(default, rename = "took_ms", with = "millis::optional")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took: Option<Duration>,
    /// How the router decided, with every server it looked at. Only written.
    #[serde(default, skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub route: Option<Arc<RouteDecision>>,
}

impl Decision {
    /// States a decision about a call.
    pub fn new(stage: Stage, verdict: Verdict, reason: impl Into<Cow<'static, str>>) -> Self {
        debug_assert!(
            stage.verdicts().contains(&verdict),
            "`{verdict}` is not a word of stage `{stage}`"
        );
        Self {
            stage,
            verdict,
            reason: reason.into(),
            attempt: None,
            beside: false,
            server: None,
            waited: None,
            took: None,
            route: None,
        }
    }

    /// States how the router decided.
    pub fn of_route(route: &Arc<RouteDecision>) -> Self {
        let verdict = match route.chosen {
            Some(_) => Verdict::Chosen,
            None => Verdict::NoServer,
        };
        Self {
            attempt: Some(route.attempt),
            beside: route.beside,
            server: route.chosen.clone(),
            route: Some(route.clone()),
            ..Self::new(Stage::Route, verdict, route.reason)
        }
    }

    /// States what the cache did or would do: why it sent the call without a look-up, how long ago
    /// the answer was made that came from it, what the result depends on or the call may change.
    /// `None` of a call that it was not asked for.
    pub fn of_cache(
        status: CacheStatus,
        bypass: Option<&'static str>,
        age: Option<Duration>,
        scope: Option<&str>,
    ) -> Option<Self> {
        let reason: Option<Cow<'static, str>> = match status {
            CacheStatus::Bypass => Some(bypass?.into()),
            CacheStatus::Hit | CacheStatus::Stale => {
                age.map(|age| format!("made {:?} ago", coarse(age)).into())
            }
            CacheStatus::Joined => Some("an identical call was already running".into()),
            CacheStatus::Miss => scope.map(|scope| format!("reads {scope}").into()),
            CacheStatus::Invalidated => {
                scope.map(|scope| format!("drops what depends on {scope}").into())
            }
        };
        let verdict = Verdict::by_name(status.as_str())?;
        Some(Self::new(Stage::Cache, verdict, reason.unwrap_or_default()))
    }

    /// Adds which attempt it is about.
    pub(crate) const fn of_attempt(mut self, attempt: &Attempt) -> Self {
        self.attempt = Some(attempt.number);
        self.beside = attempt.elsewhere_only;
        self
    }

    /// Adds which server it is about.
    pub fn at(mut self, server: ServerId) -> Self {
        self.server = Some(server);
        self
    }

    /// Adds how long it delayed the call.
    pub const fn waited(mut self, waited: Duration) -> Self {
        self.waited = Some(waited);
        self
    }

    /// Adds how long it took.
    pub const fn took(mut self, took: Duration) -> Self {
        self.took = Some(took);
        self
    }

    /// Writes how it stands in [`Trail::to_line`](super::Trail::to_line):
    /// `stage#attempt:verdict@server +waited took (reason)`; what is not known is left out. A `+`
    /// after the attempt's number says that it runs beside another.
    pub(super) fn write_in_line(&self, line: &mut String) -> fmt::Result {
        // every traced call is written this way: words are copied, and only numbers are formatted
        line.push_str(self.stage.as_str());
        if let Some(attempt) = self.attempt {
            let beside = if self.beside { "+" } else { "" };
            write!(line, "#{attempt}{beside}")?;
        }
        line.push(':');
        line.push_str(self.verdict.as_str());
        if let Some(server) = &self.server {
            line.push('@');
            line.push_str(server.as_str());
        }
        if let Some(waited) = self.waited {
            write!(line, " +{:?}", coarse(waited))?;
        }
        if let Some(took) = self.took {
            write!(line, " {:?}", coarse(took))?;
        }
        if !self.reason.is_empty() {
            line.push_str(" (");
            for (place, part) in self.reason.split(';').enumerate() {
                // it separates decisions, so no reason may have one
                line.push_str(if place == 0 { "" } else { "," });
                line.push_str(part);
            }
            line.push(')');
        }
        Ok(())
    }
}

/// Nanoseconds are too precise for a decision.
pub(super) fn coarse(time: Duration) -> Duration {
    let micros = u64::try_from(time.as_micros()).map(Duration::from_micros);
    micros.unwrap_or(time)
}
