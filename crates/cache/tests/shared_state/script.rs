//! What clients call, what happens meanwhile, and in which setting.

use std::sync::Arc;
use std::time::Duration;

use callward_cache::{CacheConfig, CacheLayer, Partition, StateGroup};
use callward_core::{
    Caller, Instances, Learned, Lifetime, Principal, Profile, ReplicaSetId, SessionId, Tool,
    ToolCall,
};
use callward_testkit::{ToolBuilder, call, tool};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

/// Cells of each group.
pub(crate) const CELLS: usize = 2;
/// Groups of replica sets that share cells.
pub(crate) const GROUPS: usize = 3;

/// A replica set: its name, the group of its state, and whether each session has an instance.
pub(crate) struct Set {
    name: &'static str,
    pub(crate) group: usize,
    pub(crate) by_session: bool,
}

#[rustfmt::skip]
pub(crate) const SETS: [Set; 5] = [
    Set { name: "files", group: 0, by_session: false },
    Set { name: "git", group: 0, by_session: true },
    Set { name: "clock", group: 1, by_session: false },
    Set { name: "page", group: 2, by_session: false },
    Set { name: "tabs", group: 2, by_session: true },
];

/// Principal and session of each client. A session id of one principal means nothing to another.
pub(crate) const CLIENTS: [(&str, Option<&str>); 5] = [
    ("p", Some("1")),
    ("p", Some("2")),
    ("p", None),
    ("q", Some("1")),
    ("q", None),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Reads a cell.
    Get(usize),
    /// Counts its calls, and claims to be read-only.
    Next,
    /// Writes a cell; idempotent.
    Set(usize, u8),
    /// Writes a cell.
    Add(usize),
}

impl Action {
    const fn tool(self) -> usize {
        match self {
            Self::Get(_) => 0,
            Self::Next => 1,
            Self::Set(..) => 2,
            Self::Add(_) => 3,
        }
    }

    fn arguments(self) -> Value {
        match self {
            Self::Get(cell) | Self::Add(cell) => json!({"cell": cell}),
            Self::Next => json!({}),
            Self::Set(cell, value) => json!({"cell": cell, "value": value}),
        }
    }

    /// Returns the cell that it writes.
    pub(crate) const fn writes(self) -> Option<usize> {
        match self {
            Self::Get(_) | Self::Next => None,
            Self::Set(cell, _) | Self::Add(cell) => Some(cell),
        }
    }
}

/// One call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ask {
    pub(crate) client: usize,
    pub(crate) set: usize,
    pub(crate) action: Action,
    /// Milliseconds until it takes effect, if it is executed.
    pub(crate) before: u64,
    /// Milliseconds from then to its answer.
    pub(crate) after: u64,
    /// Its execution answers at once that its outcome is not known.
    pub(crate) fails: bool,
}

impl Ask {
    pub(crate) const fn set(&self) -> &'static Set {
        &SETS[self.set]
    }

    pub(crate) fn call(&self, id: usize, tools: &Tools) -> ToolCall {
        let (principal, session) = CLIENTS[self.client];
        let caller = Caller::new(Principal::new(principal));
        let caller = match session {
            Some(session) => caller.with_session(SessionId::new(session)),
            None => caller,
        };
        let tool = &tools.0[self.set][self.action.tool()];
        let mut call = call(tool, self.action.arguments()).with_caller(Arc::new(caller));
        call.context_mut().id = Some(id.to_string().into());
        call
    }
}

/// The tools of each set, as planned in one setting.
pub(crate) struct Tools([[Arc<Tool>; 4]; SETS.len()]);

impl Tools {
    pub(crate) fn new(broken: Option<Broken>) -> Self {
        let build = |set: &Set, built: ToolBuilder| {
            let tool = built.set(set.name).profile(profile(broken)).build();
            if set.by_session && broken != Some(Broken::SharedInstances) {
                let mut tool = Tool::clone(&tool);
                tool.instances = Instances::Session;
                Arc::new(tool)
            } else {
                tool
            }
        };
        Self(SETS.each_ref().map(|set| {
            [
                build(set, tool("get").read_only()),
                build(set, tool("next").read_only()),
                build(set, tool("set").idempotent()),
                build(set, tool("add")),
            ]
        }))
    }
}

