//! The breakers of all servers and tools.

use std::sync::Arc;
use std::time::Duration;

use callward_core::{InvalidConfig, Owner, ServerId, ToolCall};
use dashmap::DashMap;
use foldhash::fast::RandomState;

use crate::circuit::{BreakerChange, Observer};
use crate::state::is_unsafe_write;
use crate::status::Key;
use crate::{BreakerConfig, BreakerState, BreakerStatus, Circuit, Subject};

/// How many breakers are kept before some are dropped.
const MAX_BREAKERS: usize = 10_000;

/// The breakers of all servers and tools, made when first needed. Clones share them.
#[derive(Debug, Clone)]
pub struct BreakerSet(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    tool: BreakerConfig,
    server: BreakerConfig,
    circuits: DashMap<Key, Arc<Circuit>, RandomState>,
    observer: Observer,
}

/// The settings are [`BreakerConfig::default`] for tools, and [`BreakerConfig::server`].
impl Default for BreakerSet {
    fn default() -> Self {
        Self::with(BreakerConfig::default(), BreakerConfig::server())
    }
}

impl BreakerSet {
    /// Makes an empty set; `tool` is for each tool of a server, `server` for each server.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first invalid setting.
    pub fn new(tool: BreakerConfig, server: BreakerConfig) -> Result<Self, InvalidConfig> {
        tool.validate()?;
        server.validate()?;
        Ok(Self::with(tool, server))
    }

    fn with(tool: BreakerConfig, server: BreakerConfig) -> Self {
        Self(Arc::new(Inner {
            tool,
            server,
            circuits: DashMap::default(),
            observer: Observer::default(),
        }))
    }

    /// Calls a function for each change of state of a breaker that all callers share. It runs on
    /// the path of the call that caused the change, so it must neither block nor be slow. Only the
    /// first function is called; returns `true` if this is it.
    pub fn on_change(&self, observer: impl Fn(BreakerChange) + Send + Sync + 'static) -> bool {
        self.0.observer.0.set(Box::new(observer)).is_ok()
    }

    /// Checks whether the breakers of the server and of the tool would admit this call now. Takes
    /// no probe's place, so another call may be faster.
    ///
    /// # Errors
    ///
    /// The state that excludes it.
    pub fn availability(&self, server: &ServerId, call: &ToolCall) -> Result<(), BreakerState> {
        let is_write = is_unsafe_write(call.plan());
        [Subject::Server, call.tool().name().into()]
            .into_iter()
            .filter_map(|subject| of_instance(call, |owner| self.find(server, &subject, owner)))
            .try_for_each(|circuit| circuit.availability(is_write))
    }

    /// Returns the breaker for a call, making it if need be.
    pub(crate) fn of_call(
        &self,
        server: &ServerId,
        subject: &Subject,
        call: &ToolCall,
    ) -> Arc<Circuit> {
        of_instance(call, |owner| Some(self.get(server, subject, owner)))
            .unwrap_or_else(|| self.get(server, subject, None))
    }

    /// Closes the breakers of a server: its connection is new, and the outcomes of the old one say
    /// nothing about it. Forced ones stay as they are.
    pub fn reset_server(&self, server: &ServerId) {
        self.reset_if(|key| key.server == *server);
    }

    /// Closes the breakers of a server's instances, one of which was restarted.
    pub fn reset_instances(&self, server: &ServerId) {
        self.reset_if(|key| key.server == *server && key.owner.is_some());
    }

    fn reset_if(&self, wanted: impl Fn(&Key) -> bool) {
        for (_, circuit) in self.all(wanted) {
            circuit.change("the connection is new", |state, _| state.close());
        }
    }

    /// Removes the breakers of servers that are not kept, forced ones too. Permits still settle
    /// with the breakers they came from.
    pub fn retain_servers(&self, keep: impl Fn(&ServerId) -> bool) {
        self.0.circuits.retain(|key, _| keep(&key.server));
    }

    /// Removes the breakers of an owner's instances, which have ended. Their counts are added to
    /// those of their servers and tools.
    pub fn forget_owner(&self, owner: Owner<'_>) {
        for (key, circuit) in self.all(|key| key.is_of(owner)) {
            self.0.circuits.remove(&key);
            if let Some(shared) = self.find(&key.server, &key.subject, None) {
                shared.absorb(&circuit.status());
            }
        }
    }

    /// Holds a breaker open until [`release`](Self::release)d, also through a reset of its server.
    /// A tool's name stands for its [`Subject`].
    pub fn force_open(&self, server: &ServerId, subject: impl Into<Subject>) {
        self.force(server, subject, Some(true), "an operator holds it open");
    }

    /// Holds a breaker closed until [`release`](Self::release)d: calls pass and nothing counts.
    pub fn force_closed(&self, server: &ServerId, subject: impl Into<Subject>) {
        self.force(server, subject, Some(false), "an operator holds it closed");
    }

    /// Ends a forced state: the breaker is closed and counts again.
    pub fn release(&self, server: &ServerId, subject: impl Into<Subject>) {
        self.force(server, subject, None, "an operator released it");
    }

    fn force(&self, server: &ServerId, subject: impl Into<Subject>, open: Option<bool>, why: &str) {
        let circuit = self.circuit(server, subject);
        circuit.change(why, |state, _| state.force(open));
    }

    /// Returns the state of each breaker, ordered by server: its own, then those of its tools.
    /// Breakers of instances are listed only if they hold or did something.
    #[must_use]
    pub fn snapshot(&self) -> Vec<BreakerStatus> {
        let mut all = self.all(|_| true);
        all.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let mut shown: Vec<_> = all.iter().map(|(_, circuit)| circuit.status()).collect();
        shown.retain(|status| status.instance.is_none() || !status.is_empty());
        shown
    }

