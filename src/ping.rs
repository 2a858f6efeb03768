//! Pinging one server, on behalf of its breaker.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use callward_breaker::{Circuit, Verdict, judge_error_of_transport};
use callward_core::{InvalidConfig, ToolServer};
use callward_router::Endpoint;
use futures_util::FutureExt;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::scan::Liveness;

/// The settings of pings. An answer counts as a success for the breaker of the server, and no
/// answer as a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
#[must_use]
pub struct PingConfig {
    /// How often. Default: 10 s.
    #[serde(with = "callward_core::human::duration")]
    pub interval: Duration,
    /// How long an answer may take. Default: 5 s.
    #[serde(skip)]
    pub timeout: Duration,
}

impl Default for PingConfig {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(10),
            timeout: Duration::from_secs(5),
        }
    }
}

impl PingConfig {
    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first invalid setting.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        for (field, time) in [("interval", self.interval), ("timeout", self.timeout)] {
            if time < Duration::from_millis(1) {
                return Err(InvalidConfig::new(field, "is below 1 ms"));
            }
            if time > Duration::from_secs(24 * 60 * 60) {
                return Err(InvalidConfig::new(field, "is above a day"));
            }
        }
        Ok(())
    }
}

/// Pings one server for as long as the stack lives.
///
/// It finds a process that hangs with its pipes open, or a host that went away silently, before a
/// call does.
pub(crate) struct Pinger {
    pub(crate) server: Arc<dyn ToolServer>,
    pub(crate) config: PingConfig,
    pub(crate) circuit: Arc<Circuit>,
    pub(crate) endpoint: Endpoint,
    /// A server whose connection is lost is not pinged.
    pub(crate) liveness: watch::Receiver<Liveness>,
}

impl Pinger {
    pub(crate) async fn run(mut self) {
        // the sender is gone when the stack is
        while self.liveness.wait_for(|now| now.is_connected).await.is_ok() {
            tokio::select! {
                () = sleep(self.config.interval) => {}
                () = self.circuit.probe_due() => {}
            }
            let is_connected = self.liveness.borrow().is_connected;
            let Some(permit) = is_connected.then(|| self.circuit.admit().ok()).flatten() else {
                continue;
            };
            match ping(&*self.server, &self.config).await {
                Verdict::Success => permit.succeed(),
                // a server may be unable to answer while it works, and then its calls show its
                // state
                Verdict::Failure if self.endpoint.in_flight() == 0 => {
                    permit.fail(&"it answers no pings");
                }
                _ => {
                    drop(permit);
                    if self.circuit.time_to_probe() == Some(Duration::ZERO) {
                        // the next probe would be due at once
                        sleep(self.config.interval).await;
                    }
                }
            }
        }
    }
}

async fn ping(server: &dyn ToolServer, config: &PingConfig) -> Verdict {
    let ping = async move { server.ping().await };
    let answer = timeout(config.timeout, AssertUnwindSafe(ping).catch_unwind()).await;
    match answer {
        Ok(Ok(Ok(()))) => Verdict::Success,
        Ok(Ok(Err(error))) => {
            tracing::debug!(server = %server.id(), %error, "ping failed");
            judge_error_of_transport(&error)
        }
        // too late, or it panicked
        Ok(Err(_)) | Err(_) => Verdict::Failure,
    }
}
