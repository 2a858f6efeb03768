//! Which member gets a call: the candidates in order, each computed when it is needed.

use std::cmp::Ordering;
use std::sync::Arc;

use smallvec::SmallVec;
use tollgate_core::ToolCall;

use crate::member::Member;
use crate::set::ReplicaSet;
use crate::strategy::Strategy;
use crate::turn;

/// More refusals than this and the call fails: what one call may cost has a bound.
const MOST_TRIED: usize = 32;

const NOT_PREFERRED: u8 = 1;
const STANDBY: u8 = 2;
const AVOIDED: u8 = 4;
const UNHEALTHY: u8 = 8;

/// The candidates for one call, best first.
///
/// The list is not built: nearly every call needs only its head. The next candidate is the best
/// one of those not yet tried, so the fallback is the same choice once more.
pub(crate) struct Candidates<S> {
    set: Arc<ReplicaSet<S>>,
    strategy: Strategy,
    tried: SmallVec<[usize; 4]>,
    tried_a_healthy_one: bool,
}

/// A member chosen for a call, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) index: usize,
    pub(crate) reason: &'static str,
}

impl<S> Candidates<S> {
    pub(crate) fn new(set: Arc<ReplicaSet<S>>, strategy: Strategy) -> Self {
        Self {
            set,
            strategy,
            tried: SmallVec::new(),
            tried_a_healthy_one: false,
        }
    }

    pub(crate) fn set(&self) -> &ReplicaSet<S> {
        &self.set
    }

    /// Says whether any candidate is left, fit or not.
    pub(crate) fn are_left(&self, call: &ToolCall) -> bool {
        let eligible = self.set.eligible(call.plan().route.min_weight).len();
        self.tried.len() < eligible.min(MOST_TRIED)
    }

    /// Returns the best candidate that was not tried.
    ///
    /// Unhealthy ones only come if no healthy one came before, and never for a call that needs a
    /// weight: what cannot be undone is not tried on a server that is known to be sick.
    pub(crate) fn next(&mut self, call: &ToolCall) -> Option<Choice> {
        if !self.are_left(call) {
            return None;
        }
        if call.attempt().elsewhere_only {
            return self.elsewhere(call);
        }
        let set = &*self.set;
        let restricted = call.plan().route.min_weight.is_some();
        let eligible = set.eligible(call.plan().route.min_weight);
        if let [only] = eligible {
            if restricted && !only.is_healthy(call) {
                return None;
            }
            // otherwise no other can be better, so nobody asks for its health
            self.tried.push(0);
            let reason = match set.members().len() {
                1 => "only server",
                _ => "only server heavy enough",
            };
            return Some(Choice { index: 0, reason });
        }
        let query = Query::new(call, set, self.strategy);
        let (index, flaws) = query
            .whose_turn(eligible, &self.tried)
            .or_else(|| query.best(eligible, &self.tried))?;
        let unhealthy = flaws & UNHEALTHY != 0;
        if unhealthy && (restricted || self.tried_a_healthy_one) {
            return None;
        }
        let reason = query.reason(flaws, !self.tried.is_empty());
        self.tried_a_healthy_one |= !unhealthy;
        self.tried.push(index);
        Some(Choice { index, reason })
    }

    /// Returns the best candidate that was not tried, if it is as fit as one can be: an attempt beside
    /// another helps nobody on a sick server, on a standby, or on the server that already has the call.
    fn elsewhere(&mut self, call: &ToolCall) -> Option<Choice> {
        let set = &*self.set;
        let eligible = set.eligible(call.plan().route.min_weight);
        let query = Query::new(call, set, self.strategy);
        let (index, flaws) = query.best(eligible, &self.tried)?;
        if flaws & (AVOIDED | STANDBY | UNHEALTHY) != 0 {
            return None;
        }
        self.tried.push(index);
        Some(Choice {
            index,
            reason: "beside a slow attempt",
        })
    }
}

/// What one choice is made by.
struct Query<'a, S> {
    call: &'a ToolCall,
    set: &'a ReplicaSet<S>,
    strategy: Strategy,
    /// A member of a preferred category exists.
    prefers: bool,
}

impl<'a, S> Query<'a, S> {
    fn new(call: &'a ToolCall, set: &'a ReplicaSet<S>, strategy: Strategy) -> Self {
        let prefer = &call.plan().route.prefer;
        Self {
            call,
            set,
            strategy,
            prefers: !prefer.is_empty() && set.has_any(prefer),
        }
    }

