//! The rules for answers.

use callward_core::{ErrorKind, ToolError, ToolOutput};

use crate::script::{Action, Ask, CLIENTS};
use crate::world::{BURST, Call, Execution, Moment, World};

/// What a call may violate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Its answer comes from another call, or from one of another principal or instance.
    Foreign,
    /// The session received the same execution's answer before.
    Repeated,
    /// It shows a state from before the burst window, which changed past the cache.
    TooOld,
    /// It shows a state from before a write that took effect before the call.
    MissedWrite,
    /// A counting tool skips a number or stands still.
    Count,
    /// A write should have been executed.
    KeptWrite,
    ExecutedTwice,
    /// It waits beyond its deadline, or fails though it was not sent.
    Unanswered,
    /// It is not counted once.
    Counted,
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
    /// A client receives an answer.
    pub(crate) fn receive(&mut self, id: usize, answer: Result<ToolOutput, ToolError>) {
        let has_arrived = self.has_arrived(id);
        match answer {
            Ok(output) if !output.is_error() => {
                let execution: usize = output.to_text().parse().unwrap();
                let now = self.event(&format!("call {id} receives {execution}"));
                self.calls[id].answered = Some((now, execution));
                for (rule, why) in self.judge(id, execution) {
                    self.violate(rule, format!("call {id} {why}"));
                }
            }
            Ok(_) if !has_arrived => {
                self.violate(Rule::Foreign, format!("call {id} gets another's error"));
            }
            Err(error) if !has_arrived && error.kind != ErrorKind::DeadlineExceeded => {
                self.violate(Rule::Unanswered, format!("call {id} is not sent: {error}"));
            }
            Ok(_) | Err(_) => {
                self.event(&format!("call {id} fails"));
            }
        }
    }

    /// Returns what an answer violates.
    fn judge(&mut self, id: usize, execution: usize) -> Vec<(Rule, String)> {
        let (call, from) = (&self.calls[id], &self.executions[execution]);
        let (ask, source) = (call.ask, self.calls[from.call].ask);
        let is_own = from.call == id;
        let mut violated = Vec::new();
        if !self.may_receive(&ask, &source) {
            violated.push((Rule::Foreign, format!("receives the answer of {source:?}")));
        }
        if self.tools.learned && self.repeats(id, execution) {
            violated.push((Rule::Repeated, format!("receives {execution} again")));
        }
        if let Some((rule, number)) = self.is_stale(call, from) {
            violated.push((rule, format!("does not see change {number}")));
        }
        match ask.action {
            Action::Next if ask.set().by_session => {
                violated.extend(self.miscounts(call, from).map(|why| (Rule::Count, why)));
                if from.count > 1 {
                    self.reached.insert("a call that counted");
                }
            }
            action if action.is_write() && is_own => {
                let repeats = |other: &Call| {
                    other.ask.is_same_call(&ask) && other.made.number < call.made.number
                };
                if self.calls.iter().any(repeats) {
                    self.reached.insert("a repeated write that was executed");
                }
            }
            action if action.is_write() => {
                let kept = self.forbids_kept(call, from);
                violated.extend(kept.map(|why| (Rule::KeptWrite, why.into())));
                self.reached.insert("a kept write");
            }
            _ => {
                if !is_own {
                    self.reached.insert("a shared read");
                }
                let mut before = self.history.iter().rev();
                let before = before.find(|since| since.from.number < call.made.number);
                let changed = before.is_some_and(|since| ask.differ(&since.state, &from.saw));
                if changed && from.arrived.number < call.made.number {
                    self.reached.insert("a shared read from before a change");
                }
            }
        }
        violated
    }

    /// Returns `true` if a call may receive the answer of the other one.
    fn may_receive(&self, ask: &Ask, source: &Ask) -> bool {
        let is_private = ask.action.is_write() || ask.action == Action::Rate;
        let same_owner = match ask.set().by_session {
            true => ask.client == source.client,
            false => {
                let of = |ask: &Ask| CLIENTS[ask.client].0;
                (self.setting.shared && !is_private) || of(ask) == of(source)
            }
        };
        ask.is_same_call(source) && same_owner
    }

    /// Returns `true` if the session received the same execution's answer before; without a session
    /// if that was before this call.
    fn repeats(&self, id: usize, execution: usize) -> bool {
        let call = &self.calls[id];
        let has_session = CLIENTS[call.ask.client].1.is_some();
        let mut others = self.calls.iter().enumerate();
        others.any(|(other, of)| {
            let repeats = |(at, by): (Moment, usize)| {
                by == execution && (has_session || at.number < call.made.number)
            };
            other != id && of.ask.client == call.ask.client && of.answered.is_some_and(repeats)
        })
    }

    /// Returns the change that a read should have seen and did not: the state that it shows was not
    /// that of any moment since it was made, or since the last change that it had to see.
    fn is_stale(&self, call: &Call, from: &Execution) -> Option<(Rule, usize)> {
        let differ = |a, b| call.ask.differ(a, b);
        let last_write = self.last_write(call);
        for two in self.history.windows(2).rev() {
            let [before, now] = two else { continue };
            if !differ(&now.state, &from.saw) {
                return None;
            }
            let is_written = now.unseen.is_none() || now.from.number < last_write;
            let is_over = is_written || now.unseen.is_some_and(|until| until < call.made.at);
            let must_be_seen = now.from.number < call.made.number && is_over;
            if must_be_seen && differ(&now.state, &before.state) {
                let rule = if is_written {
                    Rule::MissedWrite
                } else {
                    Rule::TooOld
                };
                return Some((rule, now.from.number));
            }
        }
        let first = &self.history[0];
        differ(&first.state, &from.saw).then_some((Rule::Foreign, 0))
    }

    /// Returns the number of the last end of a write to the group of the set before the call. Only
    /// without rules does each write concern each read.
    fn last_write(&self, call: &Call) -> usize {
        let ended = self.calls.iter().enumerate().filter_map(|(id, other)| {
            let (at, by) = other.answered?;
            // the answer of a kept write is not the end of one
            let is_write = other.ask.action.is_write() && self.executions[by].call == id;
            let concerns = self.tools.learned && other.ask.set().group == call.ask.set().group;
            (is_write && concerns && at.number < call.made.number).then_some(at.number)
        });
        ended.max().unwrap_or(0)
    }

    /// Returns why the count of an instance is wrong, if so.
    fn miscounts(&self, call: &Call, from: &Execution) -> Option<String> {
        let of_instance = |other: &&Call| {
            other.ask.client == call.ask.client && other.ask.is_same_call(&call.ask)
        };
        let calls = || self.calls.iter().filter(of_instance);
        let counted = calls().filter_map(|other| {
            let (at, by) = other.answered?;
            (at.number < call.made.number).then(|| self.executions[by].count)
        });
        let (last, most) = (counted.max().unwrap_or(0), calls().count());
        let is_right = from.count > last && from.count <= most;
        (!is_right).then(|| format!("counts {} after {last}, of {most}", from.count))
    }

    /// Returns why another execution of a write must not answer the call, if so.
    fn forbids_kept(&self, call: &Call, from: &Execution) -> Option<&'static str> {
        if !call.ask.action.is_idempotent() {
            return Some("is not idempotent, and not executed");
        }
        if !self.tools.learned {
            return (!call.is_idle).then_some("would have changed something, and is not executed");
        }
        if from.arrived.at + BURST < call.made.at {
            return Some("is answered by a write from before the burst window");
        }
        let landed = from.landed?.number;
        let between = self.executions.iter().any(|other| {
            let ask = self.calls[other.call].ask;
            let lands = other.landed.map_or(0, |at| at.number);
            ask.action.is_write()
                && ask.set().group == call.ask.set().group
                && landed < lands
                && lands < call.made.number
        });
        between.then_some("is answered by a write that another one followed")
    }
}
