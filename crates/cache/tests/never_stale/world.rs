//! The server, and everything that ever happened to it.

use std::time::Duration;

use callward_cache::CacheConfig;
use callward_core::{Delivery, ErrorKind, ToolError, ToolOutput};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::script::{Action, Ask, Ending, Setting};

/// Items are 0 and 1.
pub(crate) const NOTE: usize = 2;
/// One for each principal.
pub(crate) const RATES: usize = 3;
/// Of another replica set.
pub(crate) const ACCOUNTS: usize = 6;

type State = [u64; 8];

/// How long a write that may still land is unsettled: the least there is, which no p99 makes
/// longer.
pub(crate) const SETTLE: Duration = Duration::from_secs(1);

/// What was so since a step.
#[derive(Debug)]
struct Since {
    step: usize,
    state: State,
    /// Until when a read may answer the state before: a write landed after it had settled.
    late: Option<Instant>,
}

/// The server, and everything that ever happened to it.
#[derive(Debug)]
pub(crate) struct World {
    setting: Setting,
    pub(crate) step: usize,
    pub(crate) asks: Vec<Ask>,
    history: Vec<Since>,
    /// How often each call arrived.
    pub(crate) arrived: Vec<usize>,
    pub(crate) ran: Vec<bool>,
    pub(crate) inside: Vec<Inside>,
    pub(crate) ghosts: Vec<Ghost>,
}

/// A call that arrived and is not answered.
#[derive(Debug)]
pub(crate) struct Inside {
    pub(crate) id: usize,
    effect: Option<ToolOutput>,
    reply: oneshot::Sender<Result<ToolOutput, ToolError>>,
}

/// A write whose caller left, and until when it may land.
#[derive(Debug)]
pub(crate) struct Ghost {
    pub(crate) id: usize,
    /// From here on results live for the burst window only.
    settled: Instant,
    until: Instant,
}

impl World {
    pub(crate) fn new(setting: Setting) -> Self {
        Self {
            setting,
            step: 0,
            asks: Vec::new(),
            history: vec![Since {
                step: 0,
                state: State::default(),
                late: None,
            }],
            arrived: Vec::new(),
            ran: Vec::new(),
            inside: Vec::new(),
            ghosts: Vec::new(),
        }
    }

    /// Notes a call before it is made; returns its number.
    pub(crate) fn note(&mut self, ask: Ask) -> usize {
        self.asks.push(ask);
        self.arrived.push(0);
        self.ran.push(false);
        self.asks.len() - 1
    }

    /// Takes a call in.
    pub(crate) fn arrive(&mut self, id: usize) -> oneshot::Receiver<Result<ToolOutput, ToolError>> {
        let (reply, answer) = oneshot::channel();
        self.arrived[id] += 1;
        self.inside.push(Inside {
            id,
            effect: None,
            reply,
        });
        answer
    }

    fn now(&self) -> State {
        self.history.last().unwrap().state
    }

    /// Changes something that no call changes.
    pub(crate) fn drift(&mut self, who: usize) {
        let mut state = self.now();
        state[RATES + who] = self.fresh();
        self.push(state);
    }

    fn push(&mut self, state: State) {
        self.history.push(Since {
            step: self.step,
            state,
            late: None,
        });
    }

    /// A value that was never there before.
    fn fresh(&self) -> u64 {
        100 + self.history.len() as u64
    }

    /// Lets a call take its effect; returns its answer.
    pub(crate) fn run(&mut self, id: usize) -> ToolOutput {
        let ask = self.asks[id];
        let mut state = self.now();
        let fresh = self.fresh();
        match ask.action {
            Action::Set(key, value) => state[key] = value,
            Action::WriteNote(value) => state[NOTE] = value,
            Action::Bump(key) => state[key] = fresh,
            Action::Move(from, to) => {
                state[from] = fresh;
                state[to] = fresh;
            }
            Action::Pay(account) => {
                state[ACCOUNTS + account] = fresh;
                if self.setting.says(ask.action) {
                    state[account] = fresh;
                }
            }
            Action::Wipe => state[..=NOTE].fill(fresh),
            Action::Copy(from, to) => state[to] = state[from],
            _ => return self.answer_in(ask, state),
        }
        self.ran[id] = true;
        self.push(state);
        self.answer_in(ask, state)
    }

