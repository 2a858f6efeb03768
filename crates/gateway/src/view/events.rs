//! What a router does, read from its stream of events and told in a line each.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;

use crate::config::show_duration;

/// One event.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub(crate) enum EventView {
    /// A server got an attempt of a call.
    RouteDecision(DecisionView),
    /// No server got it.
    RouteFailed {
        #[serde(flatten)]
        decision: DecisionView,
        error: String,
    },
    /// A server's health changed.
    HealthUpdate {
        set: String,
        server: String,
        #[serde(default)]
        tool: Option<String>,
        from: String,
        to: String,
        reason: String,
    },
    /// Calls with something in common stay with one server.
    AffinitySet {
        #[serde(flatten)]
        affinity: AffinityView,
        ttl_ms: u64,
    },
    /// They do not any more.
    AffinityExpired {
        #[serde(flatten)]
        affinity: AffinityView,
        reason: String,
    },
    /// A tool is not offered.
    ToolRefused {
        server: String,
        tool: String,
        reason: String,
    },
    /// Clients see another name of a tool.
    ToolRenamed {
        set: String,
        tool: String,
        name: String,
    },
    /// Events were dropped.
    Missed { events: u64 },
    /// One that a newer gateway tells.
    #[serde(other)]
    Other,
}

/// How a server was chosen.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct DecisionView {
    set: String,
    tool: String,
    attempt: u32,
    beside: bool,
    refused_before: u32,
    strategy: String,
    servers: usize,
    eligible: usize,
    candidates: Vec<CandidateView>,
    chosen: Option<String>,
    alternates: Vec<String>,
    reason: String,
}

/// A server that was looked at.
#[derive(Debug, Clone, PartialEq, Deserialize)]
struct CandidateView {
    server: String,
    weight: u32,
    unfit: Option<String>,
}

/// Whose calls stay with which server.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct AffinityView {
    set: String,
    by: String,
    key: serde_json::Value,
    server: String,
}

impl fmt::Display for EventView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RouteDecision(decision) => write!(f, "decision  {decision}"),
            Self::RouteFailed { decision, error } => write!(f, "failed    {decision}: {error}"),
            Self::HealthUpdate {
                set,
                server,
                tool,
                from,
                to,
                reason,
            } => {
                write!(f, "health    {server} of {set}")?;
                if let Some(tool) = tool {
                    write!(f, ", tool {tool}")?;
                }
                write!(f, ": {from} -> {to}, for {reason}")
            }
            Self::AffinitySet { affinity, ttl_ms } => {
                let ttl = show_duration(Duration::from_millis(*ttl_ms));
                write!(
                    f,
                    "affinity  {affinity} goes to {} for {ttl}",
                    affinity.server
                )
            }
            Self::AffinityExpired { affinity, reason } => {
                let server = &affinity.server;
                write!(f, "affinity  {affinity} leaves {server}: {reason}")
            }
            Self::ToolRefused {
                server,
                tool,
                reason,
            } => write!(f, "refused   {tool} of {server}: {reason}"),
            Self::ToolRenamed { set, tool, name } => {
                write!(
                    f,
                    "renamed   {set}.{tool} is `{name}`: its own name belongs to another tool"
                )
            }
            Self::Missed { events } => {
                write!(f, "missed    {events} events, for this reader was too slow")
            }
            Self::Other => f.write_str("other     an event that this version does not know"),
        }
    }
}

impl fmt::Display for DecisionView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.set, self.tool)?;
        if self.attempt > 1 {
            write!(f, " attempt {}", self.attempt)?;
        }
        if self.beside {
            f.write_str(" beside a slow one")?;
        }
        let server = self.chosen.as_deref().unwrap_or("nobody");
        write!(f, " -> {server}")?;
        // the strategy is told in any case
        if self.reason != self.strategy {
            write!(f, ", {}", self.reason)?;
        }
        write!(
            f,
            " ({}, {} of {} eligible",
            self.strategy, self.eligible, self.servers
        )?;
        if self.refused_before > 0 {
            write!(f, ", {} refused before", self.refused_before)?;
        }
        for candidate in &self.candidates {
            if let Some(unfit) = &candidate.unfit {
                write!(f, ", {} ({}) {unfit}", candidate.server, candidate.weight)?;
            }
        }
        if let Some(next) = self.alternates.first() {
            write!(f, ", next {next}")?;
        }
        f.write_str(")")
    }
}

impl fmt::Display for AffinityView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.by)?;
        match self.key.as_str() {
            Some(key) => f.write_str(key)?,
            None => write!(f, "{}", self.key)?,
        }
        write!(f, " in {}", self.set)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_event_is_told_in_a_line() {
        let decision = |chosen| {
            json!({
                "type": "routeDecision", "set": "orders", "tool": "get_order", "attempt": 1,
                "beside": false, "refused_before": 0, "strategy": "round_robin",
                "rule": {"words": "any"}, "servers": 2, "eligible": 2, "chosen": chosen,
                "candidates": [
                    {"server": "a", "weight": 80, "unfit": null},
                    {"server": "b", "weight": 20, "unfit": "draining"},
                ],
                "alternates": ["b"], "reason": "in turn",
            })
        };
        let mut again = decision(json!("a"));
        again["attempt"] = json!(2);
        again["beside"] = json!(true);
        again["refused_before"] = json!(1);
        let mut failed = decision(json!(null));
        failed["type"] = json!("routeFailed");
        failed["error"] = json!("no_eligible_server");
        failed["alternates"] = json!([]);
        for (event, line) in [
            (
                decision(json!("a")),
                "decision  orders.get_order -> a, in turn (round_robin, 2 of 2 eligible, b (20) \
                 draining, next b)",
            ),
            (
                again,
                "decision  orders.get_order attempt 2 beside a slow one -> a, in turn \
                 (round_robin, 2 of 2 eligible, 1 refused before, b (20) draining, next b)",
            ),
            (
                failed,
                "failed    orders.get_order -> nobody, in turn (round_robin, 2 of 2 eligible, \
                 b (20) draining): no_eligible_server",
            ),
            (
                json!({"type": "healthUpdate", "set": "orders", "server": "a", "from": "healthy",
                       "to": "open", "reason": "5 failures in a row"}),
                "health    a of orders: healthy -> open, for 5 failures in a row",
            ),
            (
                json!({"type": "affinitySet", "set": "orders", "by": "session", "key": "1f",
                       "server": "a", "ttl_ms": 90_000}),
                "affinity  session 1f in orders goes to a for 1m 30s",
            ),
            (
                json!({"type": "affinityExpired", "set": "orders", "by": "user", "key": 7,
                       "server": "a", "reason": "ttl"}),
                "affinity  user 7 in orders leaves a: ttl",
            ),
            (
                json!({"type": "toolRefused", "set": "orders", "server": "a", "tool": "get_order",
                       "reason": "listed twice"}),
                "refused   get_order of a: listed twice",
            ),
            (
                json!({"type": "toolRenamed", "set": "orders", "tool": "find",
                       "name": "orders__find"}),
                "renamed   orders.find is `orders__find`: its own name belongs to another tool",
            ),
            (
                json!({"type": "missed", "events": 3}),
                "missed    3 events, for this reader was too slow",
            ),
            (
                json!({"type": "somethingNew", "x": 1}),
                "other     an event that this version does not know",
            ),
        ] {
            let read: EventView = serde_json::from_value(event).unwrap();
            assert_eq!(read.to_string(), line);
        }
    }
}