    /// Takes the member whose turn it is among all, if nothing speaks against it and nobody can be
    /// better. The usual case, at a cost that does not grow with the set.
    fn whose_turn(&self, eligible: &[Member<S>], tried: &[usize]) -> Option<(usize, u8)> {
        if !tried.is_empty() {
            return None;
        }
        let index = self.turn(false, eligible.len(), |i| eligible.get(i));
        let member = eligible.get(index)?;
        let idle = self.strategy != Strategy::LeastConnections || member.in_flight() == 0;
        (idle && self.flaws(member) == 0).then_some((index, 0))
    }

    /// Compares all that were not tried, and takes turns among the best.
    ///
    /// Turns among those that are fit, not "the next one after an unfit one", so that the
    /// neighbour of a sick server does not get twice its share.
    fn best(&self, eligible: &[Member<S>], tried: &[usize]) -> Option<(usize, u8)> {
        let mut best: SmallVec<[usize; 16]> = SmallVec::new();
        let mut rank = (u8::MAX, Load::NONE);
        for (index, member) in eligible.iter().enumerate() {
            if tried.contains(&index) {
                continue;
            }
            let own = (self.flaws(member), self.load(member));
            match own.cmp(&rank) {
                Ordering::Less => {
                    best.clear();
                    best.push(index);
                    rank = own;
                }
                Ordering::Equal => best.push(index),
                Ordering::Greater => {}
            }
        }
        let turn = self.turn(true, best.len(), |i| eligible.get(*best.get(i)?));
        best.get(turn).map(|index| (*index, rank.0))
    }

    /// Takes turns among `places` members, as the strategy counts. They are heaviest first.
    fn turn<'m>(
        &self,
        narrowed: bool,
        places: usize,
        member: impl Fn(usize) -> Option<&'m Member<S>>,
    ) -> usize
    where
        S: 'm,
    {
        let restricted = self.call.plan().route.min_weight.is_some();
        let lane = self.set.turns().lane(restricted, narrowed);
        let weight = |place| member(place).map_or(0, Member::weight);
        match self.strategy {
            Strategy::RoundRobin => turn::in_turn(lane, places),
            Strategy::Weighted | Strategy::LeastConnections => {
                turn::by_weight(lane, places, weight(0), weight)
            }
        }
    }

    /// Returns what speaks against a member, the worst in the highest bit.
    fn flaws(&self, member: &Member<S>) -> u8 {
        let flaw = |bit, applies: bool| if applies { bit } else { 0 };
        let avoid = &self.call.attempt().avoid;
        let preferred = !self.prefers || member.is_in(&self.call.plan().route.prefer);
        flaw(NOT_PREFERRED, !preferred)
            | flaw(STANDBY, member.weight() == 0)
            | flaw(AVOIDED, avoid.contains(member.server()))
            | flaw(UNHEALTHY, !member.is_healthy(self.call))
    }

    fn load(&self, member: &Member<S>) -> Load {
        match self.strategy {
            Strategy::LeastConnections => Load {
                in_flight: member.in_flight() as u64,
                weight: member.weight().max(1),
            },
            Strategy::RoundRobin | Strategy::Weighted => Load::NONE,
        }
    }

    fn reason(&self, flaws: u8, is_fallback: bool) -> &'static str {
        if is_fallback {
            "fallback: first choice refused"
        } else if flaws & UNHEALTHY != 0 {
            "no healthy server"
        } else if flaws & AVOIDED != 0 {
            "every other server failed this call"
        } else if flaws & STANDBY != 0 {
            "standby"
        } else if self.prefers && flaws & NOT_PREFERRED == 0 {
            "preferred category"
        } else {
            self.strategy.reason()
        }
    }
}

/// Calls in flight, measured by weight.
#[derive(Debug, Clone, Copy)]
struct Load {
    in_flight: u64,
    weight: u32,
}

impl Load {
    const NONE: Self = Self {
        in_flight: 0,
        weight: 1,
    };
}

impl Ord for Load {
    fn cmp(&self, other: &Self) -> Ordering {
        // a/b against c/d without a division
        let own = u128::from(self.in_flight) * u128::from(other.weight);
        own.cmp(&(u128::from(other.in_flight) * u128::from(self.weight)))
    }
}

impl PartialOrd for Load {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Load {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Load {}