fn profile(broken: Option<Broken>) -> Profile {
    let learned = Lifetime::Learned(Learned::default());
    let mut profile = Profile::standard();
    profile.read_lifetime = learned;
    profile.idempotent_lifetime = learned;
    match broken {
        Some(Broken::FixedLifetimes(seconds)) => {
            profile.read_ttl = Duration::from_secs(seconds);
            profile.read_lifetime = Lifetime::Fixed;
            profile.idempotent_lifetime = Lifetime::Fixed;
        }
        Some(Broken::FixedWrites) => profile.idempotent_lifetime = Lifetime::Fixed,
        _ => {}
    }
    profile
}

/// A setting that breaks a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Broken {
    /// Reads and idempotent writes have fixed lifetimes; that of reads in seconds.
    FixedLifetimes(u64),
    /// Idempotent writes have a fixed lifetime of 5 s.
    FixedWrites,
    /// Each set has a state of its own, although it shares cells with others.
    OwnState,
    /// Tools are taken to have one instance for all sessions.
    SharedInstances,
    /// The burst window is longer than the model knows.
    LongBurst,
}

/// What the cache is configured with, and the tools with it.
pub(crate) struct Setting {
    broken: Option<Broken>,
    pub(crate) tools: Tools,
}

impl Setting {
    pub(crate) fn new(broken: Option<Broken>) -> Self {
        let tools = Tools::new(broken);
        Self { broken, tools }
    }

    pub(crate) fn layer(&self, partition: Partition) -> CacheLayer {
        let mut config = CacheConfig::default();
        config.partition = partition;
        if self.broken == Some(Broken::LongBurst) {
            config.burst = Duration::from_secs(5);
        }
        for set in &SETS {
            let state = match set.group {
                _ if self.broken == Some(Broken::OwnState) => StateGroup::Own,
                0 => continue,
                1 => StateGroup::Own,
                _ => StateGroup::Named("web".into()),
            };
            let id = ReplicaSetId::new(set.name).unwrap();
            config.scopes = config.scopes.with_state(id, state);
        }
        CacheLayer::new(config)
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Call(Ask),
    /// The outside writer changes a cell.
    Change {
        group: usize,
        cell: usize,
    },
    /// A client cancels a call.
    Cancel(Index),
    /// Milliseconds pass.
    Pass(u64),
}

#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) partition: Partition,
    pub(crate) steps: Vec<Step>,
}

pub(crate) fn script() -> impl Strategy<Value = Script> {
    let partition = prop_oneof![3 => Just(Partition::Principal), 1 => Just(Partition::Shared)];
    let steps = prop::collection::vec(step(), 1..80);
    (partition, steps).prop_map(|(partition, steps)| Script { partition, steps })
}

fn action() -> impl Strategy<Value = Action> {
    let cell = || prop_oneof![4 => Just(0), 1 => 1..CELLS];
    prop_oneof![
        8 => cell().prop_map(Action::Get),
        3 => Just(Action::Next),
        3 => (cell(), 0..2_u8).prop_map(|(cell, value)| Action::Set(cell, value)),
        1 => cell().prop_map(Action::Add),
    ]
}

fn ask() -> impl Strategy<Value = Ask> {
    let client = prop_oneof![3 => Just(0), 3 => Just(1), 2 => Just(2), 1 => 3..CLIENTS.len()];
    let set = prop_oneof![5 => Just(0), 3 => Just(1), 1 => Just(2), 4 => 3..SETS.len()];
    let delay = || {
        prop_oneof![
            4 => Just(0),
            2 => select(vec![1, 50, 200]),
            3 => select(vec![499, 600, 2_000, 5_000]),
        ]
    };
    let fails = prop::bool::weighted(0.03);
    (client, set, action(), delay(), delay(), fails).prop_map(
        |(client, set, action, before, after, fails)| Ask {
            client,
            set,
            action,
            before,
            after,
            fails,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let group = prop_oneof![3 => Just(0), 1 => Just(1), 2 => Just(2)];
    let cell = prop_oneof![4 => Just(0), 1 => 1..CELLS];
    let pass = prop_oneof![
        4 => select(vec![1, 50, 100, 250]),
        3 => select(vec![499, 500, 501]),
        2 => select(vec![1_000, 3_000, 10_000]),
        1 => Just(60_000),
    ];
    prop_oneof![
        12 => ask().prop_map(Step::Call),
        3 => (group, cell).prop_map(|(group, cell)| Step::Change { group, cell }),
        1 => any::<Index>().prop_map(Step::Cancel),
        5 => pass.prop_map(Step::Pass),
    ]
}
