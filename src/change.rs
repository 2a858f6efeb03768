//! Changes the servers of a running stack.

use std::collections::HashSet;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use callward_cache::{ScopeRules, StateGroup};
use callward_core::{ReplicaSetId, ServerId, Weight};
use callward_registry::SetOptions;
use callward_router::{Draining, UnknownServer};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::builder::BuildError;
use crate::roster::{Known, Roster};
use crate::scan::Liveness;
use crate::scopes;
use crate::server::Server;
use crate::stack::{Inner, Stack};

/// Servers of a stack that are starting. Dropping it stops nothing.
#[derive(Debug)]
#[must_use]
pub struct Startup {
    stack: Stack,
    sets: HashSet<ReplicaSetId>,
    added: Vec<watch::Receiver<Liveness>>,
}

impl Startup {
    /// Waits until each server has listed its tools or failed to, at most for the
    /// [startup timeout](crate::StackBuilder::startup_timeout).
    pub async fn finished(self) {
        let all = async {
            for mut server in self.added {
                // one that is gone has no tools to wait for
                let _ = server.wait_for(|now| now.is_settled).await;
            }
        };
        let limit = self.stack.0.settings.startup_timeout;
        let limit = limit.unwrap_or(Duration::from_secs(30));
        if timeout(limit, all).await.is_err() {
            for server in self.stack.servers().iter().filter(|server| !server.up) {
                tracing::warn!(server = %server.id, "no tools listed yet; going on without them");
            }
        }
        scopes::warn_of_idle(&self.stack, &self.sets);
    }
}

impl Stack {
    /// Adds a server, and waits until it has listed its tools, failed to, or used up the startup
    /// timeout. It gets calls as soon as its tools are listed, and clients are notified of them;
    /// one that is down is tried again, as at the start.
    ///
    /// Its statements about the tools of an existing set apply to the whole set at once,
    /// as if the stack had been built so. Dropping the future once it was polled does not take the
    /// server out again.
    ///
    /// ```
    /// use serde_json::{Value, json};
    /// use callward::{Server, Stack, ToolSpec, Tools};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let clock = |id: &str| Tools::new(id)?.tool(
    ///     ToolSpec::new("get_time"),
    ///     |_: Value| async { Ok::<_, &str>("noon") },
    /// ).map_err(Box::<dyn std::error::Error>::from);
    /// let stack = Stack::builder().build().await?;
    /// for id in ["clock-1", "clock-2"] {
    ///     let server = Server::new(clock(id)?).in_set("clock".parse()?);
    ///     stack.add_server(server).await?;
    /// }
    /// // one is replaced: it ends what it has begun, and gets nothing new
    /// let leaving = stack.remove_server(&"clock-1".parse()?)?;
    /// leaving.finished().await;
    /// assert_eq!(stack.call("clock.get_time", json!({})).await?.to_text(), "noon");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`BuildError`] as for [`build`](crate::StackBuilder::build): a server with this id exists,
    /// it disagrees with its set, or its settings are invalid. [`BuildError::Running`] if it says
    /// something new of which state tools touch that may be called already. Nothing has changed
    /// then.
    pub async fn add_server(&self, server: impl Into<Server>) -> Result<(), BuildError> {
        self.start_servers(vec![server.into()])?.finished().await;
        Ok(())
    }

    /// Stops following the servers: nothing is listed any more, a lost connection is not noticed,
    /// and failed calls are not retried. For the end of a process, before it shuts its servers
    /// down, so that this is not reported as a failure of theirs. Calls go on as before. It cannot
    /// be undone.
    pub fn stop_discovery(&self) {
        self.0.roster.load().all().for_each(Known::stop);
        self.0.shared.retry.stop();
    }

