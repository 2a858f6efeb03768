//! A stack that serves calls, with all that starts and ends with it.

use std::sync::Arc;

use callward::approval::Asked;
use callward::approval::questions::Questions;
use callward::core::BaggageFilter;
use callward::core::redact::Redactor;
use callward::registry::Entry;
use callward::{Caller, Stack};
use callward_mcp::client::Upstream;

use crate::assemble::Running;
use crate::config::{Config, Listing};
use crate::metrics::Telemetry;
use crate::record::Recorder;
use crate::report::Reports;
use crate::rounds::Rounds;
use crate::shutdown::Stop;
use crate::started::Started;
use crate::subscriptions::Subscriptions;
use crate::toolsets::{Active, Toolsets};
use crate::webhook::Webhook;
use crate::{audit, evidence, shutdown, telemetry};

/// A stack that serves calls, and what its endpoints and operators need beside it.
pub(crate) struct Runtime {
    pub(crate) stack: Stack,
    pub(crate) upstreams: Vec<Upstream>,
    /// Which tools clients see; `None` if they see all.
    pub(crate) toolsets: Option<Arc<Toolsets>>,
    /// Whether clients see all these, or search them.
    pub(crate) listing: Listing,
    /// What is sent the requests for approval.
    pub(crate) webhook: Option<Webhook>,
    pub(crate) telemetry: Telemetry,
    pub(crate) recorder: Recorder,
    /// What each result reports, asked or not.
    pub(crate) reports: Reports,
    /// Requests in several rounds.
    pub(crate) rounds: Arc<Rounds>,
    /// Who is subscribed to which resource.
    pub(crate) subscriptions: Arc<Subscriptions>,
    /// Leaves out the secrets of arguments that a person approves, and cuts none of the rest.
    pub(crate) redactor: Redactor,
    /// The questions to persons at clients.
    pub(crate) questions: Questions,
    /// Whether they are asked for required arguments that a call lacks.
    pub(crate) ask_missing: bool,
    /// The part of a caller's baggage that is passed on to servers.
    pub(crate) baggage: BaggageFilter,
    /// Whether the servers have started.
    pub(crate) started: Started,
    /// The calls in flight, and when the process is to end: streams of notifications end then.
    pub(crate) stop: Stop,
}

impl Runtime {
    /// `page` is the URL of the page that asks for secrets.
    pub(crate) fn new(
        config: &Config,
        running: Running,
        telemetry: Telemetry,
        recorder: Recorder,
        stop: Stop,
        page: Option<String>,
    ) -> Arc<Self> {
        let (startup, cut_off) = (running.startup, stop.cut_off.clone());
        let started = async move {
            cut_off.run_until_cancelled(startup.finished()).await;
        };
        let questions = Questions::default();
        let questions = page.into_iter().fold(questions, Questions::with_page);
        telemetry.observe_questions(&questions);
        let link = running.link;
        let runtime = Arc::new(Self {
            subscriptions: Subscriptions::start(&running.stack, &running.upstreams),
            stack: running.stack,
            upstreams: running.upstreams,
            toolsets: config.toolsets.open.clone(),
            listing: config.listing,
            webhook: running.webhook,
            telemetry,
            recorder,
            reports: Reports {
                cache: config.cache.report,
                trail: config.trail,
            },
            rounds: Rounds::new(stop.closing.clone()),
            redactor: config.audit.redactor(Asked::MAX_ARGUMENT_BYTES),
            questions,
            ask_missing: config.ask_missing,
            baggage: telemetry::baggage(&config.telemetry),
            started: Started::new(started),
            stop,
        });
        link.set(&runtime);
        runtime
    }

    /// Returns the toolset that a caller sees; `None` if it sees all tools.
    pub(crate) fn active(&self, caller: &Caller) -> Option<Active> {
        let toolsets = self.toolsets.as_ref()?;
        toolsets.active(&self.stack.catalogue(), caller)
    }

    /// Returns `true` if a caller sees a tool in lists.
    pub(crate) fn shows(&self, caller: &Caller, entry: &Entry) -> bool {
        let (policy, active) = (self.stack.policy(), self.active(caller));
        policy.is_none_or(|policy| policy.lists(caller, entry.tool()))
            && active.is_none_or(|active| active.listed(entry).is_some())
    }

    /// Ends the servers. Calls that fail from here on are not retried.
    pub(crate) async fn end_servers(&self) {
        self.stack.stop_discovery();
        shutdown::end_servers(&self.upstreams, &self.stop).await;
    }

    /// Ends the servers, and writes what is not written yet.
    pub(crate) async fn finish(&self) {
        evidence::save(&self.stack).await;
        self.end_servers().await;
        self.recorder.finish().await;
        audit::close(&self.stack).await;
        self.telemetry.finish().await;
    }
}
