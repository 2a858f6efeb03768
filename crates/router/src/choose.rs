//! Selects the server of a call: rule, then strategy, one candidate at a time.

use std::sync::Arc;

use callward_core::{ServerId, ToolCall};
use smallvec::SmallVec;

use crate::candidates::{Candidates, Places};
use crate::endpoint::Endpoint;
use crate::events::RouteEvents;
use crate::rule::{ExclusionReason, Rule};
use crate::set::ReplicaSet;
use crate::strategy::Strategy;

/// After this many refusals the call fails: the cost of one call has a bound.
const MAX_TRIED: usize = 32;

/// How a router chooses, and where it reports.
#[derive(Debug, Clone)]
pub(crate) struct Routing {
    pub(crate) strategy: Arc<dyn Strategy>,
    pub(crate) events: Arc<RouteEvents>,
    /// What a call may cost at most.
    pub(crate) cost_budget: Option<f64>,
    /// The share of a set, in percent, that keeps getting reads even if its breakers are open.
    pub(crate) min_available: u32,
}

/// The choice of servers for one call, best first. The next one is chosen when it is needed.
pub(crate) struct Selection<S> {
    pub(crate) set: Arc<ReplicaSet<S>>,
    pub(crate) routing: Arc<Routing>,
    /// Places in the set.
    pub(crate) tried: SmallVec<[usize; 4]>,
    /// Whether an available server was among them.
    tried_available: bool,
    is_preview: bool,
}

/// A server chosen for a call, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Choice {
    /// Its place in the set.
    pub(crate) place: usize,
    pub(crate) reason: &'static str,
    /// The call passes open breakers.
    pub(crate) ignores_open_breakers: bool,
}

/// How good a server is for a call; less is better.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    unavailable: bool,
    /// An earlier attempt of the call failed there.
    avoided: bool,
    standby: bool,
    not_preferred: bool,
}

/// A server that may get the call.
struct Ranked {
    place: usize,
    rank: Rank,
    ignores_open_breakers: bool,
}

impl<S> Selection<S> {
    pub(crate) fn new(set: Arc<ReplicaSet<S>>, routing: Arc<Routing>, is_preview: bool) -> Self {
        Self {
            set,
            routing,
            tried: SmallVec::new(),
            tried_available: false,
            is_preview,
        }
    }

    /// Continues from here as for a call that is not sent.
    pub(crate) fn preview(&self) -> Self {
        Self {
            set: self.set.clone(),
            routing: self.routing.clone(),
            tried: self.tried.clone(),
            tried_available: self.tried_available,
            is_preview: true,
        }
    }

    pub(crate) fn rule<'a>(&'a self, call: &'a ToolCall) -> Rule<'a> {
        Rule::new(call, self.routing.cost_budget)
    }

    /// Returns `true` if a server may be left to choose.
    pub(crate) fn has_more(&self, call: &ToolCall) -> bool {
        let only_one = call.pin.is_some() || self.set.home(call).is_some();
        let all = if only_one { 1 } else { self.heavy_enough(call) };
        self.tried.len() < all.min(MAX_TRIED)
    }

    /// Returns how many servers the weight rule leaves.
    pub(crate) fn heavy_enough(&self, call: &ToolCall) -> usize {
        let min = call.plan().route.min_weight.unwrap_or(0);
        let endpoints = self.set.endpoints().iter();
        endpoints
            .filter(|endpoint| endpoint.weight().get() >= min)
            .count()
    }

    /// Lists the servers that the rule gives the call to, in the order they were added: all that
    /// are available, or those of them in a category that the plan prefers, if there are any.
    pub(crate) fn admitted(&self, call: &ToolCall) -> Vec<ServerId> {
        let mut ranked = self.ranked(call);
        ranked.retain(|one| !one.rank.unavailable);
        let best = ranked.iter().map(|one| one.rank.not_preferred).min();
        ranked.retain(|one| Some(one.rank.not_preferred) == best);
        let places = ranked.iter().map(|one| one.place);
        let mut admitted: Vec<_> = places
            .filter_map(|place| self.set.endpoints().get(place))
            .collect();
        admitted.sort_by_key(|endpoint| endpoint.added);
        let servers = admitted.into_iter().map(Endpoint::server);
        servers.cloned().collect()
    }

