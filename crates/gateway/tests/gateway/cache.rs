//! The cache: what it counts, answers beyond their lifetime, answers that are checked, identical
//! calls at once, and writes whose end is not seen. Purging is in `tests/golden/running/purge.md`.

use std::path::Path;

use callward::telemetry::names::metric;
use futures_util::future::join_all;
use rmcp::ClientLifecycleMode;
use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::scrape::Scrape;
use crate::scripted::{Script, tool};
use crate::support::{Client, Gateway, Pipe, call, ends, file, said, text, until, within};

#[tokio::test]
async fn what_the_cache_counts_is_measured() {
    let gateway = Gateway::sample().await;
    for _ in 0..3 {
        gateway.call_order(1).await;
    }
    gateway.call_order(99).await;
    let note = json!({"order_id": 1, "text": "x"});
    gateway.call("orders__add_note", note).await;
    let lookups = |result: &str| {
        let labels = format!("callward_result=\"{result}\",callward_server_set=\"orders\"");
        format!("callward_cache_lookups_total{{{labels},gen_ai_tool_name=\"get_order\"}}")
    };
    let of = |labels: &str, tool: &str| {
        format!("{{{labels}callward_server_set=\"orders\",gen_ai_tool_name=\"{tool}\"}} 1")
    };
    let refused = of("callward_reason=\"tool_error\",", "get_order");
    gateway
        .measures(&[
            &format!("{} 2", lookups("hit")),
            &format!("{} 2", lookups("miss")),
            &format!("callward_cache_refusals_total{refused}"),
            &format!("callward_cache_stored_total{}", of("", "get_order")),
            &format!("callward_cache_invalidations_total{}", of("", "add_note")),
            "callward_cache_evictions_total{callward_reason=\"size\"} 0",
            "callward_cache_entries 1",
        ])
        .await;
    let scrape = Scrape::of(&gateway).await;
    assert!(scrape.value(metric::CACHE_SAVED) > 0.0);
}

const KEY: &str = "io.callward/cache";

#[tokio::test]
async fn calls_whose_metadata_differs_for_the_server_are_other_calls() {
    let server = Script {
        call: r#"x=${line#*'"com.example/x":"'}; says "run $runs ${x%%\"*}""#,
        ..Script::of_one("read")
    };
    let gateway = Gateway::fixed(&server.server("desk")).await;
    let x = |x: &str| json!({ "com.example/x": x });
    let mut named = x("a");
    named["claudecode/toolUseId"] = 1.into();
    named[KEY] = true.into();
    for (meta, expected) in [(x("a"), "run 1 a"), (x("b"), "run 2 b"), (named, "run 1 a")] {
        let answer = gateway.mcp_with("desk__read", &json!({}), &meta).await;
        assert_eq!(said(&answer), expected, "{meta}");
    }
    let long = x(&"y".repeat(17_000));
    let refused = gateway.mcp_with("desk__read", &json!({}), &long).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let client = gateway.connect(ClientLifecycleMode::Initialize).await;
    let params = json!({"name": "desk__read", "_meta": x("c")});
    let params = serde_json::from_value(params).unwrap();
    let answer = within("a call", client.call_tool(params)).await.unwrap();
    assert_eq!(said(&json!({ "result": answer })), "run 1 c");
}

/// The n-th call is answered with `run n`, which is good for a millisecond unless its arguments say
/// that it moves, or with `always` if they say so.
const ANSWERS: &str = r#"
case $line in
  *steady*) says always ;;
  *moves*) says "run $runs" ;;
  *) says "run $runs" ',"ttlMs":1' ;;
esac
"#;

#[tokio::test]
async fn the_last_answer_stands_in_for_a_server_that_died_and_says_so() {
    let alive = file("");
    let script = Script {
        each: "test -e \"$argument\" || exit 1",
        call: ANSWERS,
        argument: alive.path().to_str().unwrap(),
        ..Script::of_one("get_city")
    };
    let settings = "[cache]\nstale_if_error = \"1h\"\n[retry]\nmax_attempts = 1\n";
    let gateway = Gateway::fixed(&format!("{settings}{}", script.server("world"))).await;
    let city = async |name: &str| gateway.mcp("world__get_city", json!({"name": name})).await;
    assert_eq!(said(&city("x").await), "run 1");
    alive.close().unwrap();
    // the pipe breaks with the next call, and the one answer there was is served in its place
    let stale = until("an answer that is over", || async {
        let answer = city("x").await;
        let is_stale = answer["result"]["_meta"][KEY]["status"] == "stale";
        is_stale.then_some(answer)
    })
    .await;
    assert_eq!(said(&stale), "run 1");
    let meta = &stale["result"]["_meta"][KEY];
    let is_reported = meta["age_ms"].is_u64() && meta["reason"].is_string();
    assert!(is_reported, "{stale}");
    // what was never answered fails as it would without a cache
    assert!(city("y").await["error"].is_object());
    let view: Value = gateway.json("/api/cache").await;
    assert!(view["total"]["rescued"].as_u64() >= Some(1), "{view}");
    let done = ends(&[&["cache"], &gateway.here()[..]].concat()).await;
    assert!(text(&done.stdout).contains("rescued"), "{done:?}");
}

