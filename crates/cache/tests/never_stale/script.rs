//! What clients ask for, what happens meanwhile, and in which setting.

use std::sync::{Arc, LazyLock};

use callward_cache::{CacheConfig, CacheLayer, Partition, ToolScopes};
use callward_core::{Delivery, SecurityLevel, Tool};
use callward_testkit::tool;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

use crate::world::{ACCOUNTS, NOTE, RATES, SETTLE};

pub(crate) const PRINCIPALS: usize = 3;

/// What a client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// One item.
    Get(usize),
    /// All items, and the note.
    List,
    Note,
    /// The rate of the caller; restricted.
    Rate,
    /// One account, of another replica set.
    Balance(usize),
    Set(usize, u64),
    WriteNote(u64),
    Bump(usize),
    Move(usize, usize),
    /// Changes an account and, if that is said, the item of the same number in the other set.
    Pay(usize),
    Wipe,
    /// Idempotent: gives one item the value of another.
    Copy(usize, usize),
}

impl Action {
    /// The number of the action's tool.
    fn number(self) -> usize {
        match self {
            Self::Get(_) => 0,
            Self::List => 1,
            Self::Note => 2,
            Self::Rate => 3,
            Self::Balance(_) => 4,
            Self::Set(..) => 5,
            Self::WriteNote(_) => 6,
            Self::Bump(_) => 7,
            Self::Move(..) => 8,
            Self::Pay(_) => 9,
            Self::Wipe => 10,
            Self::Copy(..) => 11,
        }
    }

    pub(crate) fn tool(self) -> &'static Arc<Tool> {
        &TOOLS[self.number()]
    }

    /// The keys a read looks at; empty for a write.
    pub(crate) fn reads(self, who: usize) -> Vec<usize> {
        match self {
            Self::Get(item) => vec![item],
            Self::List => vec![0, 1, NOTE],
            Self::Note => vec![NOTE],
            Self::Rate => vec![RATES + who],
            Self::Balance(account) => vec![ACCOUNTS + account],
            _ => Vec::new(),
        }
    }

    pub(crate) fn is_write(self) -> bool {
        self.reads(0).is_empty()
    }

    /// The arguments; a server takes all forms for the same.
    pub(crate) fn arguments(self, form: u8) -> Value {
        let spelled = |key: usize| match form {
            0 => json!(key),
            1 => json!(key.to_string()),
            _ => json!(format!(" {key}")),
        };
        match self {
            Self::Get(key) | Self::Balance(key) | Self::Bump(key) | Self::Pay(key) => {
                json!({ "key": spelled(key) })
            }
            Self::Set(key, value) => json!({ "key": spelled(key), "value": value }),
            Self::WriteNote(value) => json!({ "value": value }),
            Self::Move(from, to) | Self::Copy(from, to) => {
                json!({ "from": spelled(from), "to": spelled(to) })
            }
            Self::List | Self::Note | Self::Rate | Self::Wipe => json!({}),
        }
    }
}

/// The tools, in the order of their numbers.
static TOOLS: LazyLock<[Arc<Tool>; 12]> = LazyLock::new(|| {
    [
        tool("get").set("shop").read_only().build(),
        tool("list").set("shop").read_only().build(),
        tool("note").set("shop").read_only().build(),
        tool("rate")
            .set("shop")
            .read_only()
            .hint(|hints| {
                hints.security_level = Some(SecurityLevel::Restricted);
                hints.tags = Some(vec!["rates".into()]);
            })
            .build(),
        tool("balance").set("bank").read_only().build(),
        tool("set").set("shop").idempotent().build(),
        tool("write_note").set("shop").idempotent().build(),
        tool("bump").set("shop").build(),
        tool("move").set("shop").build(),
        tool("pay").set("bank").build(),
        tool("wipe").set("shop").destructive().build(),
        tool("copy").set("shop").idempotent().build(),
    ]
});

/// How scopes are named where they are.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Style {
    Templates,
    Tags,
    EachValue,
}

impl Style {
    /// What is true of a tool, by its number: what it reads if it is a read, or else what it
    /// writes.
    fn truth(self, number: usize) -> &'static [&'static str] {
        match (number, self) {
            (0 | 5 | 7, Self::Templates) => &["item:{key}"],
            (0 | 5 | 7 | 8 | 11, Self::Tags) => &["items"],
            (0 | 4 | 5 | 7 | 8 | 11, Self::EachValue) => &["{*}"],
            (1 | 10, Self::Templates) => &["item:0", "item:1", "notes"],
            (1 | 10, Self::Tags) => &["items", "notes"],
            (2 | 6, _) => &["notes"],
            (3, _) => &["fx"],
            (4, Self::Templates) => &["account:{key}"],
            (4, Self::Tags) => &["accounts"],
            (8, Self::Templates) => &["item:{from}", "item:{to}"],
            (11, Self::Templates) => &["item:{to}"],
            (9, Self::Templates) => &["account:{key}", "@shop/item:{key}"],
            (9, Self::Tags) => &["accounts", "@shop/items"],
            (9, Self::EachValue) => &["{*}", "@shop"],
            _ => &["*"],
        }
    }
}

/// How the cache is set up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    pub(crate) shared: bool,
    style: Style,
    /// Of which tools something is said: a bit each. One more says what `copy` reads.
    said: u16,
    /// In bytes: for all entries, or for two or three.
    store: u64,
}

