//! What is said of second attempts, loops, limits and what to verify with: read, and refused.

use std::time::Duration;

use callward::limit::Cap;

use callward::limit::Shed;
use callward::{Annotations, ToolName};

use super::*;

#[test]
fn what_makes_no_sense_is_refused_at_its_line_and_key() {
    are_refused(
        r#"
[hedge] ⏎ percentile = 100 # hedge.percentile: between 50 and 99
[loop_guard] ⏎ failures = 0 # loop_guard.failures: 1 or more
[loop_guard] ⏎ window = "0s" # loop_guard.window: nothing is in a row
[loop_guard] ⏎ without_session = "refuse" # loop_guard.without_session: `by_principal`
[limits] ⏎ tools = 3 # limits.tools: a boolean
[limits] ⏎ per_principal = 0 # limits.per_principal: above 0
[limits] ⏎ per_principal = nan # limits.per_principal: above 0
[limits] ⏎ max_wait = "25h" # limits.max_wait: at most a day
[limits] ⏎ attempt_timeout = "0s" # limits.attempt_timeout: more than zero
[limits] ⏎ attempt_timeout = "2d" # limits.attempt_timeout: at most a day
[limits] ⏎ progress_cap = 0 # limits.progress_cap: use 1 for no extension
[limits] ⏎ progress_cap = -1 # limits.progress_cap: a number of times
[limits] ⏎ progress_cap = "far" # limits.progress_cap: "30m"
[limits] ⏎ progress_cap = "0s" # limits.progress_cap: 1 times the timeout
[limits] ⏎ progress_cap = "2d" # limits.progress_cap: at most a day
[limits] ⏎ progress_cap = true # limits.progress_cap: "30m"
"#,
    );
}

#[test]
fn what_makes_no_sense_of_a_server_is_refused_at_its_line_and_key() {
    are_refused(
        r#"
[servers.b] ⏎ command = "x" ⏎ max_waiting = -1 # servers.b.max_waiting: expected a whole number
[servers.b] ⏎ command = "x" ⏎ shed = "all" # servers.b.shed: `newest` or `oldest`
[servers.b] ⏎ command = "x"
  max_concurrent_per_tool = 0 # servers.b.max_concurrent_per_tool: 1 or more
[servers.b] ⏎ command = "x" ⏎ calls_per_minute = 0.0 # servers.b.calls_per_minute: above 0
[servers.b] ⏎ command = "x" ⏎ idempotency_keys = "yes" # servers.b.idempotency_keys: a boolean
[servers.b] ⏎ command = "x" ⏎ [servers.b.tools.t]
  max_concurrent = 0 # servers.b.tools.t.max_concurrent: 1 or more
[servers.b] ⏎ command = "x" ⏎ [servers.b.tools.t]
  max_concurrent = "2" # servers.b.tools.t.max_concurrent: a whole number
[servers.b] ⏎ command = "x" ⏎ [servers.b.tools.t]
  verify_with = true # servers.b.tools.t.verify_with: as a string
[servers.b] ⏎ command = "x" ⏎ [servers.b.tools.t]
  verify_with = "" # servers.b.tools.t.verify_with: tool name
[servers.b] ⏎ command = "x" ⏎ [servers.b.tools.t]
  verify_with = "t" # servers.b.tools.t.verify_with: another tool
"#,
    );
}

#[test]
fn one_fault_hides_no_other() {
    let error = parse(
        "[hedge]\npercentile = 1\nenabled = 3\n[loop_guard]\nfailures = 0\nwindow = \"2d\"\n\
         wiat = 1\n[limits]\nper_principal = -1\nmax_wait = \"2d\"\nburts = 0\n[servers.a]\n\
         command = \"x\"\n",
    )
    .err()
    .unwrap();
    let lines: Vec<_> = error
        .faults()
        .iter()
        .filter_map(|fault| fault.line)
        .collect();
    assert_eq!(lines, [2, 3, 5, 6, 7, 9, 10, 11], "{error}");
}

#[test]
fn the_servers_of_a_set_verify_with_the_same_tool() {
    let pair = |first: &str, second: &str| {
        let server = |name: &str, says: &str| {
            format!(
                "[servers.{name}]\ncommand = \"x\"\nset = \"s\"\n[servers.{name}.tools.pay]\n{says}\n"
            )
        };
        server("b", first) + &server("c", second)
    };
    let gets = "verify_with = \"get_payment\"";
    is_refused(
        &pair(gets, "verify_with = \"list_payments\""),
        10,
        "servers.c.tools.pay.verify_with",
        "the same tool to verify with as in `servers.b`",
    );
    is_refused(
        &pair(gets, "destructiveHint = true"),
        9,
        "servers.c.tools.pay",
        "hints, rules and scopes",
    );
    // how many calls each gets at once is its own
    for other in [gets, "max_concurrent = 2"] {
        let text = pair(&format!("{gets}\nmax_concurrent = 1"), other);
        parse(&text).unwrap();
    }
}