#[tokio::test]
async fn evidence_is_shown_in_metrics_in_tools_and_in_explain() {
    let script = Script {
        call: ANSWERS,
        ..Script::of_one("get_city")
    };
    let server = script.server("world");
    let config = format!("[cache]\nburst = \"0s\"\nstale_odds = 0.4\n{server}");
    let gateway = Gateway::configured(&config).await;
    let shown = async |args: &[&str]| {
        let done = ends(&[args, &gateway.here()].concat()).await;
        assert!(done.status.success(), "{}", text(&done.stderr));
        text(&done.stdout).to_owned()
    };
    let tool = "world__get_city";
    let twice = async |name: &str, n: u32| {
        for _ in 0..2 {
            gateway.call(tool, json!({"name": name, "n": n})).await;
        }
    };
    // the repeats with this result, and the lifetime
    let scraped = async |result: &str| {
        let scrape = Scrape::of(&gateway).await;
        assert!(scrape.has(metric::CACHE_LIFETIME));
        let repeats = scrape.value_with(metric::CACHE_REPEATS, &[("callward_result", result)]);
        (repeats, scrape.value(metric::CACHE_LIFETIME))
    };
    twice("steady", 0).await;
    let missing = "repeats within 1 s need about 7 independent equal observations, 0 are counted";
    let explained = shown(&["explain", tool]).await;
    assert!(explained.contains(missing), "{explained}");
    let lines = shown(&["tools"]).await;
    let expected = format!("{tool}: not cached: {missing}");
    assert!(lines.contains(&expected), "{lines}");
    assert_eq!(scraped("same").await, (1.0, 0.0));

    let mut numbers = 1..;
    within("a lifetime", async {
        while scraped("same").await.1 < 1.0 {
            twice("steady", numbers.next().unwrap()).await;
        }
    })
    .await;
    assert!(scraped("same").await.0 > 7.0);
    assert_eq!(scraped("different").await.0, 0.0);
    assert!(shown(&["tools"]).await.contains("learned:1s"));
    let cache = shown(&["cache"]).await;
    assert!(cache.contains("get_city  1.00 s"), "{cache}");

    within("a difference", async {
        while scraped("different").await.0 < 1.0 {
            twice("moves", numbers.next().unwrap()).await;
        }
    })
    .await;
}

const CROWD: usize = 64;

/// Asks as the client of a session does.
async fn asks(client: &Client) -> Value {
    let result = call(client, "desk__report", json!({ "year": 2026 })).await;
    serde_json::to_value(&result.content).unwrap()
}

