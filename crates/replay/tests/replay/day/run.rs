//! Sends the calls of a day through the cache layer.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use callward_cache::{CacheConfig, CacheLayer, EvidenceStatus};
use callward_core::{
    CallRecord, Caller, Effect, Learned, Lifetime, Principal, Profile, SessionId, Tool, ToolCall,
};
use callward_replay::calls::labelled_tool;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::time::{Instant, sleep_until};
use tower::{Layer, ServiceExt, service_fn};

use super::Fault;
use super::figures::Figures;
use super::model::{DAY, Event, Model, Step, Traffic};
use super::state::{Executed, State};

/// The rule for lifetimes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// Evidence, from days of the same traffic before the measured one.
    Learned {
        /// The number of days; 0 begins without evidence.
        days_before: u32,
    },
    /// A fixed lifetime.
    Fixed(Duration),
    /// No cache.
    Disabled,
}

/// An answer that was not executed for its call.
struct Served {
    stale: bool,
    age: Option<Duration>,
}

type Running = Pin<Box<dyn Future<Output = Option<Served>>>>;

struct Run<'a> {
    traffic: &'a Traffic,
    layer: CacheLayer,
    state: Arc<State>,
    tools: Vec<Vec<Arc<Tool>>>,
    started: Instant,
    running: FuturesUnordered<Running>,
    figures: Figures,
}

/// Replays one day of the traffic and counts hits and stale answers.
///
/// Must not be called within a runtime. Seeds the thread's `fastrand` generator, which draws the
/// verified hits.
pub(crate) fn measure(
    traffic: &Traffic,
    model: &Model,
    freshness: Freshness,
) -> Result<Figures, Fault> {
    fastrand::seed(model.seed);
    let mut config = CacheConfig::default();
    config.enabled = freshness != Freshness::Disabled;
    // large enough that time and writes alone end a result
    config.max_bytes = 1 << 30;
    config.key_seed = Some(model.seed);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()?;
    Ok(runtime.block_on(async {
        let run = Run {
            traffic,
            layer: CacheLayer::new(config),
            state: Arc::default(),
            tools: tools(traffic, freshness),
            started: Instant::now(),
            running: FuturesUnordered::new(),
            figures: Figures::default(),
        };
        run.days(model, freshness).await
    }))
}

/// Returns the tool of each call.
fn tools(traffic: &Traffic, freshness: Freshness) -> Vec<Vec<Arc<Tool>>> {
    let mut profile = Profile::standard();
    match freshness {
        Freshness::Learned { .. } => {
            profile.read_lifetime = Lifetime::Learned(Learned::default());
            profile.idempotent_lifetime = Lifetime::Learned(Learned::default());
        }
        Freshness::Fixed(ttl) => profile.read_ttl = ttl,
        Freshness::Disabled => {}
    }
    let mut made = HashMap::new();
    let mut tool = |step: &Step| -> Arc<Tool> {
        let effect = step.call.labelled().unwrap_or(Effect::Mutating);
        let name = &step.call.tool;
        let tool = made.entry((name.clone(), effect));
        tool.or_insert_with(|| Arc::new(labelled_tool(name.clone(), effect, &profile)))
            .clone()
    };
    let sessions = traffic.sessions.iter();
    sessions
        .map(|session| session.iter().map(&mut tool).collect())
        .collect()
}

impl Run<'_> {
    async fn days(mut self, model: &Model, freshness: Freshness) -> Figures {
        let before = match freshness {
            Freshness::Learned { days_before } => days_before,
            _ => 0,
        };
        for day in LAST - before.min(LAST)..LAST {
            self.day(model, day).await;
        }
        self.run_until(DAY * LAST).await;
        self.figures = Figures {
            tools: self.evidence(),
            ..Figures::default()
        };
        let executed = self.state.executions.load(Ordering::Relaxed);
        // the measured day is the same for all rules
        self.day(model, LAST).await;
        self.figures.executions = self.state.executions.load(Ordering::Relaxed) - executed;
        self.figures
    }

    async fn day(&mut self, model: &Model, day: u32) {
        let schedule = self.traffic.schedule(model, day);
        self.run_until(DAY * day).await;
        let mut outside = schedule.outside.iter().peekable();
        for event in &schedule.events {
            while let Some((at, key)) = outside.next_if(|(at, _)| *at <= event.at) {
                self.run_until(*at).await;
                self.state.change(*key);
            }
            self.run_until(event.at).await;
            self.send(event);
        }
        while let Some(served) = self.running.next().await {
            self.figures.count(served);
        }
        outside.for_each(|(_, key)| self.state.change(*key));
    }

    /// Adds a call. It begins when the calls in flight are polled next, at the same time.
    fn send(&self, event: &Event) {
        let (session, number) = event.place;
        let step = &self.traffic.sessions[session][number];
        let changed = self.traffic.changed_by.get(&step.key);
        let (state, key, error) = (self.state.clone(), step.key, step.call.error);
        let executed = Arc::new(Executed {
            state: state.clone(),
            key,
            takes: event.takes,
            error,
            changes: [&step.also_changes[..], changed.map_or(&[], Vec::as_slice)].concat(),
            ran: AtomicBool::new(false),
        });
        let this = executed.clone();
        let server = service_fn(move |_: ToolCall| this.clone().run());
        let record = Arc::new(CallRecord::new());
        let caller = Caller::new(Principal::new("agents"))
            .with_session(SessionId::new(event.session.to_string()));
        let tool = self.tools[session][number].clone();
        let call = ToolCall::new(tool, step.call.arguments().to_owned())
            .with_caller(Arc::new(caller))
            .with_record(record.clone());
        let answered = self.layer.layer(server).oneshot(call);
        self.running.push(Box::pin(async move {
            let now = state.answer(key);
            let output = answered.await.ok()?;
            (!executed.ran.load(Ordering::Relaxed)).then(|| Served {
                stale: output.is_error() != error || (!error && output.to_text() != now),
                age: record.facts().cache_age,
            })
        }));
    }

    async fn run_until(&mut self, at: Duration) {
        let until = sleep_until(self.started + at);
        tokio::pin!(until);
        loop {
            tokio::select! {
                biased;
                Some(served) = self.running.next() => self.figures.count(served),
                () = &mut until => return,
            }
        }
    }

    /// Returns the evidence of each tool.
    fn evidence(&self) -> Vec<(String, EvidenceStatus)> {
        let mut tools: Vec<_> = self.tools.iter().flatten().collect();
        tools.sort_by(|one, two| one.name().as_str().cmp(two.name().as_str()));
        tools.dedup_by(|one, two| one.name() == two.name());
        let handle = self.layer.handle();
        let known = tools.into_iter().filter_map(|tool| {
            let status = handle.evidence(tool.set(), tool.name())?;
            Some((tool.name().to_string(), status))
        });
        known.collect()
    }
}

/// The number of the measured day.
const LAST: u32 = 7;

impl Figures {
    fn count(&mut self, served: Option<Served>) {
        self.calls += 1;
        if let Some(served) = served {
            self.hits += 1;
            self.stale += u64::from(served.stale);
            self.oldest = self.oldest.max(served.age.unwrap_or_default());
        }
    }
}
