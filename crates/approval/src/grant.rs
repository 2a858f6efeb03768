//! Standing permission for some calls of one tool.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use callward_core::refine::{Applied, ArgumentsRead, When};
use callward_core::{Effect, Principal, ReplicaSetId, Tool, ToolName};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::clock::{millis, now_ms};
use crate::{ApprovalError, Asked, Decision, RequestId, asked};

/// Conditions over arguments, and how they were written: as `when` in a config, in JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub struct Pattern {
    written: Value,
    when: When,
}

impl TryFrom<Value> for Pattern {
    type Error = serde_json::Error;

    fn try_from(written: Value) -> Result<Self, Self::Error> {
        let when = When::deserialize(&written)?;
        Ok(Self { written, when })
    }
}

impl From<Pattern> for Value {
    fn from(pattern: Pattern) -> Self {
        pattern.written
    }
}

/// Standing permission for some calls of one tool: each use approves one request. Its times are in
/// milliseconds since 1970.
///
/// It answers no call of the principal that gave it, of another definition of the tool, whose
/// arguments two parsers may read differently, or that needs a decision of one with a certain role;
/// and a destructive call only by a pattern.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Grant {
    /// Its name.
    pub id: RequestId,
    /// The replica set of the tool.
    pub set: ReplicaSetId,
    /// The tool's name at its server.
    pub tool: ToolName,
    /// The SHA-256 digest of the definition for which it holds.
    pub definition: Arc<str>,
    /// The conditions that arguments have to meet; `None`: all arguments do.
    pub when: Option<Pattern>,
    /// Who may use it; `None`: each principal but the one that gave it.
    #[serde(default, with = "of_whom")]
    pub principal: Option<Principal>,
    /// How many requests it approves; `None`: any number.
    pub uses: Option<NonZeroU32>,
    /// How many it has approved.
    pub used: u32,
    /// Who gave it.
    #[serde(with = "crate::request::principal")]
    pub by: Principal,
    /// When it was made.
    pub created_ms: u64,
    /// When it expires.
    pub expires_ms: u64,
    /// Whether some call of the tool was destructive then.
    pub is_destructive: bool,
}

impl Grant {
    /// The channel of decisions that a grant stands for.
    pub const CHANNEL: &str = "grant";
    /// How long a grant may hold.
    pub const LONGEST: Duration = Duration::from_secs(30 * 24 * 60 * 60);
    /// How many grants there may be.
    pub const MOST: usize = 1_000;

    /// Makes a grant for one call of the tool, with any arguments, of any principal, within an
    /// hour. [`Approvals::grant`](crate::Approvals::grant) puts it into force.
    ///
    /// # Errors
    ///
    /// [`ApprovalError::Store`] if the system has no random bits.
    pub fn new(tool: &Tool, by: Principal) -> Result<Self, ApprovalError> {
        const HOUR_MS: u64 = 60 * 60 * 1_000;
        let rules = (0..tool.refinements.rules().len()).map(Applied::Rule);
        let mut plans = [Applied::Tool].into_iter().chain(rules);
        let now = now_ms();
        Ok(Self {
            id: RequestId::random()?,
            set: tool.set().clone(),
            tool: tool.name().clone(),
            definition: asked::definition(tool),
            when: None,
            principal: None,
            uses: Some(NonZeroU32::MIN),
            used: 0,
            by,
            created_ms: now,
            expires_ms: now.saturating_add(HOUR_MS),
            is_destructive: plans.any(|it| tool.plan_applied(it).effect == Effect::Destructive),
        })
    }

    /// Sets how long it holds.
    #[must_use]
    pub fn lasting(mut self, time: Duration) -> Self {
        self.expires_ms = self.created_ms.saturating_add(millis(time));
        self
    }

    /// Returns `true` if it has uses left.
    #[must_use]
    pub fn has_uses(&self) -> bool {
        self.uses.is_none_or(|uses| self.used < uses.get())
    }

    /// Returns `true` if it is for this definition of this tool.
    #[must_use]
    pub fn is_for(&self, tool: &Tool) -> bool {
        (&self.set, &self.tool) == (tool.set(), tool.name())
            && self.definition == asked::definition(tool)
    }

    /// Returns `true` if it would approve this call.
    #[must_use]
    pub fn answers(&self, asked: &Asked) -> bool {
        let read = || ArgumentsRead::new(asked.arguments.as_bytes());
        let holds = match &self.when {
            Some(pattern) => pattern.when.holds(&read()) == Some(true),
            None => asked.effect != Effect::Destructive,
        };
        let is_of = (&self.set, &self.tool, &self.definition);
        is_of == (&asked.set, &asked.tool, &asked.definition)
            && self.by != asked.principal
            && self
                .principal
                .as_ref()
                .is_none_or(|it| *it == asked.principal)
            && self.has_uses()
            && now_ms() < self.expires_ms
            && !asked.in_doubt
            && asked.roles.is_empty()
            && holds
    }

    pub(crate) fn validate(&self) -> Result<(), ApprovalError> {
        let lasts = self.expires_ms.saturating_sub(self.created_ms);
        if self.principal.as_ref() == Some(&self.by) {
            Err(ApprovalError::DecidedByTheOneThatAsks)
        } else if self.is_destructive && self.when.is_none() {
            Err(ApprovalError::NeedsPattern(self.tool.clone()))
        } else if lasts == 0 || lasts > millis(Self::LONGEST) {
            Err(ApprovalError::Lifetime(Duration::from_millis(lasts)))
        } else {
            Ok(())
        }
    }

    pub(crate) fn decision(&self) -> Decision {
        Decision {
            approves: true,
            by: self.by.clone(),
            roles: Vec::new(),
            channel: Self::CHANNEL.to_owned(),
            note: None,
        }
    }
}

/// A principal as text, or none.
mod of_whom {
    use callward_core::Principal;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[expect(clippy::ref_option, reason = "serde passes references to fields")]
    pub(super) fn serialize<S: Serializer>(
        of: &Option<Principal>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        of.as_ref().map(Principal::as_str).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Principal>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        Ok(text.map(Principal::new))
    }
}
