//! What clients call, what happens meanwhile, and in which setting.

use std::sync::Arc;
use std::time::Duration;

use callward_cache::{CacheConfig, CacheLayer, Partition, StateGroup, ToolScopes};
use callward_core::{
    Caller, Delivery, Instances, Learned, Lifetime, Principal, Profile, SecurityLevel, SessionId,
    Tool, ToolCall,
};
use callward_testkit::{call, tool};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};
use tokio::time::Instant;

/// How long a write that may still land is unsettled: the least there is, which no p99 makes
/// longer.
pub(crate) const SETTLE: Duration = Duration::from_secs(1);

/// A replica set: its name, the group of its state, its first cell, and whether each session has
/// an instance.
pub(crate) struct Set {
    pub(crate) name: &'static str,
    pub(crate) group: usize,
    pub(crate) cell: usize,
    pub(crate) by_session: bool,
}

const fn set(name: &'static str, group: usize, cell: usize, by_session: bool) -> Set {
    Set {
        name,
        group,
        cell,
        by_session,
    }
}

/// The first two are those of fixed lifetimes. Each set has two cells with numbers; the shop has a
/// note and the rates of three clients besides.
pub(crate) const SETS: [Set; 7] = [
    set("shop", 0, 0, false),
    set("bank", 0, 6, false),
    set("files", 0, 8, false),
    set("git", 0, 8, true),
    set("clock", 1, 10, false),
    set("page", 2, 12, false),
    set("tabs", 2, 12, true),
];
pub(crate) const NOTE: usize = 2;
/// One for each client of fixed lifetimes.
pub(crate) const RATES: usize = 3;
pub(crate) const CELLS: usize = 14;

/// Principal and session of each client. A session id of one principal means nothing to another.
/// The first three are those of fixed lifetimes.
pub(crate) const CLIENTS: [(&str, Option<&str>); 8] = [
    ("p0", None),
    ("p1", None),
    ("p2", None),
    ("p", Some("1")),
    ("p", Some("2")),
    ("p", None),
    ("q", Some("1")),
    ("q", None),
];

/// What a client asks for; keys count from the first cell of the set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// One cell.
    Get(usize),
    /// All items, and the note.
    List,
    Note,
    /// The rate of the caller; restricted.
    Rate,
    /// Counts its calls, and claims to be read-only.
    Next,
    /// Idempotent.
    Set(usize, u64),
    /// Idempotent.
    WriteNote(u64),
    /// Idempotent: gives one item the value of another.
    Copy(usize, usize),
    Bump(usize),
    Move(usize, usize),
    /// Changes an account and, if there is a rule for it, the item of the same number in the shop.
    Pay(usize),
    Wipe,
}

/// The tools, in the order of the actions. The first `READS` are read-only, then come the
/// idempotent ones.
const TOOLS: [&str; 12] = [
    "get",
    "list",
    "note",
    "rate",
    "next",
    "set",
    "write_note",
    "copy",
    "bump",
    "move",
    "pay",
    "wipe",
];
const READS: usize = 5;
const MUTATING: usize = 8;

impl Action {
    fn number(self) -> usize {
        match self {
            Self::Get(_) => 0,
            Self::List => 1,
            Self::Note => 2,
            Self::Rate => 3,
            Self::Next => 4,
            Self::Set(..) => 5,
            Self::WriteNote(_) => 6,
            Self::Copy(..) => 7,
            Self::Bump(_) => 8,
            Self::Move(..) => 9,
            Self::Pay(_) => 10,
            Self::Wipe => 11,
        }
    }

    pub(crate) fn is_write(self) -> bool {
        self.number() >= READS
    }

    pub(crate) fn is_idempotent(self) -> bool {
        (READS..MUTATING).contains(&self.number())
    }

    /// The arguments; a server takes all forms for the same.
    fn arguments(self, form: u8) -> Value {
        let written = |key: usize| match form {
            0 => json!(key),
            1 => json!(key.to_string()),
            _ => json!(format!(" {key}")),
        };
        match self {
            Self::Get(key) | Self::Bump(key) | Self::Pay(key) => json!({ "key": written(key) }),
            Self::Set(key, value) => json!({ "key": written(key), "value": value }),
            Self::WriteNote(value) => json!({ "value": value }),
            Self::Move(from, to) | Self::Copy(from, to) => {
                json!({ "from": written(from), "to": written(to) })
            }
            Self::List | Self::Note | Self::Rate | Self::Next | Self::Wipe => json!({}),
        }
    }
}

/// One call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ask {
    pub(crate) client: usize,
    set: usize,
    pub(crate) action: Action,
    form: u8,
    /// In seconds.
    patience: Option<u64>,
    /// The server answers it as soon as it arrives.
    pub(crate) at_once: bool,
}

