//! What speaks against a server, for one call.

use crate::endpoint::Endpoint;
use crate::rule::Rule;

/// What speaks against a server for a call, the worst in the highest bit: fewer is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Flaws(u8);

impl Flaws {
    pub(crate) const NONE: Self = Self(0);
    /// It is in none of the categories that the plan prefers.
    pub(crate) const NOT_PREFERRED: Self = Self(1);
    /// Its weight is 0.
    pub(crate) const STANDBY: Self = Self(2);
    /// An earlier attempt of the call failed there.
    pub(crate) const AVOIDED: Self = Self(4);
    /// It is doubtful.
    pub(crate) const DOUBTFUL: Self = Self(8);
    /// It is no candidate.
    pub(crate) const FINAL: Self = Self(16);

    const fn with(self, other: Self, applies: bool) -> Self {
        if applies {
            Self(self.0 | other.0)
        } else {
            self
        }
    }

    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// What the flaws of servers are judged by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Judge<'a> {
    pub(crate) rule: Rule<'a>,
    /// A server of a preferred category exists.
    pub(crate) prefers: bool,
}

impl Judge<'_> {
    pub(crate) fn flaws(&self, endpoint: &Endpoint) -> Flaws {
        let call = self.rule.call;
        let avoid = &call.attempt().avoid;
        let prefer = &call.plan().route.prefer;
        let (doubtful, is_final) = match self.rule.check(endpoint) {
            Ok(()) => (false, false),
            Err(unfit) => (!unfit.is_final(), unfit.is_final()),
        };
        Flaws::NONE
            .with(
                Flaws::NOT_PREFERRED,
                self.prefers && !endpoint.is_in(prefer),
            )
            .with(Flaws::STANDBY, endpoint.weight().get() == 0)
            .with(Flaws::AVOIDED, avoid.contains(endpoint.server()))
            .with(Flaws::DOUBTFUL, doubtful)
            .with(Flaws::FINAL, is_final)
    }
}
