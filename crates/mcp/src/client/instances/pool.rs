//! The instances themselves: started, watched and ended as the table says.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use callward_core::{
    Caller, Delivery, ErrorKind, InstanceStatus, Owner, ServerEvent, ToolCall, ToolError,
    ToolOutput,
};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::DropGuard;

use super::entry::{Entry, Place, Ran};
use super::repeats::Repeats;
use super::table::{Refused, Table};
use crate::client::builder::{EraChoice, Options};
use crate::client::handle::Upstream;
use crate::client::pipe::memory;
use crate::client::shared::{Events, Shared, UpstreamStatus};
use crate::client::target::Target;

/// The instances of one server.
pub(in crate::client) struct Pool {
    target: Target,
    table: Mutex<Table<Handle>>,
    /// The lead's state. It tells what happens to the others.
    lead: Arc<Shared>,
    /// Notified whenever an instance has ended.
    ended: Notify,
    is_swept: AtomicBool,
    is_shared: AtomicBool,
    looks_stateful: AtomicBool,
    repeats: Mutex<Repeats>,
}

/// Keeps an instance open.
#[derive(Clone)]
pub(in crate::client) struct Handle {
    /// Where calls go; nothing is the lead.
    upstream: Option<Upstream>,
    /// Closes the lead's connection with the last clone.
    _lead: Option<Arc<DropGuard>>,
}

/// A call in flight at an instance, until this is dropped.
pub(in crate::client) struct Lease {
    pool: Arc<Pool>,
    number: u64,
    handle: Handle,
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
    pub(in crate::client) fn new(lead: Arc<Shared>, target: Target) -> Arc<Self> {
        let open = Handle::lead(&lead);
        let table = Table::new(lead.options.instances, open, Instant::now());
        Arc::new(Self {
            target,
            table: Mutex::new(table),
            lead,
            ended: Notify::new(),
            is_swept: AtomicBool::new(false),
            is_shared: AtomicBool::new(false),
            looks_stateful: AtomicBool::new(false),
            repeats: Mutex::default(),
        })
    }

    /// Takes note of each start and end of the lead.
    pub(in crate::client) fn watch_lead(self: &Arc<Self>) {
        let mut status = self.lead.status();
        let pool = Arc::downgrade(self);
        tokio::spawn(async move {
            while status.changed().await.is_ok() {
                let now = status.borrow_and_update().clone();
                let Some(pool) = pool.upgrade() else {
                    return;
                };
                match now {
                    UpstreamStatus::Up => pool.table.lock().lead_started(Instant::now()),
                    UpstreamStatus::Idle => pool.lead_ended(),
                    UpstreamStatus::Closed => return,
                    UpstreamStatus::Connecting | UpstreamStatus::Down(_) => {}
                }
            }
        });
    }

    fn lead_ended(self: &Arc<Self>) {
        let start = |number, is_lead| self.start(number, is_lead);
        self.table.lock().lead_ended(Instant::now(), start);
        self.ended.notify_waiters();
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
        self.let_others_end(owner).await;
        let ran = match self.looks_stateful.load(Ordering::Relaxed) {
            true => Ran::Writes,
            false => Ran::of(call),
        };
        let entered = self
            .when_one_ends(self.patience(), || self.enter(owner, ran))
            .await;
        entered.map_err(|refused| match refused {
            Refused::Full | Refused::UntilOneEnds => self.full(),
            Refused::Closed => closed(),
        })
    }

    /// Lets the instances end that are ending when an owner comes that has none yet, up to the
    /// shutdown grace: a client that restarts its server waits for the old one, which may hold a
    /// lock.
    async fn let_others_end(&self, owner: Owner<'_>) {
        let ending = self.table.lock().ending_before(owner);
        if ending.is_empty() {
            return;
        }
        // one that takes longer is not waited for
        let grace = self.lead.options.shutdown_grace;
        self.until(grace, |table| !table.has_any_of(&ending)).await;
    }