impl Ask {
    const fn new(client: usize, set: usize, action: Action) -> Self {
        Self {
            client,
            set,
            action,
            form: 0,
            patience: None,
            at_once: false,
        }
    }

    pub(crate) const fn set(&self) -> &'static Set {
        &SETS[self.set]
    }

    /// Returns `true` if a read shows different values in these states.
    pub(crate) fn differ(&self, one: &[u64; CELLS], other: &[u64; CELLS]) -> bool {
        let cells = match self.action {
            Action::Get(key) => self.set().cell + key..self.set().cell + key + 1,
            Action::List => 0..RATES,
            Action::Note => NOTE..RATES,
            Action::Rate => RATES + self.client..RATES + self.client + 1,
            _ => 0..0,
        };
        one[cells.clone()] != other[cells]
    }

    /// Returns `true` if both are the same call, whatever the client and the textual form.
    pub(crate) fn is_same_call(&self, other: &Self) -> bool {
        (self.set, self.action) == (other.set, other.action)
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        let patience = self.patience.map(Duration::from_secs);
        patience.map(|patience| Instant::now() + patience)
    }

    pub(crate) fn call(&self, id: usize, tools: &Tools) -> ToolCall {
        let (principal, session) = CLIENTS[self.client];
        let mut caller = Caller::new(Principal::new(principal));
        if let Some(session) = session {
            caller = caller.with_session(SessionId::new(session));
        }
        let tool = &tools.all[self.set][self.action.number()];
        let mut call = call(tool, self.action.arguments(self.form)).with_caller(Arc::new(caller));
        call.context_mut().id = Some(id.to_string().into());
        call.context_mut().deadline = self.deadline().map(Instant::into_std);
        call
    }
}

/// What is wrong with a cache that breaks a rule.
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

/// The tools of each set.
pub(crate) struct Tools {
    /// Whether lifetimes are learned, without evidence yet; else they are fixed.
    pub(crate) learned: bool,
    broken: Option<Broken>,
    all: Vec<Vec<Arc<Tool>>>,
}

impl Tools {
    pub(crate) fn new(learned: bool, broken: Option<Broken>) -> Self {
        let mut profile = Profile::standard();
        if learned {
            let learned = Lifetime::Learned(Learned::default());
            (profile.read_lifetime, profile.idempotent_lifetime) = (learned, learned);
        }
        match broken {
            Some(Broken::FixedLifetimes(seconds)) => {
                profile.read_ttl = Duration::from_secs(seconds);
                profile.read_lifetime = Lifetime::Fixed;
                profile.idempotent_lifetime = Lifetime::Fixed;
            }
            Some(Broken::FixedWrites) => profile.idempotent_lifetime = Lifetime::Fixed,
            _ => {}
        }
        let build = |set: &Set, number: usize| {
            let built = tool(TOOLS[number]).set(set.name).profile(profile.clone());
            let built = match number {
                3 => built.read_only().hint(|hints| {
                    hints.security_level = Some(SecurityLevel::Restricted);
                    hints.tags = Some(vec!["rates".into()]);
                }),
                0..READS => built.read_only(),
                READS..MUTATING => built.idempotent(),
                11 => built.destructive(),
                _ => built,
            };
            let mut tool = Tool::clone(&built.build());
            if set.by_session && broken != Some(Broken::SharedInstances) {
                tool.instances = Instances::Session;
            }
            Arc::new(tool)
        };
        let of = |set| (0..TOOLS.len()).map(|number| build(set, number)).collect();
        let all = SETS.iter().map(of).collect();
        Self {
            learned,
            broken,
            all,
        }
    }

    pub(crate) fn rate(&self) -> &Tool {
        &self.all[0][Action::Rate.number()]
    }

    pub(crate) fn layer(&self, setting: Setting) -> CacheLayer {
        let mut config = CacheConfig::default();
        config.settle = SETTLE;
        config.max_bytes = setting.store;
        if setting.shared {
            config.partition = Partition::Shared;
        }
        if self.broken == Some(Broken::LongBurst) {
            config.burst = Duration::from_secs(5);
        }
        for set in SETS.iter().filter(|_| self.learned) {
            let state = match set.group {
                _ if self.broken == Some(Broken::OwnState) => StateGroup::Own,
                0 => continue,
                1 => StateGroup::Own,
                _ => StateGroup::Named("web".into()),
            };
            config.scopes = config.scopes.with_state(set.name.parse().unwrap(), state);
        }
        for rule in 0..=ACCOUNT_RULE {
            let set = usize::from(rule == PAY_RULE || rule == ACCOUNT_RULE);
            let number = rule % ACCOUNT_RULE;
            if setting.says(rule) {
                let truth = |number| truth(setting.style, set, number).iter().copied();
                let mut scopes = match number < READS {
                    true => ToolScopes::reading(truth(number)),
                    false => ToolScopes::writing(truth(number)),
                }
                .unwrap();
                if number == 7 && setting.says(COPY_READS) {
                    scopes.reads = ToolScopes::reading(truth(1)).unwrap().reads;
                }
                let tool = &self.all[set][number];
                let (set, name) = (tool.set().clone(), tool.name().clone());
                config.scopes = config.scopes.with(set, name, scopes);
            }
        }
        CacheLayer::new(config)
    }
}

