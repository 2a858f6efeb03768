//! Sends the calls of a day through the cache layer.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use callward_cache::{CacheConfig, CacheLayer};
use callward_core::{
    Annotations, CallPlan, CallRecord, Caller, Effect, Learned, Lifetime, Principal, Profile,
    ReplicaSetId, Resolved, SessionId, Source, Tool, ToolCall, ToolDefinition,
};
use callward_replay::trace::RecordedCall;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::time::{Instant, sleep_until};
use tower::{Layer, ServiceExt, service_fn};

use super::Fault;
use super::figures::{Figures, ToolEvidence};
use super::model::{DAY, Event, Model, Schedule, Step, Traffic};
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

/// The answer of one call.
struct Ended {
    /// `None` if it was executed for this call.
    served: Option<Served>,
    measured: bool,
}

struct Served {
    stale: bool,
    age: Option<Duration>,
}

type Running = Pin<Box<dyn Future<Output = Ended>>>;

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
    let tools = tools(traffic, freshness)?;
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
            tools,
            started: Instant::now(),
            running: FuturesUnordered::new(),
            figures: Figures::default(),
        };
        run.days(model, freshness).await
    }))
}

fn tools(traffic: &Traffic, freshness: Freshness) -> Result<Vec<Vec<Arc<Tool>>>, Fault> {
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
    let mut of_step = |step: &Step| -> Result<Arc<Tool>, Fault> {
        let effect = step.call.labelled().unwrap_or(Effect::Mutating);
        let name = step.call.tool.as_str();
        let key = (name.to_owned(), effect);
        if let Some(tool) = made.get(&key) {
            return Ok(Arc::clone(tool));
        }
        let tool = Arc::new(tool(&step.call, effect, &profile)?);
        made.insert(key, tool.clone());
        Ok(tool)
    };
    let sessions = traffic.sessions.iter();
    sessions
        .map(|session| session.iter().map(&mut of_step).collect())
        .collect()
}

fn tool(call: &RecordedCall, effect: Effect, profile: &Profile) -> Result<Tool, Fault> {
    let hints = Annotations::default();
    let hints = match effect {
        Effect::ReadOnly => hints.with_read_only(true),
        Effect::Idempotent => hints.with_idempotent(true).with_destructive(false),
        Effect::Mutating => hints.with_read_only(false).with_destructive(false),
        Effect::Destructive => hints.with_destructive(true),
    };
    let definition = ToolDefinition::named(call.tool.clone(), hints.clone());
    let resolved = Resolved::from_single(hints, Source::Declared);
    let plan = CallPlan::derive(&resolved, profile);
    Ok(Tool::new(
        ReplicaSetId::new("world")?,
        definition,
        resolved,
        plan,
    ))
}

impl Run<'_> {
    async fn days(mut self, model: &Model, freshness: Freshness) -> Figures {
        let before = match freshness {
            Freshness::Learned { days_before } => days_before,
            _ => 0,
        };
        // the measured day is the same for all rules
        for day in LAST - before.min(LAST)..=LAST {
            let measured = day == LAST;
            self.run_until(DAY * day).await;
            if measured {
                self.figures.tools = self.evidence();
            }
            self.day(&self.traffic.schedule(model, day), measured).await;
        }
        while let Some(ended) = self.running.next().await {
            self.figures.count(&ended);
        }
        self.figures
    }

    async fn day(&mut self, schedule: &Schedule, measured: bool) {
        let mut outside = schedule.outside.iter().peekable();
        let before = self.state.executions.load(Ordering::Relaxed);
        for event in &schedule.events {
            while let Some((at, key)) = outside.next_if(|(at, _)| *at <= event.at) {
                self.run_until(*at).await;
                self.state.change(*key);
            }
            self.run_until(event.at).await;
            self.send(event, measured);
        }
        while let Some(ended) = self.running.next().await {
            self.figures.count(&ended);
        }
        for (_, key) in outside {
            self.state.change(*key);
        }
        if measured {
            self.figures.executions = self.state.executions.load(Ordering::Relaxed) - before;
        }
    }

    /// Adds a call. It begins when the calls in flight are polled next, at the same time.
    fn send(&self, event: &Event, measured: bool) {
        let (session, number) = event.place;
        let found = self
            .traffic
            .sessions
            .get(session)
            .and_then(|s| s.get(number));
        let tool = self.tools.get(session).and_then(|s| s.get(number));
        let (Some(step), Some(tool)) = (found, tool) else {
            return;
        };
        let mut changes = step.also_changes.clone();
        changes.extend(self.traffic.changed_by.get(&step.key).into_iter().flatten());
        let (state, key, error) = (self.state.clone(), step.key, step.call.error);
        let executed = Arc::new(Executed {
            state: state.clone(),
            key,
            takes: event.takes,
            error,
            changes,
            ran: AtomicBool::new(false),
        });
        let this = executed.clone();
        let server = service_fn(move |_: ToolCall| this.clone().run());
        let record = Arc::new(CallRecord::new());
        let caller = Caller::new(Principal::new("agents"))
            .with_session(SessionId::new(event.session.to_string()));
        let call = ToolCall::new(tool.clone(), step.call.arguments().to_owned())
            .with_caller(Arc::new(caller))
            .with_record(record.clone());
        let answered = self.layer.layer(server).oneshot(call);
        self.running.push(Box::pin(async move {
            let now = state.answer(key);
            let answer = answered.await;
            let served = match answer {
                Ok(output) if !executed.ran.load(Ordering::Relaxed) => Some(Served {
                    stale: output.is_error() != error || (!error && output.to_text() != now),
                    age: record.facts().cache_age,
                }),
                _ => None,
            };
            Ended { served, measured }
        }));
    }

    async fn run_until(&mut self, at: Duration) {
        let until = sleep_until(self.started + at);
        tokio::pin!(until);
        loop {
            tokio::select! {
                biased;
                Some(ended) = self.running.next() => self.figures.count(&ended),
                () = &mut until => return,
            }
        }
    }

    /// Returns the evidence of each tool.
    fn evidence(&self) -> Vec<ToolEvidence> {
        let mut tools: Vec<_> = self.tools.iter().flatten().collect();
        tools.sort_by(|a, b| a.name().as_str().cmp(b.name().as_str()));
        tools.dedup_by(|a, b| a.name() == b.name());
        let handle = self.layer.handle();
        let known = tools.into_iter().filter_map(|tool| {
            let status = handle.evidence(tool.set(), tool.name())?;
            Some(ToolEvidence::new(tool.name().as_str(), &status))
        });
        known.collect()
    }
}

/// The number of the measured day.
const LAST: u32 = 7;

impl Figures {
    fn count(&mut self, ended: &Ended) {
        if !ended.measured {
            return;
        }
        self.calls += 1;
        if let Some(served) = &ended.served {
            self.hits += 1;
            self.stale += u64::from(served.stale);
            self.oldest = self.oldest.max(served.age.unwrap_or_default());
        }
    }
}
