//! A router's decision about one attempt of a call.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::{ReplicaSetId, RouteRule, ServerId, ToolCall, ToolName};

/// Why one attempt of a call went to one server, or to none.
///
/// A router writes one for each server it asks: into the call's [`CallRecord`](crate::CallRecord),
/// and to listeners. It is only built if it is read.
///
/// Its `Display` is one line for people. As JSON, keys are in snake case, and the rule comes with
/// its words:
///
/// ```
/// use callward_core::{RouteCandidate, RouteDecision, ServerId, ToolCall};
/// # use callward_core::Tool;
///
/// let call = ToolCall::new(Tool::destructive("delete_order")?, "");
/// let (primary, replica) = (ServerId::new("primary")?, ServerId::new("replica")?);
/// let mut decision = RouteDecision::new(&call, "peak_ewma");
/// (decision.servers, decision.eligible) = (2, 1);
/// decision.candidates = vec![
///     RouteCandidate { server: primary.clone(), weight: 50, unfit: None },
///     RouteCandidate { server: replica, weight: 10, unfit: Some("too_light") },
/// ];
/// decision.chosen = Some(primary);
/// decision.reason = "only server heavy enough";
///
/// assert_eq!(
///     decision.to_string(),
///     "primary, only server heavy enough (peak_ewma, only healthy servers of weight 50 or more, \
///      1 of 2 eligible: primary (50), replica (10, too_light))"
/// );
/// let written = serde_json::to_value(&decision)?;
/// assert_eq!(written["chosen"], "primary");
/// assert_eq!(written["rule"]["min_weight"], 50);
/// assert_eq!(written["rule"]["words"], "only healthy servers of weight 50 or more");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RouteDecision {
    /// The replica set.
    pub set: ReplicaSetId,
    /// The tool, as its server calls it.
    pub tool: ToolName,
    /// Which attempt of the call it is, from 1.
    pub attempt: u32,
    /// Whether the attempt runs beside a slow one that has the same number.
    pub beside: bool,
    /// How many servers were asked before in the same attempt, and refused at their own gate with
    /// nothing sent. 0 for the first choice.
    pub refused_before: u32,
    /// The name of the strategy that chose among those the rule admits.
    pub strategy: &'static str,
    /// What the plan demands and prefers. It comes before any strategy, pin or affinity.
    #[serde(serialize_with = "with_words")]
    pub rule: RouteRule,
    /// How many servers the set has.
    pub servers: usize,
    /// How many of them the rule admits, regardless of their health.
    pub eligible: usize,
    /// The servers considered, each with the reason against it, the chosen one included: the first
    /// few, so that the cost does not grow with the set.
    pub candidates: Vec<RouteCandidate>,
    /// The server that got the attempt; `None` if no server may have it.
    pub chosen: Option<ServerId>,
    /// The first few servers that come next if the chosen one refuses.
    pub alternates: Vec<ServerId>,
    /// The reason for the choice, one of a bounded set of words.
    pub reason: &'static str,
}

impl RouteDecision {
    /// Starts from the call's set, tool, attempt and rule. No server is chosen yet.
    pub fn new(call: &ToolCall, strategy: &'static str) -> Self {
        Self {
            set: call.tool().set().clone(),
            tool: call.tool().name().clone(),
            attempt: call.attempt().number,
            beside: call.attempt().elsewhere_only,
            refused_before: 0,
            strategy,
            rule: call.plan().route.clone(),
            servers: 0,
            eligible: 0,
            candidates: Vec::new(),
            chosen: None,
            alternates: Vec::new(),
            reason: "",
        }
    }

    /// Returns `true` if the decision belongs to this attempt of its call.
    pub(crate) fn is_of(&self, attempt: &crate::Attempt) -> bool {
        self.attempt == attempt.number && self.beside == attempt.elsewhere_only
    }
}

impl fmt::Display for RouteDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.chosen {
            Some(server) => write!(f, "{server}")?,
            None => write!(f, "no server")?,
        }
        write!(
            f,
            ", {} ({}, {}, {} of {} eligible",
            self.reason, self.strategy, self.rule, self.eligible, self.servers
        )?;
        for (place, candidate) in self.candidates.iter().enumerate() {
            let before = if place == 0 { ": " } else { ", " };
            write!(f, "{before}{candidate}")?;
        }
        f.write_str(")")
    }
}

/// One server that a router considered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "routers build it")]
pub struct RouteCandidate {
    /// The server.
    pub server: ServerId,
    /// Its weight.
    pub weight: u32,
    /// The reason against it, one of a bounded set of words; `None` if it was eligible.
    pub unfit: Option<&'static str>,
}

impl fmt::Display for RouteCandidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}", self.server, self.weight)?;
        if let Some(unfit) = self.unfit {
            write!(f, ", {unfit}")?;
        }
        f.write_str(")")
    }
}

/// Writes a rule as data, and as text.
fn with_words<S: Serializer>(rule: &RouteRule, to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct WithWords<'a> {
        #[serde(flatten)]
        rule: &'a RouteRule,
        words: String,
    }
    let words = rule.to_string();
    WithWords { rule, words }.serialize(to)
}
