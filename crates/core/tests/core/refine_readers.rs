//! However a server reads the arguments, the plan is never laxer than what that server would do.
//!
//! Texts are made with duplicate members, names in several cases, nulls, large numbers and objects
//! packed into strings. A handful of readers as they are found in the wild make a clean value of
//! each. What the clean value gets is the least that the text itself must get.

use std::fmt::Write;

use callward_core::infer::Inferred;
use callward_core::refine::{Applied, ArgumentRule, Condition, Refinements, When};
use callward_core::resolve::{Hints, Trust, resolve};
use callward_core::{Annotations, CallPlan, FingerprintKey, Profile};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::properties::any::laxity;
use crate::stated;

/// JSON as it is written: members in their order, duplicates included, numbers as spelled.
#[derive(Debug, Clone)]
enum Written {
    Plain(&'static str),
    Packed(Box<Self>),
    Array(Vec<Self>),
    Object(Vec<(&'static str, Self)>),
}

const NAMES: [&str; 6] = ["action", "Action", "\u{212a}ind", "target", "kind", "KIND"];
const PLAIN: &str =
    r#"null true 1 1.0 "1" "list" "delete" "draft" 9007199254740993 9007199254740992 -0.0 """#;

fn written() -> impl Strategy<Value = Written> {
    let plain = prop::sample::select(PLAIN.split(' ').collect::<Vec<_>>()).prop_map(Written::Plain);
    let value = plain.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            members(inner.clone()),
            prop::collection::vec(inner.clone(), 0..3).prop_map(Written::Array),
            inner.prop_map(|inner| Written::Packed(Box::new(inner))),
        ]
    });
    prop_oneof![9 => members(value.clone()), 1 => value]
}

fn members(value: impl Strategy<Value = Written> + 'static) -> impl Strategy<Value = Written> {
    prop::collection::vec((prop::sample::select(&NAMES[..]), value), 0..5).prop_map(Written::Object)
}

impl Written {
    fn text(&self) -> String {
        match self {
            Self::Plain(text) => (*text).to_owned(),
            Self::Packed(inner) => Value::String(inner.text()).to_string(),
            Self::Array(items) => {
                let items: Vec<_> = items.iter().map(Self::text).collect();
                format!("[{}]", items.join(","))
            }
            Self::Object(members) => {
                let members: Vec<_> = members
                    .iter()
                    .map(|(name, value)| format!("{}:{}", Value::from(*name), value.text()))
                    .collect();
                format!("{{{}}}", members.join(","))
            }
        }
    }

    /// The same value in another spelling: members turned round, white space, escapes.
    fn respelled(&self, out: &mut String) {
        match self {
            Self::Plain(text) => write!(out, " {text}\t").unwrap(),
            Self::Packed(inner) => write!(out, "{}", Value::String(inner.text())).unwrap(),
            Self::Array(items) => {
                out.push_str("[ ");
                for (index, item) in items.iter().enumerate() {
                    out.push_str(if index == 0 { "" } else { ",\n" });
                    item.respelled(out);
                }
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                for (index, (name, value)) in members.iter().rev().enumerate() {
                    out.push_str(if index == 0 { " \"" } else { " , \"" });
                    for unit in name.encode_utf16() {
                        write!(out, "\\u{unit:04x}").unwrap();
                    }
                    out.push_str("\" : ");
                    value.respelled(out);
                }
                out.push('}');
            }
        }
    }
}

/// How a server reads.
#[derive(Debug, Clone, Copy)]
struct Reader {
    first_wins: bool,
    any_case: bool,
    drops_null: bool,
    rounds: bool,
    unpacks: bool,
}

fn readers() -> impl Iterator<Item = Reader> {
    (0..32_u8).map(|bits| Reader {
        first_wins: bits & 1 != 0,
        any_case: bits & 2 != 0,
        drops_null: bits & 4 != 0,
        rounds: bits & 8 != 0,
        unpacks: bits & 16 != 0,
    })
}

impl Reader {
    fn read(self, written: &Written) -> Value {
        match written {
            Written::Plain(text) => {
                let value: Value = serde_json::from_str(text).unwrap();
                match value.as_f64() {
                    #[expect(clippy::cast_possible_truncation, reason = "what rounding readers do")]
                    Some(double) if self.rounds => Value::from(double as i64),
                    _ => value,
                }
            }
            Written::Packed(inner) => match &**inner {
                Written::Array(_) | Written::Object(_) if self.unpacks => self.read(inner),
                inner => Value::String(inner.text()),
            },
            Written::Array(items) => items.iter().map(|item| self.read(item)).collect(),
            Written::Object(members) => {
                let mut object = Map::new();
                for (name, value) in members {
                    let value = self.read(value);
                    let name = match *name {
                        "Action" if self.any_case => "action",
                        "KIND" | "\u{212a}ind" if self.any_case => "kind",
                        name => name,
                    };
                    if !(self.first_wins && object.contains_key(name)) {
                        object.insert(name.to_owned(), value);
                    }
                }
                object.retain(|_, value| !(self.drops_null && value.is_null()));
                Value::Object(object)
            }
        }
    }
}

