//! The instances themselves: started, watched and ended as the table says.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once, Weak};

use callward_core::{
    Caller, ClientCapabilities, Delivery, ErrorKind, InstanceStatus, Owner, ServerEvent, ToolCall,
    ToolError, ToolOutput,
};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::DropGuard;

use super::entry::{Entry, Key, Ran, key};
use super::repeats::Repeats;
use super::table::{Lead, Refused, Table};
use crate::client::handle::Upstream;
use crate::client::options::EraChoice;
use crate::client::shared::{Events, Shared, UpstreamStatus};
use crate::client::target::Target;
use crate::processes::memory_of;

/// The instances of one server.
pub(in crate::client) struct Pool {
    target: Target,
    table: Mutex<Table<Handle>>,
    /// The lead's state. It tells what happens to the others.
    lead: Arc<Shared>,
    /// Notified whenever an instance has ended.
    ended: Notify,
    sweeper: Once,
    looks_stateful: AtomicBool,
    repeats: Mutex<Repeats>,
}

/// Keeps an instance open.
#[derive(Clone)]
pub(in crate::client) struct Handle {
    /// Where calls go; nothing is the lead.
    pub(in crate::client) upstream: Option<Upstream>,
    /// Closes the lead's connection with the last clone.
    _lead: Option<Arc<DropGuard>>,
}

/// A call in flight at an instance, until this is dropped.
pub(in crate::client) struct Lease {
    pool: Arc<Pool>,
    number: u64,
    pub(in crate::client) handle: Handle,
}

impl Handle {
    fn lead(lead: &Shared) -> Self {
        Self {
            upstream: None,
            _lead: Some(Arc::new(lead.open())),
        }
    }
}

impl Pool {
    /// Opens the lead, and takes note of each start and end of it.
    pub(in crate::client) fn new(lead: Arc<Shared>, target: Target) -> Arc<Self> {
        let open = Handle::lead(&lead);
        let pool = Arc::new(Self {
            target,
            table: Mutex::new(Table::new(&lead.options, open, Instant::now())),
            lead: lead.clone(),
            ended: Notify::new(),
            sweeper: Once::new(),
            looks_stateful: AtomicBool::new(false),
            repeats: Mutex::default(),
        });
        let weak = Arc::downgrade(&pool);
        tokio::spawn(async move {
            let note = || weak.upgrade().is_some_and(|pool| pool.note_lead());
            lead.each_change(note).await;
        });
        pool
    }

    /// Takes note of the lead's state. Returns `false` at its end.
    fn note_lead(self: &Arc<Self>) -> bool {
        let start = |number, is_lead, declares| self.start(number, is_lead, declares);
        let mut table = self.table.lock();
        // read with the table locked: a lead that is started is not idle from then on
        match self.lead.status() {
            UpstreamStatus::Up => table.lead_started(Instant::now()),
            UpstreamStatus::Idle => {
                table.lead_ended(Instant::now(), start);
                self.ended.notify_waiters();
            }
            UpstreamStatus::Closed => return false,
            UpstreamStatus::Connecting | UpstreamStatus::Down(_) => {}
        }
        true
    }

    /// Returns `true` if the owner has an instance.
    pub(in crate::client) fn has(&self, owner: Owner<'_>, call: &ToolCall) -> bool {
        self.table.lock().has(&key(owner, call.capabilities))
    }

