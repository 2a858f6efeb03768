//! The servers, and everything that ever happened to their state.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;

use callward_cache::Partition;
use callward_core::{ToolError, ToolOutput};
use tokio::time::Instant;

use crate::judge::Rule;
use crate::script::{Action, Ask, CELLS, GROUPS};

/// When something happened. Events of one instant are in the order of their numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) number: usize,
    pub(crate) at: Instant,
}

#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) ask: Ask,
    pub(crate) made: Moment,
    /// When it was answered, and by which execution.
    pub(crate) answered: Option<(Moment, usize)>,
    executed: bool,
}

#[derive(Debug)]
pub(crate) struct Execution {
    pub(crate) call: usize,
    pub(crate) arrived: Moment,
    pub(crate) landed: Option<Moment>,
    /// What it showed: the number of a change of the cell that it reads, or how far it counted.
    pub(crate) shows: usize,
}

#[derive(Debug)]
pub(crate) struct World {
    began: Instant,
    pub(crate) partition: Partition,
    events: usize,
    /// The changes of each cell.
    pub(crate) cells: [[Vec<Moment>; CELLS]; GROUPS],
    /// How far each instance counted: one per set, principal and session.
    counters: HashMap<(usize, usize), usize>,
    pub(crate) calls: Vec<Call>,
    pub(crate) executions: Vec<Execution>,
    /// The rules that answers violated, and why.
    pub(crate) violations: Vec<(Rule, String)>,
    pub(crate) reached: BTreeSet<&'static str>,
    pub(crate) log: String,
}

impl World {
    pub(crate) fn new(partition: Partition) -> Self {
        let began = Instant::now();
        let first = Moment {
            number: 0,
            at: began,
        };
        Self {
            began,
            partition,
            events: 0,
            cells: std::array::from_fn(|_| std::array::from_fn(|_| vec![first])),
            counters: HashMap::new(),
            calls: Vec::new(),
            executions: Vec::new(),
            violations: Vec::new(),
            reached: BTreeSet::new(),
            log: format!("{partition:?}\n"),
        }
    }

    fn event(&mut self, what: &str) -> Moment {
        self.events += 1;
        let at = Instant::now();
        let since = at.saturating_duration_since(self.began);
        let _never_fails = writeln!(self.log, "{:>7} ms  {what}", since.as_millis());
        Moment {
            number: self.events,
            at,
        }
    }

    pub(crate) fn violate(&mut self, rule: Rule, id: usize, why: &str) {
        self.violations.push((rule, format!("call {id} {why}")));
    }

    /// The outside writer changes a cell.
    pub(crate) fn change(&mut self, group: usize, cell: usize) {
        let now = self.event(&format!("cell {cell} of group {group} changes"));
        self.cells[group][cell].push(now);
    }

    pub(crate) fn make(&mut self, ask: Ask) -> usize {
        let id = self.calls.len();
        let made = self.event(&format!("call {id}: {ask:?}"));
        self.calls.push(Call {
            ask,
            made,
            answered: None,
            executed: false,
        });
        id
    }

    pub(crate) fn cancel(&mut self, id: usize) {
        self.event(&format!("call {id} is cancelled"));
    }

    /// A call arrives at its server. Returns the number of its execution.
    pub(crate) fn arrive(&mut self, id: usize) -> (usize, Ask) {
        let execution = self.executions.len();
        let arrived = self.event(&format!("    execution {execution} of call {id}"));
        if std::mem::replace(&mut self.calls[id].executed, true) {
            self.violate(Rule::ExecutedTwice, id, "is executed twice");
        }
        self.executions.push(Execution {
            call: id,
            arrived,
            landed: None,
            shows: 0,
        });
        (execution, self.calls[id].ask)
    }

    /// An execution takes effect.
    pub(crate) fn land(&mut self, execution: usize) {
        let now = self.event(&format!("    execution {execution} takes effect"));
        let ask = self.calls[self.executions[execution].call].ask;
        let cells = &mut self.cells[ask.set().group];
        let shows = match ask.action {
            Action::Get(cell) => cells[cell].len() - 1,
            Action::Set(cell, _) | Action::Add(cell) => {
                cells[cell].push(now);
                cells[cell].len() - 1
            }
            Action::Next => {
                let instance = (ask.set, if ask.set().by_session { ask.client } else { 0 });
                let counter = self.counters.entry(instance).or_default();
                *counter += 1;
                *counter
            }
        };
        let execution = &mut self.executions[execution];
        execution.landed = Some(now);
        execution.shows = shows;
        if ask.fails {
            self.reached.insert("a write that landed late");
        }
    }

    /// A client receives an answer.
    pub(crate) fn answer(&mut self, id: usize, answer: Result<ToolOutput, ToolError>) {
        let Ok(output) = answer else {
            self.event(&format!("call {id} fails"));
            return;
        };
        let execution: usize = output.to_text().parse().unwrap();
        let now = self.event(&format!("call {id} receives {execution}"));
        self.calls[id].answered = Some((now, execution));
        for (rule, why) in self.judge(id, execution) {
            self.violate(rule, id, &why);
        }
    }
}