fn conditions() -> impl Strategy<Value = (&'static str, Condition)> {
    let keys = "action target /target/kind /target/0 /action/kind";
    let key = prop::sample::select(keys.split(' ').collect::<Vec<_>>());
    let equal =
        json!(["list", "delete", 1, 9_007_199_254_740_992_u64, 0, {"kind": "draft"}, [1], {}]);
    let condition = prop_oneof![
        prop::sample::select(equal.as_array().unwrap().clone()).prop_map(Condition::equals),
        Just(Condition::one_of(["draft", "list"]).unwrap()),
        Just(Condition::matches("d.*").unwrap()),
        Just(Condition::present()),
        Just(Condition::absent()),
    ];
    (key, condition)
}

fn hints() -> impl Strategy<Value = Annotations> {
    let sets = [
        "readOnly=true",
        "readOnly=true requiresConfirmation=true",
        "readOnly=true securityLevel=restricted",
        "destructive=true",
        "destructive=false idempotent=true",
        "destructive=false rateLimitHint=3",
        "destructive=false rateLimitHint=5 costHint=3 tags=a,b",
        "readOnly=true costHint=7 tags=b,c",
    ];
    prop::sample::select(sets.to_vec()).prop_map(stated)
}

fn rules() -> impl Strategy<Value = (CallPlan, Refinements)> {
    let rule = (conditions(), prop::option::of(conditions()), hints()).prop_map(
        |((key, condition), second, hints)| {
            let when = When::argument(key, condition).unwrap();
            let when = match second {
                Some((key, condition)) => when.and(key, condition).unwrap(),
                None => when,
            };
            ArgumentRule::new(when, hints).unwrap()
        },
    );
    (hints(), prop::collection::vec(rule, 1..4)).prop_map(|(own, rules)| {
        let (inferred, declared) = (Inferred::default(), Annotations::default());
        let said = Hints {
            operator: Some(&own),
            ..Hints::new(&inferred, &declared, Trust::Standard)
        };
        let profile = Profile::standard();
        let plan = CallPlan::derive(&resolve(&said), &profile);
        let bound = Refinements::bind(&rules, &said, &plan, &profile);
        (plan, bound)
    })
}

fn plan<'a>(own: &'a CallPlan, rules: &'a Refinements, text: &str) -> &'a CallPlan {
    rules
        .plan(rules.apply(text.as_bytes()))
        .map_or(own, |plan| plan)
}

/// Returns `true` if `one` is in no respect laxer than `other`.
fn at_least(one: &CallPlan, other: &CallPlan) -> bool {
    let mut laxities = laxity(one).into_iter().zip(laxity(other));
    let mut tags = other.route.tags.iter();
    laxities.all(|(one, other)| one <= other)
        && tags.all(|tag| one.route.tags.contains(tag))
        && one.audit.open_world >= other.audit.open_world
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn no_reader_ever_does_more_than_the_plan_is_made_for(
        (own, rules) in rules(),
        written in written(),
    ) {
        let text = written.text();
        let given = plan(&own, &rules, &text);
        for reader in readers() {
            let value = reader.read(&written);
            if !value.is_object() {
                continue;
            }
            let meant = plan(&own, &rules, &value.to_string());
            prop_assert!(
                at_least(given, meant),
                "{text}\nas {reader:?} reads it: {value}\ngiven {given}\nmeant {meant}"
            );
        }
    }

    /// Nor do they change a verdict, so calls that share a cache key share a plan.
    #[test]
    fn order_white_space_and_escapes_change_no_key(
        (own, rules) in rules(),
        written in written(),
    ) {
        let (one, mut other) = (written.text(), String::new());
        written.respelled(&mut other);
        let applied = rules.apply(one.as_bytes());
        prop_assert_eq!(applied, rules.apply(other.as_bytes()), "{} {}", one, other);
        prop_assert_eq!(plan(&own, &rules, &one), plan(&own, &rules, &other));
        let key = FingerprintKey::new(1, 2);
        if let Some(first) = key.json(one.as_bytes()) {
            prop_assert_eq!(Some(first), key.json(other.as_bytes()));
        }
    }

    #[test]
    fn no_bytes_are_too_odd(
        (own, rules) in rules(),
        bytes in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let applied = rules.apply(&bytes);
        let given = rules.plan(applied).map_or(&own, |plan| plan);
        if matches!(applied, Applied::Strictest(_)) {
            prop_assert!(at_least(given, &own));
            for rule in rules.rules() {
                prop_assert!(at_least(given, &rule.plan));
            }
        }
    }
}
