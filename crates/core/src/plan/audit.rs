//! What is recorded about a call.

use std::fmt;

use serde::Serialize;

use crate::{Annotations, Effect, Profile, SecurityLevel};

/// What is recorded about a call, and in which file.
///
/// | tool | record |
/// | --- | --- |
/// | its effect is one that the profile records ([`AuditScope`]) | full: also who called, with what, what came of it |
/// | `auditRequired`, or `securityLevel: restricted` | full |
/// | `securityLevel: internal` | partial: the tool, the time, how it ended |
/// | anything else | none: metrics only |
///
/// Hints can only add to what the effect requires. A profile may demand a full record of each call
/// into an open world besides ([`Profile::audit_open_world`](crate::Profile::audit_open_world)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct AuditRule {
    /// How much is recorded.
    pub level: AuditLevel,
    /// The call may meet things outside its server's control (`openWorldHint`): its record, if
    /// there is one, belongs in a file of its own.
    pub open_world: bool,
}

words! {
    /// Which calls leave a full record because of their effect.
    #[non_exhaustive]
    AuditScope {
        /// None: only hints ask for records.
        Hinted = "hinted",
        /// Destructive calls.
        Destructive = "destructive",
        /// Every call that may change something; idempotent writes are among them.
        Mutating = "mutating",
        /// Every call.
        All = "all",
    } default Hinted
}

impl AuditScope {
    const fn records(self, effect: Effect) -> bool {
        match self {
            Self::Hinted => false,
            Self::Destructive => matches!(effect, Effect::Destructive),
            Self::Mutating => effect.is_write(),
            Self::All => true,
        }
    }
}

words! {
    /// How much is recorded about a call.
    #[non_exhaustive]
    AuditLevel {
        /// Nothing: spans and metrics only.
        None = "none",
        /// That the tool was called, when, and how the call ended.
        Partial = "partial",
        /// Everything: also the principal, the arguments, the decisions and the result.
        Full = "full",
    } default None
}

impl AuditRule {
    pub(super) fn derive(
        hints: &Annotations,
        effect: Effect,
        open_world: bool,
        profile: &Profile,
    ) -> Self {
        let required = hints.audit_required == Some(true)
            || profile.audit.records(effect)
            || (open_world && profile.audit_open_world);
        let level = match hints.security_level {
            _ if required => AuditLevel::Full,
            Some(SecurityLevel::Restricted) => AuditLevel::Full,
            Some(SecurityLevel::Internal) => AuditLevel::Partial,
            Some(SecurityLevel::Public) | None => AuditLevel::None,
        };
        Self { level, open_world }
    }

    /// Returns the rule that records what either of the two records, in the separate file if either
    /// uses it.
    pub(crate) fn stricter(self, other: Self) -> Self {
        Self {
            level: self.level.max(other.level),
            open_world: self.open_world || other.open_world,
        }
    }
}

impl fmt::Display for AuditRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let among = match self.open_world {
            true => ", among those that reach outside",
            false => "",
        };
        match self.level {
            AuditLevel::None => f.write_str("no"),
            AuditLevel::Partial => write!(f, "tool, client, time and outcome{among}"),
            AuditLevel::Full => write!(f, "in full{among}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_effect_asks_for_a_record_and_hints_only_add_to_it() {
        use AuditLevel::{Full, None, Partial};
        let mut profile = Profile::standard();
        // how many of the effects, from the most harmful on, each scope records
        for (scope, recorded) in AuditScope::ALL.iter().zip([0, 1, 3, 4]) {
            profile.audit = *scope;
            for (index, effect) in Effect::ALL.iter().rev().enumerate() {
                for (hints, by_hints) in [
                    ("", None),
                    ("auditRequired=false securityLevel=public", None),
                    ("securityLevel=internal", Partial),
                    ("securityLevel=internal auditRequired=true", Full),
                    ("securityLevel=restricted auditRequired=false", Full),
                    ("auditRequired=true", Full),
                ] {
                    let by_effect = if index < recorded { Full } else { None };
                    let hints = Annotations::stated(hints);
                    let rule = AuditRule::derive(&hints, *effect, true, &profile);
                    assert_eq!(
                        rule.level,
                        by_effect.max(by_hints),
                        "{scope} {effect} {hints}"
                    );
                    assert!(rule.open_world);
                }
            }
        }
    }
}
