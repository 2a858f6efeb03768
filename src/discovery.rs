//! Listings of servers' tools: their outcome, and what operators should look at.

use callward_core::lint::{Candidate, Severity, check};
use callward_core::{Method, ReplicaSetId, ServerId, Subject, ToolDefinition, ToolName};
use callward_registry::{Catalogue, Changes};
use callward_router::RouteEvent;
use serde::Serialize;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use crate::roster::Known;
use crate::stack::Stack;

/// The outcome of the last listing of a server's tools.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Discovery {
    /// The server.
    pub server: ServerId,
    /// Its replica set.
    pub set: ReplicaSetId,
    /// Why there is no list. All counts and lists are empty then.
    pub error: Option<String>,
    /// How many tools the server listed.
    pub listed: usize,
    /// Those that are new in the set.
    pub added: Vec<ToolName>,
    /// Those that are others than before.
    pub changed: Vec<ToolName>,
    /// Those that the set lost.
    pub removed: Vec<ToolName>,
    /// All that are not offered, with every reason.
    pub refused: Vec<Withheld>,
    /// All that wait for approval, and why.
    pub held: Vec<Withheld>,
    /// What operators should look at, the worst first.
    pub warnings: Vec<DiscoveryWarning>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
}

/// A listed tool that is not offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Withheld {
    /// The tool's own name.
    pub tool: ToolName,
    /// Why.
    pub reason: String,
}

/// Something about a server's list that operators should look at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DiscoveryWarning {
    /// How much it matters.
    pub severity: Severity,
    /// What it is.
    pub message: String,
}

/// The longest description without a warning, in characters.
const LONGEST: usize = 1024;
/// How many findings of one kind are named.
const NAMED: usize = 3;

impl Discovery {
    pub(crate) fn new(
        set: &ReplicaSetId,
        server: &ServerId,
        listed: usize,
        changes: &Changes,
        catalogue: &Catalogue,
        began: Instant,
    ) -> Self {
        let withheld = |tool: &ToolName, reason: &str| Withheld {
            tool: tool.clone(),
            reason: reason.to_owned(),
        };
        let refused = catalogue.refused().iter().filter(|it| it.server == *server);
        let held = catalogue.held().iter().filter(|it| it.server == *server);
        Self {
            server: server.clone(),
            set: set.clone(),
            error: None,
            listed,
            added: changes.added.clone(),
            changed: changes.changed.clone(),
            removed: changes.removed.clone(),
            refused: refused.map(|it| withheld(&it.tool, &it.reason)).collect(),
            held: held.map(|it| withheld(&it.tool, &it.reason)).collect(),
            warnings: Vec::new(),
            duration_ms: millis(began),
        }
    }

    fn failed(known: &Known, error: String, duration_ms: u64) -> Self {
        Self {
            server: known.id().clone(),
            set: known.spec.set.clone(),
            error: Some(error),
            listed: 0,
            added: Vec::new(),
            changed: Vec::new(),
            removed: Vec::new(),
            refused: Vec::new(),
            held: Vec::new(),
            warnings: Vec::new(),
            duration_ms,
        }
    }

    pub(crate) fn completed(&self) -> RouteEvent {
        RouteEvent::DiscoveryCompleted {
            set: self.set.clone(),
            server: self.server.clone(),
            listed: self.listed,
            added: self.added.len(),
            changed: self.changed.len(),
            removed: self.removed.len(),
            refused: self.refused.len(),
            held: self.held.len(),
            duration_ms: self.duration_ms,
        }
    }
}

fn millis(began: Instant) -> u64 {
    began.elapsed().as_millis().try_into().unwrap_or(u64::MAX)
}

impl Stack {
    /// Lists the tools of a server now, or waits for a listing that runs, as
    /// [`relist`](Self::relist) does, and returns the outcome. `None` if there is no server of this
    /// id.
    ///
    /// ```
    /// use callward::{ServerId, Stack};
    ///
    /// async fn is_well(stack: &Stack, server: &ServerId) -> bool {
    ///     let outcome = stack.discover(server).await;
    ///     outcome.is_some_and(|it| it.error.is_none() && it.warnings.is_empty())
    /// }
    /// ```
    pub async fn discover(&self, server: &ServerId) -> Option<Discovery> {
        let began = Instant::now();
        let before = self.0.roster.load().get(server)?;
        let before = before.liveness.borrow().listings;
        let after = self.relist(server).await?;
        if after.listings == before {
            let known = self.0.roster.load().get(server)?;
            let error = after.last_error.unwrap_or_else(|| self.silent());
            return Some(Discovery::failed(&known, error, millis(began)));
        }
        self.discovery(server).await
    }