    /// Finds the instance of a call's owner, starting one if it has none. It may not be connected
    /// yet.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Overloaded`], not sent, if there are as many as there may be and all are
    /// needed; [`ErrorKind::ConnectFailed`], not sent, after a shutdown.
    pub(in crate::client) async fn lease(
        self: &Arc<Self>,
        owner: Owner<'_>,
        call: &ToolCall,
    ) -> Result<Lease, ToolError> {
        let owner = key(owner, call.capabilities);
        self.let_others_end(&owner).await;
        let ran = match self.looks_stateful.load(Ordering::Relaxed) {
            true => Ran::Writes,
            false => Ran::of(call),
        };
        let entered = self.when_one_ends(|| self.enter(&owner, ran)).await;
        entered.map_err(|refused| match refused {
            Refused::Full | Refused::UntilOneEnds => {
                let max = self.lead.options.max_instances.max(1);
                let message = format!(
                    "server `{}` has {max} instances, as many as `max_instances` allows, and each \
                     belongs to another session or principal: raise it, end sessions that are not \
                     needed, or wait until one is idle",
                    self.lead.id
                );
                ToolError::new(ErrorKind::Overloaded, Delivery::NotSent, message)
            }
            Refused::Closed => closed(),
        })
    }

    /// Lets the instances end that are ending when an owner comes that has none yet, up to the
    /// shutdown grace: a client that restarts its server waits for the old one, which may hold a
    /// lock.
    async fn let_others_end(&self, owner: &Key) {
        if self.table.lock().has_ending_before(owner) {
            let grace = self.lead.options.shutdown_grace;
            let have_ended = self.until(|table| !table.has_ending_before(owner));
            // one that takes longer is not waited for
            let _ = tokio::time::timeout(grace, have_ended).await;
        }
    }

    /// Opens the lead for a request that belongs to no owner. It stays open while the handle
    /// exists. With `share` all callers share it, and no owner may get it from now on.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ConnectFailed`], not sent, after a shutdown, or if the lead has not ended in
    /// time.
    pub(in crate::client) async fn open_lead(&self, share: bool) -> Result<Handle, ToolError> {
        // what is listed is fresh, so no change has to be announced
        let start = |_, _, _| Handle::lead(&self.lead);
        if share {
            self.lead.disown();
        }
        let open = || self.table.lock().open_lead(share, Instant::now(), start);
        self.when_one_ends(open).await.map_err(|_| closed())
    }

    /// Keeps the lead open from now on, or no longer.
    pub(in crate::client) fn keep_lead(self: &Arc<Self>, keeps: bool) {
        let start = |number, is_lead, declares| self.start(number, is_lead, declares);
        self.table.lock().keep_lead(keeps, Instant::now(), start);
        self.sweep_from_now_on();
    }

    /// Returns the lead if it is open.
    pub(in crate::client) fn opened_lead(&self) -> Option<Handle> {
        self.table.lock().opened_lead()
    }

    /// Tries again when an instance ends, for as long as a call waits for one that is starting.
    async fn when_one_ends<T>(
        &self,
        mut attempt: impl FnMut() -> Result<T, Refused>,
    ) -> Result<T, Refused> {
        match attempt() {
            Err(Refused::UntilOneEnds) => {
                let patience = self.lead.options.connect_timeout;
                let waiting = tokio::time::timeout(patience, self.retried(attempt));
                waiting.await.unwrap_or(Err(Refused::UntilOneEnds))
            }
            other => other,
        }
    }

    async fn retried<T>(
        &self,
        mut attempt: impl FnMut() -> Result<T, Refused>,
    ) -> Result<T, Refused> {
        loop {
            let mut ended = pin!(self.ended.notified());
            // from here on no end is missed
            ended.as_mut().enable();
            match attempt() {
                Err(Refused::UntilOneEnds) => ended.await,
                other => return other,
            }
        }
    }

    /// Takes whether the server's tools look as if it kept state between reads: no instance counts
    /// as clean then. What calls showed stays.
    pub(in crate::client) fn set_looks_stateful(&self, looks_so: bool) {
        self.looks_stateful.fetch_or(looks_so, Ordering::Relaxed);
    }

