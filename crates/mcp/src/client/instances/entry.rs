//! One instance, as the table keeps it.

use std::time::Duration;

use callward_core::{ClientCapabilities, Field, Owner, Principal, SessionId, Source, ToolCall};
use tokio::time::Instant;

/// An owner, with names of its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) principal: Principal,
    pub(super) session: Option<SessionId>,
    /// What its client declares: a server learns that once, when it is greeted.
    pub(super) declares: ClientCapabilities,
}

pub(super) fn key(owner: Owner<'_>, declares: ClientCapabilities) -> Key {
    Key {
        principal: owner.principal.clone(),
        session: owner.session.cloned(),
        // a server that is greeted learns of no extension, and another learns of all with each call
        declares: declares.without_extensions(),
    }
}

/// The state that a call may leave in its instance, in rising order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ran {
    /// Nothing: the server or the operator says that it reads.
    DeclaredReads,
    /// Perhaps the request: the tool looks like a read, but no source states that it is one.
    InferredReads,
    /// State that its owner needs.
    Writes,
}

/// One instance.
#[derive(Debug)]
pub(super) struct Entry<H> {
    /// What keeps it open: it ends when the last clone is dropped. One without was asked to end,
    /// and counts until it has.
    pub(super) handle: Option<H>,
    pub(super) is_lead: bool,
    /// What its server knows that the client declares.
    pub(super) declares: ClientCapabilities,
    pub(super) owner: Option<Key>,
    /// The owner of the calls it has run; it may run no other's.
    pub(super) principal: Option<Principal>,
    /// The call that it has run of the highest kind.
    pub(super) ran: Ran,
    /// Its owner's session has ended while calls were in flight.
    pub(super) abandoned: bool,
    pub(super) in_flight: usize,
    pub(super) calls: u64,
    pub(super) since: Instant,
    pub(super) startup: Option<Duration>,
    pub(super) used: Instant,
}

impl Ran {
    /// Returns the kind of a call.
    pub(super) fn of(call: &ToolCall) -> Self {
        let resolved = call.tool().resolved_applied(call.applied());
        let source = resolved.provenance_of(Field::ReadOnly);
        match source.map(|entry| entry.source) {
            _ if call.plan().is_write() => Self::Writes,
            Some(Source::Declared | Source::Operator | Source::ServerDefault) => {
                Self::DeclaredReads
            }
            _ => Self::InferredReads,
        }
    }
}

impl<H> Entry<H> {
    pub(super) fn new(
        handle: H,
        is_lead: bool,
        declares: ClientCapabilities,
        now: Instant,
    ) -> Self {
        Self {
            handle: Some(handle),
            is_lead,
            declares,
            owner: None,
            principal: None,
            ran: Ran::DeclaredReads,
            abandoned: false,
            in_flight: 0,
            calls: 0,
            since: now,
            startup: None,
            used: now,
        }
    }

    pub(super) fn is_ending(&self) -> bool {
        self.handle.is_none()
    }

    /// Returns `true` if another session can learn nothing from it.
    pub(super) fn is_clean(&self) -> bool {
        self.ran == Ran::DeclaredReads
    }

    pub(super) fn is_idle(&self) -> bool {
        self.in_flight == 0 && !self.is_ending()
    }

    /// Returns `true` if it is unassigned and can be given away.
    pub(super) fn is_free(&self) -> bool {
        self.is_idle() && self.owner.is_none() && !self.abandoned
    }

    /// Returns `true` if it has served no owner yet.
    pub(super) fn is_fresh(&self) -> bool {
        self.is_free() && self.principal.is_none()
    }
}
