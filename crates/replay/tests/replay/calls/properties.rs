//! For any calls in any order, ours is never stale and swallows no write.

use std::collections::BTreeMap;

use callward_replay::calls::Options;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::cases::replay;
use super::model;

#[derive(Debug, Clone, Copy)]
enum Step {
    Get(u8),
    List,
    /// Adds to a key: each time it runs, it has an effect.
    Add(u8, u8),
    /// Sets a key; may be labelled idempotent.
    Set(u8, u8),
    /// A write that says it failed, and did half of its work.
    Break(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let key = 0..3_u8;
    prop_oneof![
        5 => key.clone().prop_map(Step::Get),
        2 => Just(Step::List),
        1 => (key.clone(), 1..3_u8).prop_map(|(key, by)| Step::Add(key, by)),
        2 => (key.clone(), 0..3_u8).prop_map(|(key, to)| Step::Set(key, to)),
        1 => key.prop_map(Step::Break),
    ]
}

/// A server over a few numbers, recorded.
#[derive(Default)]
struct Server(BTreeMap<u8, u32>);

impl Server {
    fn call(&mut self, step: Step) -> Value {
        let (tool, args) = match step {
            Step::Get(key) => ("get", json!({"key": key})),
            Step::List => ("list", json!({})),
            Step::Add(key, by) => ("add", json!({"key": key, "by": by})),
            Step::Set(key, to) => ("set", json!({"key": key, "to": to})),
            Step::Break(key) => ("add", json!({"key": key, "by": 1})),
        };
        let result = match step {
            Step::Get(key) => json!(self.0.get(&key)),
            Step::List => json!(self.0),
            Step::Add(key, by) => {
                *self.0.entry(key).or_default() += u32::from(by);
                json!(self.0[&key])
            }
            Step::Set(key, to) => {
                self.0.insert(key, to.into());
                json!("set")
            }
            Step::Break(key) => {
                *self.0.entry(key).or_default() += 1;
                json!("broke off")
            }
        };
        let write = !matches!(step, Step::Get(_) | Step::List);
        // an unknown key is a failure, as with real servers
        let error = result.is_null() || matches!(step, Step::Break(_));
        let result = result.to_string();
        // any digest that distinguishes results
        let digest = result.bytes().fold(7_u128, |sum, byte| {
            sum.wrapping_mul(0x0100_0000_0000_0000_01b3)
                .wrapping_add(byte.into())
        });
        let mut call = json!({
            "tool": tool, "args": args, "write": write, "error": error,
            "result_sha1": format!("{digest:040x}"), "result_bytes": result.len(),
        });
        if tool == "set" {
            call["idempotent"] = json!(true);
        }
        call
    }
}

/// Steps of several sessions, in one order.
fn recorded(steps: &[(u8, Step)], one_state: bool) -> Vec<Value> {
    let mut servers: BTreeMap<u8, Server> = BTreeMap::new();
    steps
        .iter()
        .map(|(session, step)| {
            let server = if one_state { 0 } else { *session };
            let mut call = servers.entry(server).or_default().call(*step);
            call["session"] = json!(session.to_string());
            call
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn ours_is_never_stale_and_swallows_no_write(
        steps in vec((0..3_u8, step()), 1..60),
        one_state in any::<bool>(),
    ) {
        let lines = recorded(&steps, one_state);
        let mut options = Options::default();
        if one_state {
            options.share_sessions = true;
        }
        let replayed = replay(&lines, &options);
        let ours = &replayed.policies[0];
        prop_assert_eq!(ours.stale, Some(0));
        prop_assert_eq!(ours.writes_swallowed, 0);
        if !one_state {
            let flush = model::flush(lines.iter().map(ToString::to_string));
            let theirs = replayed.policy("flush on any write").unwrap();
            prop_assert_eq!((theirs.hits, theirs.stale), (flush.hits, Some(flush.stale)));
            // a failed write may still take effect, so ours stores nothing
            prop_assert!(ours.hits - ours.repeats_answered >= flush.hits_without_failed_write);
        }
    }
}

#[test]
fn the_same_check_finds_a_blind_cache() {
    let steps = [
        (0, Step::Add(1, 1)),
        (0, Step::Get(1)),
        (0, Step::Add(1, 1)),
        (0, Step::Get(1)),
    ];
    let replayed = replay(&recorded(&steps, false), &Options::default());
    let blind = replayed.policy("blind, TTL").unwrap();
    assert_eq!((blind.stale, blind.writes_swallowed), (Some(2), 1));
}
