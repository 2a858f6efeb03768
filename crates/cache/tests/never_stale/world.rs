//! The server, and everything that ever happened to it.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use callward_core::{Delivery, ErrorKind, ToolError, ToolOutput};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::judge::Rule;
use crate::script::{Action, Ask, CELLS, Ending, NOTE, RATES, SETTLE, Setting, Tools};

/// The default burst window, which the model knows.
pub(crate) const BURST: Duration = Duration::from_millis(500);

/// How long a write whose outcome is unknown may still land: the attempt timeout of its tool.
const MAY_LAND: Duration = Duration::from_secs(60);

/// When something happened. Events of one instant are in the order of their numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) number: usize,
    pub(crate) at: Instant,
}

/// The state since a moment.
#[derive(Debug)]
pub(crate) struct Since {
    pub(crate) from: Moment,
    pub(crate) state: [u64; CELLS],
    /// Until when a read may answer the state before: it changed past the cache, or by a write that
    /// landed after it had settled.
    pub(crate) unseen: Option<Instant>,
}

#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) ask: Ask,
    pub(crate) made: Moment,
    /// It is a write that would have changed nothing then.
    pub(crate) is_idle: bool,
    /// How often it arrived.
    arrived: usize,
    /// When it got a result, and from which execution.
    pub(crate) answered: Option<(Moment, usize)>,
}

#[derive(Debug)]
pub(crate) struct Execution {
    pub(crate) call: usize,
    pub(crate) arrived: Moment,
    pub(crate) landed: Option<Moment>,
    /// The state that it saw, and how far it counted.
    pub(crate) saw: [u64; CELLS],
    pub(crate) count: usize,
}

/// An execution that is not answered.
#[derive(Debug)]
struct Inside {
    execution: usize,
    reply: oneshot::Sender<Result<ToolOutput, ToolError>>,
}

/// A write that may land until then.
#[derive(Debug)]
struct Ghost {
    execution: usize,
    /// From here on results live for the burst window only.
    settled: Instant,
    until: Instant,
}

pub(crate) struct World {
    pub(crate) tools: Arc<Tools>,
    pub(crate) setting: Setting,
    began: Instant,
    events: usize,
    pub(crate) history: Vec<Since>,
    /// How far each instance counted: one per set and client.
    counters: HashMap<(&'static str, usize), usize>,
    pub(crate) calls: Vec<Call>,
    pub(crate) executions: Vec<Execution>,
    inside: Vec<Inside>,
    ghosts: Vec<Ghost>,
    /// The rules that were violated, and how.
    pub(crate) violations: Vec<(Rule, String)>,
    pub(crate) reached: BTreeSet<&'static str>,
    pub(crate) log: String,
}

impl World {
    pub(crate) fn new(tools: Arc<Tools>, setting: Setting) -> Self {
        let began = Instant::now();
        let from = Moment {
            number: 0,
            at: began,
        };
        Self {
            tools,
            setting,
            began,
            events: 0,
            history: vec![Since {
                from,
                state: [0; CELLS],
                unseen: None,
            }],
            counters: HashMap::new(),
            calls: Vec::new(),
            executions: Vec::new(),
            inside: Vec::new(),
            ghosts: Vec::new(),
            violations: Vec::new(),
            reached: BTreeSet::new(),
            log: format!("{setting:?}\n"),
        }
    }

    pub(crate) fn event(&mut self, what: &str) -> Moment {
        self.events += 1;
        let at = Instant::now();
        let since = at.saturating_duration_since(self.began).as_millis();
        let _never_fails = writeln!(self.log, "{:>4} {since:>7} ms  {what}", self.events);
        Moment {
            number: self.events,
            at,
        }
    }

    pub(crate) fn violate(&mut self, rule: Rule, why: String) {
        self.event(&why);
        self.violations.push((rule, why));
    }

    pub(crate) fn state(&self) -> [u64; CELLS] {
        self.history[self.history.len() - 1].state
    }

    fn change(&mut self, from: Moment, state: [u64; CELLS], unseen: Option<Instant>) {
        let since = Since {
            from,
            state,
            unseen,
        };
        self.history.push(since);
    }

    /// A value that was never there before.
    fn fresh(&self) -> u64 {
        100 + self.history.len() as u64
    }

    /// Changes a cell past the cache, which may notice by a purge.
    pub(crate) fn drift(&mut self, cell: usize, purged: bool) {
        let now = self.event(&format!("cell {cell} changes"));
        let mut state = self.state();
        state[cell] = self.fresh();
        self.change(now, state, (!purged).then_some(now.at + BURST));
    }

    /// Notes a call before it is made; returns its number.
    pub(crate) fn make(&mut self, ask: Ask) -> usize {
        let id = self.calls.len();
        let made = self.event(&format!("call {id}: {ask:?}"));
        let (state, first) = (self.state(), ask.set().cell);
        let is_idle = match ask.action {
            Action::Set(key, value) => state[first + key] == value,
            Action::WriteNote(value) => state[NOTE] == value,
            Action::Copy(from, to) => state[to] == state[from],
            _ => false,
        };
        self.calls.push(Call {
            ask,
            made,
            is_idle,
            arrived: 0,
            answered: None,
        });
        id
    }

