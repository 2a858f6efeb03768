//! The recorded sessions, and their times.

use std::collections::{HashMap, HashSet};
use std::f64::consts::TAU;
use std::time::Duration;

use callward_core::{Effect, FingerprintKey};
use callward_replay::ReplayError;
use serde_json::value::RawValue;

use super::Fault;
use super::random::Random;
use callward_replay::trace::RecordedCall;

/// The time from the beginning of one day to the next.
pub(crate) const DAY: Duration = Duration::from_secs(24 * 3600);
/// The part of a day in which sessions begin and outside changes happen.
const WORKING: Duration = Duration::from_secs(8 * 3600);

/// The parameters of a day.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Model {
    /// The seed of all random choices. Default: 2026.
    pub(crate) seed: u64,
    /// How often each recorded session happens in a day. Default: 1.
    pub(crate) times: u32,
    /// Outside changes per hour of each call with several recorded answers, at most 3600.
    /// Default: 1.
    pub(crate) outside: f64,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            seed: 2026,
            times: 1,
            outside: 1.0,
        }
    }
}

/// The sessions of one recording.
#[derive(Debug)]
pub(crate) struct Traffic {
    pub(crate) sessions: Vec<Vec<Step>>,
    /// The reads whose answers a successful write changes, by the write's key.
    pub(crate) changed_by: HashMap<u128, Vec<u128>>,
    /// Reads with several recorded answers.
    volatile: Vec<u128>,
}

/// One recorded call.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) call: RecordedCall,
    /// Tool and arguments.
    pub(crate) key: u128,
    pub(crate) is_write: bool,
    /// Reads that changed in the session, with this write as the last one before.
    pub(crate) also_changes: Vec<u128>,
    /// The earlier step with another answer, if no write of the session is between.
    changed_since: Option<usize>,
}

/// A call of the day.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Event {
    pub(crate) at: Duration,
    pub(crate) takes: Duration,
    /// Which session of the day; no two days share one.
    pub(crate) session: u64,
    /// The place of the call in [`Traffic::sessions`].
    pub(crate) place: (usize, usize),
}

/// The calls of a day and the outside changes, each sorted by time.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    pub(crate) events: Vec<Event>,
    pub(crate) outside: Vec<(Duration, u128)>,
}

impl Traffic {
    /// Takes the calls of a recording.
    ///
    /// # Errors
    ///
    /// The first line that cannot be used.
    pub(crate) fn read(
        calls: impl IntoIterator<Item = Result<RecordedCall, ReplayError>>,
    ) -> Result<Self, Fault> {
        let mut places: HashMap<(String, String), usize> = HashMap::new();
        let mut sessions: Vec<Vec<Step>> = Vec::new();
        for call in calls {
            let step = Step::new(call?)?;
            let id = (step.call.trace.clone(), step.call.session.clone());
            let place = *places.entry(id).or_insert(sessions.len());
            if place == sessions.len() {
                sessions.push(Vec::new());
            }
            sessions[place].push(step);
        }
        sessions
            .iter_mut()
            .for_each(|session| note_changes(session));
        Ok(Self {
            changed_by: changed_by(&sessions),
            volatile: volatile(&sessions),
            sessions,
        })
    }

    /// Makes the schedule of day 0, 1, ...
    pub(crate) fn schedule(&self, model: &Model, day: u32) -> Schedule {
        let mut random = Random::new(model.seed ^ (u64::from(day) << 32));
        let mut made = Schedule::default();
        let mut id = u64::from(day) << 32;
        for _ in 0..model.times {
            for (place, session) in self.sessions.iter().enumerate() {
                id += 1;
                let start = DAY * day + WORKING.mul_f64(random.share());
                let first = made.events.len();
                for (at, takes, step) in times(session, start, &mut random) {
                    made.events.push(Event {
                        at,
                        takes,
                        session: id,
                        place: (place, step),
                    });
                }
                for (number, step) in session.iter().enumerate() {
                    let Some(from) = step.changed_since else {
                        continue;
                    };
                    let at = |step: usize| made.events[first + step].at;
                    let moment = at(number).saturating_sub(at(from)).mul_f64(random.share());
                    made.outside.push((at(from) + moment, step.key));
                }
            }
        }
        if model.outside > 0.0 {
            for key in &self.volatile {
                let moments = outside(model.outside, &mut random);
                let moments = moments.into_iter().map(|at| (DAY * day + at, *key));
                made.outside.extend(moments);
            }
        }
        made.events.sort_by_key(|event| event.at);
        made.outside.sort_unstable();
        made
    }
}

impl Step {
    fn new(mut call: RecordedCall) -> Result<Self, Fault> {
        if let Some((_, task)) = call.session.rsplit_once('/') {
            let args: serde_json::Value = serde_json::from_str(call.arguments())?;
            let args = serde_json::json!({ "task": task, "args": args });
            call.args = Some(RawValue::from_string(args.to_string())?);
        }
        let hash = FingerprintKey::fixed();
        let raw = call.arguments().as_bytes();
        let args = hash.json(raw).unwrap_or_else(|| hash.bytes(raw));
        let tool = hash.bytes(call.tool.as_str().as_bytes());
        Ok(Self {
            key: hash.combine(&[tool, args]),
            is_write: call.labelled().is_none_or(Effect::is_write),
            call,
            also_changes: Vec::new(),
            changed_since: None,
        })
    }
}

