//! Which server gets a call: the candidates in order, each computed when it is needed.

use std::cell::{Cell, OnceCell};
use std::ops::Deref;
use std::sync::Arc;

use callward_core::{ServerId, ToolCall};
use smallvec::SmallVec;

use crate::eligible::{Eligible, Tickets};
use crate::endpoint::Endpoint;
use crate::events::RouteEvents;
use crate::flaws::{Flaws, Judge};
use crate::home::home;
use crate::lane::Lane;
use crate::rule::Rule;
use crate::set::ReplicaSet;
use crate::strategy::Strategy;

/// More refusals than this and the call fails: what one call may cost has a bound.
const MOST_TRIED: usize = 32;

/// The candidates for one call, best first.
///
/// The list is not built: nearly every call needs only its head. The next candidate is the best
/// one of those not yet tried, so the fallback is the same choice once more.
///
/// What is only decided and not sent borrows the set and the ways: whoever counts holders of either
/// writes to a line that all threads which choose have in common.
pub(crate) struct Walk<P, W> {
    set: P,
    ways: W,
    /// Places in the set.
    tried: SmallVec<[u32; 4]>,
    /// How many of them were fit.
    fit_ones: u32,
    /// Whose turn it is stays as it is, where this is there.
    dry: Option<Box<Tickets>>,
}

/// The candidates for a call that is on its way, and may outlive the table of sets.
pub(crate) type Candidates<S> = Walk<Arc<ReplicaSet<S>>, Arc<Ways>>;

/// How a router chooses, and whom it tells.
#[derive(Debug, Clone)]
pub(crate) struct Ways {
    pub(crate) strategy: Arc<dyn Strategy>,
    pub(crate) events: Arc<RouteEvents>,
    /// What a call may cost at most.
    pub(crate) cost_budget: Option<f64>,
}

/// A server chosen for a call, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Choice {
    /// Its place in the set.
    pub(crate) place: usize,
    pub(crate) reason: &'static str,
    /// Something speaks against it, but against all others, too.
    pub(crate) doubtful: bool,
}

