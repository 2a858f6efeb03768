//! The limits of one layer, shared by all of its services.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use callward_core::trail::{Decision, Stage, Verdict};
use callward_core::{
    Delivery, ErrorKind, InvalidConfig, Principal, ReplicaSetId, ToolCall, ToolError, ToolName,
};
use smallvec::SmallVec;
use tokio::time::Instant;

use super::RateLimitConfig;
use super::key::{Parts, ToolRate};
use super::lane::{Lane, Reading, TooLate, far_away};
use super::lanes::Lanes;
use super::quota::Rate;
use crate::line::latest_start;

/// The limits of one layer, to look at. Clones are the same limits.
#[derive(Debug, Clone)]
pub struct RateLimits(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    config: RateLimitConfig,
    /// `config.per_principal`, read once.
    per_principal: Option<Rate>,
    principals: Lanes<Principal>,
    tools: Lanes<ToolRate>,
    in_all: Option<Arc<Lane>>,
}

/// The limits a call falls under, and how many of them gave it a cell: from the first on. What has
/// been given goes back on drop, unless the call is sent.
pub(crate) struct Dues {
    lanes: SmallVec<[(Arc<Lane>, Kind); 3]>,
    taken: usize,
}

/// What a limit is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    InAll,
    Principal,
    Tool,
}

impl RateLimits {
    /// Makes the limits, all with all their cells.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first setting that makes no sense.
    pub fn new(config: RateLimitConfig) -> Result<Self, InvalidConfig> {
        config.validate()?;
        let rate = |per_minute: Option<f64>| Rate::new(per_minute?, config.burst);
        Ok(Self(Arc::new(Shared {
            per_principal: rate(config.per_principal),
            principals: Lanes::new(config.max_keys),
            tools: Lanes::new(config.max_keys),
            in_all: rate(config.in_all).and_then(Lane::new).map(Arc::new),
            config,
        })))
    }

    /// Returns what is known of each limit that was called upon, in the order of [`RateSubject`].
    /// Idle ones may have been dropped.
    #[must_use]
    pub fn snapshot(&self) -> Vec<RateStatus> {
        let Shared {
            principals,
            tools,
            in_all,
            ..
        } = &*self.0;
        let principals = principals.read().into_iter();
        let tools = tools.read().into_iter();
        let in_all = in_all.iter().map(|lane| lane.read());
        let mut all: Vec<_> = in_all
            .map(|reading| RateStatus::new(RateSubject::InAll, reading))
            .chain(principals.map(|(principal, reading)| {
                RateStatus::new(RateSubject::Principal(principal), reading)
            }))
            .chain(tools.map(|(ToolRate { set, tool, .. }, reading)| {
                RateStatus::new(RateSubject::Tool { set, tool }, reading)
            }))
            .collect();
        all.sort_by(|a, b| a.subject.cmp(&b.subject));
        all
    }

    /// Returns how many limits are kept, of principals and of tools.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.0.principals.len() + self.0.tools.len()
    }

    /// Forgets the limits of tools whose replica set is not kept, but for those that calls wait at.
    pub fn retain_sets(&self, keep: impl Fn(&ReplicaSetId) -> bool) {
        self.0.tools.retain(|key| keep(&key.set));
    }

    /// Lets a call through at once that falls under no limit but the one of all, if that has a cell for
    /// it; says whether it did. Needs no hold on the limit, which all threads would write to.
    pub(crate) fn passes_at_once(&self, call: &ToolCall) -> bool {
        let has_own = self.0.per_principal.is_some() || self.of_tool(call).is_some();
        let in_all = self.0.in_all.as_deref();
        !has_own && in_all.is_none_or(Lane::take_at_once)
    }

    /// Returns the rate of a call's tool, if that counts.
    fn of_tool(&self, call: &ToolCall) -> Option<f64> {
        let stated = call.plan().limits.calls_per_minute;
        stated.filter(|_| self.0.config.tools)
    }

    /// Returns the limits a call falls under, its own principal's first: a cell that is taken there
    /// and lost is nobody else's.
    pub(crate) fn dues(&self, call: &ToolCall) -> Dues {
        let Shared {
            config,
            per_principal,
            principals,
            tools,
            in_all,
        } = &*self.0;
        let mut lanes = SmallVec::new();
        if let Some(rate) = *per_principal {
            let principal = &call.caller().principal;
            let lane = principals.lane(principal, || principal.clone(), || Some(rate));
            lanes.extend(lane.map(|lane| (lane, Kind::Principal)));
        }
        if let Some(per_minute) = self.of_tool(call) {
            let (set, tool, bits) = (call.tool().set(), call.tool().name(), per_minute.to_bits());
            let key: &dyn Parts = &(set, tool, bits);
            let own = || ToolRate {
                set: set.clone(),
                tool: tool.clone(),
                rate: bits,
            };
            let lane = tools.lane(key, own, || Rate::new(per_minute, config.burst));
            lanes.extend(lane.map(|lane| (lane, Kind::Tool)));
        }
        lanes.extend(in_all.clone().map(|lane| (lane, Kind::InAll)));
        Dues { lanes, taken: 0 }
    }

    /// Returns until when a call may wait: beyond that, it would not end before its deadline, as far
    /// as is known how long it takes.
    pub(crate) fn until(&self, call: &ToolCall) -> Instant {
        let now = Instant::now();
        let patience = now
            .checked_add(self.0.config.max_wait)
            .unwrap_or_else(|| far_away(now));
        latest_start(call).map_or(patience, |latest| patience.min(latest))
    }
}

