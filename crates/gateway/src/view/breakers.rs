//! The breakers, and what an operator makes of them.

use callward::Stack;
use callward::breaker::{BreakerStatus, Subject};
use serde::{Deserialize, Serialize};

/// One breaker.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct BreakerView {
    pub(crate) server: String,
    /// What it stands before: `server`, `discovery` or `tool`.
    pub(crate) scope: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tool: Option<String>,
    /// Whose instance of the server it stands before; absent where all callers share it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) instance: Option<String>,
    pub(crate) state: String,
    /// Failures in a row.
    pub(crate) failures: u32,
    /// The calls that shares are taken of; absent where none are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) window: Option<WindowView>,
    /// Why it opened last.
    #[serde(default)]
    pub(crate) last_trip: Option<String>,
    /// How long until a call is let through as a probe.
    #[serde(default)]
    pub(crate) probe_in_ms: Option<f64>,
}

/// The calls of a window, counted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct WindowView {
    pub(crate) calls: u32,
    pub(crate) failed: u32,
    pub(crate) slow: u32,
}

impl BreakerView {
    /// Describes all breakers of a stack.
    pub(crate) fn all(stack: &Stack) -> Vec<Self> {
        stack.breakers().iter().map(Self::of).collect()
    }

    pub(crate) fn of(status: &BreakerStatus) -> Self {
        Self {
            server: status.server.to_string(),
            scope: status.subject.as_str().to_owned(),
            tool: status.tool().map(ToString::to_string),
            instance: status.instance.clone(),
            state: status.state.as_str().to_owned(),
            failures: status.failures,
            window: status.window.map(|window| WindowView {
                calls: window.calls,
                failed: window.failed,
                slow: window.slow,
            }),
            last_trip: status.last_trip.as_deref().map(str::to_owned),
            probe_in_ms: status.time_to_probe.map(|wait| wait.as_secs_f64() * 1000.0),
        }
    }
}

/// What to do with one breaker.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Force {
    pub(crate) action: ForceAction,
    pub(crate) server: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tool: Option<String>,
    #[serde(default)]
    pub(crate) discovery: bool,
}

/// To hold it, or not to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ForceAction {
    Open,
    Close,
    Release,
}

/// What was done, and how the breaker is now.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Forced {
    pub(crate) breaker: BreakerView,
}

impl Force {
    /// Does it.
    ///
    /// # Errors
    ///
    /// A sentence, if there is no such server or tool.
    pub(crate) fn act(&self, stack: &Stack) -> Result<Forced, String> {
        let servers = stack.servers();
        let known = servers.iter().find(|one| one.id.as_str() == self.server);
        let server = known.ok_or_else(|| {
            let known = servers.iter().map(|server| server.id.as_str());
            let hint = crate::similar::hint(&self.server, known, "servers");
            format!("no server {:?}: {hint}", self.server)
        })?;
        let subject = match (&self.tool, self.discovery) {
            (Some(_), true) => {
                return Err("expected `tool` or `discovery`, found both".to_owned());
            }
            (None, true) => Subject::Discovery,
            (None, false) => Subject::Server,
            (Some(tool), false) => {
                let catalogue = stack.catalogue();
                let of_set = || {
                    let entries = catalogue.entries().iter();
                    entries.filter(|entry| entry.tool().set() == &server.set)
                };
                let named = of_set().find(|entry| {
                    entry.client_name() == tool || entry.tool().name().as_str() == tool
                });
                let entry = named.ok_or_else(|| {
                    let known = of_set().map(|entry| entry.tool().name().as_str());
                    let hint = crate::similar::hint(tool, known, "tools of this server");
                    format!("no tool {tool:?} of server {:?}: {hint}", self.server)
                })?;
                Subject::from(entry.tool().name())
            }
        };
        let breakers = stack.breaker_set();
        match self.action {
            ForceAction::Open => breakers.force_open(&server.id, subject.clone()),
            ForceAction::Close => breakers.force_closed(&server.id, subject.clone()),
            ForceAction::Release => breakers.release(&server.id, subject.clone()),
        }
        let now = stack.breakers();
        let breaker = now
            .iter()
            .find(|status| status.server == server.id && status.subject == subject)
            .map(BreakerView::of)
            .ok_or_else(|| {
                format!(
                    "`{subject}` of server {:?} has no breaker yet, so nothing was held",
                    self.server
                )
            })?;
        Ok(Forced { breaker })
    }
}