#[test]
fn what_is_said_is_read() {
    let config = parse(
        "[hedge]\nenabled = true\npercentile = 90\n[loop_guard]\nenabled = false\n[limits]\n\
         per_principal = 120\nmax_wait = \"0s\"\nattempt_timeout = \"90s\"\nprogress_cap = \"30m\"\n\
         [servers.a]\ncommand = \"x\"\nmax_waiting = 0\nshed = \"oldest\"\ncalls_per_minute = 30\n\
         idempotency_keys = true\n[servers.a.tools.pay]\n\
         verify_with = \"list_payments\"\nmax_concurrent = 2\n[servers.b]\ncommand = \"x\"\n\
",
    )
    .unwrap();
    let hedge = HedgeConfig::default().with_percentile(90);
    assert_eq!(config.hedge.get(), Some(hedge));
    assert_eq!(config.loop_guard.get(), None);
    let limits = config.limits.layers();
    assert_eq!(limits.rate.per_principal, Some(120.0));
    assert_eq!(limits.rate.max_wait, Duration::ZERO);
    assert_eq!(limits.attempt_timeout, Some(Duration::from_secs(90)));
    assert_eq!(limits.progress_cap, Cap::At(Duration::from_secs(1800)));
    let [a, b] = &config.servers[..] else {
        panic!("two servers expected");
    };
    let (ours, other) = (&a.table, &b.table);
    assert_eq!((ours.max_waiting, ours.shed), (0, Shed::Oldest));
    assert_eq!(ours.calls_per_minute, Some(30.0));
    assert_eq!(
        (ours.idempotency_keys, other.idempotency_keys),
        (Some(true), None)
    );
    let pay = a.tools.values().next().unwrap();
    assert_eq!(pay.verify_with, ToolName::new("list_payments").ok());
    assert_eq!(pay.max_concurrent, Some(2));
    assert_eq!(pay.hints, Annotations::default());
}

#[test]
fn changed_keys_are_those_that_differ_from_the_defaults() {
    let config = parse("[servers.a]\ncommand = \"x\"\n").unwrap();
    assert_eq!(config.changed(), Keys::new());
    assert_eq!(config.changed_of(&config.servers[0]), Keys::new());
    let config = parse(
        "call_deadline = \"1m\"\n[hedge]\nenabled = true\n[loop_guard]\n\
         without_session = \"by_principal\"\n[limits]\nprogress_cap = 3\n[retry]\nbudget = 0.5\n\
         jitter = \"none\"\n[breaker]\nslow_after = \"1s\"\n[breaker.server]\nfailures = 9\n\
         [discovery]\ntimeout = \"9s\"\n[http]\ndrain = \"1s\"\n[admin]\nlisten = \"7\"\n\
         [audit]\nfsync = \"never\"\n[cache]\nburst = \"1s\"\nfreshness = \"fixed\"\n\
         max_bytes = \"8MiB\"\npartition = \"shared\"\nsettle = \"20s\"\nttl = \"1m\"\n\
         [lexicon]\nread = [\"skim\"]\n\
         [servers.a]\ncommand = \"x\"\nshed = \"oldest\"\nmax_waiting = 5\n\
         idempotency_keys = false\nmax_message = \"1MiB\"\ninstances = \"principal\"\n\
         state = \"own\"\nttl = \"5m\"\n[servers.a.tools.pay]\nmax_concurrent = 2\n",
    )
    .unwrap();
    let expected = serde_json::json!({
        "call_deadline": "1m",
        "hedge": {"enabled": true},
        "loop_guard": {"without_session": "by_principal"},
        "limits": {"progress_cap": 3},
        "retry": {"budget": 0.5, "jitter": "none"},
        "breaker": {"slow_after": "1s", "server.failures": 9},
        "discovery": {"timeout": "9s"},
        "http": {"drain": "1s"},
        "admin": {"listen": "127.0.0.1:7"},
        "audit": {"fsync": "never"},
        "cache": {
            "burst": "1s", "freshness": "fixed", "max_bytes": "8.0 MiB", "partition": "shared",
            "settle": "20s", "ttl": "1m",
        },
        "lexicon": {"read": ["skim"]},
    });
    assert_eq!(serde_json::Value::Object(config.changed()), expected);
    let expected = serde_json::json!({
        "idempotency_keys": false, "max_message": "1.0 MiB", "max_waiting": 5, "shed": "oldest",
        "instances": "principal", "state": "own", "ttl": "5m", "tools.pay.max_concurrent": 2,
    });
    let changed = config.changed_of(&config.servers[0]);
    assert_eq!(serde_json::Value::Object(changed), expected);
}