/// Tools may have rules by their number; `get` has one in each set.
const RATE_RULE: usize = 3;
const PAY_RULE: usize = 10;
const ACCOUNT_RULE: usize = 12;
/// Whether the rule of `copy` has what it reads.
const COPY_READS: usize = 13;

/// How scopes are named in rules.
const STYLES: [&str; 3] = ["templates", "tags", "each value"];

/// What is true of a tool: what it reads if it is a read, or else what it writes.
fn truth(style: &str, set: usize, number: usize) -> &'static [&'static str] {
    match (TOOLS[number], style) {
        ("get", "templates") if set == 1 => &["account:{key}"],
        ("get", "tags") if set == 1 => &["accounts"],
        ("get" | "set" | "bump", "templates") => &["item:{key}"],
        ("get" | "set" | "bump" | "move" | "copy", "tags") => &["items"],
        ("get" | "set" | "bump" | "move" | "copy", "each value") => &["{*}"],
        ("list" | "wipe", "templates") => &["item:0", "item:1", "notes"],
        ("list" | "wipe", "tags") => &["items", "notes"],
        ("note" | "write_note", _) => &["notes"],
        ("rate", _) => &["fx"],
        ("move", "templates") => &["item:{from}", "item:{to}"],
        ("copy", "templates") => &["item:{to}"],
        ("pay", "templates") => &["account:{key}", "@shop/item:{key}"],
        ("pay", "tags") => &["accounts", "@shop/items"],
        ("pay", "each value") => &["{*}", "@shop"],
        _ => &["*"],
    }
}

/// How the cache is set up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    pub(crate) shared: bool,
    style: &'static str,
    /// Which tools have rules: a bit each.
    rules: u16,
    /// In bytes: for all entries, or for two or three.
    store: u64,
}

impl Setting {
    const fn says(self, rule: usize) -> bool {
        self.rules & (1 << rule) != 0
    }

    pub(crate) const fn pays_items(self) -> bool {
        self.says(PAY_RULE)
    }

    /// Returns a name of a scope that rates have, by a rule or a tag.
    pub(crate) const fn scope_of_rates(self) -> &'static str {
        if self.says(RATE_RULE) { "fx" } else { "rates" }
    }
}

/// One line of the script.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Start(Ask),
    /// A call inside the server takes its effect, and is not answered yet.
    Apply(Index),
    Answer(Index, Ending),
    /// A write whose answer was lost lands.
    Land(Index),
    /// A client goes away.
    Leave(Index),
    /// Milliseconds pass.
    Pass(u64),
    /// A cell changes past the cache, and then is purged, if at all.
    Drift(usize, Option<Purge>),
    /// Something is purged that no entry depends on.
    Purge(Purge),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Ending {
    Well,
    ToolFailed,
    Failed(Delivery),
}

/// A purge of rates: by the name of a scope if a rule has one, or else by the tag; or by the end of
/// the lifetime.
pub(crate) type Purge = &'static str;

const PURGES: [Purge; 7] = ["all", "set", "tool", "tag", "scope", "principal", "lapse"];

/// A setting, and what happens in it.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) setting: Setting,
    pub(crate) steps: Vec<Step>,
}

/// Calls of two sets with fixed lifetimes, with and without rules.
pub(crate) fn fixed() -> impl Strategy<Value = Script> {
    let style = select(STYLES.to_vec());
    // nothing, everything, or any of it
    let rules = prop_oneof![Just(0), Just(u16::MAX), any::<u16>()];
    let setting = (any::<bool>(), style, rules, select(vec![1 << 20, 1_600]));
    let setting = setting.prop_map(|(shared, style, rules, store)| Setting {
        shared,
        style,
        rules,
        store,
    });
    let steps = prop::collection::vec(fixed_step(), 1..60);
    (setting, steps).prop_map(|(setting, steps)| Script { setting, steps })
}