    /// Ends what runs in the background, and waits for it: the tasks that follow servers, the last
    /// calls of servers that were [removed](Self::remove_server), and the audit log, which writes
    /// what is still queued.
    ///
    /// For the end of a process. Calls still pass, but none is retried, no server is listed again,
    /// a lost connection is not noticed, and the audit log takes no records. It cannot be undone.
    /// The servers themselves keep running: their owner shuts them down.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), callward::BuildError> {
    /// let stack = callward::Stack::builder().build().await?;
    /// stack.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn shutdown(&self) {
        self.stop_discovery();
        let mut tasks = mem::take(&mut *self.0.shared.tasks.lock());
        while tasks.join_next().await.is_some() {}
        #[cfg(feature = "audit")]
        if let Some(log) = self.audit() {
            log.close().await;
        }
    }

    /// Removes a server. It gets no new calls; calls in flight run to their end, and the returned
    /// value resolves then. Its tools are removed, except those that others of its set offer;
    /// clients are notified. Calls of a tool that is gone fail:
    /// [`ErrorKind::UnknownTool`](crate::ErrorKind::UnknownTool), or
    /// [`NoEligibleServer`](crate::ErrorKind::NoEligibleServer) where the call was made before.
    ///
    /// The last server of a set may be removed, too, and with it everything known of the set. What
    /// was read from the set is not answered from the cache any more, even if other servers stay.
    /// Breakers, also forced ones, limits and counts of the server are forgotten: one that is added
    /// under the same id starts afresh. Its connection is closed when its last call has ended.
    ///
    /// # Errors
    ///
    /// [`UnknownServer`] if there is no server of this id.
    pub fn remove_server(&self, server: &ServerId) -> Result<Draining, UnknownServer> {
        let inner = &self.0;
        let _one_at_a_time = inner.changing.lock();
        let leaving = inner.router.pool().remove_server(server)?;
        let roster = inner.roster.load_full();
        // the pool and the roster have the same servers
        if let Some((gone, rest)) = roster.without(server) {
            gone.leave();
            let rest = Arc::new(rest);
            inner.roster.store(rest.clone());
            inner.forget(&gone, &rest);
            inner.sweep(&rest);
            self.see_off(gone, leaving.clone());
        }
        Ok(leaving)
    }

    /// Sets a server's weight for all later choices, including those of running calls.
    ///
    /// # Errors
    ///
    /// [`UnknownServer`] if there is no server of this id.
    pub fn reweigh(&self, server: &ServerId, weight: Weight) -> Result<(), UnknownServer> {
        let _one_at_a_time = self.0.changing.lock();
        self.0.router.pool().reweigh(server, weight)?;
        if let Some(known) = self.0.roster.load().find(server) {
            *known.weight.lock() = weight;
        }
        Ok(())
    }

    /// Gives a server no new calls: none begins there once this has returned. Those it has run to
    /// their end, and the returned value resolves then. The server is still followed, and its tools
    /// stay in the catalogue; calls that no other server can take fail with
    /// [`NoEligibleServer`](crate::ErrorKind::NoEligibleServer).
    ///
    /// # Errors
    ///
    /// [`UnknownServer`] if there is no server of this id.
    pub fn drain(&self, server: &ServerId) -> Result<Draining, UnknownServer> {
        let _one_at_a_time = self.0.changing.lock();
        self.0.router.pool().drain(server)
    }

    /// Gives a drained server calls again.
    ///
    /// # Errors
    ///
    /// [`UnknownServer`] if there is no server of this id.
    pub fn undrain(&self, server: &ServerId) -> Result<(), UnknownServer> {
        let _one_at_a_time = self.0.changing.lock();
        self.0.router.pool().undrain(server)
    }

    /// Adds all of these servers, or none.
    pub(crate) fn start_servers(&self, servers: Vec<Server>) -> Result<Startup, BuildError> {
        let inner = &*self.0;
        let _one_at_a_time = inner.changing.lock();
        let roster = inner.roster.load_full();
        let mut ids: HashSet<&ServerId> = roster.all().map(Known::id).collect();
        if let Some(twice) = servers.iter().map(Server::id).find(|id| !ids.insert(id)) {
            return Err(BuildError::DuplicateServer(twice.clone()));
        }
        let sets: HashSet<_> = servers.iter().map(|one| one.set.clone()).collect();
        let of_sets = roster.specs().filter(|spec| sets.contains(&spec.set));
        let mut options = inner.settings.set_options(of_sets.chain(&servers))?;
        let rules = inner.rules_with(&roster, &servers, &sets)?;
        let admit = |server| inner.settings.admit(server, &inner.shared);
        let admitted = servers
            .into_iter()
            .map(admit)
            .collect::<Result<Vec<_>, _>>();
        // of those before it breakers were made
        let admitted = admitted.inspect_err(|_| inner.sweep(&roster))?;

        if let Some(rules) = rules {
            inner.shared.cache.set_scope_rules(rules);
        }
        // the first one chooses its names first
        for (_, known, _) in &admitted {
            if let Some(options) = options.remove(&known.spec.set) {
                inner.change_options(&known.spec.set, options);
            }
        }
        let mut followed = Vec::with_capacity(admitted.len());
        for (member, known, follower) in admitted {
            let set = &known.spec.set;
            inner.shared.registry.expect(set, known.id());
            inner.router.pool().add_all(set.clone(), [member]);
            followed.push((known, follower));
        }
        let added = followed.iter().map(|(known, _)| known.liveness.subscribe());
        let (added, stack) = (added.collect(), self.clone());
        let startup = Startup { stack, sets, added };
        let follow = followed.into_iter().map(|(mut known, follower)| {
            known.scan = Some(inner.shared.spawn(follower, &inner.runtime));
            known
        });
        inner.roster.store(Arc::new(roster.with(follow)));
        Ok(startup)
    }

    /// Keeps a server that was removed until its last call has ended, then forgets what that call
    /// may have left behind.
    fn see_off(&self, gone: Arc<Known>, leaving: Draining) {
        if leaving.in_flight() == 0 {
            return;
        }
        let inner = Arc::downgrade(&self.0);
        let forget = async move {
            leaving.finished().await;
            drop(gone);
            if let Some(inner) = inner.upgrade() {
                let _one_at_a_time = inner.changing.lock();
                inner.sweep(&inner.roster.load());
            }
        };
        self.0.shared.spawn(forget, &self.0.runtime);
    }
}