    /// Returns the instances of a caller whose clients announce changes of their folders.
    pub(in crate::client) fn of_session(&self, caller: &Caller) -> Vec<Handle> {
        let table = self.table.lock();
        let is_theirs = |entry: &&Entry<Handle>| {
            entry.owner.as_ref().is_some_and(|owner| {
                let is_owner = owner.principal == caller.principal
                    && (owner.session.is_none() || owner.session == caller.session);
                is_owner && owner.declares.announces_roots()
            })
        };
        let theirs = table.entries().filter(is_theirs);
        theirs.filter_map(|entry| entry.handle.clone()).collect()
    }

    /// Returns the instances other than the lead.
    pub(in crate::client) fn upstreams(&self) -> Vec<Upstream> {
        let table = self.table.lock();
        let handles = table.entries().filter_map(|entry| entry.handle.as_ref());
        handles
            .filter_map(|handle| handle.upstream.clone())
            .collect()
    }

    pub(in crate::client) fn session_ended(&self, caller: &Caller) {
        if let Some(session) = &caller.session {
            let mut table = self.table.lock();
            table.session_ended(&caller.principal, session, Instant::now());
        }
    }

    /// Returns `true` if the lead serves some owner, so that its loss is that owner's.
    pub(in crate::client) fn lead_is_owned(&self) -> bool {
        self.table.lock().lead_is_owned()
    }

    /// Ends all instances but the lead, and waits until they have ended.
    pub(in crate::client) async fn shutdown(&self) {
        let open = self.table.lock().close();
        for upstream in open.iter().filter_map(|handle| handle.upstream.as_ref()) {
            upstream.shared().stop.cancel();
        }
        self.until(Table::is_empty).await;
    }

    /// Waits until enough instances have ended.
    async fn until(&self, is_enough: impl Fn(&Table<Handle>) -> bool) {
        let attempt = || match is_enough(&self.table.lock()) {
            true => Ok(()),
            false => Err(Refused::UntilOneEnds),
        };
        let _ = self.retried(attempt).await;
    }

    pub(in crate::client) fn statuses(&self) -> Vec<InstanceStatus> {
        let now = Instant::now();
        let (mut statuses, processes): (Vec<_>, Vec<_>) = {
            let table = self.table.lock();
            table.entries().map(|one| self.status(one, now)).unzip()
        };
        for (status, memory) in statuses.iter_mut().zip(memory_of(&processes)) {
            status.memory = memory;
        }
        statuses
    }

    fn status(&self, entry: &Entry<Handle>, now: Instant) -> (InstanceStatus, Option<u32>) {
        let handle = entry.handle.as_ref();
        let shared = handle.map(|handle| match &handle.upstream {
            Some(upstream) => upstream.shared(),
            None => &self.lead,
        });
        let state = match shared.map(|shared| shared.status()) {
            None => "ending",
            Some(UpstreamStatus::Connecting) => "starting",
            Some(UpstreamStatus::Down(_) | UpstreamStatus::Closed) => "down",
            Some(_) if entry.is_lead && entry.owner.is_none() => "listing",
            Some(_) if entry.principal.is_none() => "spare",
            Some(_) => "up",
        };
        let mut status = InstanceStatus::default();
        status.state = state;
        let since = shared.and_then(|shared| shared.since());
        status.age = now.saturating_duration_since(since.unwrap_or(entry.since));
        status.principal.clone_from(&entry.principal);
        status.session = entry.owner.as_ref().and_then(|owner| owner.session.clone());
        status.startup = entry.startup;
        status.calls = entry.calls;
        status.in_flight = entry.in_flight;
        (status, shared.and_then(|shared| *shared.process.lock()))
    }

    fn enter(self: &Arc<Self>, owner: &Key, ran: Ran) -> Result<Lease, Refused> {
        let start = |number, is_lead, declares| self.start(number, is_lead, declares);
        let lead = Lead {
            is_down: self.lead.status().is_down(),
            declares: self.lead.declares(),
        };
        let entered = self
            .table
            .lock()
            .enter(owner.clone(), ran, Instant::now(), lead, start);
        let (number, handle) = entered?;
        self.sweep_from_now_on();
        Ok(Lease {
            pool: self.clone(),
            number,
            handle,
        })
    }