    /// Opens the lead for a request that belongs to no owner. It stays open while the handle
    /// exists.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ConnectFailed`], not sent, after a shutdown, or if the lead has not ended in
    /// time.
    pub(in crate::client) async fn open_lead(&self) -> Result<Handle, ToolError> {
        self.try_open_lead(false).await
    }

    /// Opens the lead for a call that all callers share: no owner may get it from now on.
    ///
    /// # Errors
    ///
    /// As [`open_lead`](Self::open_lead).
    pub(in crate::client) async fn share_lead(&self) -> Result<(), ToolError> {
        if !self.is_shared.load(Ordering::Relaxed) {
            self.try_open_lead(true).await?;
            self.is_shared.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Returns the lead if it is open.
    pub(in crate::client) fn opened_lead(&self) -> Option<Handle> {
        self.table.lock().opened_lead()
    }

    async fn try_open_lead(&self, share: bool) -> Result<Handle, ToolError> {
        // what is listed is fresh, so no change has to be announced
        let start = |_, _| Handle::lead(&self.lead);
        let open = || self.table.lock().open_lead(share, Instant::now(), start);
        self.when_one_ends(self.patience(), open)
            .await
            .map_err(|_| closed())
    }

    /// How long a call waits until an instance ends.
    fn patience(&self) -> Duration {
        self.lead.options.connect_timeout
    }

    /// Tries again when an instance ends.
    async fn when_one_ends<T>(
        &self,
        patience: Duration,
        mut attempt: impl FnMut() -> Result<T, Refused>,
    ) -> Result<T, Refused> {
        let mut patience = std::pin::pin!(sleep(patience));
        loop {
            let mut ended = std::pin::pin!(self.ended.notified());
            // from here on no end is missed
            ended.as_mut().enable();
            match attempt() {
                Err(Refused::UntilOneEnds) => tokio::select! {
                    () = ended => {}
                    () = &mut patience => return Err(Refused::UntilOneEnds),
                },
                other => return other,
            }
        }
    }

    /// Takes whether the server's tools look as if it kept state between reads: no instance counts
    /// as clean then. What calls showed stays.
    pub(in crate::client) fn set_looks_stateful(&self, looks_so: bool) {
        self.looks_stateful.fetch_or(looks_so, Ordering::Relaxed);
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
            upstream.stop();
        }
        self.until(Duration::MAX, Table::is_empty).await;
    }

    /// Waits until enough instances have ended.
    async fn until(&self, patience: Duration, is_enough: impl Fn(&Table<Handle>) -> bool) {
        let attempt = || match is_enough(&self.table.lock()) {
            true => Ok(()),
            false => Err(Refused::UntilOneEnds),
        };
        let _ = self.when_one_ends(patience, attempt).await;
    }

    pub(in crate::client) fn statuses(&self) -> Vec<InstanceStatus> {
        let now = Instant::now();
        let mut found: Vec<(InstanceStatus, Option<u32>)> = {
            let table = self.table.lock();
            table.entries().map(|one| self.status(one, now)).collect()
        };
        for (status, process) in &mut found {
            status.memory = process.and_then(memory::of_tree);
        }
        found.into_iter().map(|(status, _)| status).collect()
    }

    fn status(&self, entry: &Entry<Handle>, now: Instant) -> (InstanceStatus, Option<u32>) {
        let shared = match &entry.place {
            Place::Open(Handle { upstream, .. }) => {
                Some(upstream.as_ref().map_or(&self.lead, Upstream::shared))
            }
            Place::Ending => None,
        };
        let state = match shared.map(|shared| shared.current_status()) {
            None => "ending",
            Some(UpstreamStatus::Connecting) => "starting",
            Some(UpstreamStatus::Down(_) | UpstreamStatus::Closed) => "down",
            Some(_) if entry.is_lead && entry.owner.is_none() => "listing",
            Some(_) if entry.principal.is_none() => "spare",
            Some(_) => "up",
        };
        let age = now.saturating_duration_since(entry.since);
        let mut status = InstanceStatus::new(state, age);
        status.principal.clone_from(&entry.principal);
        status.session = entry.owner.as_ref().and_then(|key| key.session.clone());
        status.startup = entry.startup;
        status.calls = entry.calls;
        status.in_flight = entry.in_flight;
        (status, shared.and_then(|shared| shared.process()))
    }

    fn enter(self: &Arc<Self>, owner: Owner<'_>, ran: Ran) -> Result<Lease, Refused> {
        let start = |number, is_lead| self.start(number, is_lead);
        let (now, lead_is_down) = (Instant::now(), self.lead.is_down());
        let entered = self
            .table
            .lock()
            .enter(owner, ran, now, lead_is_down, start);
        let (number, handle) = entered?;
        self.sweep_from_now_on();
        Ok(Lease {
            pool: self.clone(),
            number,
            handle,
        })
    }

    fn start(self: &Arc<Self>, number: u64, is_lead: bool) -> Handle {
        if is_lead {
            // started again, it may list other tools
            self.lead.tools_changed();
            return Handle::lead(&self.lead);
        }
        let mut options: Options = self.lead.options.clone();
        if self.lead.info().is_some_and(|info| info.opens_sessions) {
            // what belongs to one owner is kept in a session, whichever revision the lead speaks
            options.era = EraChoice::Legacy;
        }
        let shared = Shared::new(self.lead.id.clone(), options);
        let events = shared.subscribe();
        let upstream = Upstream::start_one(shared, self.target.clone());
        tokio::spawn(follow(Arc::downgrade(self), number, events));
        Handle {
            upstream: Some(upstream),
            _lead: None,
        }
    }

    /// Ends instances when they are idle, beginning with the first one that an owner has.
    fn sweep_from_now_on(self: &Arc<Self>) {
        if self.is_swept.load(Ordering::Relaxed) || self.is_swept.swap(true, Ordering::AcqRel) {
            return;
        }
        let pool = Arc::downgrade(self);
        let idle = self.lead.options.instances.idle;
        tokio::spawn(async move {
            loop {
                let now = Instant::now();
                let Some(next) = pool.upgrade().map(|pool| pool.sweep(now)) else {
                    return;
                };
                // what is used or started after this is idle later
                match next.or_else(|| now.checked_add(idle)) {
                    Some(next) => sleep_until(next).await,
                    None => return,
                }
            }
        });
    }

    fn sweep(&self, now: Instant) -> Option<Instant> {
        let swept = self.table.lock().sweep(now, self.lead.is_down());
        if swept.lost {
            self.lead.stale();
        }
        swept.next
    }

    fn full(&self) -> ToolError {
        let max = self.lead.options.instances.max;
        let message = format!(
            "server `{}` has {max} instances, as many as `max_instances` allows, and each belongs to \
             another session or principal: raise it, end sessions that are not needed, or wait until \
             one is idle",
            self.lead.id
        );
        ToolError::new(ErrorKind::Overloaded, Delivery::NotSent, message)
    }
}

impl Lease {
    /// Returns where the call goes; nothing is the lead.
    pub(in crate::client) const fn upstream(&self) -> Option<&Upstream> {
        self.handle.upstream.as_ref()
    }

    /// Takes the answer of a call. An instance is not clean, and no other of the server is from now
    /// on, if an equal read of it had another answer: the server keeps state between reads, or what
    /// it reads changes, and the two cannot be distinguished.
    pub(in crate::client) fn answered(&self, call: &ToolCall, output: &ToolOutput) {
        let pool = &self.pool;
        if call.plan().is_write() || pool.looks_stateful.load(Ordering::Relaxed) {
            return;
        }
        if pool.repeats.lock().differ(self.number, call, output) {
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
        } else if was_up {
            pool.lead.stale();
        }
    }
    if let Some(pool) = pool.upgrade() {
        pool.table.lock().ended(number);
        pool.ended.notify_waiters();
    }
}
