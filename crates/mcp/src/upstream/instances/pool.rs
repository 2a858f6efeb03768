//! The instances themselves: started, watched and ended as the table says.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};
use tollgate_core::{
    Caller, Delivery, ErrorKind, InstanceStatus, Owner, ServerEvent, ToolCall, ToolError,
    ToolOutput,
};

use super::entry::{Entry, Place};
use super::repeats::Repeats;
use super::table::{LEAD, Refused, Table};
use crate::upstream::builder::Options;
use crate::upstream::handle::Upstream;
use crate::upstream::pipe::memory;
use crate::upstream::shared::{Events, Shared, UpstreamStatus};
use crate::upstream::target::Target;

/// The instances of one server.
pub(in crate::upstream) struct Pool {
    target: Target,
    table: Mutex<Table<Upstream>>,
    /// The lead's state. It tells what happens to the others.
    lead: Arc<Shared>,
    /// Told whenever an instance has ended.
    ended: Notify,
    is_swept: AtomicBool,
    is_shared: AtomicBool,
    looks_stateful: AtomicBool,
    repeats: Mutex<Repeats>,
}

/// A call in flight at an instance, until this is dropped.
pub(in crate::upstream) struct Lease {
    pool: Arc<Pool>,
    number: u64,
    /// Where the call goes; nothing is the lead.
    pub(in crate::upstream) upstream: Option<Upstream>,
}

impl Pool {
    pub(in crate::upstream) fn new(lead: Arc<Shared>, target: Target) -> Arc<Self> {
        let table = Table::new(lead.options.instances, Instant::now());
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

    /// Takes note of how long the lead takes to start.
    pub(in crate::upstream) fn time_lead(self: &Arc<Self>) {
        let mut status = self.lead.status();
        let pool = Arc::downgrade(self);
        tokio::spawn(async move {
            let up = status
                .wait_for(|status| *status == UpstreamStatus::Up)
                .await;
            if up.is_ok()
                && let Some(pool) = pool.upgrade()
            {
                pool.table.lock().started(LEAD, Instant::now());
            }
        });
    }

    /// Finds the instance of a call's owner, starting one if it has none. It may not be connected yet.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Overloaded`], not sent, if there are as many as there may be and all are needed;
    /// [`ErrorKind::ConnectFailed`], not sent, after a shutdown.
    pub(in crate::upstream) async fn lease(
        self: &Arc<Self>,
        owner: Owner<'_>,
        call: &ToolCall,
    ) -> Result<Lease, ToolError> {
        let writes = call.plan().is_write() || self.looks_stateful.load(Ordering::Relaxed);
        let mut patience = std::pin::pin!(sleep(self.lead.options.connect_timeout));
        loop {
            let mut ended = std::pin::pin!(self.ended.notified());
            // from here on no end is missed
            ended.as_mut().enable();
            match self.enter(owner, writes) {
                Ok(lease) => return Ok(lease),
                Err(Refused::UntilOneEnds) => tokio::select! {
                    () = ended => {}
                    () = &mut patience => return Err(self.full()),
                },
                Err(Refused::Full) => return Err(self.full()),
                Err(Refused::Closed) => return Err(closed()),
            }
        }
    }

    /// Takes note that a call went to the lead that all callers share: no owner may get the lead.
    pub(in crate::upstream) fn share_lead(&self) {
        if !self.is_shared.load(Ordering::Relaxed) {
            self.table.lock().share_lead();
            self.is_shared.store(true, Ordering::Relaxed);
        }
    }

    /// Takes whether the server's tools look as if it kept state between reads: no instance counts as
    /// clean then. What calls showed stays.
    pub(in crate::upstream) fn set_looks_stateful(&self, looks_so: bool) {
        self.looks_stateful.fetch_or(looks_so, Ordering::Relaxed);
    }

    pub(in crate::upstream) fn session_ended(&self, caller: &Caller) {
        if let Some(session) = &caller.session {
            let mut table = self.table.lock();
            table.session_ended(&caller.principal, session, Instant::now());
        }
    }

    /// Says whether the lead serves some owner, so that its loss is that owner's.
    pub(super) fn lead_is_owned(&self) -> bool {
        self.table.lock().lead_is_owned()
    }

    /// Ends all instances but the lead, and waits until they have ended.
    pub(in crate::upstream) async fn shutdown(&self) {
        let open = self.table.lock().close();
        for upstream in open {
            upstream.stop();
        }
        loop {
            let mut ended = std::pin::pin!(self.ended.notified());
            ended.as_mut().enable();
            if self.table.lock().is_empty() {
                return;
            }
            ended.await;
        }
    }

    pub(in crate::upstream) fn statuses(&self) -> Vec<InstanceStatus> {
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

    fn status(&self, entry: &Entry<Upstream>, now: Instant) -> (InstanceStatus, Option<u32>) {
        let shared = match &entry.place {
            Place::Lead | Place::Retired => Some(&self.lead),
            Place::Own(upstream) => Some(upstream.shared()),
            Place::Ending => None,
        };
        let state = match (&entry.place, shared.map(|shared| shared.current_status())) {
            (_, None) => "ending",
            (_, Some(UpstreamStatus::Connecting)) => "starting",
            (_, Some(UpstreamStatus::Down(_) | UpstreamStatus::Closed)) => "down",
            (Place::Own(_), _) if entry.principal.is_none() => "spare",
            (Place::Lead | Place::Retired, _) if entry.owner.is_none() => "listing",
            _ => "up",
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

    fn enter(self: &Arc<Self>, owner: Owner<'_>, writes: bool) -> Result<Lease, Refused> {
        let lead_is_up = !self.is_shared.load(Ordering::Relaxed) && self.lead.is_up();
        let entered =
            self.table
                .lock()
                .enter(owner, writes, Instant::now(), lead_is_up, |number| {
                    self.start(number)
                });
        let (number, upstream) = entered?;
        self.sweep_from_now_on();
        Ok(Lease {
            pool: self.clone(),
            number,
            upstream,
        })
    }

    fn start(self: &Arc<Self>, number: u64) -> Upstream {
        let options: Options = self.lead.options.clone();
        let shared = Shared::new(self.lead.id.clone(), options);
        let events = shared.subscribe();
        let upstream = Upstream::start_one(shared, self.target.clone());
        tokio::spawn(follow(Arc::downgrade(self), number, events));
        upstream
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
        let swept = self.table.lock().sweep(now);
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

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("server", &self.lead.id)
            .finish_non_exhaustive()
    }
}

impl Lease {
    /// Takes the answer of a call. An instance is not clean, and no other of the server is from now on,
    /// if an equal read of it had another answer: the server keeps state between reads, or what it reads
    /// changes, and the two cannot be told apart.
    pub(in crate::upstream) fn answered(&self, call: &ToolCall, output: &ToolOutput) {
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
    ToolError::new(
        ErrorKind::ConnectFailed,
        Delivery::NotSent,
        "the server was shut down",
    )
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