    /// Returns the best server that was not tried.
    ///
    /// Unavailable ones are only chosen if no available one was tried before, and never for a call
    /// that needs a weight: a destructive call is not tried at a server that is known to be
    /// unhealthy.
    pub(crate) fn next(&mut self, call: &ToolCall) -> Option<Choice> {
        if !self.has_more(call) {
            return None;
        }
        let mut ranked = self.ranked(call);
        ranked.retain(|one| !self.tried.contains(&one.place));
        let best = ranked.iter().map(|one| one.rank).min()?;
        let is_second_attempt = call.attempt().elsewhere_only;
        if is_second_attempt && (best.avoided || best.standby || best.unavailable) {
            return None;
        }
        let needs_weight = call.plan().route.min_weight.is_some();
        if best.unavailable && (self.tried_available || needs_weight) {
            return None;
        }
        ranked.retain(|one| one.rank == best);
        let candidates = Candidates {
            call,
            endpoints: self.set.endpoints(),
            places: ranked.iter().map(|one| one.place).collect::<Places>(),
            turns: &self.set.turns,
            is_preview: self.is_preview,
        };
        // an invalid number counts as the heaviest: a custom strategy may be wrong
        let index = self.routing.strategy.choose(&candidates);
        let index = index.filter(|index| *index < ranked.len()).unwrap_or(0);
        let chosen = ranked.get(index)?;
        let choice = Choice {
            place: chosen.place,
            reason: self.reason(call, best),
            ignores_open_breakers: chosen.ignores_open_breakers,
        };
        self.tried.push(choice.place);
        self.tried_available |= !best.unavailable;
        Some(choice)
    }

    /// Chooses as [`next`](Self::next) does, and returns the server.
    pub(crate) fn next_server(&mut self, call: &ToolCall) -> Option<ServerId> {
        let choice = self.next(call)?;
        let endpoint = self.set.endpoints().get(choice.place)?;
        Some(endpoint.server().clone())
    }

    /// Ranks each server that may get the call, heaviest first.
    fn ranked(&self, call: &ToolCall) -> SmallVec<[Ranked; 16]> {
        let rule = self.rule(call);
        let (home, prefer) = (self.set.home(call), &call.plan().route.prefer);
        let avoid = &call.attempt().avoid;
        let mut ranked = SmallVec::<[Ranked; 16]>::new();
        let mut open = Places::new();
        for (place, endpoint) in self.set.endpoints().iter().enumerate() {
            if home.is_some_and(|home| home != place) {
                continue;
            }
            let checked = rule.check(endpoint);
            match checked {
                Err(reason) if reason.is_final() => continue,
                Err(ExclusionReason::BreakerOpen) => open.push(ranked.len()),
                _ => {}
            }
            ranked.push(Ranked {
                place,
                rank: Rank {
                    unavailable: checked.is_err(),
                    avoided: avoid.contains(endpoint.server()),
                    standby: endpoint.weight().get() == 0,
                    not_preferred: !prefer.is_empty() && !endpoint.is_in(prefer),
                },
                ignores_open_breakers: false,
            });
        }
        if !call.plan().is_write() && call.plan().route.min_weight.is_none() {
            self.keep_available(&mut ranked, &open);
        }
        ranked
    }

    /// Keeps reads going to a minimum share of the set, even if breakers are open there: the
    /// remaining servers could not serve all calls.
    fn keep_available(&self, ranked: &mut [Ranked], open: &[usize]) {
        let share = usize::try_from(self.routing.min_available).unwrap_or(0);
        let needed = self.set.endpoints().len() * share / 100;
        let available = ranked.iter().filter(|one| !one.rank.unavailable).count();
        for index in open.iter().take(needed.saturating_sub(available)) {
            if let Some(one) = ranked.get_mut(*index) {
                one.rank.unavailable = false;
                one.ignores_open_breakers = true;
            }
        }
    }

    fn reason(&self, call: &ToolCall, rank: Rank) -> &'static str {
        let prefer = &call.plan().route.prefer;
        if !self.tried.is_empty() {
            "fallback: first choice refused"
        } else if call.pin.is_some() {
            "pinned"
        } else if self.set.home(call).is_some() {
            "keeps the caller's state"
        } else if call.attempt().elsewhere_only {
            "beside a slow attempt"
        } else if rank.unavailable {
            "no healthy server"
        } else if rank.avoided {
            "every other server failed this call"
        } else if rank.standby {
            "standby"
        } else if self.heavy_enough(call) == 1 {
            match self.set.endpoints().len() {
                1 => "only server",
                _ => "only server heavy enough",
            }
        } else if !prefer.is_empty() && !rank.not_preferred {
            "preferred category"
        } else {
            self.routing.strategy.name()
        }
    }
}
