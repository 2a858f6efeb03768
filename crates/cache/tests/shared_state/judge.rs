//! The rules for answers.

use std::time::Duration;

use callward_cache::Partition;

use crate::script::{Action, Ask, CLIENTS};
use crate::world::{Call, Execution, Moment, World};

/// The burst window that the model knows.
const BURST: Duration = Duration::from_millis(500);

/// What an answer may violate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// It comes from another call, or from one of another principal or instance.
    Foreign,
    /// The session received the same execution's answer before.
    Repeated,
    /// It shows a state from before the burst window.
    TooOld,
    /// It shows a state from before a write through the group that ended before.
    MissedWrite,
    /// A counting tool skips a number or stands still.
    Count,
    /// A write should have been executed.
    KeptWrite,
    ExecutedTwice,
    Unanswered,
}

/// What schedules have to reach, so that the rules are about something.
pub(crate) const REACHED: [&str; 6] = [
    "a call that counted",
    "a kept write",
    "a repeated write that was executed",
    "a shared read",
    "a shared read from before a change",
    "a write that landed late",
];

impl World {
    /// Returns what an answer violates.
    pub(crate) fn judge(&mut self, id: usize, execution: usize) -> Vec<(Rule, String)> {
        let (call, from) = (&self.calls[id], &self.executions[execution]);
        let (ask, source) = (call.ask, self.calls[from.call].ask);
        let is_own = from.call == id;
        let has_session = CLIENTS[ask.client].1.is_some();
        let mut violated = Vec::new();
        if !self.may_receive(&ask, &source) {
            violated.push((Rule::Foreign, format!("receives the answer of {source:?}")));
        }
        let repeats = |(at, by): (Moment, usize)| {
            by == execution && (has_session || at.number < call.made.number)
        };
        let mut others = self.calls.iter().enumerate();
        if others.any(|(other, of)| {
            other != id && of.ask.client == ask.client && of.answered.is_some_and(repeats)
        }) {
            violated.push((Rule::Repeated, format!("receives {execution} again")));
        }
        match ask.action {
            Action::Get(cell) => {
                let next = self.cells[ask.set().group][cell].get(from.shows + 1);
                if next.is_some_and(|next| next.at + BURST < call.made.at) {
                    violated.push((Rule::TooOld, format!("sees change {}", from.shows)));
                }
                let last = self.last_write(&ask, call.made);
                if next.is_some_and(|next| next.number < last) {
                    violated.push((Rule::MissedWrite, format!("sees change {}", from.shows)));
                }
                if !is_own {
                    self.reached.insert("a shared read");
                }
                if next.is_some_and(|next| next.number < call.made.number) {
                    self.reached.insert("a shared read from before a change");
                }
            }
            Action::Next if ask.set().by_session => {
                let of_instance = |other: &&Call| {
                    let ask = (ask.client, ask.set, ask.action);
                    (other.ask.client, other.ask.set, other.ask.action) == ask
                };
                let calls = || self.calls.iter().filter(of_instance);
                let counted = calls().filter_map(|other| {
                    let (at, by) = other.answered?;
                    (at.number < call.made.number).then(|| self.executions[by].shows)
                });
                let (last, most) = (counted.max().unwrap_or(0), calls().count());
                if from.shows <= last || from.shows > most {
                    let why = format!("counts {} after {last}, of {most}", from.shows);
                    violated.push((Rule::Count, why));
                }
                if from.shows > 1 {
                    self.reached.insert("a call that counted");
                }
            }
            Action::Next => {}
            Action::Set(..) | Action::Add(_) if is_own => {
                let repeats = |other: &Call| {
                    let set_before = other.ask.set == ask.set && other.ask.action == ask.action;
                    set_before && other.made.number < call.made.number
                };
                if self.calls.iter().any(repeats) {
                    self.reached.insert("a repeated write that was executed");
                }
            }
            Action::Set(..) | Action::Add(_) => {
                if let Some(why) = self.forbids_kept(call, from) {
                    violated.push((Rule::KeptWrite, why));
                }
                self.reached.insert("a kept write");
            }
        }
        violated
    }

    /// Returns `true` if a call may receive the answer of the other one.
    fn may_receive(&self, ask: &Ask, source: &Ask) -> bool {
        let same_call = (ask.set, ask.action) == (source.set, source.action);
        let is_for_all = self.partition == Partition::Shared && ask.action.writes().is_none();
        let same_owner = match ask.set().by_session {
            true => ask.client == source.client,
            false => is_for_all || CLIENTS[ask.client].0 == CLIENTS[source.client].0,
        };
        same_call && same_owner
    }

    /// Returns the number of the last end of a write to the group of the set, before this moment.
    fn last_write(&self, ask: &Ask, before: Moment) -> usize {
        let writes = self.calls.iter().enumerate().filter(|(_, call)| {
            call.ask.action.writes().is_some() && call.ask.set().group == ask.set().group
        });
        // the answer of a kept write is not the end of one
        let ended = writes.filter_map(|(id, call)| {
            let (at, by) = call.answered?;
            (self.executions[by].call == id && at.number < before.number).then_some(at.number)
        });
        ended.max().unwrap_or(0)
    }

    /// Returns why an execution of an idempotent write must not answer the call, if so.
    fn forbids_kept(&self, call: &Call, from: &Execution) -> Option<String> {
        if matches!(call.ask.action, Action::Add(_)) {
            return Some("is not idempotent, and not executed".into());
        }
        if from.arrived.at + BURST < call.made.at {
            return Some("is answered by a write from before the burst window".into());
        }
        let landed = from.landed?.number;
        let between = self.executions.iter().any(|other| {
            let ask = self.calls[other.call].ask;
            let lands = other.landed.map_or(0, |at| at.number);
            ask.action.writes().is_some()
                && ask.set().group == call.ask.set().group
                && landed < lands
                && lands < call.made.number
        });
        between.then(|| "is answered by a write that another one followed".into())
    }
}
