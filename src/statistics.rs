//! Searches of the tools of a stack, and the counts of its calls.

use std::collections::HashMap;

use callward_core::{CallTotals, ReplicaSetId, ServerId, ToolName};
use callward_registry::{CatalogueStats, Entry, Found, Query};
use serde::Serialize;

use crate::roster::Known;
use crate::stack::Stack;

/// The tools of a stack in numbers, and the calls it has answered since it started.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Statistics {
    /// The tools.
    pub catalogue: CatalogueStats,
    /// The calls of each tool that was called, in the order clients see.
    pub tools: Vec<ToolStatistics>,
    /// The calls that each server got, in the order the servers were added.
    pub servers: Vec<ServerStatistics>,
}

/// The calls of one tool.
///
/// They outlive the tool's definition. A call counts once, whatever was retried for it; not if it
/// was refused, denied or given up before the cache or a server answered. Durations are of calls
/// that ran: with retries, and without the time that a person takes to approve.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolStatistics {
    /// The name that clients see.
    pub name: String,
    /// The set of the tool.
    pub set: ReplicaSetId,
    /// The tool's own name.
    pub tool: ToolName,
    /// The calls so far.
    #[serde(flatten)]
    pub totals: CallTotals,
    /// A duration in milliseconds that 99 of 100 calls did not exceed.
    pub p99_ms: Option<f64>,
}

/// The calls that one server got. Each attempt counts, with the time at the server alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ServerStatistics {
    /// The server.
    pub server: ServerId,
    /// Its set.
    pub set: ReplicaSetId,
    /// The calls so far. The share that the cache answered is that of the set.
    #[serde(flatten)]
    pub totals: CallTotals,
    /// A duration in milliseconds that 99 of 100 calls did not exceed.
    pub p99_ms: Option<f64>,
}

impl Stack {
    /// Finds tools. `shows` says which tools the caller may know of: others are not counted either.
    ///
    /// ```
    /// # async fn find(stack: &callward::Stack) -> Result<(), callward::core::InvalidValue> {
    /// let mut query = callward::registry::Query::default();
    /// query.set("text", "open issues")?;
    /// query.set("readOnly", "true")?;
    /// let found = stack.search(&query, |_| true);
    /// println!("{} tools", found.total);
    /// # Ok(())
    /// # }
    /// ```
    pub fn search(&self, query: &Query, shows: impl Fn(&Entry) -> bool) -> Found {
        let roster = self.0.roster.load();
        let is_up = |server: &ServerId| {
            let known = roster.find(server);
            known.is_some_and(|known| known.liveness.borrow().up)
        };
        self.catalogue().search(query, shows, is_up)
    }

    /// Returns the tools in numbers, and the calls of each tool and server.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let catalogue = self.catalogue();
        let mut tools = Vec::new();
        // calls, and how many of them the cache answered
        let mut of_sets: HashMap<&ReplicaSetId, (f64, f64)> = HashMap::new();
        for entry in catalogue.entries() {
            let tool = entry.tool();
            let Some(stats) = tool.stats.as_ref() else {
                continue;
            };
            let totals = stats.totals();
            if totals.calls == 0 {
                continue;
            }
            let calls = totals.calls as f64;
            let (all, cached) = of_sets.entry(tool.set()).or_default();
            *all += calls;
            *cached += calls * totals.cached_rate.unwrap_or_default();
            tools.push(ToolStatistics {
                name: entry.client_name().to_owned(),
                set: tool.set().clone(),
                tool: tool.name().clone(),
                totals,
                p99_ms: stats.p99_ms(),
            });
        }
        let roster = self.0.roster.load();
        let server = |known: &Known| {
            let of_set = of_sets.get(&known.spec.set);
            let mut totals = known.stats.totals();
            totals.cached_rate = of_set.map(|(all, cached)| cached / all);
            ServerStatistics {
                server: known.id().clone(),
                set: known.spec.set.clone(),
                totals,
                p99_ms: known.stats.p99_ms(),
            }
        };
        Statistics {
            servers: roster.all().map(server).collect(),
            catalogue: catalogue.stats(),
            tools,
        }
    }
}