    /// Takes a call in.
    pub(crate) fn arrive(&mut self, id: usize) -> oneshot::Receiver<Result<ToolOutput, ToolError>> {
        let execution = self.executions.len();
        let arrived = self.event(&format!("    execution {execution} of call {id}"));
        self.calls[id].arrived += 1;
        if self.calls[id].arrived > 1 {
            self.violate(Rule::ExecutedTwice, format!("call {id} is executed twice"));
        }
        self.executions.push(Execution {
            call: id,
            arrived,
            landed: None,
            saw: self.state(),
            count: 0,
        });
        let (reply, answer) = oneshot::channel();
        self.inside.push(Inside { execution, reply });
        if self.calls[id].ask.at_once {
            self.answer(self.inside.len() - 1, Ending::Well);
        }
        answer
    }

    pub(crate) fn has_arrived(&self, id: usize) -> bool {
        self.calls[id].arrived > 0
    }

    /// Returns how many executions there were, and how many calls were answered without one.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let without = |call: &&Call| call.arrived == 0 && call.answered.is_some();
        let answered = self.calls.iter().filter(without).count();
        (self.executions.len() as u64, answered as u64)
    }

    pub(crate) fn inside(&self) -> usize {
        self.inside.len()
    }

    pub(crate) fn ghosts(&self) -> usize {
        self.ghosts.len()
    }

    /// Lets a call inside take its effect.
    pub(crate) fn apply(&mut self, which: usize) {
        let execution = self.inside[which].execution;
        if self.executions[execution].landed.is_none() {
            self.take_effect(execution, None);
        }
    }

    fn take_effect(&mut self, execution: usize, unseen: Option<Instant>) {
        let now = self.event(&format!("    execution {execution} takes effect"));
        let ask = self.calls[self.executions[execution].call].ask;
        let (before, fresh, first) = (self.state(), self.fresh(), ask.set().cell);
        let mut state = before;
        match ask.action {
            Action::Set(key, value) => {
                // with learned lifetimes each write is a change of its own
                state[first + key] = if self.tools.learned { fresh } else { value };
            }
            Action::WriteNote(value) => state[NOTE] = value,
            Action::Copy(from, to) => state[to] = state[from],
            Action::Bump(key) => state[first + key] = fresh,
            Action::Move(from, to) => (state[from], state[to]) = (fresh, fresh),
            Action::Pay(account) => {
                state[first + account] = fresh;
                if self.setting.pays_items() {
                    state[account] = fresh;
                }
            }
            Action::Wipe => state[..RATES].fill(fresh),
            Action::Next => {
                let client = if ask.set().by_session { ask.client } else { 0 };
                let counter = self.counters.entry((ask.set().name, client)).or_default();
                *counter += 1;
                self.executions[execution].count = *counter;
            }
            Action::Get(_) | Action::List | Action::Note | Action::Rate => {}
        }
        if ask.action.is_write() {
            self.change(now, state, unseen);
        }
        let execution = &mut self.executions[execution];
        (execution.landed, execution.saw) = (Some(now), state);
    }

    pub(crate) fn answer(&mut self, which: usize, ending: Ending) {
        if matches!(ending, Ending::Well) {
            self.apply(which);
        }
        let Inside { execution, reply } = self.inside.remove(which);
        let has_landed = self.executions[execution].landed.is_some();
        self.event(&format!("    execution {execution} ends: {ending:?}"));
        let answer = match ending {
            Ending::Well => Ok(ToolOutput::text(execution.to_string())),
            Ending::ToolFailed => Ok(ToolOutput::error_text("no")),
            // what took effect was sent
            Ending::Failed(Delivery::NotSent) if has_landed => Err(failure(Delivery::Answered)),
            Ending::Failed(delivery) => Err(failure(delivery)),
        };
        if !matches!(ending, Ending::Failed(Delivery::NotSent)) {
            self.haunt(execution);
        }
        // the client may have left in the meantime
        let _answered = reply.send(answer);
    }

    /// A write that has not landed may land later.
    fn haunt(&mut self, execution: usize) {
        let of = &self.executions[execution];
        if of.landed.is_none() && self.calls[of.call].ask.action.is_write() {
            let now = Instant::now();
            self.ghosts.push(Ghost {
                execution,
                settled: now + SETTLE,
                until: now + MAY_LAND,
            });
        }
    }

    /// Turns calls whose clients left into ghosts.
    pub(crate) fn sweep(&mut self) {
        let (left, inside) = std::mem::take(&mut self.inside)
            .into_iter()
            .partition::<Vec<_>, _>(|inside| inside.reply.is_closed());
        self.inside = inside;
        for gone in left {
            self.haunt(gone.execution);
        }
    }

    /// Lets what may land land at the last moment before `now`.
    pub(crate) fn land_until(&mut self, now: Instant) {
        while let Some(due) = self.ghosts.iter().position(|ghost| ghost.until <= now) {
            self.land(due, self.ghosts[due].until);
        }
    }

    /// Lets a write land whose caller left.
    pub(crate) fn land(&mut self, which: usize, at: Instant) {
        let Ghost {
            execution, settled, ..
        } = self.ghosts.remove(which);
        self.reached.insert("a write that landed late");
        self.take_effect(execution, (at >= settled).then_some(at + BURST));
    }
}

pub(crate) fn failure(delivery: Delivery) -> ToolError {
    ToolError::new(ErrorKind::ServerFault, delivery, "as the script says")
}
