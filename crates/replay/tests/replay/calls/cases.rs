//! Small recordings, one per rule.

use std::io::Cursor;
use std::time::Duration;

use callward_cache::ToolScopes;
use callward_core::{ToolDefinition, ToolName};
use callward_replay::ReplayError;
use callward_replay::calls::{self, Figures, Options, Replayed};
use callward_replay::trace::Calls;
use serde_json::{Value, json};

pub(crate) fn replay(lines: &[Value], options: &Options) -> Replayed {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let calls = Calls::from_reader("test", Cursor::new(text)).unwrap();
    let replayed = calls::replay(calls, options, &mut |_| ()).unwrap();
    assert_eq!((replayed.calls, replayed.left_out), (lines.len() as u64, 0));
    replayed
}

/// A read with this result.
fn read(id: u64, result: u8) -> Value {
    json!({"session": "s", "tool": "get", "args": {"id": id}, "write": false,
           "result_sha1": format!("{result:040x}"), "result_bytes": 200})
}

fn write(id: u64, value: u64) -> Value {
    json!({"session": "s", "tool": "put", "args": {"id": id, "value": value}, "write": true,
           "result_sha1": format!("{:040x}", 0xff), "result_bytes": 200})
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "`with(call, json!({}))` reads better"
)]
fn with(mut call: Value, members: Value) -> Value {
    let members = members.as_object().unwrap().clone();
    call.as_object_mut().unwrap().extend(members);
    call
}

/// Hits, joined, stale hits, writes swallowed.
fn counts(of: &Figures) -> (u64, u64, Option<u64>, u64) {
    (of.hits, of.joined, of.stale, of.writes_swallowed)
}

/// Replays with the default options.
fn ours(lines: &[Value]) -> (u64, u64, Option<u64>, u64) {
    counts(&replay(lines, &Options::default()).policies[0])
}

#[test]
fn a_repeated_read_is_a_hit_until_a_write() {
    let lines = [
        read(1, 1),
        read(1, 1),
        write(1, 5),
        write(1, 5),
        read(1, 2),
        read(1, 2),
    ];
    let replayed = replay(&lines, &Options::default());
    assert_eq!(counts(&replayed.policies[0]), (2, 0, Some(0), 0));
    let named = |name: &str| counts(replayed.policy(name).unwrap());
    assert_eq!(named("no cache"), (0, 0, Some(0), 0));
    assert_eq!(named("flush on any write"), (2, 0, Some(0), 0));
    for blind in ["TTL", "LRU", "FIFO", "LFU", "S3-FIFO", "W-TinyLFU"] {
        let name = format!("blind, {blind}");
        assert_eq!(named(&name), (4, 0, Some(2), 1), "{name}");
    }
    assert_eq!(replayed.policies.len(), 9);
}

#[test]
fn failures_are_not_stored_and_a_failed_write_invalidates() {
    let failed = |call| with(call, json!({"error": true}));
    let lines = [
        failed(read(1, 9)),
        read(1, 1),
        failed(write(1, 5)),
        read(1, 1),
        failed(write(1, 5)),
    ];
    let replayed = replay(&lines, &Options::default());
    for figures in &replayed.policies {
        let blind = u64::from(figures.policy.starts_with("blind"));
        let name = &figures.policy;
        assert_eq!(counts(figures), (blind, 0, Some(0), 0), "{name}");
    }
}

#[test]
fn without_recorded_results_stale_is_unknown() {
    let no_result = json!({"result_sha1": null, "result_bytes": null});
    let bare = with(read(1, 1), no_result);
    let replayed = replay(&[bare.clone(), bare], &Options::default());
    assert_eq!(counts(&replayed.policies[0]), (1, 0, None, 0));
    assert!(replayed.grid().to_string().contains("unknown"));
    let json = serde_json::to_value(&replayed).unwrap();
    assert_eq!(json["policies"][0]["stale"], Value::Null);
}