    /// Returns the breaker of a server or of a tool, making it if need be.
    #[must_use]
    pub fn circuit(&self, server: &ServerId, subject: impl Into<Subject>) -> Arc<Circuit> {
        self.get(server, &subject.into(), None)
    }

    fn find(
        &self,
        server: &ServerId,
        subject: &Subject,
        owner: Option<Owner<'_>>,
    ) -> Option<Arc<Circuit>> {
        let found = self.0.circuits.get(&Key::new(server, subject, owner))?;
        Some(found.value().clone())
    }

    fn get(&self, server: &ServerId, subject: &Subject, owner: Option<Owner<'_>>) -> Arc<Circuit> {
        let key = Key::new(server, subject, owner);
        if let Some(known) = self.0.circuits.get(&key) {
            return known.value().clone();
        }
        let config = match key.subject {
            Subject::Server => self.0.server,
            Subject::Discovery => BreakerConfig::discovery(),
            Subject::Tool(_) => self.0.tool,
        };
        let made = Circuit::new(key.clone(), config, self.0.observer.clone());
        // the entry locks a part of the map: it must be gone before the map is pruned
        let entry = self.0.circuits.entry(key);
        let circuit = entry.or_insert_with(|| Arc::new(made)).clone();
        self.prune();
        circuit
    }

    /// Collects breakers, so that no part of the map is locked while they are used.
    fn all(&self, wanted: impl Fn(&Key) -> bool) -> Vec<(Key, Arc<Circuit>)> {
        let wanted = self.0.circuits.iter().filter(|entry| wanted(entry.key()));
        wanted
            .map(|entry| (entry.key().clone(), entry.value().clone()))
            .collect()
    }

    /// Removes breakers of tools and instances beyond the bound, down to three quarters of it:
    /// names of tools come from servers, which may send any number of them. Those that hold least
    /// go first; one that is in use or forced stays.
    #[cold]
    fn prune(&self) {
        let circuits = &self.0.circuits;
        if circuits.len() <= MAX_BREAKERS {
            return;
        }
        let is_bounded = |key: &Key| key.owner.is_some() || key.subject.tool().is_some();
        let mut ranked: Vec<_> = circuits
            .iter()
            .filter(|entry| is_bounded(entry.key()) && Arc::strong_count(entry.value()) == 1)
            .filter_map(|entry| Some((rank(&entry.value().status())?, entry.key().clone())))
            .collect();
        ranked.sort_unstable_by_key(|(rank, _)| *rank);
        let excess = circuits.len() - MAX_BREAKERS / 4 * 3;
        for (_, key) in ranked.into_iter().take(excess) {
            circuits.remove_if(&key, |_, circuit| Arc::strong_count(circuit) == 1);
        }
    }
}

/// Finds the breaker for the instance of a call; one that an operator forced holds for all.
fn of_instance(
    call: &ToolCall,
    find: impl Fn(Option<Owner<'_>>) -> Option<Arc<Circuit>>,
) -> Option<Arc<Circuit>> {
    let shared = find(None);
    let is_forced = |one: &Arc<Circuit>| one.state().is_forced();
    match call.owner() {
        Some(owner) if !shared.as_ref().is_some_and(is_forced) => find(Some(owner)),
        _ => shared,
    }
}

/// Returns how much is lost with a breaker; `None` if it must stay.
fn rank(status: &BreakerStatus) -> Option<(Option<Duration>, u32, u32)> {
    let calls = status.window.map_or(0, |window| window.calls);
    let stays = status.state.is_forced() || status.state == BreakerState::Disconnected;
    (!stays).then_some((status.time_to_probe, status.failures, calls))
}

#[cfg(test)]
mod tests {
    use callward_core::{
        Caller, Delivery, ErrorKind, Instances, Principal, SessionId, ToolError, ToolName,
    };

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn failures_of_one_owners_instance_open_nothing_for_another() {
        let breakers = BreakerSet::default();
        let server: ServerId = "s".parse().unwrap();
        let tool: ToolName = "t".parse().unwrap();
        let caller = |session: &str| {
            Caller::new(Principal::new("ada")).with_session(SessionId::new(session))
        };
        let (first, second) = (caller("1"), caller("2"));
        let [first, second] =
            [&first, &second].map(|caller| Instances::Session.owner(caller).unwrap());
        let fails = ToolError::new(ErrorKind::ConnectionLost, Delivery::Unknown, "gone");
        let shared = breakers.circuit(&server, &tool);
        for subject in [Subject::Server, (&tool).into()] {
            let circuit = breakers.get(&server, &subject, Some(first));
            while let Ok(permit) = circuit.admit() {
                permit.fail(&fails);
            }
            assert!(!circuit.is_available());
            assert!(breakers.get(&server, &subject, Some(second)).is_available());
        }
        let of_first = |status: &&BreakerStatus| status.instance.as_deref() == Some("ada/1");
        assert_eq!(breakers.snapshot().iter().filter(of_first).count(), 2);
        breakers.reset_instances(&server);
        let owned = breakers.get(&server, &Subject::from(&tool), Some(first));
        assert!(owned.is_available());
        drop(owned);
        breakers.forget_owner(first);
        assert_eq!(breakers.snapshot().iter().filter(of_first).count(), 0);
        assert_eq!(shared.status().opened, 1, "its counts are kept");
    }
}
