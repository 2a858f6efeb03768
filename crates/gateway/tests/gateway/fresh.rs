//! Answers beyond their lifetime, and answers that are checked, behind the real binary.

use callward::telemetry::names::metric;
use serde_json::{Value, json};

use crate::scrape::{Scrape, family};
use crate::scripted::Script;
use crate::support::{Gateway, ends, file, text, until, within};

const KEY: &str = "io.callward/cache";

/// Lives as long as the file it is given is there.
const MORTAL: &str = "test -e \"$argument\" || exit 1";

/// The n-th call is answered with `run n`, which is good for a millisecond unless its arguments say
/// that it moves, or with `always` if they say so.
const ANSWERS: &str = r#"
case $line in
  *steady*) says always ;;
  *moves*) says "run $runs" ;;
  *) says "run $runs" ',"ttlMs":1' ;;
esac
"#;

fn said(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn the_last_answer_stands_in_for_a_server_that_died_and_says_so() {
    let alive = file("");
    let script = Script {
        each: MORTAL,
        call: ANSWERS,
        argument: alive.path().to_str().unwrap(),
        ..Script::of_one("get_city")
    };
    let settings = "[cache]\nstale_if_error = \"1h\"\n[retry]\nmax_attempts = 1\n";
    let gateway = Gateway::fixed(&format!("{settings}{}", script.server("world"))).await;
    let first = gateway.mcp("world__get_city", json!({"name": "x"})).await;
    assert_eq!(said(&first["result"]), "run 1", "{first}");
    alive.close().unwrap();
    // the pipe breaks with the next call, and the one answer there was is served in its place
    let stale = until("an answer that is over", || async {
        let answer = gateway.mcp("world__get_city", json!({"name": "x"})).await;
        let is_stale = answer["result"]["_meta"][KEY]["status"] == "stale";
        is_stale.then_some(answer)
    })
    .await;
    assert_eq!(said(&stale["result"]), "run 1", "{stale}");
    let meta = &stale["result"]["_meta"][KEY];
    assert!(meta["age_ms"].is_u64(), "{stale}");
    assert!(meta["reason"].is_string(), "{stale}");
    // what was never answered fails as it would without a cache
    let other = gateway.call("world__get_city", json!({"name": "y"})).await;
    assert!(other["error"].is_object(), "{other}");
    let view: Value = gateway.json("/api/cache").await;
    assert!(view["total"]["rescued"].as_u64() >= Some(1), "{view}");
    let done = ends(&["cache", "--url", &gateway.admin]).await;
    let table = text(&done.stdout);
    assert!(table.contains("rescued"), "{table}");
}

/// The value of `callward_cache_repeats_total` with this result.
fn repeats(scrape: &Scrape, result: &str) -> f64 {
    let is_it = |(name, labels, _): &&(String, Vec<(String, String)>, f64)| {
        let has = |name: &str, value: &str| labels.contains(&(name.into(), value.into()));
        *name == family(metric::CACHE_REPEATS)
            && has("callward_result", result)
            && has("gen_ai_tool_name", "get_city")
            && has("callward_server_set", "world")
    };
    scrape.samples.iter().find(is_it).unwrap().2
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
        let done = ends(&[args, &["--url", &gateway.admin]].concat()).await;
        assert!(done.status.success(), "{}", text(&done.stderr));
        text(&done.stdout).to_owned()
    };
    let tool = "world__get_city";
    let twice = async |arguments: Value| {
        for _ in 0..2 {
            gateway.call(tool, arguments.clone()).await;
        }
    };
    twice(json!({"name": "steady", "n": 0})).await;
    let missing = "repeats within 1 s need about 7 independent equal observations, 0 are counted";
    let said = shown(&["explain", tool]).await;
    assert!(said.contains(missing), "{said}");
    let lines = shown(&["tools"]).await;
    assert!(
        lines.contains(&format!("{tool}: not cached: {missing}")),
        "{lines}"
    );
    let scrape = Scrape::of(&gateway).await;
    assert_eq!(scrape.value(metric::CACHE_LIFETIME), 0.0);
    assert!(scrape.has(metric::CACHE_LIFETIME));
    assert_eq!(repeats(&scrape, "same"), 1.0);

    let mut numbers = 1..;
    let scrape = within("a lifetime", async {
        loop {
            twice(json!({"name": "steady", "n": numbers.next()})).await;
            let scrape = Scrape::of(&gateway).await;
            if scrape.value(metric::CACHE_LIFETIME) >= 1.0 {
                return scrape;
            }
        }
    })
    .await;
    assert!(repeats(&scrape, "same") > 7.0);
    assert_eq!(repeats(&scrape, "different"), 0.0);
    assert!(shown(&["tools"]).await.contains("learned:1s"));
    let cache = shown(&["cache"]).await;
    assert!(cache.contains("get_city  1.00 s"), "{cache}");

    within("a difference", async {
        while repeats(&Scrape::of(&gateway).await, "different") < 1.0 {
            twice(json!({"name": "moves", "n": numbers.next()})).await;
        }
    })
    .await;
}
