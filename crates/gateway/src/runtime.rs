//! A stack that serves calls, with all that starts and ends with it.

use std::sync::Arc;

use callward::Stack;
use callward::core::BaggageFilter;
use callward_mcp::client::Upstream;
use tokio_util::task::TaskTracker;

use crate::assemble::Running;
use crate::config::Config;
use crate::metrics::Telemetry;
use crate::record::Recorder;
use crate::report::Reports;
use crate::shutdown::Stop;
use crate::started::Started;
use crate::{audit, evidence, shutdown, telemetry};

/// A stack that serves calls, and what its endpoints and operators need beside it.
pub(crate) struct Runtime {
    pub(crate) stack: Stack,
    pub(crate) upstreams: Vec<Upstream>,
    pub(crate) telemetry: Telemetry,
    pub(crate) recorder: Recorder,
    /// Has a token for each call in flight.
    pub(crate) calls: TaskTracker,
    /// What each result reports, asked or not.
    pub(crate) reports: Reports,
    /// The part of a caller's baggage that is passed on to servers.
    pub(crate) baggage: BaggageFilter,
    /// Whether the servers have started.
    pub(crate) started: Started,
    /// When the process is to end: streams of notifications end then.
    pub(crate) stop: Stop,
}

impl Runtime {
    pub(crate) fn new(
        config: &Config,
        running: Running,
        telemetry: Telemetry,
        recorder: Recorder,
        stop: Stop,
    ) -> Arc<Self> {
        Arc::new(Self {
            stack: running.stack,
            upstreams: running.upstreams,
            telemetry,
            recorder,
            calls: TaskTracker::new(),
            reports: config.reports(),
            baggage: telemetry::baggage(&config.telemetry),
            started: Started::new(running.startup.finished()),
            stop,
        })
    }

    /// Ends the servers, and writes what is not written yet.
    pub(crate) async fn finish(&self) {
        evidence::save(&self.stack).await;
        self.stack.stop_discovery();
        shutdown::end_servers(&self.upstreams, &self.stop).await;
        self.recorder.finish().await;
        audit::close(&self.stack).await;
        self.telemetry.finish().await;
    }
}