impl Dues {
    /// Takes what can be had at once; says whether that is all.
    pub(crate) fn take_at_once(&mut self) -> bool {
        while let Some((lane, _)) = self.lanes.get(self.taken) {
            if !lane.take_at_once() {
                return false;
            }
            self.taken += 1;
        }
        true
    }

    /// Takes the rest, waiting for it if need be.
    pub(crate) async fn take(&mut self, call: &ToolCall, until: Instant) -> Result<(), ToolError> {
        while let Some((lane, kind)) = self.lanes.get(self.taken) {
            let arrived = Instant::now();
            let taken = lane.take(until).await;
            kind.tell(lane.rate(), call, arrived.elapsed(), taken.is_ok());
            taken.map_err(|late| kind.refusal(lane.rate(), call, late))?;
            self.taken += 1;
        }
        Ok(())
    }

    /// Keeps what was taken: the call is sent.
    pub(crate) fn spend(mut self) {
        self.taken = 0;
    }
}

impl Drop for Dues {
    fn drop(&mut self) {
        for (lane, _) in self.lanes.iter().take(self.taken) {
            lane.give_back();
        }
    }
}

impl Kind {
    /// Writes down that a limit held the call up, or refused it.
    fn tell(self, rate: &Rate, call: &ToolCall, waited: Duration, passed: bool) {
        if passed && waited.is_zero() {
            return;
        }
        call.decided(|| {
            let verdict = if passed {
                Verdict::Waited
            } else {
                Verdict::Refused
            };
            let per_minute = rate.per_minute;
            let whose = match self {
                Self::InAll => "all calls here together",
                Self::Principal => "its principal",
                Self::Tool => "its tool",
            };
            let reason = format!("{per_minute} calls a minute for {whose}");
            Decision::new(Stage::Limit, verdict, reason).waited(waited)
        });
    }

    fn refusal(self, rate: &Rate, call: &ToolCall, late: TooLate) -> ToolError {
        let wait = late.wait;
        let per_minute = rate.per_minute;
        let whose = match self {
            Self::InAll => "all calls here together".to_owned(),
            Self::Principal => format!("principal `{}`", call.caller().principal),
            Self::Tool => format!("tool `{}`", call.tool().name()),
        };
        let message = format!(
            "the limit of {per_minute} calls a minute for {whose} is reached, and the turn of this \
             call would come in {wait:?}, which is longer than it may wait; nothing was sent, call \
             again then"
        );
        ToolError::new(ErrorKind::RateLimited, Delivery::NotSent, message).with_retry_after(wait)
    }
}

/// What a limit of rate is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum RateSubject {
    /// All calls that pass.
    InAll,
    /// The calls of one principal.
    Principal(Principal),
    /// The calls of one tool.
    Tool {
        /// The replica set that offers it.
        set: ReplicaSetId,
        /// Its name.
        tool: ToolName,
    },
}

impl fmt::Display for RateSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InAll => f.write_str("all calls"),
            Self::Principal(principal) => write!(f, "principal {principal}"),
            Self::Tool { set, tool } => write!(f, "{set}::{tool}"),
        }
    }
}

/// One limit of rate, as it is now.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RateStatus {
    /// What it is about.
    pub subject: RateSubject,
    /// How many calls a minute it lets through.
    pub calls_per_minute: f64,
    /// How many calls wait for their turn.
    pub waiting: usize,
    /// How many had to wait, and got their turn.
    pub waited: u64,
    /// How many were refused.
    pub refused: u64,
}

impl RateStatus {
    const fn new(subject: RateSubject, reading: Reading) -> Self {
        Self {
            subject,
            calls_per_minute: reading.per_minute,
            waiting: reading.waiting,
            waited: reading.waited,
            refused: reading.refused,
        }
    }
}
