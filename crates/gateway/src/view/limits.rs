//! What the limits let through, hold back and refuse.

use callward::limit::{PermitStatus, RateStatus, RateSubject};
use callward::loopguard::LoopGuardStats;
use callward::retry::BudgetStatus;
use callward::retry::hedge::HedgeStats;
use callward::{ServerId, ServerLimitStatus, Stack, ToolName};
use serde::{Deserialize, Serialize};

/// All limits of a stack, as they are now.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LimitsReport {
    /// Of tools and callers that were called upon, and of servers that have one.
    pub(crate) rates: Vec<RateView>,
    /// Of each server, and of its tools that have a limit of their own and were called.
    pub(crate) places: Vec<PlacesView>,
    /// Of each replica set that was called.
    pub(crate) budgets: Vec<BudgetView>,
    pub(crate) hedges: HedgesView,
    pub(crate) loop_guard: LoopGuardView,
}

/// A limit of rate.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RateView {
    /// What it is about: `tool`, `principal` or `server`.
    pub(crate) scope: String,
    /// Which one.
    pub(crate) of: String,
    /// The replica set of a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) set: Option<String>,
    pub(crate) calls_per_minute: f64,
    /// How many calls wait for their turn now.
    pub(crate) waiting: usize,
    /// How many had to wait, and got their turn.
    pub(crate) waited: u64,
    pub(crate) refused: u64,
}

/// Places for calls at once.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PlacesView {
    pub(crate) server: String,
    /// Absent for the places of the server as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tool: Option<String>,
    /// How many there are.
    pub(crate) limit: usize,
    pub(crate) in_flight: usize,
    pub(crate) waiting: usize,
    pub(crate) max_waiting: usize,
    /// How many calls were refused because too many waited.
    pub(crate) shed: u64,
    /// How many calls were refused because their time was over while they waited.
    pub(crate) expired: u64,
}

/// The retry budget of one replica set.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct BudgetView {
    pub(crate) set: String,
    /// How many retries it would pay for now.
    pub(crate) tokens: u32,
    pub(crate) refused: u32,
}

/// What became of second attempts beside slow ones.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct HedgesView {
    pub(crate) sent: u64,
    pub(crate) won: u64,
    /// Not sent, because the budget did not pay.
    pub(crate) not_paid: u64,
    /// Not sent, because no other server could take the call.
    pub(crate) no_server: u64,
}

/// What the loop guard holds and did.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LoopGuardView {
    /// How many calls it answered in their servers' place.
    pub(crate) answered: u64,
    /// How many failing calls it remembers now.
    pub(crate) held: usize,
}

impl LimitsReport {
    /// Describes the limits of a stack.
    pub(crate) fn of(stack: &Stack) -> Self {
        let status = stack.limits();
        let of_server = |one: &ServerLimitStatus| {
            let rate = one.rate.as_ref()?;
            Some(RateView::of(rate, Some(&one.server)))
        };
        let rates = status.rates.iter().map(|rate| RateView::of(rate, None));
        Self {
            rates: rates
                .chain(status.servers.iter().filter_map(of_server))
                .collect(),
            places: status.servers.iter().flat_map(PlacesView::all).collect(),
            budgets: stack.retry_budgets().iter().map(BudgetView::of).collect(),
            hedges: HedgesView::of(stack.hedge_stats()),
            loop_guard: LoopGuardView::of(stack.loop_guard_stats()),
        }
    }
}

impl RateView {
    /// Describes a rate: of a server, if one is given.
    fn of(rate: &RateStatus, server: Option<&ServerId>) -> Self {
        let (scope, of, set) = match (server, &rate.subject) {
            (Some(server), _) => ("server", server.to_string(), None),
            (None, RateSubject::Principal(principal)) => ("principal", principal.to_string(), None),
            (None, RateSubject::Tool { set, tool }) => {
                ("tool", tool.to_string(), Some(set.to_string()))
            }
            (None, other) => ("all", other.to_string(), None),
        };
        Self {
            scope: scope.into(),
            of,
            set,
            calls_per_minute: rate.calls_per_minute,
            waiting: rate.waiting,
            waited: rate.waited,
            refused: rate.refused,
        }
    }
}

impl PlacesView {
    /// Describes the places of a server and then those of its tools, by name.
    fn all(server: &ServerLimitStatus) -> Vec<Self> {
        let places = &server.concurrency;
        let mut tools: Vec<_> = places.tools.iter().collect();
        tools.sort_unstable_by_key(|(tool, _)| *tool);
        let tools = tools.into_iter().map(|(tool, places)| (Some(tool), places));
        std::iter::once((None, &places.server))
            .chain(tools)
            .map(|(tool, places)| Self::of(&server.server, tool, places))
            .collect()
    }

    fn of(server: &ServerId, tool: Option<&ToolName>, places: &PermitStatus) -> Self {
        Self {
            server: server.to_string(),
            tool: tool.map(ToString::to_string),
            limit: places.limit,
            in_flight: places.in_flight,
            waiting: places.waiting,
            max_waiting: places.max_waiting,
            shed: places.refused,
            expired: places.expired,
        }
    }
}

impl BudgetView {
    fn of(budget: &BudgetStatus) -> Self {
        Self {
            set: budget.set.to_string(),
            tokens: budget.tokens,
            refused: budget.refused,
        }
    }
}

impl HedgesView {
    const fn of(stats: HedgeStats) -> Self {
        Self {
            sent: stats.sent,
            won: stats.won,
            not_paid: stats.no_budget,
            no_server: stats.no_server,
        }
    }
}

impl LoopGuardView {
    const fn of(stats: LoopGuardStats) -> Self {
        Self {
            answered: stats.answered,
            held: stats.held,
        }
    }
}