    /// The answer of a call in this state.
    fn answer_in(&self, ask: Ask, state: State) -> ToolOutput {
        let shared = self.setting.shared && !ask.action.is_write() && ask.action != Action::Rate;
        let who = if shared {
            "all".into()
        } else {
            format!("p{}", ask.who)
        };
        let values: Vec<u64> = ask
            .action
            .reads(ask.who)
            .into_iter()
            .map(|key| state[key])
            .collect();
        ToolOutput::text(format!("{who}: {values:?}"))
    }

    /// Returns `true` if a call could end like this without a cache, and the fault if not.
    pub(crate) fn judge(
        &self,
        id: usize,
        began: (usize, Instant),
        idle: bool,
        output: &ToolOutput,
    ) -> (bool, &'static str) {
        if !self.is_true(id, began, output) {
            return (false, "answers no current state, or another's");
        }
        let swallowed = self.asks[id].action.is_write() && !self.ran[id] && !idle;
        (!swallowed, "was swallowed")
    }

    /// Returns `true` if the call may answer this: it was so for its principal since it began, or
    /// until a write landed within the burst window before, later than is waited for.
    fn is_true(&self, id: usize, began: (usize, Instant), output: &ToolOutput) -> bool {
        let (step, at) = began;
        let answer = |since: &Since| self.answer_in(self.asks[id], since.state);
        for (n, since) in self.history.iter().enumerate().rev() {
            let now = answer(since);
            if now.body() == output.body() {
                return true;
            }
            let must_be_seen = since.step < step && since.late.is_none_or(|until| until < at);
            let before = n.checked_sub(1).map(|before| answer(&self.history[before]));
            if must_be_seen && before.is_some_and(|before| before.body() != now.body()) {
                return false;
            }
        }
        false
    }

    /// Returns `true` if a write would change nothing.
    pub(crate) fn is_idle(&self, action: Action) -> bool {
        match action {
            Action::Set(key, value) => self.now()[key] == value,
            Action::WriteNote(value) => self.now()[NOTE] == value,
            Action::Copy(from, to) => self.now()[to] == self.now()[from],
            _ => false,
        }
    }

    pub(crate) fn apply(&mut self, which: usize) {
        if self.inside[which].effect.is_none() {
            self.inside[which].effect = Some(self.run(self.inside[which].id));
        }
    }

    pub(crate) fn answer(&mut self, which: usize, ending: Ending) {
        if matches!(ending, Ending::Well) {
            self.apply(which);
        }
        let Inside { id, effect, reply } = self.inside.remove(which);
        let may_land = effect.is_none() && !matches!(ending, Ending::Failed(Delivery::NotSent));
        let answer = match (ending, effect) {
            (Ending::Well, Some(output)) => Ok(output),
            (Ending::Well | Ending::ToolFailed, _) => Ok(ToolOutput::error_text("no")),
            // what took effect was sent
            (Ending::Failed(Delivery::NotSent), Some(_)) => Err(failure(Delivery::Answered)),
            (Ending::Failed(delivery), _) => Err(failure(delivery)),
        };
        if may_land {
            self.haunt(id);
        }
        // the client may have left in the meantime
        let _answered = reply.send(answer);
    }

    fn haunt(&mut self, id: usize) {
        let action = self.asks[id].action;
        if action.is_write() {
            let now = Instant::now();
            self.ghosts.push(Ghost {
                id,
                settled: now + SETTLE,
                until: now + action.tool().plan().limits.attempt_timeout,
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
            if gone.effect.is_none() {
                self.haunt(gone.id);
            }
        }
    }

    /// Lets what may land land at the last moment before `now`.
    pub(crate) fn land_until(&mut self, now: Instant) {
        while let Some(due) = self.ghosts.iter().position(|ghost| ghost.until <= now) {
            let until = self.ghosts[due].until;
            self.land(due, until);
        }
    }

    /// Lets a write land whose caller left; returns its call.
    pub(crate) fn land(&mut self, which: usize, at: Instant) -> usize {
        let Ghost { id, settled, .. } = self.ghosts.remove(which);
        self.run(id);
        if let Some(since) = self.history.last_mut().filter(|_| at >= settled) {
            since.late = Some(at + CacheConfig::default().burst);
        }
        id
    }
}

pub(crate) fn failure(delivery: Delivery) -> ToolError {
    ToolError::new(ErrorKind::ServerFault, delivery, "as the script says")
}