    fn start(
        self: &Arc<Self>,
        number: u64,
        is_lead: bool,
        declares: Option<ClientCapabilities>,
    ) -> Handle {
        if is_lead {
            self.lead.disown();
            if let Some(declares) = declares {
                self.lead.declare(declares);
            }
            // started again, it may list other tools
            self.lead.lists_changed();
            return Handle::lead(&self.lead);
        }
        let mut options = self.lead.options.clone();
        if self.lead.info().is_some_and(|info| info.opens_sessions) {
            // what belongs to one owner is kept in a session, whichever revision the lead speaks
            options.era = EraChoice::Legacy;
        }
        let shared = Shared::new(self.lead.id.clone(), options, Some(&self.lead));
        shared.declare(declares.unwrap_or_default());
        let events = shared.subscribe();
        let upstream = Upstream::connect(shared, self.target.clone(), None);
        tokio::spawn(follow(Arc::downgrade(self), number, events));
        Handle {
            upstream: Some(upstream),
            _lead: None,
        }
    }

    /// Ends instances when they are idle, beginning with the first one that an owner has.
    fn sweep_from_now_on(self: &Arc<Self>) {
        let pool = Arc::downgrade(self);
        self.sweeper.call_once(|| {
            tokio::spawn(async move {
                while let Some(next) = pool.upgrade().and_then(|pool| pool.sweep()) {
                    sleep_until(next).await;
                }
            });
        });
    }

    /// Returns when to do it again: what is used or started from now on is idle later.
    fn sweep(&self) -> Option<Instant> {
        let now = Instant::now();
        let (is_lost, next) = self.table.lock().sweep(now, self.lead.status().is_down());
        if is_lost {
            self.lead.stale();
        }
        next.or_else(|| now.checked_add(self.lead.options.idle))
    }
}

impl Lease {
    /// Takes the answer of a call. An instance is not clean, and no other of the server is from now
    /// on, if an equal read of it had another answer: the server keeps state between reads, or what
    /// it reads changes, and the two cannot be distinguished.
    pub(in crate::client) async fn answered(&self, call: &ToolCall, output: &ToolOutput) {
        let pool = &self.pool;
        if call.plan().is_write() || pool.looks_stateful.load(Ordering::Relaxed) {
            return;
        }
        let (bytes, output) = (output.body().len(), output.clone());
        let long = &pool.lead.long_messages;
        let digest = long.read(bytes, move || output.answer_digest()).await;
        if digest.is_some_and(|digest| pool.repeats.lock().differ(self.number, call, digest)) {
            pool.looks_stateful.store(true, Ordering::Relaxed);
            pool.table.lock().taint();
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut table = self.pool.table.lock();
        table.leave(self.number, Instant::now());
    }
}

fn closed() -> ToolError {
    let text = "the server was shut down";
    ToolError::new(ErrorKind::ConnectFailed, Delivery::NotSent, text)
}

/// Follows one instance to its end. A loss, and changed tools, may concern what its owner has read.
async fn follow(pool: Weak<Pool>, number: u64, mut events: Events) {
    let mut was_up = false;
    while let Some(event) = events.next().await {
        let Some(pool) = pool.upgrade() else {
            return;
        };
        if event == ServerEvent::Up && !was_up {
            was_up = true;
            pool.table.lock().started(number, Instant::now());
        } else if let ServerEvent::ResourceUpdated(uri) = event {
            pool.lead.resource_updated(&uri.unwrap_or_default());
        } else if was_up {
            pool.lead.stale();
            if !matches!(event, ServerEvent::Down(_)) {
                // its server may have been replaced, and offer other tools
                pool.lead.lists_changed();
            }
        }
    }
    if let Some(pool) = pool.upgrade() {
        pool.table.lock().ended(number);
        pool.ended.notify_waiters();
    }
}