/// Over HTTP in both eras, and over a pipe. The server answers its first call when the test lets
/// it, which is when all calls are in flight; a second call would show in the answers.
#[tokio::test]
async fn a_crowd_of_identical_calls_runs_once() {
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    let made = Command::new("mkfifo").arg(&go).status();
    assert!(within("mkfifo", made).await.unwrap().success());
    let desk = Script {
        call: r#"[ "$runs" != 1 ] || read -r go < "$argument"; says "run $runs""#,
        argument: go.to_str().unwrap(),
        ..Script::of_one("report")
    };
    // waits for the server to read, which it does when the first call runs
    let open = async || {
        let go = go.clone();
        let opened = tokio::task::spawn_blocking(move || std::fs::write(go, "go\n"));
        within("the execution", opened).await.unwrap().unwrap();
    };
    let config = format!("{}instances = \"shared\"\n", desk.server("desk"));
    let gateway = Gateway::fixed(&config).await;
    let legacy = gateway.connect(ClientLifecycleMode::Initialize).await;
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    let modern = ClientLifecycleMode::Discover { preferred_versions };
    let modern = gateway.connect(modern).await;
    let crowd = (0..CROWD).map(|n| asks([&legacy, &modern][n % 2]));
    let opened = async {
        let line = format!("callward_calls_in_flight {CROWD}");
        until("all calls in flight", || async {
            let (_, metrics) = gateway.get("/metrics").await;
            metrics.lines().any(|found| found == line).then_some(())
        })
        .await;
        open().await;
    };
    let (answers, ()) = tokio::join!(join_all(crowd), opened);
    let expected = json!([{ "type": "text", "text": "run 1" }]);
    assert!(answers.iter().all(|one| *one == expected), "{answers:?}");
    let misses = r#"callward_cache_lookups_total{callward_result="miss",callward_server_set="desk",gen_ai_tool_name="report"} 1"#;
    gateway
        .measures(&[misses, "callward_calls_in_flight 0"])
        .await;

    let mut pipe = Pipe::around(&desk).await;
    let mut asked = Vec::new();
    for _ in 0..CROWD {
        let params = json!({ "name": "report", "arguments": { "year": 2026 } });
        asked.push(pipe.send("tools/call", params).await);
    }
    // requests are read in order, so this is answered when all others are in
    pipe.request("ping", json!({})).await;
    open().await;
    for id in asked {
        let answer: Value = serde_json::from_str(&pipe.answer(id).await).unwrap();
        assert_eq!(said(&answer), "run 1");
    }
    assert!(pipe.close().await);
}

/// A shop with a read and a write, whose calls run this.
async fn shop(call: &str, argument: &Path) -> Gateway {
    let script = Script {
        call,
        argument: argument.to_str().unwrap(),
        ..Script::counting(&json!([tool("look", true), tool("change", false)]))
    };
    let server = script.server("shop");
    Gateway::fixed(&format!("{server}instances = \"shared\"\n")).await
}

/// Reads, and returns what the cache did.
async fn look(gateway: &Gateway) -> Value {
    gateway.call("shop__look", json!({})).await["cache"].take()
}

/// The writes that may still take effect.
async fn unsettled(gateway: &Gateway) -> Value {
    let mut cache: Value = gateway.json("/api/cache").await;
    cache["unsettled"].take()
}

#[tokio::test]
async fn a_write_whose_client_hangs_up_settles_with_its_answer() {
    // answers a change when the file is there
    let call = r#"
        case $line in *'"change"'*)
          : > "$argument.got"
          while [ ! -e "$argument" ]; do sleep 0.02; done ;;
        esac
        says "run $runs""#;
    let directory = tempfile::tempdir().unwrap();
    let may_answer = directory.path().join("may answer");
    let gateway = shop(call, &may_answer).await;
    let change = gateway.begin("shop__change", &json!({}));
    let got = directory.path().join("may answer.got");
    until("the change at the server", || async {
        unsettled(&gateway).await;
        got.exists().then_some(())
    })
    .await;
    change.abort();
    assert!(within("the client", change).await.is_err());
    std::fs::write(&may_answer, "").unwrap();
    until("a hit", || async {
        let was = look(&gateway).await;
        assert_eq!(unsettled(&gateway).await, json!([]));
        (was == "hit").then_some(())
    })
    .await;
}

#[tokio::test]
async fn state_is_told_that_a_write_may_still_change() {
    let call = r#"case $line in *'"change"'*) exit 3 ;; esac; says "run $runs""#;
    let directory = tempfile::tempdir().unwrap();
    let mut gateway = shop(call, directory.path()).await;
    assert_eq!(unsettled(&gateway).await, json!([]));
    let changed = gateway.call("shop__change", json!({})).await;
    assert_eq!(changed["error"]["kind"], "outcome_unknown", "{changed}");

    let reported = &unsettled(&gateway).await[0];
    let found = ["state", "tool", "reason"].map(|key| &reported[key]);
    let expected = ["the shared state", "change", "outcome_unknown"];
    assert_eq!(found, expected, "{reported}");
    for _ in 0..2 {
        assert_eq!(look(&gateway).await, "bypass");
    }
    gateway.measures(&["callward_cache_unsettled 1"]).await;
    let shown = ends(&[&["cache"], &gateway.here()[..]].concat()).await;
    let line = "shop  change  the shared state  outcome_unknown";
    assert!(text(&shown.stdout).contains(line), "{shown:?}");
    gateway.says("a write may still take effect").await;
}