impl Inner {
    /// Has the tools of a set read by these options.
    fn change_options(&self, set: &ReplicaSetId, options: SetOptions) {
        let changes = self.shared.registry.change_options(set, options);
        self.shared.follow_hints(set, &changes);
    }

    /// Returns the scopes of tools with these servers added, if they differ from the current ones.
    /// A rule that is new or changed holds only for tools that are not called yet: a write on its
    /// way touches what was said when it began, and a read by the new rule would miss it.
    fn rules_with(
        &self,
        roster: &Roster,
        servers: &[Server],
        sets: &HashSet<ReplicaSetId>,
    ) -> Result<Option<ScopeRules>, BuildError> {
        let says_nothing =
            |server: &Server| server.scopes.is_empty() && server.state == StateGroup::Shared;
        if servers.iter().all(says_nothing) {
            return Ok(None);
        }
        let now = self.shared.cache.scope_rules();
        let catalogue = self.shared.registry.catalogue();
        let mut next = self.settings.scope_rules(roster.specs().chain(servers))?;
        for (set, tool, said) in now.iter().filter(|(set, ..)| !sets.contains(*set)) {
            next = next.with(set.clone(), tool.clone(), said.clone());
        }
        for (set, state) in now.states().filter(|(set, _)| !sets.contains(*set)) {
            next = next.with_state(set.clone(), state.clone());
        }
        for (set, tool, said) in next.iter() {
            let may_be_called = || {
                let is_offered = catalogue.find_any(&format!("{set}.{tool}")).is_some();
                is_offered || self.shared.cache.is_written(set)
            };
            if now.of(set, tool) != Some(said) && may_be_called() {
                let (set, what) = (set.clone(), "which state a tool reads and writes");
                return Err(BuildError::Running { set, what });
            }
        }
        Ok((next != now).then_some(next))
    }

    /// Removes a server's tools, the settings that only it stated, and the cached results of its
    /// set: the other servers may not have its writes.
    fn forget(&self, gone: &Known, rest: &Roster) {
        let (shared, set) = (&self.shared, &gone.spec.set);
        let specs = || rest.specs().filter(|spec| spec.set == *set);
        let changes = match specs().next() {
            Some(_) => shared.registry.remove(set, gone.id()),
            None => shared.registry.forget(set),
        };
        shared.follow(set, &changes);
        // a set that agreed with one more server agrees without it
        for (set, options) in self.settings.set_options(specs()).unwrap_or_default() {
            self.change_options(&set, options);
        }
        shared.cache.purge_set(set);
        if !gone.spec.scopes.is_empty() || gone.spec.state != StateGroup::Shared {
            self.forget_rules(rest);
        }
    }

    /// Removes scopes of tools that no server states any more. A changed statement waits: only the
    /// absence of scopes is right at any time, since it stands for everything.
    fn forget_rules(&self, rest: &Roster) {
        let Ok(next) = self.settings.scope_rules(rest.specs()) else {
            return;
        };
        let cache = &self.shared.cache;
        let mut rules = ScopeRules::default();
        for (set, tool, said) in cache.scope_rules().iter() {
            if next.of(set, tool).is_some() {
                rules = rules.with(set.clone(), tool.clone(), said.clone());
            }
        }
        for (set, state) in next.states() {
            rules = rules.with_state(set.clone(), state.clone());
        }
        cache.set_scope_rules(rules);
    }

    /// Removes state that belongs to no server. Running calls may create some of it again, until
    /// the next sweep.
    fn sweep(&self, roster: &Roster) {
        let servers: HashSet<&ServerId> = roster.all().map(Known::id).collect();
        let sets: HashSet<&ReplicaSetId> = roster.specs().map(|spec| &spec.set).collect();
        let (shared, keep) = (&self.shared, |set: &_| sets.contains(set));
        shared
            .breakers
            .retain_servers(|server| servers.contains(server));
        shared.retry.retain_sets(keep);
        self.rates.retain_sets(keep);
        shared.cache.retain_sets(keep);
    }
}