impl<S, P, W> Walk<P, W>
where
    P: Deref<Target = ReplicaSet<S>>,
    W: Deref<Target = Ways>,
{
    pub(crate) fn new(set: P, ways: W) -> Self {
        Self {
            set,
            ways,
            tried: SmallVec::new(),
            fit_ones: 0,
            dry: None,
        }
    }

    /// Chooses as for a call that is not sent: whose turn it is stays as it is.
    pub(crate) fn dry(mut self) -> Self {
        self.dry = Some(Box::default());
        self
    }

    pub(crate) fn set(&self) -> &ReplicaSet<S> {
        &self.set
    }

    /// Goes on from here as for a call that is not sent.
    pub(crate) fn as_if(&self) -> Self
    where
        P: Clone,
        W: Clone,
    {
        Self {
            set: self.set.clone(),
            ways: self.ways.clone(),
            tried: self.tried.clone(),
            fit_ones: self.fit_ones,
            dry: Some(self.dry.clone().unwrap_or_default()),
        }
    }

    pub(crate) fn strategy(&self) -> &dyn Strategy {
        &*self.ways.strategy
    }

    pub(crate) fn events(&self) -> &RouteEvents {
        &self.ways.events
    }

    /// Returns the places that were chosen so far.
    pub(crate) fn tried(&self) -> &[u32] {
        &self.tried
    }

    /// Says whether any candidate is left, fit or not.
    pub(crate) fn are_left(&self, call: &ToolCall) -> bool {
        let eligible = match call.pin() {
            Some(_) => 1,
            None if self.home(call).is_some() => 1,
            None => self.set.all().at_least(least(call)),
        };
        self.tried.len() < eligible.min(MOST_TRIED)
    }

    /// Returns what decides whether a server may get the call at all.
    pub(crate) fn rule<'a>(&'a self, call: &'a ToolCall) -> Rule<'a> {
        Rule::new(call, self.ways.cost_budget, self.strategy())
    }

    /// Lists the servers that the annotation rule gives the call to, in the order they were given:
    /// all that may get it and are fit, or those of them in a category that the plan prefers, if there
    /// are any.
    pub(crate) fn admitted<'a>(&'a self, call: &ToolCall) -> Vec<&'a Endpoint>
    where
        S: 'a,
    {
        let judge = self.judge(call);
        let fit = |prefers: bool| {
            let flaws = move |endpoint: &&Endpoint| {
                let flaws = judge.flaws(endpoint);
                let of_others = prefers && flaws.has(Flaws::NOT_PREFERRED);
                !(of_others || flaws.has(Flaws::DOUBTFUL) || flaws.has(Flaws::FINAL))
            };
            let admitted = self.set.endpoints().iter().filter(flaws);
            admitted.collect::<Vec<_>>()
        };
        let mut admitted = fit(true);
        if admitted.is_empty() {
            admitted = fit(false);
        }
        admitted.sort_by_key(|endpoint| endpoint.given());
        admitted
    }

    /// Returns the best candidate that was not tried.
    ///
    /// Doubtful ones only come if no fit one came before, and never for a call that needs a weight:
    /// what cannot be undone is not tried on a server that is known to be sick.
    pub(crate) fn next(&mut self, call: &ToolCall) -> Option<Choice> {
        if !self.are_left(call) {
            return None;
        }
        let (place, flaws) = match call.pin() {
            Some(pin) => self.pinned(call, pin)?,
            None => match self.home(call) {
                Some(home) => self.only(call, home)?,
                None => self.usual(call).or_else(|| self.best_of_all(call))?,
            },
        };
        let beside = call.attempt().elsewhere_only;
        let not_beside = [Flaws::AVOIDED, Flaws::STANDBY, Flaws::DOUBTFUL];
        if beside && not_beside.iter().any(|flaw| flaws.has(*flaw)) {
            // an attempt beside another helps nobody on a sick server, on a standby, or on the server
            // that already has the call
            return None;
        }
        let doubtful = flaws.has(Flaws::DOUBTFUL);
        if doubtful && (self.fit_ones > 0 || call.plan().route.min_weight.is_some()) {
            return None;
        }
        let reason = self.reason(call, flaws);
        self.fit_ones += u32::from(!doubtful);
        // a set has fewer servers than that
        self.tried.push(u32::try_from(place).ok()?);
        Some(Choice {
            place,
            reason,
            doubtful,
        })
    }

    /// Takes the last choice back: the server was not asked, and may be chosen again.
    pub(crate) fn take_back(&mut self, choice: Choice) {
        self.tried.pop();
        self.fit_ones -= u32::from(!choice.doubtful);
    }

    /// Takes the one server that the call is meant for, if it may get it.
    fn pinned(&self, call: &ToolCall, pin: &ServerId) -> Option<(usize, Flaws)> {
        self.only(call, *self.set.places().get(pin)? as usize)
    }

    /// Returns the place of the one server that keeps the state of the call's owner.
    fn home(&self, call: &ToolCall) -> Option<usize> {
        home(&self.set, call)
    }

    /// Takes the server at a place, if it may get the call.
    fn only(&self, call: &ToolCall, place: usize) -> Option<(usize, Flaws)> {
        let flaws = self.judge(call).flaws(self.set.endpoints().get(place)?);
        (!flaws.has(Flaws::FINAL)).then_some((place, flaws))
    }

    /// Lets the strategy choose among those with nothing against them. The usual case, and the only
    /// one whose cost need not grow with the set.
    fn usual(&self, call: &ToolCall) -> Option<(usize, Flaws)> {
        let prefer = &call.plan().route.prefer;
        let preferred = match prefer.is_empty() {
            true => None,
            false => self.set.preferred_lane(prefer),
        };
        let lane = preferred.unwrap_or_else(|| self.set.all());
        // standbys have weight 0
        let len = lane.at_least(least(call).max(1));
        let judge = Judge {
            rule: self.rule(call),
            prefers: preferred.is_some(),
        };
        self.ask(lane, len, judge, Flaws::NONE)
    }

    /// Finds out how good the best is that is left, and lets the strategy choose among those.
    fn best_of_all(&self, call: &ToolCall) -> Option<(usize, Flaws)> {
        let lane = self.set.all();
        let len = lane.at_least(least(call));
        let judge = self.judge(call);
        let untried = self.set.endpoints().iter().take(len).enumerate();
        let (place, best) = untried
            .filter(|(place, _)| !self.tried.iter().any(|tried| *tried as usize == *place))
            .map(|(place, endpoint)| (place, judge.flaws(endpoint)))
            .min_by_key(|(_, flaws)| *flaws)
            .filter(|(_, best)| !best.has(Flaws::FINAL))?;
        // those that were best may not be any more, and a call must not fail for that
        self.ask(lane, len, judge, best).or(Some((place, best)))
    }

    /// Returns what servers are judged by, wherever they stand.
    pub(crate) fn judge<'a>(&'a self, call: &'a ToolCall) -> Judge<'a> {
        Judge {
            rule: self.rule(call),
            prefers: self.prefers(call),
        }
    }

    /// Says whether a server of a category exists that the plan prefers.
    fn prefers(&self, call: &ToolCall) -> bool {
        let prefer = &call.plan().route.prefer;
        !prefer.is_empty() && self.set.preferred_lane(prefer).is_some()
    }

    fn ask(
        &self,
        lane: &Lane,
        len: usize,
        judge: Judge<'_>,
        flaws: Flaws,
    ) -> Option<(usize, Flaws)> {
        let among = Eligible {
            judge,
            endpoints: self.set.endpoints(),
            candidates: self.set.candidates(),
            places: self.set.places(),
            lane,
            len,
            tried: &self.tried,
            flaws,
            dry: self.dry.as_deref(),
            groups: self.set.groups(),
            tools: self.set.tools(),
            column: OnceCell::new(),
            now: OnceCell::new(),
            found: Cell::new(None),
        };
        let index = self.ways.strategy.next(&among)?;
        // a strategy of somebody else's may be wrong, and must not be believed
        let index = if among.fits(index) {
            index
        } else {
            among.fit().next()?.0
        };
        Some((lane.place(index), flaws))
    }

    fn reason(&self, call: &ToolCall, flaws: Flaws) -> &'static str {
        if !self.tried.is_empty() {
            "fallback: first choice refused"
        } else if call.pin().is_some() {
            "pinned"
        } else if self.home(call).is_some() {
            "keeps the caller's state"
        } else if call.attempt().elsewhere_only {
            "beside a slow attempt"
        } else if flaws.has(Flaws::DOUBTFUL) {
            "no healthy server"
        } else if flaws.has(Flaws::AVOIDED) {
            "every other server failed this call"
        } else if flaws.has(Flaws::STANDBY) {
            "standby"
        } else if self.set.all().at_least(least(call)) == 1 {
            match self.set.endpoints().len() {
                1 => "only server",
                _ => "only server heavy enough",
            }
        } else if self.prefers(call) && !flaws.has(Flaws::NOT_PREFERRED) {
            "preferred category"
        } else {
            self.ways.strategy.name()
        }
    }
}

/// Returns the least weight that a call may go to.
pub(crate) fn least(call: &ToolCall) -> u32 {
    call.plan().route.min_weight.unwrap_or(0)
}

impl<S> Iterator for DryRun<'_, S> {
    type Item = Endpoint;

    fn next(&mut self) -> Option<Endpoint> {
        let choice = self.candidates.next(self.call)?;
        self.candidates.set.endpoints().get(choice.place).cloned()
    }
}

/// The servers that would be asked for a call, best first. See
/// [`Router::candidates`](crate::Router::candidates).
pub(crate) struct DryRun<'a, S> {
    pub(crate) candidates: Candidates<S>,
    pub(crate) call: &'a ToolCall,
}