    /// Returns the outcome of the last listing of a server's tools. Waits for the first one,
    /// for the timeout of a listing at most. `None` if there is no server of this id.
    pub async fn discovery(&self, server: &ServerId) -> Option<Discovery> {
        let began = Instant::now();
        let known = self.0.roster.load().get(server)?;
        let mut liveness = known.liveness.subscribe();
        let settled = liveness.wait_for(|now| now.is_settled);
        // the state has the error, if it failed
        drop(tokio::time::timeout(self.0.settings.listing_timeout(), settled).await);
        let now = known.liveness.borrow().clone();
        let Some(discovery) = now.discovery.filter(|_| now.up) else {
            let error = now.last_error.unwrap_or_else(|| self.silent());
            return Some(Discovery::failed(&known, error, millis(began)));
        };
        let mut discovery = Discovery::clone(&discovery);
        let mut warnings = self.versions_beside(&known);
        warnings.extend(now.last_error.map(warning));
        let (stack, set, server) = (self.clone(), discovery.set.clone(), server.clone());
        let found = spawn_blocking(move || {
            let listed = stack.0.shared.registry.listed(&set, &server);
            findings(&listed, &server)
        });
        // a lint that panics is a defect of ours, and hides no outcome
        warnings.extend(found.await.unwrap_or_default());
        warnings.sort_by_key(|warning| std::cmp::Reverse(warning.severity));
        discovery.warnings = warnings;
        Some(discovery)
    }

    /// Says that no listing ended.
    fn silent(&self) -> String {
        let secs = self.0.settings.listing_timeout().as_secs_f64();
        format!(
            "it does not answer: no listing ended in {secs} s; check its command, URL and breaker"
        )
    }

    /// Compares the version of a server's software with those of the other servers of its set.
    fn versions_beside(&self, known: &Known) -> Vec<DiscoveryWarning> {
        let Some(own) = known.spec.server.0.version() else {
            return Vec::new();
        };
        let roster = self.0.roster.load();
        let beside = roster
            .all()
            .filter(|other| other.spec.set == known.spec.set && other.id() != known.id());
        let warnings = beside.filter_map(|other| {
            let theirs = other.spec.server.0.version()?;
            let (severity, part) = differ(&own, &theirs)?;
            let message = format!(
                "runs version {own:.64}, and `{}` of the same set {theirs:.64}: another {part} \
                 version",
                other.id()
            );
            Some(DiscoveryWarning { severity, message })
        });
        warnings.max_by_key(|it| it.severity).into_iter().collect()
    }
}

/// Returns how much the difference of two versions matters, and in which part they differ. Versions
/// that cannot be read differ in nothing.
fn differ(one: &str, other: &str) -> Option<(Severity, &'static str)> {
    let read = |version: &str| {
        let mut parts = version.trim_start_matches('v').split(['.', '-', '+']);
        let major: u64 = parts.next()?.parse().ok()?;
        let minor: u64 = parts.next().map_or(Some(0), |minor| minor.parse().ok())?;
        Some((major, minor))
    };
    let (one, other) = (read(one)?, read(other)?);
    match () {
        () if one.0 != other.0 => Some((Severity::Error, "major")),
        () if one.1 != other.1 => Some((Severity::Warning, "minor")),
        () => None,
    }
}

fn warning(message: String) -> DiscoveryWarning {
    DiscoveryWarning {
        severity: Severity::Warning,
        message,
    }
}

/// Returns what an author should look at.
fn findings(listed: &[ToolDefinition], server: &ServerId) -> Vec<DiscoveryWarning> {
    let tools = listed.iter().filter(|it| it.method == Method::CallTool);
    let tools: Vec<_> = tools.filter(|it| it.fault.is_none()).collect();
    let candidates = tools.iter().map(|tool| Candidate {
        subject: Subject::of(tool, Some(server)),
        definition: serde_json::from_slice(&tool.raw).ok(),
    });
    let found = check(&candidates.collect::<Vec<_>>());
    let mut warnings = Vec::new();
    for severity in [Severity::Error, Severity::Warning] {
        let of_it = found.iter().filter(|it| it.severity == severity);
        let count = of_it.clone().count();
        let named = of_it.take(NAMED).map(|it| DiscoveryWarning {
            severity,
            message: format!("{}: {} {}", it.tool, it.field, it.message),
        });
        warnings.extend(named);
        if count > NAMED {
            let message = format!("{} more findings of `callward lint`", count - NAMED);
            warnings.push(DiscoveryWarning { severity, message });
        }
    }
    let length = |tool: &ToolDefinition| {
        let description = tool.description.as_deref().unwrap_or_default();
        description.trim().chars().count()
    };
    let long: Vec<_> = tools.iter().filter(|it| length(it) > LONGEST).collect();
    let bare: Vec<_> = tools.iter().filter(|it| length(it) == 0).collect();
    for (these, fault) in [(long, "longer than 1024 characters"), (bare, "missing")] {
        if !these.is_empty() {
            let names: Vec<_> = these
                .iter()
                .take(NAMED)
                .map(|it| it.name.as_str())
                .collect();
            warnings.push(warning(format!(
                "the description of {} of {} tools is {fault}: {}",
                these.len(),
                tools.len(),
                names.join(", ")
            )));
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_major_version_is_an_error_and_a_minor_one_a_warning() {
        for (one, other, expected) in [
            ("1.2.3", "1.2.9", None),
            ("1.2.3", "2.2.3", Some(Severity::Error)),
            ("v1.2", "1.3.0-rc.1", Some(Severity::Warning)),
            ("1", "1.0.4", None),
            ("1.0", "main", None),
            ("", "1.0", None),
        ] {
            for (one, other) in [(one, other), (other, one)] {
                let found = differ(one, other).map(|(severity, _)| severity);
                assert_eq!(found, expected, "{one} {other}");
            }
        }
    }
}