/// Finds changed answers in a session, and the write that explains each.
fn note_changes(session: &mut [Step]) {
    let mut seen: HashMap<u128, usize> = HashMap::new();
    let mut last_write = None;
    for number in 0..session.len() {
        let step = &session[number];
        let key = step.key;
        if step.call.error {
            continue;
        }
        if step.is_write {
            last_write = Some(number);
            continue;
        }
        let before = seen.insert(key, number);
        let is_other = |at: &usize| session[*at].call.result_sha1 != step.call.result_sha1;
        let Some(from) = before.filter(is_other) else {
            continue;
        };
        match last_write.filter(|write| *write > from) {
            Some(write) => session[write].also_changes.push(key),
            None => session[number].changed_since = Some(from),
        }
    }
}

fn steps(sessions: &[Vec<Step>]) -> impl Iterator<Item = &Step> {
    sessions.iter().flatten()
}

fn changed_by(sessions: &[Vec<Step>]) -> HashMap<u128, Vec<u128>> {
    let mut reads: HashMap<String, HashSet<u128>> = HashMap::new();
    for step in steps(sessions).filter(|step| !step.is_write) {
        for value in values(&step.call) {
            reads.entry(value).or_default().insert(step.key);
        }
    }
    let writes = steps(sessions).filter(|step| step.is_write);
    let changed = writes.map(|step| {
        let found = values(&step.call).into_iter();
        let keys: HashSet<u128> = found
            .filter_map(|value| reads.get(&value))
            .flatten()
            .copied()
            .collect();
        (step.key, keys.into_iter().collect())
    });
    changed.collect()
}

/// Returns the texts and numbers among the arguments.
fn values(call: &RecordedCall) -> Vec<String> {
    let mut open: Vec<serde_json::Value> =
        serde_json::from_str(call.arguments()).into_iter().collect();
    let mut found = Vec::new();
    while let Some(value) = open.pop() {
        match value {
            serde_json::Value::String(text) => found.push(text),
            serde_json::Value::Number(number) => found.push(number.to_string()),
            serde_json::Value::Array(inner) => open.extend(inner),
            serde_json::Value::Object(inner) => open.extend(inner.into_values()),
            serde_json::Value::Null | serde_json::Value::Bool(_) => {}
        }
    }
    found
}

fn volatile(sessions: &[Vec<Step>]) -> Vec<u128> {
    let mut first = HashMap::new();
    let mut volatile: Vec<u128> = steps(sessions)
        .filter(|step| !step.is_write && !step.call.error)
        .filter_map(|step| Some((step.key, step.call.result_sha1.as_ref()?)))
        .filter(|(key, answer)| first.entry(*key).or_insert(*answer) != answer)
        .map(|(key, _)| key)
        .collect();
    volatile.sort_unstable();
    volatile.dedup();
    volatile
}

/// Returns the start and the duration of each call of a session.
fn times(
    session: &[Step],
    start: Duration,
    random: &mut Random,
) -> Vec<(Duration, Duration, usize)> {
    let (mut at, mut ends) = (start, start);
    let mut last = None;
    let mut made = Vec::with_capacity(session.len());
    for (number, step) in session.iter().enumerate() {
        let call = &step.call;
        let recorded = |call: &RecordedCall| call.at_ms;
        if let Some(last) = last.map(|last: &Step| &last.call) {
            let together = call.layer.is_some() && call.layer == last.layer;
            match (recorded(last), recorded(call)) {
                (Some(from), Some(to)) => at += to.saturating_sub(from),
                _ if together => {}
                _ => at = ends + pause(random),
            }
        }
        let takes = match call.duration_ms {
            Some(takes) => takes,
            None => log_normal(random, 0.2, 0.8),
        };
        ends = ends.max(at + takes);
        made.push((at, takes, number));
        last = Some(step);
    }
    made
}

/// Returns the moments of a day at which one answer changes from outside.
fn outside(per_hour: f64, random: &mut Random) -> Vec<Duration> {
    let mut at = Duration::ZERO;
    let mut moments = Vec::new();
    loop {
        let gap = -(1.0 - random.share()).ln() / per_hour.min(3600.0) * 3600.0;
        at = at.saturating_add(Duration::try_from_secs_f64(gap).unwrap_or(WORKING));
        if at >= WORKING {
            return moments;
        }
        moments.push(at);
    }
}

/// The time between an answer and the next call.
fn pause(random: &mut Random) -> Duration {
    if random.share() < 0.1 {
        log_normal(random, 40.0, 1.0)
    } else {
        log_normal(random, 3.0, 0.9)
    }
}

fn log_normal(random: &mut Random, median: f64, sigma: f64) -> Duration {
    let radius = (-2.0 * (1.0 - random.share()).ln()).sqrt();
    let normal = radius * (TAU * random.share()).cos();
    Duration::try_from_secs_f64(median * (sigma * normal).exp()).unwrap_or(WORKING)
}