impl Setting {
    pub(crate) fn says(&self, action: Action) -> bool {
        self.says_of(action.number())
    }

    fn says_of(&self, number: usize) -> bool {
        self.said & (1 << number) != 0
    }

    pub(crate) fn layer(&self) -> CacheLayer {
        let mut config = CacheConfig::default();
        config.max_bytes = self.store;
        config.settle = SETTLE;
        if self.shared {
            config.partition = Partition::Shared;
        }
        for (number, tool) in TOOLS.iter().enumerate() {
            if self.says_of(number) {
                let truth = self.style.truth(number).iter().copied();
                let mut scopes = match number {
                    0..=4 => ToolScopes::reading(truth),
                    _ => ToolScopes::writing(truth),
                }
                .unwrap();
                if number == 11 && self.says_of(12) {
                    let all = ToolScopes::reading(self.style.truth(1).iter().copied());
                    scopes.reads = all.unwrap().reads;
                }
                let rules = std::mem::take(&mut config.scopes);
                let (set, name) = (tool.set().clone(), tool.name().clone());
                config.scopes = rules.with(set, name, scopes);
            }
        }
        CacheLayer::new(config)
    }
}

/// One call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ask {
    pub(crate) action: Action,
    pub(crate) who: usize,
    pub(crate) form: u8,
    /// In seconds.
    pub(crate) patience: Option<u64>,
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
    Advance(u64),
    /// A rate changes behind the cache's back, and then is purged.
    Drift(usize, Purge),
    /// Something is purged that no entry depends on.
    Purge(Purge),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Ending {
    Well,
    ToolFailed,
    Failed(Delivery),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Purge {
    All,
    Set,
    Tool,
    Tag,
    /// By the name of a scope, if that is said, or else by the tag.
    Scope,
    Principal,
    /// By the end of the lifetime.
    Lapse,
}

/// A setting, and what happens in it.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) setting: Setting,
    pub(crate) steps: Vec<Step>,
}

pub(crate) fn script() -> impl Strategy<Value = Script> {
    let steps = prop::collection::vec(step(), 1..60);
    (setting(), steps).prop_map(|(setting, steps)| Script { setting, steps })
}

fn setting() -> impl Strategy<Value = Setting> {
    let style = select(vec![Style::Templates, Style::Tags, Style::EachValue]);
    // nothing, everything, or any of it
    let said = prop_oneof![Just(0), Just(u16::MAX), any::<u16>()];
    (any::<bool>(), style, said, select(vec![1 << 20, 1_600])).prop_map(
        |(shared, style, said, store)| Setting {
            shared,
            style,
            said,
            store,
        },
    )
}

fn action() -> impl Strategy<Value = Action> {
    let key = || prop_oneof![4 => Just(0_usize), 1 => Just(1_usize)];
    prop_oneof![
        8 => key().prop_map(Action::Get),
        2 => Just(Action::List),
        1 => Just(Action::Note),
        3 => Just(Action::Rate),
        2 => key().prop_map(Action::Balance),
        10 => (key(), 0..2_u64).prop_map(|(key, value)| Action::Set(key, value)),
        1 => (0..2_u64).prop_map(Action::WriteNote),
        2 => key().prop_map(Action::Bump),
        1 => (key(), key()).prop_map(|(from, to)| Action::Move(from, to)),
        2 => key().prop_map(Action::Pay),
        1 => Just(Action::Wipe),
        4 => key().prop_map(|from| Action::Copy(from, 1 - from)),
    ]
}

fn who() -> impl Strategy<Value = usize> {
    prop_oneof![4 => Just(0), 1 => 1..PRINCIPALS]
}

fn ask() -> impl Strategy<Value = Ask> {
    let form = prop_oneof![6 => Just(0), 1 => 1..3_u8];
    let patience = prop_oneof![5 => Just(None), 1 => select(vec![Some(1), Some(30)])];
    (action(), who(), form, patience).prop_map(|(action, who, form, patience)| Ask {
        action,
        who,
        form,
        patience,
    })
}

fn step() -> impl Strategy<Value = Step> {
    let ending = prop_oneof![
        10 => Just(Ending::Well),
        1 => Just(Ending::ToolFailed),
        1 => Just(Ending::Failed(Delivery::Answered)),
        1 => Just(Ending::Failed(Delivery::NotSent)),
        2 => Just(Ending::Failed(Delivery::Unknown)),
    ];
    let purge = || {
        select(vec![
            Purge::All,
            Purge::Set,
            Purge::Tool,
            Purge::Tag,
            Purge::Scope,
            Purge::Principal,
            Purge::Lapse,
        ])
    };
    prop_oneof![
        20 => ask().prop_map(Step::Start),
        4 => any::<Index>().prop_map(Step::Apply),
        20 => (any::<Index>(), ending).prop_map(|(which, how)| Step::Answer(which, how)),
        3 => any::<Index>().prop_map(Step::Land),
        2 => any::<Index>().prop_map(Step::Leave),
        2 => select(vec![1, 5, 59, 60, 300, 4_000]).prop_map(Step::Advance),
        3 => (who(), purge()).prop_map(|(who, by)| Step::Drift(who, by)),
        1 => purge().prop_map(Step::Purge),
    ]
}