fn fixed_ask() -> impl Strategy<Value = Ask> {
    let key = || prop_oneof![4 => Just(0_usize), 1 => Just(1_usize)];
    let action = prop_oneof![
        8 => key().prop_map(|key| (0, Action::Get(key))),
        2 => Just((0, Action::List)),
        1 => Just((0, Action::Note)),
        3 => Just((0, Action::Rate)),
        2 => key().prop_map(|key| (1, Action::Get(key))),
        10 => (key(), 0..2_u64).prop_map(|(key, value)| (0, Action::Set(key, value))),
        1 => (0..2_u64).prop_map(|value| (0, Action::WriteNote(value))),
        2 => key().prop_map(|key| (0, Action::Bump(key))),
        1 => (key(), key()).prop_map(|(from, to)| (0, Action::Move(from, to))),
        2 => key().prop_map(|key| (1, Action::Pay(key))),
        1 => Just((0, Action::Wipe)),
        4 => key().prop_map(|from| (0, Action::Copy(from, 1 - from))),
    ];
    let form = prop_oneof![6 => Just(0), 1 => 1..3_u8];
    let patience = prop_oneof![5 => Just(None), 1 => select(vec![Some(1), Some(30)])];
    (action, client(), form, patience).prop_map(|((set, action), client, form, patience)| Ask {
        form,
        patience,
        ..Ask::new(client, set, action)
    })
}

fn client() -> impl Strategy<Value = usize> {
    prop_oneof![4 => Just(0_usize), 1 => 1..3_usize]
}

fn fixed_step() -> impl Strategy<Value = Step> {
    let ending = prop_oneof![
        10 => Just(Ending::Well),
        1 => Just(Ending::ToolFailed),
        1 => Just(Ending::Failed(Delivery::Answered)),
        1 => Just(Ending::Failed(Delivery::NotSent)),
        2 => Just(Ending::Failed(Delivery::Unknown)),
    ];
    let purge = || select(PURGES.to_vec());
    let drift = (client(), purge()).prop_map(|(who, by)| Step::Drift(RATES + who, Some(by)));
    let pass = select(vec![1, 5, 59, 60, 300, 4_000]);
    prop_oneof![
        20 => fixed_ask().prop_map(Step::Start),
        4 => any::<Index>().prop_map(Step::Apply),
        20 => (any::<Index>(), ending).prop_map(|(which, how)| Step::Answer(which, how)),
        3 => any::<Index>().prop_map(Step::Land),
        2 => any::<Index>().prop_map(Step::Leave),
        2 => pass.prop_map(|seconds| Step::Pass(1_000 * seconds)),
        3 => drift,
        1 => purge().prop_map(Step::Purge),
    ]
}

/// Calls of sessions to sets that share state, with lifetimes that are learned.
pub(crate) fn learned() -> impl Strategy<Value = Script> {
    let shared = prop::bool::weighted(0.25);
    let steps = prop::collection::vec(learned_step(), 1..100);
    (shared, steps).prop_map(|(shared, steps)| Script {
        setting: Setting {
            shared,
            style: STYLES[1],
            rules: 0,
            store: 1 << 20,
        },
        steps,
    })
}

fn learned_ask() -> impl Strategy<Value = Ask> {
    let key = || prop_oneof![4 => Just(0_usize), 1 => Just(1_usize)];
    let client = prop_oneof![3 => Just(3), 3 => Just(4), 2 => Just(5), 1 => 6..CLIENTS.len()];
    let set = prop_oneof![5 => Just(2), 3 => Just(3), 1 => Just(4), 4 => 5..SETS.len()];
    let action = prop_oneof![
        8 => key().prop_map(Action::Get),
        3 => Just(Action::Next),
        3 => (key(), 0..2_u64).prop_map(|(key, value)| Action::Set(key, value)),
        1 => key().prop_map(Action::Bump),
    ];
    let at_once = prop::bool::weighted(0.4);
    (client, set, action, at_once).prop_map(|(client, set, action, at_once)| Ask {
        at_once,
        ..Ask::new(client, set, action)
    })
}

fn learned_step() -> impl Strategy<Value = Step> {
    let ending =
        prop_oneof![15 => Just(Ending::Well), 1 => Just(Ending::Failed(Delivery::Unknown))];
    let cell = prop_oneof![6 => Just(8_usize), 2 => Just(10), 4 => Just(12), 3 => 8..CELLS];
    let pass = prop_oneof![
        4 => select(vec![1, 50, 100, 250]),
        3 => select(vec![499, 500, 501]),
        2 => select(vec![1_000, 3_000, 10_000]),
        1 => Just(60_000),
    ];
    prop_oneof![
        12 => learned_ask().prop_map(Step::Start),
        2 => any::<Index>().prop_map(Step::Apply),
        6 => (any::<Index>(), ending).prop_map(|(which, how)| Step::Answer(which, how)),
        1 => any::<Index>().prop_map(Step::Land),
        3 => cell.prop_map(|cell| Step::Drift(cell, None)),
        1 => any::<Index>().prop_map(Step::Leave),
        5 => pass.prop_map(Step::Pass),
    ]
}