#[test]
fn sessions_are_separate_unless_shared() {
    let other = with(read(1, 1), json!({"session": "t"}));
    let write_there = with(write(1, 1), json!({"session": "t"}));
    let lines = [read(1, 1), other, write_there, read(1, 1)];
    assert_eq!(replay(&lines, &Options::default()).policies[0].hits, 1);
    assert_eq!(replay(&lines, &Options::default()).sessions, 2);
    let mut shared = Options::default();
    shared.share_sessions = true;
    assert_eq!(replay(&lines, &shared).policies[0].hits, 1);
    assert_eq!(replay(&lines[..2], &Options::default()).policies[0].hits, 0);
    assert_eq!(replay(&lines[..2], &shared).policies[0].hits, 1);
    let elsewhere = with(read(1, 1), json!({"trace": "t"}));
    let apart = replay(&[read(1, 1), elsewhere], &shared);
    assert_eq!(apart.policies[0].hits, 0);
}

#[test]
fn sessions_of_a_named_set_share_state_but_not_results() {
    let of = |call, session: &str, principal: &str| {
        with(
            call,
            json!({"session": session, "set": "s", "principal": principal}),
        )
    };
    let lines = [
        of(read(1, 1), "1", "p"),
        of(read(1, 1), "2", "p"),
        of(read(1, 1), "3", "q"),
        of(write(1, 2), "3", "q"),
        of(read(1, 2), "1", "p"),
    ];
    let replayed = replay(&lines, &Options::default());
    assert_eq!(replayed.sessions, 3);
    assert_eq!(counts(&replayed.policies[0]), (1, 0, Some(0), 0));
}

#[test]
fn calls_of_a_layer_are_concurrent_and_join() {
    let at_once = |layer: u64| with(read(1, 1), json!({"layer": layer}));
    let lines = [at_once(0), at_once(0), at_once(0), at_once(1)];
    assert_eq!(ours(&lines), (1, 2, Some(0), 0));
    // a write of the layer is in flight: no read beside it may be shared
    let beside = with(write(1, 1), json!({"layer": 0}));
    let lines = [beside, at_once(0), at_once(0)];
    assert_eq!(ours(&lines), (0, 0, Some(0), 0));
}

#[test]
fn only_a_labelled_idempotent_write_is_answered() {
    let set = |value| with(write(1, value), json!({"idempotent": true}));
    let lines = [set(1), set(1), set(2), set(1)];
    let replayed = replay(&lines, &Options::default());
    let ours = &replayed.policies[0];
    assert_eq!((ours.repeats_answered, ours.writes_swallowed), (1, 0));
    let blind = replayed.policy("blind, TTL").unwrap();
    assert_eq!((blind.repeats_answered, blind.writes_swallowed), (1, 1));
    assert_eq!((blind.reads, blind.calls), (0, 4));
    let plain = replay(&[write(1, 1), write(1, 1)], &Options::default());
    let ours = &plain.policies[0];
    assert_eq!((ours.repeats_answered, ours.hits), (0, 0));
}

#[test]
fn plans_come_from_labels_names_or_definitions() {
    let unlabelled = |tool: &str| {
        let mut call = with(read(1, 1), json!({"tool": tool}));
        call.as_object_mut().unwrap().remove("write");
        call
    };
    let twice = |call: Value| [call.clone(), call];
    let hits = |call: Value, options: &Options| replay(&twice(call), options).policies[0].hits;
    let recorded = Options::default();
    assert_eq!(hits(unlabelled("get_order"), &recorded), 1);
    assert_eq!(hits(unlabelled("frobnicate"), &recorded), 0);
    let labelled = with(unlabelled("frobnicate"), json!({"write": false}));
    assert_eq!(hits(labelled.clone(), &recorded), 1);
    let mut inferred = Options::default();
    inferred.infer = true;
    assert_eq!(hits(labelled.clone(), &inferred), 0);
    let definition = json!({"name": "frobnicate", "annotations": {"readOnlyHint": true}});
    inferred.tools = vec![ToolDefinition::from_json(definition.to_string()).unwrap()];
    assert_eq!(hits(labelled, &inferred), 1);
}

#[test]
fn a_write_invalidates_only_its_scopes() {
    let scopes = |texts: [&'static str; 1], write| match write {
        false => ToolScopes::reading(texts).unwrap(),
        true => ToolScopes::writing(texts).unwrap(),
    };
    let mut options = Options::default();
    options.scopes = vec![
        (ToolName::new("get").unwrap(), scopes(["item:{id}"], false)),
        (ToolName::new("put").unwrap(), scopes(["item:{id}"], true)),
    ];
    let lines = [read(1, 1), read(2, 1), write(1, 5), read(1, 2), read(2, 1)];
    let named = replay(&lines, &options);
    assert_eq!(counts(&named.policies[0]), (1, 0, Some(0), 0));
    let unnamed = replay(&lines, &Options::default());
    assert_eq!(unnamed.policies[0].hits, 0);
}

#[test]
fn sessions_over_the_limit_lose_hits_only() {
    let of = |session: usize| with(read(1, 1), json!({"session": session.to_string()}));
    let lines: Vec<_> = (0..1_100).chain([1_099, 0]).map(of).collect();
    assert_eq!(ours(&lines), (1, 0, Some(0), 0));
}

#[test]
fn recorded_times_advance_the_clock() {
    let at = |ms: u64| with(read(1, 1), json!({"at_ms": ms, "duration_ms": 40.5}));
    let lines = [at(0), at(10_000), at(299_000), at(301_000)];
    let replayed = replay(&lines, &Options::default());
    for name in ["callward", "flush on any write", "blind, TTL"] {
        assert_eq!(replayed.policy(name).unwrap().hits, 2, "{name}");
    }
    let ours = &replayed.policies[0];
    assert!((ours.saved_ms - 81.0).abs() < 1e-6, "{ours:?}");
    // begins while the first one is in flight
    let joined = replay(&[at(0), at(20)], &Options::default());
    assert_eq!(joined.policies[0].joined, 1);
}

#[test]
fn without_times_only_the_gap_advances_the_clock() {
    let lines = vec![read(1, 1); 5];
    assert_eq!(replay(&lines, &Options::default()).policies[0].hits, 4);
    let mut slow = Options::default();
    slow.gap = Duration::from_secs(200);
    assert_eq!(replay(&lines, &slow).policies[0].hits, 2);
}

#[test]
fn a_result_with_ttl_zero_or_over_the_limit_is_not_stored() {
    let lines = vec![with(read(1, 1), json!({"ttl_ms": 0})); 2];
    assert_eq!(replay(&lines, &Options::default()).policies[0].hits, 0);
    let huge = vec![with(read(1, 1), json!({"result_bytes": u64::MAX})); 2];
    assert_eq!(replay(&huge, &Options::default()).policies[0].hits, 0);
}

#[test]
fn a_write_with_unknown_outcome_blocks_the_cache() {
    let lost = with(write(1, 2), json!({"delivery": "unknown", "error": true}));
    let lines = [read(1, 1), lost, read(1, 1), read(1, 2)];
    assert_eq!(ours(&lines), (0, 0, Some(0), 0));
    let unsent = with(write(1, 2), json!({"delivery": "not_sent", "error": true}));
    let lines = [unsent, read(1, 1), read(1, 1)];
    assert_eq!(ours(&lines), (1, 0, Some(0), 0));
}

#[test]
fn invalid_lines_are_reported_and_skipped() {
    let text = format!("{}\nno json\n{}\n", read(1, 1), read(1, 1));
    let calls = Calls::from_reader("f", Cursor::new(text)).unwrap();
    let mut bad = Vec::new();
    let mut report = |error: &ReplayError| bad.push(error.to_string());
    let replayed = calls::replay(calls, &Options::default(), &mut report).unwrap();
    assert_eq!((replayed.calls, replayed.left_out), (2, 1));
    assert!(bad[0].starts_with("f:2: not a JSON object"), "{bad:?}");
    assert_eq!(replayed.policies[0].hits, 1);
}
